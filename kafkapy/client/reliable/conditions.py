"""Parses and evaluates conditions on records, which are texts such as `header.type=order` or `json.amount>=100`. This
module has no state and does no I/O.

A condition is a field, an operator and an operand; a field alone means that the record has the field, and `!FIELD` that
it does not. Fields are topic, partition, offset, timestamp (ms), key, value, header.NAME, and json.PATH in a value that
is JSON: names and indexes that are divided by dots. The operators are = and != (equal as text), ^= (begins with), $=
(ends with), ~ (contains), and the comparisons <, <=, > and >= of numbers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from kafkapy.client.reliable.records import SourceRecord
from kafkapy.errors import ConfigError
from kafkapy.named_tuple import NamedTuple

_FORM = re.compile(r"(!?)([A-Za-z]+(?:\.[^=!<>~^$]+)?)(?:(!=|\^=|\$=|<=|>=|=|<|>|~)(.*))?", re.DOTALL)
_PLAIN_FIELDS = ("topic", "partition", "offset", "timestamp", "key", "value")
# A value beyond this size is not parsed as JSON.
MOST_JSON_BYTES = 16 << 20
_MISSING = object()

_TEXT_OPERATORS: dict[str, Callable[[str, str], bool]] = {
    "=": lambda found, operand: found == operand,
    "!=": lambda found, operand: found != operand,
    "^=": lambda found, operand: found.startswith(operand),
    "$=": lambda found, operand: found.endswith(operand),
    "~": lambda found, operand: operand in found,
}
_NUMBER_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    "<": lambda found, operand: found < operand,
    "<=": lambda found, operand: found <= operand,
    ">": lambda found, operand: found > operand,
    ">=": lambda found, operand: found >= operand,
}


class RecordView:
    """The fields of one record; its value is parsed as JSON at most once.

    `has_invalid_json` becomes True when a condition needs JSON and the value is not JSON.
    """

    def __init__(self, record: SourceRecord) -> None:
        self._record = record
        self._json: Any = None
        self._is_parsed = False
        self.has_invalid_json = False

    def text(self, field: str, path: tuple[str, ...]) -> str | None:
        """Returns a field as text; None if the record lacks it.

        `field` is "header", "json" or the name of an attribute of the record, such as "key". `path` has the name of the
        header for "header", the keys that lead to the value for "json", and nothing for other fields.
        """
        if field == "header":
            value = next((value for name, value in reversed(self._record.headers) if name == path[0]), _MISSING)
            return None if value is _MISSING else _decoded(value)
        if field == "json":
            found = self._find(path)
            if found is _MISSING:
                return None
            return found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)
        found = getattr(self._record, field)
        return _decoded(found) if found is None or isinstance(found, bytes) else str(found)

    def _find(self, path: tuple[str, ...]) -> Any:
        if not self._is_parsed:
            self._is_parsed = True
            try:
                value = self._record.value
                if value is None or len(value) > MOST_JSON_BYTES:
                    raise ValueError("no JSON")
                self._json = json.loads(value)
            except (ValueError, RecursionError):
                self._json = _MISSING
                self.has_invalid_json = True
        found = self._json
        for name in path:
            if isinstance(found, dict) and name in found:
                found = found[name]
            elif isinstance(found, list) and name.isdecimal() and int(name) < len(found):
                found = found[int(name)]
            else:
                return _MISSING
        return found


def _decoded(value: Any) -> str | None:
    return None if value is None else bytes(value).decode("utf-8", "replace")


class Condition(NamedTuple):
    """A condition on one field of a record.

    `operator` compares the field with the text `operand`. The operator "" tests whether the record has the field or,
    with `is_negated`, lacks it.
    """

    field: str
    path: tuple[str, ...]
    operator: str
    operand: str
    is_negated: bool

    def holds(self, view: RecordView) -> bool:
        """Returns whether a record meets the condition.

        A record without the field meets only the condition that the field is absent (`!FIELD`).
        """
        found = view.text(self.field, self.path)
        if not self.operator:
            return (found is not None) is not self.is_negated
        if found is None:
            return False
        if self.operator in _TEXT_OPERATORS:
            return _TEXT_OPERATORS[self.operator](found, self.operand)
        try:
            return _NUMBER_OPERATORS[self.operator](float(found), float(self.operand))
        except ValueError:
            return False


def parse_condition(text: str) -> Condition:
    """Parses a condition, such as `header.type=order`. Raises ConfigError, whose message shows what is accepted."""
    found = _FORM.fullmatch(text)
    if found is None:
        raise ConfigError(f"{text!r} is not a condition, such as key=a, header.type=order or json.amount>=100")
    negation, name, operator, operand = found[1], found[2], found[3] or "", found[4] or ""
    field, dot, path = name.partition(".")
    if field == "header" and path:
        parts: tuple[str, ...] = (path,)
    elif field == "json" and path:
        parts = tuple(path.split("."))
    elif field in _PLAIN_FIELDS and not dot:
        parts = ()
    else:
        raise ConfigError(f"{name} is not a field: {', '.join(_PLAIN_FIELDS)}, header.NAME and json.PATH are")
    if negation and operator:
        raise ConfigError(f"{text!r} has both ! and {operator}; use !=, or ! with a field alone")
    if operator in _NUMBER_OPERATORS:
        try:
            float(operand)
        except ValueError:
            raise ConfigError(f"{text!r} compares numbers, and {operand!r} is not a number") from None
    return Condition(field, parts, operator, operand, bool(negation))


def all_hold(conditions: Sequence[Condition], view: RecordView) -> bool:
    """Returns whether a record meets all conditions."""
    return all(each.holds(view) for each in conditions)
