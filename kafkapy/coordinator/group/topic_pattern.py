"""Regular expressions over topic names and transactional ids in RE2's syntax, matched in linear time.

A client chooses the expression, so a match must take a bounded time: no backtracking, a bounded program, and one step
for each character, whatever the expression is. A set of characters is an int. Bits 0 to 127 represent the characters of
ASCII. Each higher bit represents either one other character that the expression contains, or all characters before,
between or after two such characters. Classes such as `\\pL`, and `(?i)`, apply to the letters of ASCII only.

expression -> tree (`_Parser`) -> instructions (`_Program`) -> states of a deterministic automaton, on first use
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable
from typing import Any

from kafkapy.decimal_text import is_number

MAX_EXPRESSION_LENGTH = 8192
MAX_INSTRUCTIONS = 20_000
MAX_REPEAT = 1000
MAX_DEPTH = 200
# The greatest number of stored states of the automaton; when it is reached, all of them are discarded.
_MAX_STATES = 2_000
# The greatest number of steps that all matches of one expression may take to compute states: some seconds of work.
MAX_WORK = 20_000_000


class PatternError(ValueError):
    """Raised for an expression that is not valid in RE2, too large, or too expensive to match."""


def _bits(characters: Iterable[str]) -> int:
    mask = 0
    for character in characters:
        mask |= 1 << ord(character)
    return mask


_ALL = -1
_DIGITS = _bits("0123456789")
_LOWER = _bits("abcdefghijklmnopqrstuvwxyz")
_UPPER = _bits("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_WORD = _DIGITS | _LOWER | _UPPER | _bits("_")
_SPACE = _bits(" \t\n\f\r")
_PRINT = _bits(map(chr, range(32, 127)))
_PERL = {"d": _DIGITS, "s": _SPACE, "w": _WORD}
_POSIX = {
    "alnum": _DIGITS | _LOWER | _UPPER,
    "alpha": _LOWER | _UPPER,
    "ascii": (1 << 128) - 1,
    "blank": _bits(" \t"),
    "cntrl": _bits(map(chr, [*range(32), 127])),
    "digit": _DIGITS,
    "graph": _PRINT & ~_bits(" "),
    "lower": _LOWER,
    "print": _PRINT,
    "punct": _PRINT & ~(_WORD | _bits(" ")) | _bits("_"),
    "space": _SPACE | _bits("\v"),
    "upper": _UPPER,
    "word": _WORD,
    "xdigit": _DIGITS | _bits("abcdefABCDEF"),
}
_UNICODE = {
    "L": _LOWER | _UPPER, "Lu": _UPPER, "Ll": _LOWER, "N": _DIGITS, "Nd": _DIGITS, "Latin": _LOWER | _UPPER,
    "P": _POSIX["punct"] & ~_bits("$+<=>^`|~"), "S": _bits("$+<=>^`|~"), "Any": _ALL, "Pc": _bits("_"),
    "Pd": _bits("-"), "Zs": _bits(" "), "Z": _bits(" "), "Cc": _POSIX["cntrl"], "C": _POSIX["cntrl"],
}  # fmt: skip
_ESCAPES = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}

# Trees: ("set", mask), ("at", assertion), ("cat", [...]), ("or", [...]), ("repeat", tree, least, most or None).
_Tree = tuple[Any, ...]
_EMPTY: _Tree = ("cat", [])


# Escapes that may name a character beyond ASCII.
_HEXADECIMAL = re.compile(r"\\x(?:\{([0-9a-fA-F]{1,6})\}|([0-9a-fA-F]{2}))|\\([0-7]{3})")


class _Alphabet:
    """Assigns a bit to each character, so that a set of characters is an int. Characters that the expression does not
    distinguish share a bit."""

    def __init__(self, expression: str) -> None:
        points = {ord(character) for character in expression if ord(character) > 127}
        for braced, plain, octal in _HEXADECIMAL.findall(expression):
            points.add(int(octal, 8) if octal else int(braced or plain, 16))
        self._points = sorted(point for point in points if point > 127)

    def bit(self, code_point: int) -> int:
        if code_point < 128:
            return code_point
        index = bisect_left(self._points, code_point)
        is_named = index < len(self._points) and self._points[index] == code_point
        return 128 + 2 * index + is_named

    def set_of(self, low: int, high: int) -> int:
        """Returns the set of the characters from `low` to `high` (code points, inclusive) as an int with one bit for
        each character. `low` and `high` are ASCII or occur in the expression."""
        return (2 << self.bit(high)) - (1 << self.bit(low))


class TopicPattern:
    """A compiled expression. Not thread-safe, because a match stores states of the automaton."""

    def __init__(self, expression: str, max_work: int = MAX_WORK) -> None:
        """Compiles the expression. Raises PatternError, whose message is RE2's, if it is invalid.

        `max_work` limits the work of all calls of `matches` together, as a number of executed instructions. The
        automaton stores the states that it has computed; using a stored state again costs nothing.
        """
        program = _Program()
        self._alphabet = _Alphabet(expression)
        program.emit(_checked_tree(expression, self._alphabet))
        program.instructions.append((_MATCH, 0, 0))
        self._instructions = program.instructions
        self._start = self._closure([0])
        self._states: dict[frozenset[int], dict[str, frozenset[int]]] = {}
        self._work = 0
        self._max_work = max_work

    @staticmethod
    def check(expression: str) -> None:
        """Raises PatternError if the constructor would raise it, at a tenth of the constructor's cost."""
        _checked_tree(expression, _Alphabet(expression))

    def matches(self, name: str) -> bool:
        """Returns whether the expression matches the whole name.

        Raises PatternError when the matches so far have taken more work than `max_work`.
        """
        threads, before = self._start, ""
        for character in name:
            transitions = self._states.get(threads)
            if transitions is None:
                if len(self._states) >= _MAX_STATES:
                    self._states.clear()
                transitions = self._states[threads] = {}
            symbol = character if character.isascii() else chr(self._alphabet.bit(ord(character)))
            key = symbol if before == "" else ("w" if _is_word(before) else "n") + symbol
            following = transitions.get(key)
            if following is None:
                following = transitions[key] = self._step(threads, before, character)
            if not following:
                return False
            threads, before = following, character
        final = self._pass_assertions(threads, before, "")
        return any(self._instructions[pc][0] == _MATCH for pc in final)

    def _step(self, threads: frozenset[int], before: str, character: str) -> frozenset[int]:
        bit = 1 << self._alphabet.bit(ord(character))
        taken = []
        self._work += len(threads) + 1
        if self._work > self._max_work:
            raise PatternError("expression too expensive")
        for pc in self._pass_assertions(threads, before, character):
            kind, argument, _ = self._instructions[pc]
            if kind == _SET and argument & bit:
                taken.append(pc + 1)
        return self._closure(taken)

    def _closure(self, start: Iterable[int]) -> frozenset[int]:
        """Returns the indexes of the instructions that consume a character, test an assertion or report a match, and
        that are reachable from the indexes `start` by jumps and splits only."""
        seen: set[int] = set()
        stack = list(start)
        while stack:
            pc = stack.pop()
            if pc in seen:
                continue
            seen.add(pc)
            kind, first, second = self._instructions[pc]
            if kind == _SPLIT:
                stack += (first, second)
            elif kind == _JUMP:
                stack.append(first)
        return frozenset(pc for pc in seen if self._instructions[pc][0] in (_SET, _MATCH, _AT))

    def _pass_assertions(self, threads: frozenset[int], before: str, after: str) -> set[int]:
        """Returns `threads`, which are indexes of instructions, and the indexes that are reached from them by passing
        assertions (`^`, `$`, word boundaries) that are true between the characters `before` and `after`.

        `before` is "" at the beginning of the name, and `after` is "" at its end.
        """
        resolved: set[int] = set()
        stack = list(threads)
        while stack:
            pc = stack.pop()
            if pc in resolved:
                continue
            resolved.add(pc)
            kind, assertion, _ = self._instructions[pc]
            if kind == _AT and _holds(assertion, before, after):
                stack += self._closure([pc + 1])
        return resolved


