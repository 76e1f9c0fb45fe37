"""The classes that Spark calls, with replaced collaborators: readers, writers, limits of a trigger."""

from __future__ import annotations

import pytest
from pyspark.sql.datasource import InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, ReadMinRows

from kafkapy.errors import ConfigError
from kafkapy.spark import batch_reader, batch_writer, read_limits, row_stream_writer, stream_reader, stream_writer
from kafkapy.spark.options import read_options, write_options
from kafkapy.spark.row_filters import RowFilters
from kafkapy.spark.sink_columns import SinkColumns
from kafkapy.spark.stream_offset import OffsetRange, StreamOffset
from kafkapy.types import TopicPartition

A0 = TopicPartition("a", 0)
RANGE = OffsetRange(A0, 3, 5)
COLUMNS = SinkColumns("t", None, None, 0, None, None)


def read(is_streaming=False, **more):
    given = {"kafka.bootstrap.servers": "h:1", "subscribe": "a", **more}
    return read_options(given, is_streaming=is_streaming)


class Cluster:
    """A cluster that counts how often it is closed."""

    closed = 0

    def __init__(self, options):
        pass

    def close(self):
        Cluster.closed += 1


@pytest.fixture(autouse=True)
def replaced(monkeypatch):
    monkeypatch.setattr(Cluster, "closed", 0)
    monkeypatch.setattr(batch_reader, "SourceCluster", Cluster)
    for module in (batch_reader, stream_reader):
        monkeypatch.setattr(module, "read_range", lambda options, columns, wanted: iter([(columns, wanted)]))


def test_a_batch_is_planned_on_the_driver_and_read_by_ranges(monkeypatch):
    monkeypatch.setattr(batch_reader, "plan", lambda cluster, options, filters: [RANGE, RANGE])
    reader = batch_reader.BatchReader(read(), ("value",))
    first, second = reader.partitions()
    assert first.value == tuple(RANGE) and Cluster.closed == 1
    assert list(reader.read(second)) == [(("value",), RANGE)]
    assert list(reader.read(InputPartition(None))) == list(reader.read(None)) == []


