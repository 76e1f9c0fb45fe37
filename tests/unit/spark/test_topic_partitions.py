"""Partitions and offsets in JSON."""

from __future__ import annotations

import pytest

from kafkapy.errors import ConfigError
from kafkapy.spark.topic_partitions import nest, parse_numbers, parse_partitions
from kafkapy.types import TopicPartition


def test_offsets_are_parsed_and_formatted_in_order():
    numbers = parse_numbers("x", '{"b": {"10": 1, "9": 2}, "a": {"0": -1}}')
    assert nest(numbers) == {"a": {"0": -1}, "b": {"9": 2, "10": 1}}
    assert list(nest(numbers)["b"]) == ["9", "10"]


def test_a_partition_is_listed_once():
    assert parse_partitions('{"a": [0, 0]}') == (TopicPartition("a", 0),)


@pytest.mark.parametrize(
    "text",
    ["", "[]", "null", '{"a": 1}', '{"a": {"x": 1}}', '{"a": {"²": 1}}', '{"a": {"0": "1"}}', '{"a": {"0": true}}'],
)
def test_other_json_is_refused(text):
    with pytest.raises(ConfigError, match="startingOffsets"):
        parse_numbers("startingOffsets", text)


@pytest.mark.parametrize("text", ["{}", '{"a": []}', '{"a": 0}', '{"a": [-1]}', '{"a": ["0"]}'])
def test_other_lists_of_partitions_are_refused(text):
    with pytest.raises(ConfigError, match="assign"):
        parse_partitions(text)
