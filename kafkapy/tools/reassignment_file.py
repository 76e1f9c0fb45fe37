"""The JSON files of `kafka-reassign-partitions`: the topics to move, and the new replicas of partitions (version 1).

The messages of errors are Apache Kafka's, whose tool prints "Error: " in front of them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence, Sized
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from kafkapy.client.admin import Replica
from kafkapy.named_tuple import NamedTuple
from kafkapy.tools.option import ToolError
from kafkapy.types import TopicPartition

# The log directory of a replica that may be in any directory of its broker.
ANY_LOG_DIR = "any"
_VERSION = 1
_LARGEST_INT = 2**31 - 1
Item = TypeVar("Item", bound=Hashable)


class PlannedPartition(NamedTuple):
    """A partition and the brokers of its replicas in a plan file, the preferred leader first.

    A file may name a partition or a broker more than once; `check_plan` then raises ToolError.
    """

    partition: TopicPartition
    replicas: tuple[int, ...]


class Plan(NamedTuple):
    """The content of a reassignment file: its partitions in the order of the file, and the new log directories.

    `directories` maps a replica to the path of its new log directory. Replicas for which the file says "any" are
    missing.
    """

    partitions: list[PlannedPartition]
    directories: dict[Replica, str]

    @property
    def replicas(self) -> dict[TopicPartition, tuple[int, ...]]:
        """The broker ids of the new replicas of each partition."""
        return {planned.partition: planned.replicas for planned in self.partitions}

    @property
    def topics(self) -> set[str]:
        return {planned.partition.topic for planned in self.partitions}


def read_plan(path: str) -> Plan:
    """Returns the content of a file with new replicas. Raises ToolError if it is not valid."""
    content = _read_entries(path, "partitions")
    partitions = []
    directories: dict[Replica, str] = {}
    for entry in content:
        topic = _value(entry, "topic", str, "String")
        number = _value(entry, "partition", int, "Integer")
        partition = TopicPartition(topic, number)
        replicas = [_checked(each, int, "Integer") for each in _list(_field(entry, "replicas"))]
        names = [ANY_LOG_DIR] * len(replicas)
        if "log_dirs" in entry:
            names = [_checked(each, str, "String") for each in _list(entry["log_dirs"])]
        if len(names) != len(replicas):
            shown = f"[{', '.join(names)}]"
            fail(
                f"Size of replicas list {replicas} is different from size of log dirs list {shown} for partition "
                f"{partition}"
            )
        partitions.append(PlannedPartition(partition, tuple(replicas)))
        for broker, name in zip(replicas, names, strict=True):
            if name != ANY_LOG_DIR:
                directories[Replica(topic, number, broker)] = name
    return Plan(partitions, directories)


def check_plan(plan: Plan) -> None:
    """Raises ToolError unless the plan can be executed.

    It must have partitions, all with replicas. No partition may occur twice, and no broker twice in one partition.
    """
    if not plan.partitions:
        fail("Partition reassignment list cannot be empty")
    if not all(planned.replicas for planned in plan.partitions):
        fail("Partition replica list cannot be empty")
    twice = duplicates(planned.partition for planned in plan.partitions)
    if twice:
        fail(f"Partition reassignment contains duplicate topic partitions: {','.join(map(str, twice))}")
    repeated = [
        f"{partition} contains multiple entries for {','.join(map(str, duplicates(replicas)))}"
        for partition, replicas in plan.partitions
        if duplicates(replicas)
    ]
    if repeated:
        fail(f"Partition replica lists may not contain duplicate entries: {'. '.join(repeated)}")


def read_topics(path: str) -> list[str]:
    """Returns the topics in the file of --topics-to-move-json-file.

    Raises ToolError if the file is not valid, or names a topic twice.
    """
    topics = [_value(entry, "topic", str, "String") for entry in _read_entries(path, "topics")]
    twice = duplicates(topics)
    if twice:
        fail(f"List of topics to reassign contains duplicate entries: [{', '.join(twice)}]")
    return topics


def plan_text(replicas: Mapping[TopicPartition, Sequence[int]], directories: Mapping[Replica, str]) -> str:
    """Returns a plan as the JSON text that `read_plan` accepts, ordered by partition."""
    partitions = [
        {
            "topic": partition.topic,
            "partition": partition.partition,
            "replicas": list(replicas[partition]),
            "log_dirs": [directories.get(Replica(*partition, broker), ANY_LOG_DIR) for broker in replicas[partition]],
        }
        for partition in sorted(replicas)
    ]
    return json.dumps({"version": _VERSION, "partitions": partitions}, separators=(",", ":"), ensure_ascii=False)


def duplicates(items: Iterable[Item]) -> list[Item]:
    """Returns the items that occur more than once, each once, in the order of their first occurrence."""
    return [item for item, count in Counter(items).items() if count > 1]


def plural(items: Sized) -> str:
    """Returns the ending of a noun in Kafka's messages: "s", or "" for one item."""
    return "" if len(items) == 1 else "s"


def fail(message: str) -> NoReturn:
    """Raises ToolError with `message`, in the form in which Apache Kafka's tool prints an exception."""
    raise ToolError(f"Error: {message}")


def _read_entries(path: str, name: str) -> list[Any]:
    """Returns the entries of the array that is the member `name` of a JSON file; [] if the file has no such member."""
    try:
        content = json.loads(Path(path).read_text())
    except OSError:
        fail(f"Unable to read file {path}")
    except ValueError as error:
        fail(f"The input string is not a valid JSON: {error}")
    _check_object(content)
    version = _checked(content.get("version", _VERSION), int, "Integer")
    if version != _VERSION:
        fail(f"Not supported version field value {version}")
    entries = content.get(name, [])
    if not isinstance(entries, list):
        fail(f"Expected JSON array, received {_shown(entries)}")
    for entry in entries:
        _check_object(entry)
    return entries


def _check_object(value: Any) -> None:
    if not isinstance(value, dict):
        fail(f"Expected JSON object, received {_shown(value)}")


def _field(entry: dict[str, Any], name: str) -> Any:
    if name not in entry:
        fail(f"No such field exists: `{name}`")
    return entry[name]


def _value(entry: dict[str, Any], name: str, kind: type, java_kind: str) -> Any:
    return _checked(_field(entry, name), kind, java_kind)


def _checked(value: Any, kind: type, java_kind: str) -> Any:
    is_valid = isinstance(value, kind) and not isinstance(value, bool)
    if not is_valid or (kind is int and not -_LARGEST_INT - 1 <= value <= _LARGEST_INT):
        fail(f"Expected `{java_kind}` value, received {_shown(value)}")
    return value


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        fail(f"Expected `JSON array` value, received {_shown(value)}")
    return value


def _shown(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
