"""Finds the faults of prose that a program can find, by the rules of docs/writing.md."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

# A docstring that begins with one of these is a fragment of a sentence.
FRAGMENT_OPENINGS = frozenset(
    [
        "As",
        "Of",
        "So",
        "Those",
        "Who",
        "Whose",
        "What",
        "Whether",
        "Where",
        "Which",
        "Whichever",
        "Whoever",
        "With",
        "Else",
        "Now",
        "Once",
        "Only",
        "Also",
        "Such",
    ]
)
# What to write instead is in docs/writing.md, section "Words".
BANNED = (
    r"\banew\b",
    r"\b(?:is|are|was|were) no more\b(?! than)",
    r"\bhears? (?:of|about)\b",
    r"\bheed(?:s|ed)?\b",
    r"\bwhoever\b",
    r"\bsomebody\b",
    r"\bfor (?:good )?luck\b",
    r"\bthe house\b",
    r"\bbesides?\b",
    r"\btells (?:if|whether)\b",
    r"\bas (?:its|the|their) base says\b",
    r"\bis (?:what|who) (?:it|they) (?:was|were|is|are)\b",
    r"\bstands? (?:in(?! for)|at|on|there|here|for itself)\b",
    r"\bin (?:the|its|their) midst\b",
    r"\bin vain\b",
    r"\b(?:lets?|let) go of\b",
    r"\bholds? [^.]{1,40} against\b",
    r"\blook(?:s|ed)? after\b",
    r"\bin (?:the )?place of\b",
    r"\bhappens? of itself\b",
    r"\bof itself\b",
    r"\bnews of\b",
    r"\bmust not be lost\?",
)
_BANNED = re.compile("|".join(f"(?:{phrase})" for phrase in BANNED), re.IGNORECASE)
# Names of programs and signals that are written with a small letter, and identifiers.
_LOWERCASE_NAME = re.compile(
    r"(?:kafkapy|kill|ruff|mypy|msgpack|librdkafka|systemd|kcat|confluent|aiokafka|franz|zstd|lz4|gzip|snappy|pdoc|acks)\b"
    r"|\w+[.(_=]|\w*[A-Z0-9]"
)
_TWO_SPACES = re.compile(r"(?<=[a-z)`][.!?])  (?=[A-Z`])")
_CYTHON_DOCSTRING = re.compile(
    r'(?:\A(?:#[^\n]*\n|\s)*|(?:def|class|cdef|cpdef)\b[^\n]*(?:\n[^\n"]*)??:(?:[ \t]*#[^\n]*)?\n\s*)r?"""(.*?)"""',
    re.DOTALL,
)
_CODE_BLOCK = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
_CODE_SPAN = re.compile(r"`[^`\n]*`")


class Text(NamedTuple):
    """A docstring, a run of comments or a page, with the line on which it begins."""

    kind: str
    line: int
    text: str


def faults(path: Path) -> Iterator[tuple[int, str]]:
    """Yields (line, fault) for each fault in the prose of a source or of a Markdown page."""
    for text in texts(path):
        if text.kind == "docstring":
            yield from _faults_of_opening(text)
        plain = _CODE_SPAN.sub(lambda found: "x" * len(found[0]), text.text)
        for found in _BANNED.finditer(plain):
            yield text.line + plain.count("\n", 0, found.start()), f"banned phrase: {found[0]!r}"
        for found in _TWO_SPACES.finditer(plain):
            yield text.line + plain.count("\n", 0, found.start()), "two spaces after a full stop"


def _faults_of_opening(text: Text) -> Iterator[tuple[int, str]]:
    paragraph = text.text.strip().split("\n\n")[0]
    first = re.match(r"[\w']+", paragraph)
    if first and first[0] in FRAGMENT_OPENINGS:
        yield text.line, f"a docstring begins with {first[0]!r}"
    if first and first[0][0].islower() and not _LOWERCASE_NAME.match(paragraph):
        yield text.line, "a docstring begins with a small letter"
    if not re.search(r"[.:!?`)\"]$", paragraph.rstrip()):
        yield text.line, "the first paragraph of a docstring does not end with a full stop"


def texts(path: Path) -> Iterator[Text]:
    """Yields the prose of a file: docstrings and comments of a source, a page without its code blocks."""
    content = path.read_text()
    if path.suffix == ".md":
        yield Text("page", 1, _CODE_BLOCK.sub(lambda found: "\n" * found[0].count("\n"), content))
    elif path.suffix == ".py":
        yield from _python_docstrings(content)
        yield from _python_comments(content)
    else:
        for found in _CYTHON_DOCSTRING.finditer(content):
            yield Text("docstring", content.count("\n", 0, found.start(1)) + 1, found[1])
        for number, line in enumerate(content.splitlines(), 1):
            found_comment = re.search(r"(?:^|\s)#\s(.*)", line)
            if found_comment:
                yield Text("comment", number, found_comment[1])


def _python_docstrings(content: str) -> Iterator[Text]:
    for node in ast.walk(ast.parse(content)):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) or not node.body:
            continue
        first = node.body[0]
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
            yield Text("docstring", first.lineno, first.value.value)


def _python_comments(content: str) -> Iterator[Text]:
    run: list[str] = []
    begins, last = 0, -1
    for token in tokenize.generate_tokens(io.StringIO(content).readline):
        if token.type != tokenize.COMMENT:
            continue
        if token.start[0] != last + 1:
            if run:
                yield Text("comment", begins, "\n".join(run))
            run, begins = [], token.start[0]
        run.append(token.string.lstrip("#! "))
        last = token.start[0]
    if run:
        yield Text("comment", begins, "\n".join(run))