def _checked_tree(expression: str, alphabet: _Alphabet) -> _Tree:
    if len(expression) > MAX_EXPRESSION_LENGTH:
        raise PatternError("expression too large")
    tree = _Parser(expression, alphabet).parse()
    if _size(tree) > MAX_INSTRUCTIONS:
        raise PatternError("expression too large")
    return tree


def _size(tree: _Tree) -> int:
    """Returns an upper bound of two numbers: the number of instructions that `emit` produces for the syntax tree, and
    the number of calls of `emit` that produce them. A tree that is too large is refused before `emit` is called."""
    kind = tree[0]
    if kind in ("set", "at"):
        return 1
    if kind in ("cat", "or"):
        return 1 + sum(_size(part) + (2 if kind == "or" else 0) for part in tree[1])
    least, most = tree[2], tree[3]
    times: int = least + 1 if most is None else max(least, most)
    return 2 + (_size(tree[1]) + 1) * times


def _is_word(character: str) -> bool:
    return character != "" and ord(character) < 128 and bool(_WORD >> ord(character) & 1)


def _holds(assertion: int, before: str, after: str) -> bool:
    if assertion == _BEGIN:
        return before == ""
    if assertion == _END:
        return after == ""
    if assertion == _BEGIN_LINE:
        return before in ("", "\n")
    if assertion == _END_LINE:
        return after in ("", "\n")
    return (_is_word(before) != _is_word(after)) == (assertion == _BOUNDARY)


