"""Filters that Spark pushes down, and the ranges that remain."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple

import pytest

from kafkapy.spark.batch_planning import plan
from kafkapy.spark.data_loss import DataLossError
from kafkapy.spark.options import read_options
from kafkapy.spark.row_filters import row_filters
from kafkapy.spark.stream_offset import OffsetRange
from kafkapy.types import TopicPartition
from tests.memory_source_cluster import MemorySourceCluster


def pushed(kind, column, value=None):
    """Returns a filter like those of pyspark.sql.datasource."""
    return type(kind, (NamedTuple(kind, [("attribute", tuple), ("value", object)]),), {})((column,), value)


def ranges(*filters, **more):
    cluster = MemorySourceCluster("a", "b")
    cluster.add("a", 100, 200)
    cluster.add("b", 50)
    options = read_options({"kafka.bootstrap.servers": "h:1", "subscribe": "a,b", **more}, is_streaming=False)
    return [(f"{each.partition}", each.start, each.end) for each in plan(cluster, options, row_filters(filters))]


def test_all_ranges_are_read_without_filters():
    assert ranges() == [("a-0", 0, 100), ("a-1", 0, 200), ("b-0", 0, 50)]


def test_a_start_after_the_end_of_a_partition_is_a_warning(caplog):
    starts = '{"a": {"0": 101, "1": 200}, "b": {"0": 0}}'
    assert ranges(startingOffsets=starts) == [("b-0", 0, 50)]
    warnings = [record.getMessage() for record in caplog.records]
    assert warnings == ["Partition a-0 starts at offset 101, after its end 100: nothing is read from it"]


def test_topics_and_partitions_are_selected():
    assert ranges(pushed("EqualTo", "topic", "b")) == [("b-0", 0, 50)]
    assert ranges(pushed("In", "partition", (1, 7))) == [("a-1", 0, 200)]
    assert ranges(pushed("GreaterThanOrEqual", "partition", 1), pushed("LessThan", "partition", 9)) == [("a-1", 0, 200)]
    assert ranges(pushed("EqualTo", "topic", "b"), pushed("EqualTo", "topic", "a")) == []


def test_offsets_narrow_the_ranges():
    between = [pushed("GreaterThan", "offset", 9), pushed("LessThanOrEqual", "offset", 59)]
    assert ranges(*between) == [("a-0", 10, 60), ("a-1", 10, 60), ("b-0", 10, 50)]
    assert ranges(pushed("EqualTo", "offset", 150)) == [("a-1", 150, 151)]
    assert ranges(pushed("In", "offset", (150, 160))) == [("a-1", 150, 161)]


def test_filters_on_the_same_column_are_combined():
    assert ranges(pushed("In", "topic", ("a", "b")), pushed("EqualTo", "topic", "b")) == [("b-0", 0, 50)]
    assert ranges(pushed("In", "partition", (0, 1)), pushed("EqualNullSafe", "partition", 1)) == [("a-1", 0, 200)]
    bounds = (("GreaterThan", 59), ("GreaterThan", 9), ("LessThan", 70), ("LessThan", 90))
    assert ranges(*(pushed(kind, "offset", value) for kind, value in bounds)) == [("a-0", 60, 70), ("a-1", 60, 70)]
    assert ranges(pushed("GreaterThan", "partition", 0), pushed("LessThanOrEqual", "partition", 1)) == [("a-1", 0, 200)]
    assert ranges(pushed("In", "offset", ())) == []


def test_the_latest_lower_bound_of_timestamps_counts():
    times = [datetime.fromtimestamp(ms / 1000, UTC) for ms in (60, 90)]
    expected = [("a-0", 89, 100), ("a-1", 89, 200)]
    assert ranges(*(pushed("GreaterThan", "timestamp", time) for time in times)) == expected
    assert ranges(*(pushed("GreaterThan", "timestamp", time) for time in reversed(times))) == expected
    assert ranges(pushed("In", "timestamp", tuple(times)))[0] == ("a-0", 59, 100)
    assert len(ranges(pushed("In", "timestamp", (times[0], times[1].replace(tzinfo=None))))) == 3
    assert len(ranges(pushed("In", "timestamp", ()))) == 3
    assert ranges(pushed("GreaterThan", "timestamp", times[1]), startingOffsets=FROM_95)[0] == ("a-0", 95, 100)


FROM_95 = '{"a": {"0": 95, "1": 0}, "b": {"0": 0}}'


def test_an_end_behind_that_of_the_log_is_a_loss():
    ends = '{"a": {"0": 101, "1": -1}, "b": {"0": -1}}'
    with pytest.raises(DataLossError, match="Partition a-0 ends at offset 100, not 101"):
        ranges(endingOffsets=ends)
    assert ranges(endingOffsets=ends, failOnDataLoss="false")[0] == ("a-0", 0, 100)


def test_timestamps_from_below_only():
    at_60_ms = datetime.fromtimestamp(0.06, UTC)
    assert ranges(pushed("GreaterThanOrEqual", "timestamp", at_60_ms)) == [("a-0", 59, 100), ("a-1", 59, 200)]
    assert len(ranges(pushed("LessThan", "timestamp", at_60_ms))) == 3
    assert len(ranges(pushed("GreaterThan", "timestamp", at_60_ms.replace(tzinfo=None)))) == 3


def test_what_cannot_be_narrowed_is_left_to_spark():
    assert len(ranges(pushed("EqualTo", "value", b"x"), pushed("IsNotNull", "topic"), pushed("Not", "offset"))) == 3


def test_ranges_are_divided_after_they_are_narrowed():
    assert ranges(pushed("EqualTo", "topic", "b"), minPartitions="2") == [("b-0", 0, 25), ("b-0", 25, 50)]
    assert OffsetRange(TopicPartition("a", 0), 5, 3).size == 0


@pytest.mark.parametrize("year", [1960, 1970])
def test_records_without_a_timestamp_are_not_left_out_by_a_bound_that_they_pass(year):
    # Their timestamp is -1, one millisecond before 1970, and a look-up by a timestamp does not find them.
    assert row_filters([pushed("GreaterThanOrEqual", "timestamp", datetime(year, 1, 1, tzinfo=UTC))]).first_ms is None