def test_the_cluster_is_closed_after_an_error(monkeypatch):
    monkeypatch.setattr(batch_reader, "plan", lambda cluster, options, filters: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        batch_reader.BatchReader(read(), ("value",)).partitions()
    assert Cluster.closed == 1


def test_pushed_filters_narrow_the_plan_and_are_applied_by_spark_again(monkeypatch):
    planned = []
    monkeypatch.setattr(batch_reader, "plan", lambda cluster, options, filters: planned.append(filters) or [])
    monkeypatch.setattr(batch_reader, "row_filters", lambda filters: RowFilters(first_offset=len(filters)))
    reader = batch_reader.FilteringBatchReader(read(), ("value",))
    reader.partitions()
    assert reader.pushFilters(["x", "y"]) == ["x", "y"]
    reader.partitions()
    assert planned == [RowFilters(), RowFilters(first_offset=2)]


class Position:
    """The position of a query that records its calls."""

    made: list[Position] = []

    def __init__(self, options):
        self.calls = []
        Position.made.append(self)

    def initial(self):
        return StreamOffset({A0: 3}, is_initial=True)

    def next_end(self, start, *, is_unlimited):
        self.calls.append((start, is_unlimited))
        return StreamOffset({A0: 5})

    def latest_seen(self):
        return {"a": {"0": 9}}

    def stop_at_latest(self):
        self.calls.append("stop_at_latest")

    def ranges(self, start, end):
        self.calls.append((start, end))
        return [RANGE]

    def close(self):
        self.calls.append("close")


def test_a_stream_has_one_position_until_it_is_stopped(monkeypatch):
    monkeypatch.setattr(Position, "made", [])
    monkeypatch.setattr(stream_reader, "StreamPosition", Position)
    reader = stream_reader.StreamReader(read(True), ("value",))
    reader.stop()
    assert Position.made == []
    assert reader.initialOffset() == {"a": {"0": 3}, "$initial": True}
    assert reader.latestOffset({"a": {"0": 3}}, ReadMaxRows(7)) == {"a": {"0": 5}}
    assert reader.latestOffset() == {"a": {"0": 5}}
    assert reader.reportLatestOffset() == {"a": {"0": 9}}
    reader.prepareForTriggerAvailableNow()
    assert [each.value for each in reader.partitions({}, {"a": {"0": 5}})] == [tuple(RANGE)]
    (position,) = Position.made
    reader.stop()
    reader.stop()
    expected = [({"a": {"0": 3}}, False), (None, True), "stop_at_latest", ({}, {"a": {"0": 5}}), "close"]
    assert position.calls == expected


def test_a_stream_is_read_on_executors_without_its_position(monkeypatch):
    monkeypatch.setattr(stream_reader, "StreamPosition", Position)
    reader = stream_reader.StreamReader(read(True), ("value",))
    reader.initialOffset()
    assert reader.__getstate__()["_position"] is None
    assert list(reader.read(InputPartition(tuple(RANGE)))) == [(("value",), RANGE)]
    assert list(reader.read(InputPartition(None))) == list(reader.read(None)) == []


def test_spark_gets_the_limit_of_the_options():
    default = read_limits.default_limit
    assert default(read(True, maxOffsetsPerTrigger="7", minOffsetsPerTrigger="3")) == ReadMaxRows(7)
    assert default(read(True, minOffsetsPerTrigger="3")) == ReadMinRows(3)
    assert default(read(True)) == ReadAllAvailable()
    assert stream_reader.StreamReader(read(True), ()).getDefaultReadLimit() == ReadAllAvailable()


def test_a_batch_is_unlimited_if_spark_asks_for_everything(monkeypatch):
    assert read_limits.is_unlimited(ReadAllAvailable()) and read_limits.is_unlimited(None)
    assert not read_limits.is_unlimited(ReadMaxRows(7))
    monkeypatch.setattr(read_limits, "pyspark_datasource", None)
    assert read_limits.is_unlimited(ReadMaxRows(7))


def test_limits_are_refused_before_spark_4_2(monkeypatch):
    limited = read(True, maxOffsetsPerTrigger="7", minOffsetsPerTrigger="3")
    read_limits.check_limits(limited)
    monkeypatch.setattr(read_limits, "pyspark_datasource", None)
    read_limits.check_limits(read(True))
    with pytest.raises(ConfigError, match="maxOffsetsPerTrigger and minOffsetsPerTrigger"):
        stream_reader.StreamReader(limited, ())


def test_a_batch_writer_writes_commits_and_aborts(monkeypatch):
    calls = []
    for name in ("write_task", "commit_tasks", "abort_tasks"):
        monkeypatch.setattr(batch_writer, name, lambda *arguments, name=name: calls.append((name, *arguments)) or name)
    options = write_options({"kafka.bootstrap.servers": "h:1", "topic": "t"})
    writer = batch_writer.BatchWriter(options, COLUMNS)
    assert writer.write("rows") == "write_task"
    writer.commit(["message"])
    writer.abort([None])
    expected = [("write_task", options, COLUMNS, "rows"), ("commit_tasks", options, ["message"])]
    assert calls == [*expected, ("abort_tasks", options, [None])]


class Sink:
    """The sink of a stream that records its calls."""

    def __init__(self, options, columns):
        self.calls = []

    def write(self, batches):
        batches = list(batches)
        self.calls.append(("write", [getattr(each, "num_rows", each) for each in batches]))
        return batches

    def commit(self, messages, batch_id):
        self.calls.append(("commit", messages, batch_id))

    def abort(self, messages):
        self.calls.append(("abort", messages))


@pytest.mark.parametrize(
    ("module", "name", "rows"),
    [(stream_writer, "StreamWriter", [3, 2]), (row_stream_writer, "RowStreamWriter", [2, 2, 1])],
)
def test_a_stream_writer_writes_commits_and_aborts(monkeypatch, module, name, rows):
    """Spark 4.0 passes rows one by one, which are collected in batches."""
    monkeypatch.setattr(module, "StreamSink", Sink)
    monkeypatch.setattr(row_stream_writer, "ROWS_AT_ONCE", 2)
    writer = getattr(module, name)(write_options({"kafka.bootstrap.servers": "h:1", "topic": "t"}), COLUMNS)
    given = [("v",)] * 5 if name == "RowStreamWriter" else [3, 2]
    writer.write(iter(given))
    writer.commit(["message"], 6)
    writer.abort([None], 6)
    assert writer._sink.calls == [("write", rows), ("commit", ["message"], 6), ("abort", [None])]
