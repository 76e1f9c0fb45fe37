"""The start and the end of a query, by name, offset and time."""

from __future__ import annotations

import pytest

from kafkapy.errors import ConfigError
from kafkapy.spark.start_and_end import OffsetSpec, SpecKind, ending_spec, resolve, starting_spec
from kafkapy.types import TopicPartition
from tests.memory_source_cluster import MemorySourceCluster

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)


@pytest.fixture
def cluster():
    made = MemorySourceCluster("a")
    made.add("a", 10, 20)
    made.truncate("a", 0, 3)
    return made


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (OffsetSpec(SpecKind.EARLIEST), {A0: 3, A1: 0}),
        (OffsetSpec(SpecKind.LATEST), {A0: 10, A1: 20}),
        (OffsetSpec(SpecKind.OFFSETS, {A0: 7, A1: -2}), {A0: 7, A1: 0}),
        (OffsetSpec(SpecKind.OFFSETS, {A0: -1, A1: 5}), {A0: 10, A1: 5}),
        (OffsetSpec(SpecKind.TIMESTAMP, timestamp=5), {A0: 5, A1: 5}),
        (OffsetSpec(SpecKind.TIMESTAMP, timestamp=15), {A0: 10, A1: 15}),
        (OffsetSpec(SpecKind.TIMESTAMPS, {A0: 9, A1: 1}), {A0: 9, A1: 1}),
    ],
)
def test_a_spec_becomes_an_offset_for_each_partition(cluster, spec, expected):
    assert resolve(spec, [A0, A1], cluster.look_up) == expected


def test_a_strict_time_without_a_record_is_an_error(cluster):
    spec = OffsetSpec(SpecKind.TIMESTAMP, timestamp=15, is_strict=True)
    with pytest.raises(ConfigError, match=r"No offset matched .* a-0 and timestamp 15"):
        resolve(spec, [A0, A1], cluster.look_up)


def test_offsets_must_be_given_for_all_partitions(cluster):
    with pytest.raises(ConfigError, match=r"Specified: \{a-0\} Assigned: \{a-0, a-1\}"):
        resolve(OffsetSpec(SpecKind.OFFSETS, {A0: 7}), [A0, A1], cluster.look_up)


def test_an_end_by_time_is_never_strict():
    assert not ending_spec({"endingTimestamp": "5"}, is_streaming=False).is_strict
    assert starting_spec({"startingTimestamp": "5"}, is_streaming=False).is_strict


@pytest.mark.parametrize("text", ["", "-5", "²", "yesterday"])
def test_a_time_that_is_no_number_is_refused(text):
    with pytest.raises(ConfigError, match="is not a number of milliseconds since 1970"):
        starting_spec({"startingTimestamp": text}, is_streaming=False)


def test_a_checkpoints_own_keys_are_passed_over():
    text = '{"a": {"0": 4}, "$ids": {"a": "x"}, "$from": {"a": {"0": 1}}}'
    assert starting_spec({"startingOffsets": text}, is_streaming=True).numbers == {A0: 4}
