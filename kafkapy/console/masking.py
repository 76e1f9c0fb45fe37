"""Masking rules: content of records that no user of the console sees, by topic.

A record is masked as soon as it was read, so that pages, exports, downloads and decoders have only the masked content.
Filters on masked content are refused, because their matches would reveal the content.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Any

from kafkapy.console.problem import Problem
from kafkapy.console.record_filter import Filter, Record, steps_of
from kafkapy.named_tuple import NamedTuple

MASK = "(masked)"
_MASKED = MASK.encode()


class Mask(NamedTuple):
    """The masked parts of the records of one topic.

    `headers` are names. `paths` are paths into a value that is JSON; each path is a sequence of its segments. A path
    through an array applies to all elements, or to one element if the next segment is its index.
    """

    key: bool = False
    value: bool = False
    headers: frozenset[str] = frozenset()
    paths: tuple[tuple[str, ...], ...] = ()

    def __bool__(self) -> bool:
        return self.key or self.value or bool(self.headers) or bool(self.paths)

    def apply(self, record: Record) -> Record:
        """Returns the record with the masked parts replaced by "(masked)".

        A value with masked paths that is not JSON is replaced as a whole. Null stays null.
        """
        if not self:
            return record
        value = record.value
        if value is not None and (self.value or self.paths):
            value = _MASKED if self.value else _masked_json(value, self.paths)
        headers = tuple(
            (name, _MASKED if name in self.headers and content is not None else content)
            for name, content in record.headers
        )
        key = _MASKED if self.key and record.key is not None else record.key
        return record._replace(key=key, value=value, headers=headers)

    def check(self, filters: Iterable[Filter]) -> None:
        """Raises Problem if a filter looks at masked content."""
        for each in filters:
            is_masked = {
                "key": self.key,
                "value": self.value or bool(self.paths),
                "header": bool(self.headers) and (not each.name or each.name in self.headers),
                "json": self.value or any(_meets(steps_of(each.name), path) for path in self.paths),
            }[each.field]
            if is_masked:
                raise Problem(403, f"A filter on the {each.field} is not allowed: this topic has a masking rule.")


NO_MASK = Mask()


class MaskRule(NamedTuple):
    """A rule `TOPIC=PART,PART`: `topics` is a pattern with * and ?, `mask` the parts of records that are masked."""

    topics: str
    mask: Mask


def parse_rule(text: str) -> MaskRule:
    """Parses a rule `TOPIC=PART,PART`, whose parts are key, value, header.NAME and json.PATH. Raises ValueError."""
    topics, separator, parts = text.partition("=")
    words = [each.strip() for each in parts.split(",") if each.strip()]
    if not topics or not separator or not words:
        raise ValueError(f"{text!r} is not TOPIC=PART,PART")
    headers, paths = set(), []
    for word in words:
        kind, _, rest = word.partition(".")
        if kind == "header" and rest:
            headers.add(rest)
        elif kind == "json" and rest and all(rest.split(".")):
            paths.append(tuple(rest.split(".")))
        elif word not in ("key", "value"):
            raise ValueError(f"{word!r} in {text!r} is not key, value, header.NAME or json.PATH")
    return MaskRule(topics, Mask("key" in words, "value" in words, frozenset(headers), tuple(paths)))


def mask_of(rules: Sequence[MaskRule], topic: str) -> Mask:
    """Returns the mask of a topic: the combined masks of all rules that fit the topic's name."""
    found = NO_MASK
    for rule in rules:
        if fnmatchcase(topic, rule.topics):
            more = rule.mask
            found = Mask(
                found.key or more.key,
                found.value or more.value,
                found.headers | more.headers,
                (*found.paths, *more.paths),
            )
    return found


def _masked_json(value: bytes, paths: Sequence[tuple[str, ...]]) -> bytes:
    try:
        tree = json.loads(value)
        for path in paths:
            tree = _replaced(tree, path)
        return json.dumps(tree, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return _MASKED


def _replaced(tree: Any, path: Sequence[str]) -> Any:
    """Returns the tree with "(masked)" at the path."""
    if not path:
        return MASK
    if isinstance(tree, list):
        number = path[0] if path[0].isascii() and path[0].isdigit() else None
        if number is None:
            return [_replaced(each, path) for each in tree]
        return [_replaced(each, path[1:]) if at == int(number) else each for at, each in enumerate(tree)]
    if isinstance(tree, dict) and path[0] in tree:
        return {**tree, path[0]: _replaced(tree[path[0]], path[1:])}
    return tree


def _meets(wanted: Sequence[str], masked: Sequence[str]) -> bool:
    """Returns whether a filter's path `wanted` concerns the value at the path `masked`: the paths are equal, or one
    path continues the other.

    The indexes of list elements are ignored.
    """
    first, second = ([part for part in path if not _is_index(part)] for path in (wanted, masked))
    return all(one == other for one, other in zip(first, second, strict=False))


def _is_index(step: str) -> bool:
    """Returns whether a filter accepts the step as the index of a list element; -1 is the last element, for example."""
    try:
        int(step)
    except ValueError:
        return False
    return True
