"""Filters of records as data: a field, an operation and a text; no code of a user is ever run.

The filters are applied in three steps. The fetched bytes are searched for the longest text of a filter before records
are decoded. If records are found, a filter on a key or a value selects rows in the column of keys or of values. Only
these rows become Python objects, and all filters are checked on them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

from kafkapy._core.bytes.arrow_batch import ArrowBatch
from kafkapy._core.bytes.arrow_search import read_row, rows_containing, rows_equal_to
from kafkapy.console.problem import Problem
from kafkapy.named_tuple import NamedTuple

FIELDS = {"value": "value", "key": "key", "header": "header", "json": "JSON path"}
OPERATIONS = {
    "contains": "contains",
    "equals": "equals",
    "lacks": "does not contain",
    "starts": "starts with",
    "matches": "matches",
    "less": "<",
    "greater": ">",
}
MOST_FILTERS = 6
# Memory of one compiled regular expression, and the number of them that are kept.
PATTERN_BYTES = 4 << 20
MOST_PATTERNS = 32
_NEVER = object()


class Filter(NamedTuple):
    """One condition on records: an `operation` of OPERATIONS compares a `field` of FIELDS with `text`.

    `name` is the name of a header ("" for any header), or a path into a JSON value, such as `order.lines.0.price`.
    """

    field: str
    operation: str
    text: str
    name: str = ""

    def accepts(self, record: Record) -> bool:
        """Returns whether a record fulfils the condition.

        A record that lacks the field fulfils only the operation `lacks`. A null fulfils `lacks`, and `equals` with the
        text "null".
        """
        return any(map(self._accepts_content, self._contents(record))) != (self.operation == "lacks")

    def _contents(self, record: Record) -> Iterable[Any]:
        if self.field == "value":
            return (record.value,)
        if self.field == "key":
            return (record.key,)
        if self.field == "header":
            return [content for name, content in record.headers if name == self.name or not self.name]
        found = json_at(record.value, self.name)
        return () if found is _NEVER else (found,)

    def _accepts_content(self, content: Any) -> bool:
        if content is None:
            return self.operation == "equals" and self.text == "null"
        if self.operation in ("less", "greater"):
            return _is_ordered(content, self.text, is_less=self.operation == "less")
        data = content if isinstance(content, bytes) else _as_text(content).encode("utf-8", "replace")
        wanted = self.text.encode()
        if self.operation == "equals":
            return data == wanted
        if self.operation == "matches":
            return pattern_of(self.text).search(data) is not None
        if self.operation == "starts":
            return data.startswith(wanted)
        return wanted in data


class Record(NamedTuple):
    """A record that was read. `timestamp` is in ms since 1970, or -1; `timestamp_type` is 1 for the append time."""

    partition: int
    offset: int
    timestamp: int
    timestamp_type: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


@lru_cache(maxsize=MOST_PATTERNS)
def pattern_of(text: str) -> Any:
    """Returns a compiled regular expression in RE2's syntax, whose search takes time in proportion to the content.

    Raises Problem for an invalid or too large expression, and if the library for RE2 is not installed.
    """
    try:
        import re2
    except ImportError:
        raise Problem(400, "Regular expressions need the package google-re2, which is not installed.") from None
    options = re2.Options()
    options.max_mem = PATTERN_BYTES
    options.log_errors = False
    try:
        return re2.compile(text.encode(), options)
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        shown = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        raise Problem(400, f"{text[:40]!r} is not a regular expression of RE2: {shown}") from None


def _is_ordered(content: Any, text: str, *, is_less: bool) -> bool:
    try:
        number = float(content.decode() if isinstance(content, bytes) else content)
        limit = float(text)
    except (ValueError, TypeError, OverflowError):
        return False
    return number < limit if is_less else number > limit


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def json_at(data: bytes | None, path: str) -> Any:
    """Returns the part of the JSON document `data` at `path`: names and list indexes with dots between them.

    Returns the object _NEVER if `data` is not JSON or has no such part; a result of None is the null of JSON.
    """
    if data is None:
        return _NEVER
    try:
        value = json.loads(data)
        for step in steps_of(path):
            value = value[int(step)] if isinstance(value, list) else value[step]
    except (ValueError, KeyError, IndexError, TypeError, RecursionError):
        return _NEVER
    return value


def steps_of(path: str) -> list[str]:
    """Returns the names and list indexes of a path into a JSON value; an empty list for the whole value."""
    return [step for step in path.removeprefix("$").split(".") if step]


def parse_filters(fields: list[str], names: list[str], operations: list[str], texts: list[str]) -> tuple[Filter, ...]:
    """Returns the filters in the rows of a form: row n has the nth element of each of the four lists.

    Rows without a text are ignored. Raises Problem for an invalid row.
    """
    found = []
    for row, text in enumerate(texts):
        if not text:
            continue
        field, operation, name = (
            (each[row] if row < len(each) else "") or default
            for each, default in ((fields, "value"), (operations, "contains"), (names, ""))
        )
        if field not in FIELDS or operation not in OPERATIONS:
            raise Problem(400, f"A filter has the field {field[:40]!r} and the operation {operation[:40]!r}.")
        if field == "json" and not name:
            raise Problem(400, "A filter on a JSON path needs the path, such as order.id.")
        if operation == "matches":
            pattern_of(text)
        if operation in ("less", "greater") and not _is_number(text):
            raise Problem(400, f"A filter compares with {text[:40]!r}, which is not a number.")
        found.append(Filter(field, operation, text, name))
    if len(found) > MOST_FILTERS:
        raise Problem(400, f"At most {MOST_FILTERS} filters are accepted.")
    return tuple(found)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _needle_of(chosen: Filter) -> bytes | None:
    """Returns bytes that every record that passes the filter contains; None if there are no such bytes."""
    if chosen.operation not in ("contains", "equals", "starts") or chosen.text == "null":
        return None
    if chosen.field == "json" and not (chosen.text.isascii() and chosen.text.isalnum()):
        return None  # JSON may escape other characters
    return chosen.text.encode()


class BatchFilter:
    """Finds the records of a batch that fulfil all filters. The object does not change after its construction.

    `needle` has bytes that every matching record contains; it is empty if no such bytes are known.
    """

    def __init__(self, filters: tuple[Filter, ...]) -> None:
        self._filters = filters
        self._find = self._fast_search()
        self.needle = max(filter(None, map(_needle_of, filters)), key=len, default=b"")

    def _fast_search(self) -> Callable[[ArrowBatch, int], list[int]] | None:
        """Returns a function `(batch, start row)` that finds rows which may pass the filters.

        The function makes no Python objects of the records. It returns the numbers of at most _CANDIDATES rows, from
        the start row on. Returns None instead of a function if no filter can be checked in this way.
        """
        for each in self._filters:
            needle = each.text.encode()
            if each.operation not in ("contains", "equals", "starts"):
                continue
            if each.field in ("key", "value") and each.text != "null":
                find = rows_equal_to if each.operation == "equals" else rows_containing
                return lambda batch, start, find=find, column=each.field: find(  # type: ignore[misc]
                    batch, column, needle, start, _CANDIDATES
                )
            if each.field == "json" and each.text.isascii() and each.text.isalnum():
                # JSON may escape other characters.
                return lambda batch, start: rows_containing(batch, "value", needle, start, _CANDIDATES)
        return None

    def matches(self, batch: ArrowBatch) -> Iterable[Record]:
        """Yields the matching records of a batch in order."""
        start = 0
        while start < len(batch):
            if self._find is None:
                rows = list(range(start, min(start + _CANDIDATES, len(batch))))
            else:
                rows = self._find(batch, start)
            for row in rows:
                record = record_of(batch, row)
                if all(each.accepts(record) for each in self._filters):
                    yield record
            if not rows:
                return
            start = rows[-1] + 1


_CANDIDATES = 256


def record_of(batch: ArrowBatch, row: int) -> Record:
    """Returns the row `row` of a batch, which has the columns COLUMNS, as a Record."""
    found = read_row(batch, row)
    return Record(
        found["partition"],
        found["offset"],
        found["timestamp"],
        found["timestampType"],
        found["key"],
        found["value"],
        found["headers"],
    )


COLUMNS = ("key", "value", "partition", "offset", "timestamp", "timestampType", "headers")
