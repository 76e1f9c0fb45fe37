"""Partitions and offsets in the JSON of Spark's Kafka source: `{"topic": {"0": 23, "1": -2}}`. This module has no state
and does no I/O.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kafkapy.decimal_text import is_number
from kafkapy.errors import ConfigError
from kafkapy.types import TopicPartition


def parse_partitions(text: str) -> tuple[TopicPartition, ...]:
    """Parses the option `assign`, such as `{"topic": [0, 1]}`. Raises ConfigError for an invalid text."""
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
    """Parses an option with a number for each partition; `name` is the option's name for errors.

    Ignores the keys of checkpoints, which begin with `$`. Raises ConfigError for an invalid text.
    """
    return flatten(name, _object(name, text, '{"topic": {"0": 23}}'))


def flatten(name: str, found: Mapping[str, Any]) -> dict[TopicPartition, int]:
    """Returns the numbers in `{"topic": {"0": 23}}` by partition; `name` is the option's name for errors.

    Raises ConfigError if `found` has another form.
    """
    numbers: dict[TopicPartition, int] = {}
    for topic, partitions in found.items():
        if topic.startswith("$"):
            continue
        if not isinstance(partitions, dict):
            raise ConfigError(f"{name}: {topic} has {partitions!r} instead of partitions with their numbers")
        for partition, number in partitions.items():
            if not is_number(partition) or not isinstance(number, int) or isinstance(number, bool):
                raise ConfigError(
                    f"{name}: {topic} has {partition!r}: {number!r} instead of a partition and its number"
                )
            numbers[TopicPartition(topic, int(partition))] = number
    return numbers


def nest(numbers: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    """Returns `{"topic": {"0": 23}}` from numbers by partition, in the order of topics and partitions."""
    found: dict[str, dict[str, int]] = {}
    for partition in sorted(numbers):
        found.setdefault(partition.topic, {})[str(partition.partition)] = numbers[partition]
    return found


def _object(name: str, text: str, example: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise ConfigError(f"Option {name}: expected JSON such as {example}, got {text!r}")
    return found