_SET, _SPLIT, _JUMP, _AT, _MATCH = range(5)
_BEGIN, _END, _BEGIN_LINE, _END_LINE, _BOUNDARY, _NO_BOUNDARY = range(6)


class _Program:
    """The instructions of an expression, as tuples of a kind and two operands; an operand that is not used is 0.

    The operands are the set of a _SET, the two targets of a _SPLIT, the target of a _JUMP, and the assertion of an _AT.
    A repetition is unrolled, so the caller must check the size of the tree before it calls `emit`.
    """

    def __init__(self) -> None:
        self.instructions: list[tuple[int, int, int]] = []

    def emit(self, tree: _Tree) -> None:
        kind = tree[0]
        if kind == "set":
            self.instructions.append((_SET, tree[1], 0))
        elif kind == "at":
            self.instructions.append((_AT, tree[1], 0))
        elif kind == "cat":
            for part in tree[1]:
                self.emit(part)
        elif kind == "or":
            self._emit_alternatives(tree[1])
        else:
            self._emit_repeat(tree[1], tree[2], tree[3])

    def _emit_alternatives(self, parts: list[_Tree]) -> None:
        jumps = []
        for part in parts[:-1]:
            split = self._reserve()
            self.emit(part)
            jumps.append(self._reserve())
            self.instructions[split] = (_SPLIT, split + 1, len(self.instructions))
        self.emit(parts[-1])
        for jump in jumps:
            self.instructions[jump] = (_JUMP, len(self.instructions), 0)

    def _emit_repeat(self, tree: _Tree, least: int, most: int | None) -> None:
        for _ in range(least):
            self.emit(tree)
        if most is None:
            split = self._reserve()
            self.emit(tree)
            self.instructions.append((_JUMP, split, 0))
            self.instructions[split] = (_SPLIT, split + 1, len(self.instructions))
            return
        splits = []
        for _ in range(most - least):
            splits.append(self._reserve())
            self.emit(tree)
        for split in splits:
            self.instructions[split] = (_SPLIT, split + 1, len(self.instructions))

    def _reserve(self) -> int:
        self.instructions.append((_JUMP, 0, 0))
        return len(self.instructions) - 1


