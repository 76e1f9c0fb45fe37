"""Partitions and their offsets as the JSON of Spark's Kafka source has them: `{"topic": {"0": 23, "1": -2}}`.  Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kafkapy.errors import ConfigError
from kafkapy.types import TopicPartition


def parse_partitions(text: str) -> tuple[TopicPartition, ...]:
    """The option `assign`: `{"topic": [0, 1]}`; ConfigError."""
    found = _object("assign", text, '{"topic": [0, 1]}')
    partitions: list[TopicPartition] = []
    for topic, numbers in found.items():
        if not isinstance(numbers, list) or not all(isinstance(each, int) and each >= 0 for each in numbers):
            raise ConfigError(f"Option assign: the partitions of {topic} are {numbers!r}, not a list of numbers")
        partitions += [TopicPartition(topic, number) for number in numbers]
    if not partitions:
        raise ConfigError("Option assign: no partitions")
    return tuple(dict.fromkeys(partitions))


def parse_numbers(name: str, text: str) -> dict[TopicPartition, int]:
    """An option with a number for each partition; ConfigError. Keys that begin with `$` are skipped: a checkpoint's."""
    return flatten(name, _object(name, text, '{"topic": {"0": 23}}'))


def flatten(name: str, found: Mapping[str, Any]) -> dict[TopicPartition, int]:
    """The numbers of such an object by partition; ConfigError."""
    numbers: dict[TopicPartition, int] = {}
    for topic, partitions in found.items():
        if topic.startswith("$"):
            continue
        if not isinstance(partitions, dict):
            raise ConfigError(f"{name}: {topic} has {partitions!r} instead of partitions with their numbers")
        for partition, number in partitions.items():
            if not partition.isdigit() or not isinstance(number, int) or isinstance(number, bool):
                raise ConfigError(
                    f"{name}: {topic} has {partition!r}: {number!r} instead of a partition and its number"
                )
            numbers[TopicPartition(topic, int(partition))] = number
    return numbers


def nest(numbers: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    """Back to the object, in the order of topics and partitions."""
    found: dict[str, dict[str, int]] = {}
    for where in sorted(numbers):
        found.setdefault(where.topic, {})[str(where.partition)] = numbers[where]
    return found


def _object(name: str, text: str, example: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise ConfigError(f"Option {name}: expected JSON such as {example}, got {text!r}")
    return found
