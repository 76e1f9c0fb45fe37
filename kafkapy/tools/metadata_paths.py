"""Paths in the tree of the metadata shell: splitting of lines and paths, and expansion of patterns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from kafkapy.named_tuple import NamedTuple
from kafkapy.tools.metadata_tree import Node

_SPECIAL = "*?{"


class Found(NamedTuple):
    """A node that a path names: its absolute path as names, and the node."""

    path: tuple[str, ...]
    node: Node


def words_of(line: str) -> list[str]:
    """Returns the words of a line. Quotes and backslashes protect blanks; a missing quote at the end is ignored."""
    words: list[str] = []
    word: str | None = None
    quote = ""
    escaped = False
    for letter in line:
        if escaped:
            word, escaped = (word or "") + letter, False
        elif letter == "\\":
            escaped = True
        elif quote:
            word, quote = (word or "") + letter * (letter != quote), quote * (letter != quote)
        elif letter in "'\"":
            word, quote = word or "", letter
        elif letter.isspace():
            if word is not None:
                words.append(word)
            word = None
        else:
            word = (word or "") + letter
    return words if word is None else [*words, word]


def components(path: str, directory: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the absolute path that `path` stands for, as a tuple of names.

    `path` is relative to `directory`, which is absolute, unless it begins with a slash.
    """
    names: list[str] = [] if path.startswith("/") else list(directory)
    for name in path.split("/"):
        if name == "..":
            del names[-1:]
        elif name not in ("", "."):
            names.append(name)
    return tuple(names)


def node_at(root: Node, names: tuple[str, ...]) -> Node | None:
    """Returns the node of the absolute path `names`, or None if the tree has no such node."""
    node = root
    for name in names:
        if not isinstance(node, Mapping) or name not in node:
            return None
        node = node[name]
    return node


def expand(root: Node, path: str, directory: tuple[str, ...]) -> Iterator[Found]:
    """Yields the nodes that a path names, in the order of the tree; the path may have patterns (`*`, `?`, `{a,b}`).

    A path without a leading slash is relative to `directory`.
    """
    yield from _matches(root, components(path, directory), ())


def _matches(node: Node, names: tuple[str, ...], done: tuple[str, ...]) -> Iterator[Found]:
    if not names:
        yield Found(done, node)
    elif isinstance(node, Mapping):
        first, rest = names[0], names[1:]
        if not any(letter in first for letter in _SPECIAL):
            found = [first] if first in node else []
        else:
            expression = _expression(first)
            found = [name for name in sorted(node) if expression.fullmatch(name)]
        for name in found:
            yield from _matches(node[name], rest, (*done, name))


def _expression(pattern: str) -> re.Pattern[str]:
    """Returns the regular expression of a name with `*`, `?` and `{a,b}`."""
    text = ""
    depth = 0
    for letter in pattern:
        if letter == "{":
            text, depth = text + "(?:", depth + 1
        elif letter == "}" and depth:
            text, depth = text + ")", depth - 1
        elif letter == "," and depth:
            text += "|"
        else:
            text += {"*": ".*", "?": "."}.get(letter) or re.escape(letter)
    # A brace that is not closed is a letter.
    return re.compile(re.escape(pattern) if depth else text, re.DOTALL)
