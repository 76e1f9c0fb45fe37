"""Mutation operators for Cython, which no maintained tool has: exchanges of one token, and the removal of a statement.

The source is read with Python's tokenizer, which accepts Cython. Binary operators are recognised by the spaces around
them, so that `<int>value` and `&value` are left alone. Declarations and the head of the file are not mutated.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from typing import NamedTuple

from tests.mutation.site import Site

_EXCHANGES = {
    "==": ("!=",),
    "!=": ("==",),
    "<": ("<=", ">="),
    "<=": ("<",),
    ">": (">=", "<="),
    ">=": (">",),
    "+": ("-",),
    "-": ("+",),
    "*": ("+",),
    "//": ("*",),
    "%": ("*",),
    "<<": (">>",),
    ">>": ("<<",),
    "&": ("|",),
    "|": ("&",),
    "+=": ("-=",),
    "-=": ("+=",),
    "and": ("or",),
    "or": ("and",),
    "not": ("",),
    "is": ("is not",),
    "True": ("False",),
    "False": ("True",),
    "break": ("continue",),
    "continue": ("break",),
}
_BINARY = {operator for operator in _EXCHANGES if not operator.isidentifier()}
_CALL_OR_ASSIGNMENT = re.compile(r"[\w.]+\(.*\)|[\w.]*[.\[].*[^=!<>]=[^=].*|\w+ ?[-+|&]= .*")
_NOT_MUTATED = re.compile(r"c?p?def\b|c?import\b|from\b|class\b|@|ctypedef\b|log(ger)?\.|_log(ger)?\.|with\b|DEF\b")


class _Edit(NamedTuple):
    line: int
    start: int
    end: int
    operator: str
    replacement: str


def _edits(source: str) -> Iterator[_Edit]:
    statement: list[tokenize.TokenInfo] = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.COMMENT, tokenize.NL):
            if token.type == tokenize.NEWLINE:
                yield from _statement_edits(statement)
                statement = []
            continue
        statement.append(token)


def _statement_edits(tokens: list[tokenize.TokenInfo]) -> Iterator[_Edit]:
    line = tokens[0].line
    if tokens[0].start[1] == 0 or _NOT_MUTATED.match(line.lstrip()) or tokens[0].type == tokenize.STRING:
        return
    first, last = tokens[0], tokens[-1]
    if first.start[0] == last.end[0]:
        text = line[first.start[1] : last.end[1]]
        if _CALL_OR_ASSIGNMENT.fullmatch(text):
            yield _Edit(first.start[0], first.start[1], last.end[1], "remove statement", "pass")
    for number, token in enumerate(tokens):
        (row, start), (_, end) = token.start, token.end
        if token.type == tokenize.NUMBER and re.fullmatch(r"\d+", token.string):
            yield _Edit(row, start, end, "number", str(int(token.string) + 1))
            continue
        if token.string in _BINARY and token.line[start - 1 : end + 1] != f" {token.string} ":
            continue
        if token.string == "is" and tokens[number + 1].string == "not":  # the mutant of `not` exchanges the operator
            continue
        for other in _EXCHANGES.get(token.string, ()) if token.type in (tokenize.OP, tokenize.NAME) else ():
            yield _Edit(row, start, end, f"{token.string} to {other or 'nothing'}", other)


def sites(source: str) -> Iterator[Site]:
    """Yields all mutants of a Cython source."""
    for number, edit in enumerate(_edits(source)):
        yield Site(edit.line, edit.operator, number)


def mutate(source: str, site: Site) -> str:
    """Returns the source with the mutation made."""
    for number, edit in enumerate(_edits(source)):
        if number == site.occurrence:
            lines = source.splitlines(keepends=True)
            line = lines[edit.line - 1]
            lines[edit.line - 1] = line[: edit.start] + edit.replacement + line[edit.end :]
            return "".join(lines)
    raise LookupError(site)