class _Parser:
    """A recursive-descent parser of RE2's syntax. `_flags` has the active flags of `(?imsU)`."""

    def __init__(self, expression: str, alphabet: _Alphabet) -> None:
        self._text = expression
        self._alphabet = alphabet
        self._pos = 0
        self._depth = 0
        self._flags = frozenset[str]()

    def parse(self) -> _Tree:
        tree = self._alternatives()
        if self._pos < len(self._text):
            raise PatternError("regexp/syntax: internal error")  # RE2's message for a superfluous ")".
        return tree

    def _peek(self, length: int = 1) -> str:
        return self._text[self._pos : self._pos + length]

    def _take(self) -> str:
        self._pos += 1
        return self._text[self._pos - 1]

    def _alternatives(self) -> _Tree:
        parts = [self._sequence()]
        while self._peek() == "|":
            self._pos += 1
            parts.append(self._sequence())
        return parts[0] if len(parts) == 1 else ("or", parts)

    def _sequence(self) -> _Tree:
        parts: list[_Tree] = []
        while self._peek() not in ("", "|", ")"):
            parts.append(self._repeated(self._atom()))
        return parts[0] if len(parts) == 1 else ("cat", parts)

    def _repeated(self, tree: _Tree) -> _Tree:
        count = 0
        while True:
            start = self._pos
            bounds = self._bounds()
            if bounds is None:
                return tree
            if self._peek() == "?":
                self._pos += 1  # A reluctant repetition matches the same names.
            count += 1
            if count > 1:
                raise PatternError(f"invalid nested repetition operator: `{self._text[start - 1 : self._pos]}`")
            tree = ("repeat", tree, *bounds)

    def _bounds(self) -> tuple[int, int | None] | None:
        """Reads a repetition operator; returns the least and the greatest count (None for no limit), or None if there
        is no operator."""
        character = self._peek()
        if character in ("*", "+", "?") and character:
            self._pos += 1
            return {"*": (0, None), "+": (1, None), "?": (0, 1)}[character]
        if character != "{":
            return None
        end = self._text.find("}", self._pos)
        inside = self._text[self._pos + 1 : end] if end > 0 else ""
        least, comma, most = inside.partition(",")
        if not is_number(least) or (most and not is_number(most)):
            return None  # The brace is a literal character.
        if len(least) > 6 or len(most) > 6 or max(int(least), int(most or 0)) > MAX_REPEAT:
            raise PatternError(f"invalid repeat count: `{{{inside}}}`")
        if most and int(most) < int(least):
            raise PatternError(f"invalid repeat count: `{{{inside}}}`")
        self._pos = end + 1
        return int(least), (int(least) if not comma else int(most) if most else None)

    def _atom(self) -> _Tree:
        """Reads one element of an expression and returns its syntax tree: a group, a class, an assertion, an escape or
        a literal."""
        character = self._take()
        if character == "(":
            return self._group()
        if character == "[":
            return ("set", self._class())
        if character == ".":
            return ("set", _ALL if "s" in self._flags else _ALL & ~_bits("\n"))
        if character == "^":
            return ("at", _BEGIN_LINE if "m" in self._flags else _BEGIN)
        if character == "$":
            return ("at", _END_LINE if "m" in self._flags else _END)
        if character == "\\":
            return self._escape()
        if character in "*+?":
            raise PatternError(f"missing argument to repetition operator: `{character}`")
        if character == "{" and self._is_repetition():
            raise PatternError("missing argument to repetition operator: `{`")
        return self._literal(character)

    def _is_repetition(self) -> bool:
        self._pos -= 1
        start = self._pos
        bounds = self._bounds()
        self._pos = start + 1
        return bounds is not None

    def _literal(self, character: str) -> _Tree:
        return ("set", self._folded(1 << self._alphabet.bit(ord(character))))

    def _folded(self, mask: int) -> int:
        if "i" not in self._flags:
            return mask
        return mask | (mask & _LOWER) >> 32 | (mask & _UPPER) << 32

    def _group(self) -> _Tree:
        """Reads the rest of a group after its opening parenthesis, and returns its syntax tree."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise PatternError("expression nests too deeply")
        flags = self._flags
        if self._peek() == "?" and not self._group_start():
            self._depth -= 1
            return _EMPTY  # (?i): flags for the rest of the expression.
        tree = self._alternatives()
        if self._peek() != ")":
            raise PatternError("missing closing )")
        self._pos += 1
        self._flags = flags
        self._depth -= 1
        return tree

    def _group_start(self) -> bool:
        """Reads what follows `(?`: the name of a group, or flags. Returns False if the parentheses only set flags, as
        in `(?i)`, and True if a group begins."""
        start = self._pos - 1
        self._pos += 1
        if self._peek() == "<" or self._peek(2) == "P<":
            end = self._text.find(">", self._pos)
            name = self._text[self._pos : end].lstrip("P").lstrip("<")
            if end < 0 or not name or not all(_is_word(character) for character in name):
                raise PatternError(f"invalid named capture: `{self._text[start : end + 1 if end > 0 else None]}`")
            self._pos = end + 1
            return True
        flags, is_off = set(self._flags), False
        while self._pos < len(self._text):
            character = self._take()
            if character in ":)":
                self._flags = frozenset(flags)
                return character == ":"
            if character == "-" and not is_off:
                is_off = True
            elif character in "imsU":
                (flags.discard if is_off else flags.add)(character)
            else:
                break
        raise PatternError(f"invalid or unsupported Perl syntax: `{self._text[start : self._pos]}`")

    def _escape(self) -> _Tree:
        assertions = {"A": _BEGIN, "z": _END, "b": _BOUNDARY, "B": _NO_BOUNDARY}
        if self._peek() in assertions and self._peek():
            return ("at", assertions[self._take()])
        if self._peek() == "Q":
            self._pos += 1
            end = self._text.find("\\E", self._pos)
            text = self._text[self._pos : end if end >= 0 else None]
            self._pos = end + 2 if end >= 0 else len(self._text)
            return ("cat", [self._literal(character) for character in text])
        mask, _ = self._escaped_set()
        return ("set", self._folded(mask))

    def _escaped_set(self) -> tuple[int, str | None]:
        """Reads the rest of an escape after the backslash. Returns the set of characters that it denotes, one bit for
        each, and the character itself.

        The character is None if the escape is a class such as `\\d`.
        """
        start = self._pos - 1
        if self._pos >= len(self._text):
            raise PatternError("trailing backslash at end of expression: ``")
        character = self._take()
        if character.lower() in _PERL:
            mask = _PERL[character.lower()]
            return (mask if character.islower() else _ALL & ~mask), None
        if character in "pP":
            return self._unicode_class(start, character == "P"), None
        code = self._code_point(character)
        if code is None:
            raise PatternError(f"invalid escape sequence: `{self._text[start : self._pos]}`")
        return 1 << self._alphabet.bit(code), chr(code)

    def _unicode_class(self, start: int, is_negated: bool) -> int:
        name = self._take() if self._pos < len(self._text) else ""
        if name == "{":
            end = self._text.find("}", self._pos)
            name = self._text[self._pos : end] if end >= 0 else "?"
            self._pos = end + 1 if end >= 0 else len(self._text)
        if name.startswith("^"):
            name, is_negated = name[1:], not is_negated
        if name not in _UNICODE:
            raise PatternError(f"invalid character class range: `{self._text[start : self._pos]}`")
        return _ALL & ~_UNICODE[name] if is_negated else _UNICODE[name]

    def _code_point(self, character: str) -> int | None:
        if character in _ESCAPES:
            return ord(_ESCAPES[character])
        if character == "x":
            return self._hexadecimal()
        if character == "0" or (character in "1234567" and self._peek() in tuple("01234567")):
            digits = character
            while len(digits) < 3 and self._peek() in tuple("01234567"):
                digits += self._take()
            return int(digits, 8)
        if ord(character) < 128 and not character.isalnum():
            return ord(character)
        return None

    def _hexadecimal(self) -> int | None:
        digits = self._peek(2)
        if digits.startswith("{"):
            end = self._text.find("}", self._pos)
            digits = self._text[self._pos + 1 : end] if end >= 0 else ""
            self._pos = end + 1 if end >= 0 else len(self._text)
        else:
            self._pos += 2
        if not digits or len(digits) > 6 or any(digit not in "0123456789abcdefABCDEF" for digit in digits):
            return None
        return code if (code := int(digits, 16)) <= 0x10FFFF else None

    def _class(self) -> int:
        """Reads the rest of a character class after its opening bracket, and returns the set of its characters, one bit
        for each."""
        start = self._pos - 1
        is_negated = self._peek() == "^"
        self._pos += is_negated
        mask = 0
        is_first = True
        while is_first or self._peek() != "]":
            if self._pos >= len(self._text):
                raise PatternError(f"missing closing ]: `{self._text[start:]}`")
            if self._peek() == "-" and not is_first and self._peek(2) != "-]":
                raise PatternError(f"invalid character class range: `{self._peek(2)}`")
            is_first = False
            mask |= self._class_part(start)
        self._pos += 1
        mask = self._folded(mask)
        return _ALL & ~mask if is_negated else mask

    def _class_part(self, start: int) -> int:
        """Reads one element of a character class, which is a named class, a character or a range, and returns the set
        of its characters, one bit for each.

        `start` is the position of the class in the expression. Error messages quote the expression from there on.
        """
        if self._peek(2) == "[:":
            end = self._text.find(":]", self._pos + 2)
            if end >= 0:
                name = self._text[self._pos + 2 : end]
                mask = _POSIX.get(name.removeprefix("^"))
                if mask is None:
                    raise PatternError(f"invalid character class range: `[:{name}:]`")
                self._pos = end + 2
                return _ALL & ~mask if name.startswith("^") else mask
        part_start = self._pos
        mask, low = self._class_character(start)
        if low is None or self._peek() != "-" or self._peek(2) in ("-", "-]"):
            return mask
        self._pos += 1
        _, high = self._class_character(start)
        if high is None or high < low:
            raise PatternError(f"invalid character class range: `{self._text[part_start : self._pos]}`")
        return self._alphabet.set_of(ord(low), ord(high))

    def _class_character(self, start: int) -> tuple[int, str | None]:
        if self._pos >= len(self._text):
            raise PatternError(f"missing closing ]: `{self._text[start:]}`")
        character = self._take()
        if character == "\\":
            return self._escaped_set()
        return 1 << self._alphabet.bit(ord(character)), character
