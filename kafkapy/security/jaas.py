"""JAAS configuration: the value of `sasl.jaas.config`, and files with the login contexts of brokers and clients.

The grammar is that of Kafka and of Java's own parser:

    sasl.jaas.config    module flag key=value ... ;
    a file              context { module flag key=value ... ; ... } ;

A value is a quoted string or a word; a word may not begin with a digit, a dot or a minus sign. Comments are those of
Java; a single slash begins one too.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from kafkapy.errors import ConfigError

FLAGS = ("REQUIRED", "REQUISITE", "SUFFICIENT", "OPTIONAL")
# Login modules that Kafka refuses by default, because they connect to addresses that the text names.
FORBIDDEN_MODULES = frozenset(
    {"com.sun.security.auth.module.JndiLoginModule", "com.sun.security.auth.module.LdapLoginModule"}
)
JAVA_OPTION = "-Djava.security.auth.login.config="
_WORD, _STRING, _MARK = "word", "string", "mark"
_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_OCTAL = "01234567"


class JaasEntry(NamedTuple):
    """A login module with its flag (one of FLAGS) and options. The options may hold secrets, which `repr` hides."""

    module: str
    flag: str
    options: Mapping[str, str]

    def __repr__(self) -> str:
        return f"JaasEntry({self.module}, {self.flag}, options {sorted(self.options)})"


class _Token(NamedTuple):
    kind: str  # _WORD, _STRING or _MARK
    text: str


def parse_jaas_config(text: str) -> JaasEntry:
    """Returns the login module that a value of `sasl.jaas.config` names. Raises ConfigError, without the value, if the
    value is malformed or does not contain exactly one module."""
    tokens = _Tokens(text)
    entries = []
    while tokens.next is not None:
        entries.append(_parse_entry(tokens))
    if not entries:
        raise ConfigError("Login module not specified in JAAS config")
    if len(entries) != 1:
        raise ConfigError(f"JAAS config property contains {len(entries)} login modules, should be 1 module")
    check_allowed(entries[0])
    return entries[0]


def parse_jaas_file(text: str) -> dict[str, list[JaasEntry]]:
    """Returns the login contexts of a JAAS file: the name of each context with its login modules.

    Raises ConfigError for a malformed file.
    """
    tokens = _Tokens(text)
    contexts: dict[str, list[JaasEntry]] = {}
    while tokens.next is not None:
        name = tokens.take().text
        tokens.expect("{", f"the name of the login context {name}")
        entries = []
        while not tokens.skip("}"):
            if tokens.next is None:
                raise ConfigError(f"The login context {name} of the JAAS file is not terminated by }};")
            entries.append(_parse_entry(tokens))
        tokens.expect(";", f"the login context {name}")
        if name in contexts:
            raise ConfigError(f"The JAAS file contains the login context {name} twice")
        contexts[name] = entries
    return contexts


def check_allowed(entry: JaasEntry) -> None:
    """Raises ConfigError for a login module that Kafka refuses by default: JndiLoginModule and LdapLoginModule, which
    connect to addresses that their options name."""
    if entry.module in FORBIDDEN_MODULES:
        raise ConfigError(f"{entry.module} is not allowed in a JAAS configuration")


def _parse_entry(tokens: _Tokens) -> JaasEntry:
    module = tokens.take()
    if module.kind == _MARK:
        raise ConfigError(f"Login module not specified in JAAS config: found {module.text} instead")
    if tokens.next is None:
        raise ConfigError("Login module control flag not specified in JAAS config")
    flag = tokens.take()
    if flag.kind == _MARK:
        raise ConfigError("Login module control flag is not available in the JAAS config")
    if flag.text.upper() not in FLAGS:
        raise ConfigError(f"Invalid login module control flag '{flag.text}' in JAAS config; one of {', '.join(FLAGS)}")
    options: dict[str, str] = {}
    while not tokens.skip(";"):
        if tokens.next is None:
            raise ConfigError("JAAS config entry not terminated by semi-colon")
        key = tokens.take()
        if key.kind == _MARK or not tokens.skip("="):
            # The text may be a part of a password without quotes; the message must not contain it.
            place = f"after the value of {next(reversed(options))}" if options else f"after {flag.text.upper()}"
            raise ConfigError(f"JAAS config: {place}, key=value or ; is missing; a value may need quotes")
        if tokens.next is None or tokens.next.kind == _MARK:
            raise ConfigError(f"Value not specified for key '{key.text}' in JAAS config; a value may need quotes")
        options[key.text] = tokens.take().text
    return JaasEntry(module.text, flag.text.upper(), options)


class _Tokens:
    """The tokens of a text. `next` is the first token that has not been taken, or None at the end."""

    def __init__(self, text: str) -> None:
        self._tokens = _tokenize(text)
        self.next = next(self._tokens, None)

    def take(self) -> _Token:
        taken = self.next
        if taken is None:
            raise ConfigError("The JAAS configuration ends too early")
        self.next = next(self._tokens, None)
        return taken

    def skip(self, mark: str) -> bool:
        """Takes the next token if this token is the punctuation mark `mark`, such as ";". Returns True if it took the
        token."""
        if self.next != _Token(_MARK, mark):
            return False
        self.next = next(self._tokens, None)
        return True

    def expect(self, mark: str, predecessor: str) -> None:
        if not self.skip(mark):
            raise ConfigError(f"JAAS file: {mark} is missing after {predecessor}")


def _tokenize(text: str) -> Iterator[_Token]:
    """Yields the tokens of the text as Java's StreamTokenizer finds them.

    For a number, yields a punctuation mark with the text "a number". The parser refuses this mark, because the grammar
    has no numbers.
    """
    pos, end = 0, len(text)
    while pos < end:
        char = text[pos]
        if char <= " ":
            pos += 1
        elif char == "/":
            pos = _after_comment(text, pos)
        elif char in "\"'":
            value, pos = _read_string(text, pos)
            yield _Token(_STRING, value)
        elif _is_letter(char) and char != "-":
            start = pos
            while pos < end and _is_word_character(text[pos]):
                pos += 1
            yield _Token(_WORD, text[start:pos])
        elif char in "-.0123456789":
            pos += 1
            while pos < end and text[pos] in ".0123456789":
                pos += 1
            yield _Token(_MARK, "a number")
        else:
            pos += 1
            yield _Token(_MARK, char)


def _is_letter(char: str) -> bool:
    return (char.isascii() and char.isalpha()) or char in "-_$" or char >= "\xa0"


def _is_word_character(char: str) -> bool:
    return _is_letter(char) or char in ".0123456789"


def _after_comment(text: str, pos: int) -> int:
    """Returns the position after the comment that begins at `pos`."""
    if text.startswith("/*", pos):
        end = text.find("*/", pos + 2)
        return len(text) if end < 0 else end + 2
    while pos < len(text) and text[pos] not in "\r\n":
        pos += 1
    return pos


def _read_string(text: str, pos: int) -> tuple[str, int]:
    """Returns the value of the quoted string at `pos` and the position after it. A string without a closing quote ends
    at the end of its line.
    """
    quote = text[pos]
    pos += 1
    found: list[str] = []
    while pos < len(text) and text[pos] not in (quote, "\n", "\r"):
        char = text[pos]
        pos += 1
        if char == "\\" and pos < len(text):
            char = text[pos]
            pos += 1
            if char in _OCTAL:
                start = pos - 1
                longest = start + (3 if char <= "3" else 2)
                while pos < min(longest, len(text)) and text[pos] in _OCTAL:
                    pos += 1
                char = chr(int(text[start:pos], 8))
            else:
                char = _ESCAPES.get(char, char)
        found.append(char)
    return "".join(found), pos + 1 if pos < len(text) and text[pos] == quote else pos


def read_jaas_file(path: str) -> dict[str, list[JaasEntry]]:
    """Returns the login contexts of the file at `path`. Raises ConfigError if it cannot be read or is malformed."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"Cannot read the JAAS file {path}: {error}") from error
    try:
        return parse_jaas_file(text)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def jaas_file_of(environment: Mapping[str, str]) -> str | None:
    """Returns the path in the option -Djava.security.auth.login.config=PATH of the environment variable KAFKA_OPTS,
    or None if there is no such option."""
    try:
        words = shlex.split(environment.get("KAFKA_OPTS", ""))
    except ValueError:  # an unterminated quote
        return None
    found = [word.removeprefix(JAVA_OPTION) for word in words if word.startswith(JAVA_OPTION)]
    return found[-1] if found else None
