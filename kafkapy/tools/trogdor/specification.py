"""The specification of a workload: a JSON file of Trogdor, and the names of topics and partitions in it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kafkapy.tools.option import ToolError
from kafkapy.types import TopicPartition

_CLASS = re.compile(r"(?:org\.apache\.kafka\.trogdor\.workload\.)?(\w+?)(?:Spec)?")
_RANGE = re.compile(r"(.*?)\[([0-9]+)-([0-9]+)\](.*)")
_MISSING = object()


class Specification:
    """The fields of a workload, which are checked when they are read. The object does not change after its
    construction.
    """

    def __init__(self, fields: Mapping[str, Any], source: str) -> None:
        self.fields = fields
        self._source = source
        matched = _CLASS.fullmatch(str(fields.get("class", "")))
        # The class without its package and "Spec": `ProduceBench`.
        self.workload = matched[1] if matched is not None else ""

    def number(self, name: str, default: int | None = None) -> int:
        """Returns the whole number in the field `name`; `default` if the field is missing.

        Raises ToolError for any other value, and if the field is missing and `default` is None.
        """
        return int(self._value(name, default, (int,), "a whole number"))

    def text(self, name: str, default: str | None = None) -> str:
        """Returns the text in the field `name`; `default` if the field is missing.

        Raises ToolError for any other value, and if the field is missing and `default` is None.
        """
        return str(self._value(name, default, (str,), "a text"))

    def flag(self, name: str) -> bool:
        """Returns whether the field `name` is true; False if it is missing. Raises ToolError for any other value."""
        return bool(self._value(name, False, (bool,), "true or false"))

    def map(self, name: str) -> dict[str, Any]:
        """Returns the JSON object in the field `name`; {} if it is missing. Raises ToolError for any other value."""
        return dict(self._value(name, {}, (dict,), "an object"))

    def texts(self, name: str) -> list[str]:
        """Returns the list of texts in the field `name`; [] if it is missing. Raises ToolError for any other value."""
        found = self._value(name, [], (list,), "a list")
        return [str(each) for each in found]

    def client_properties(self, *names: str) -> dict[str, Any]:
        """Returns a client's configuration, with the addresses in the field bootstrapServers.

        They are overridden by the JSON objects in the field commonClientConf and in the fields `names`; a later object
        takes precedence.
        """
        properties: dict[str, Any] = {"bootstrap.servers": self.text("bootstrapServers")}
        for name in ("commonClientConf", *names):
            properties |= {key: str(value) for key, value in self.map(name).items()}
        return properties

    def _value(self, name: str, default: Any, types: tuple[type, ...], expected: str) -> Any:
        value = self.fields.get(name, _MISSING)
        if value is _MISSING or value is None:
            if default is None:
                raise ToolError(f"{self._source} lacks the field {name}: {expected}")
            return default
        if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
            raise ToolError(f"the field {name} of {self._source} is {value!r}: {expected} is expected")
        return value


def read_specification(text: str) -> Specification:
    """Returns the specification in `text`, which is a JSON object or the path of a file with one.

    A text that begins with a brace is an object. Raises ToolError if the file cannot be read or has no JSON object.
    """
    source = "the specification"
    if not text.lstrip().startswith("{"):
        source = text
        try:
            text = Path(text).read_text()
        except OSError as error:
            raise ToolError(f"{source} cannot be read: {error.strerror}") from error
    try:
        # Trogdor's files may have comments.
        fields = json.loads("\n".join(line for line in text.splitlines() if not line.lstrip().startswith("//")))
    except ValueError as error:
        raise ToolError(f"{source} is no JSON: {error}") from None
    if not isinstance(fields, dict):
        raise ToolError(f"{source} is no JSON object")
    return Specification(fields, source)


def expanded(name: str) -> Iterator[str]:
    """Yields the names that a name with ranges means: `foo[1-3]` means foo1, foo2 and foo3."""
    matched = _RANGE.fullmatch(name)
    if matched is None:
        yield name
        return
    head, first, last, tail = matched.groups()
    for number in range(int(first), int(last) + 1):
        yield from expanded(f"{head}{number}{tail}")


def topics_of(active: Mapping[str, Any], source: str = "activeTopics") -> dict[str, tuple[int, int]]:
    """Returns (number of partitions, replication factor) of each topic in `active`, by the topic's name.

    A key of `active` may have ranges, such as `foo[1-3]`. `source` is the name of the field for error messages:
    activeTopics or inactiveTopics. Raises ToolError for a topic without these two numbers; partitions that are assigned
    to brokers by hand are not supported.
    """
    found: dict[str, tuple[int, int]] = {}
    for pattern, fields in active.items():
        try:
            sizes = (int(fields["numPartitions"]), int(fields["replicationFactor"]))
        except (KeyError, TypeError, ValueError):
            raise ToolError(f"{source}: {pattern} needs numPartitions and replicationFactor") from None
        for name in expanded(pattern):
            found[name] = sizes
    return found


def partitions_of(names: list[str]) -> tuple[list[str], list[TopicPartition]]:
    """Returns the topics, and the partitions, that the names mean, such as `foo[1-2]` and `foo[1-2]:[0-2]`.

    A name without a colon means topics. Raises ToolError for a partition that is not a number.
    """
    topics: list[str] = []
    partitions: list[TopicPartition] = []
    for name in (each for pattern in names for each in expanded(pattern)):
        topic, colon, number = name.rpartition(":")
        if not colon:
            topics.append(name)
        elif number.isdigit():
            partitions.append(TopicPartition(topic, int(number)))
        else:
            raise ToolError(f"activeTopics: {name} is not a partition; a partition is written as topic:number")
    return topics, partitions
