"""Reading a range in a task: columns, repeated reads, and records that the log has lost."""

from __future__ import annotations

import pyarrow
import pytest

from kafkapy.client.fetcher import LogTruncated, NoOffsetForPartition
from kafkapy.spark import range_reader
from kafkapy.spark.data_loss import DataLossError
from kafkapy.spark.options import read_options
from kafkapy.spark.range_reader import read_range
from kafkapy.spark.stream_offset import OffsetRange
from kafkapy.types import TopicPartition

A0 = TopicPartition("a", 0)
LOST = NoOffsetForPartition(A0, "lost")


class ScriptedReader:
    """A RangeReader whose rows have only the column `offset`.

    Each element of `failures` is an offset before which a read fails, and the error.
    """

    made: list[ScriptedReader] = []
    failures: list[tuple[int, Exception]] = []

    def __init__(self, properties):
        self.properties = properties
        self.reads = []
        self.position = None
        self.is_closed = False
        ScriptedReader.made.append(self)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.is_closed = True

    def read(self, partition, start, until, **settings):
        self.reads.append((partition, start, until))
        self.settings = settings
        self.position = start
        while self.position < until:
            if ScriptedReader.failures and self.position == ScriptedReader.failures[0][0]:
                raise ScriptedReader.failures.pop(0)[1]
            offsets = [self.position, self.position + 1]
            self.position += 2
            yield pyarrow.record_batch([pyarrow.array(offsets, pyarrow.int32())], ["offset"])


class Log:
    """A cluster that returns `bounds` as the first and last offset of the log."""

    bounds = (0, 100)
    closed = 0

    def __init__(self, options):
        pass

    def earliest(self, partitions):
        return dict.fromkeys(partitions, Log.bounds[0])

    def latest(self, partitions):
        return dict.fromkeys(partitions, Log.bounds[1])

    def close(self):
        Log.closed += 1


@pytest.fixture(autouse=True)
def log(monkeypatch):
    monkeypatch.setattr(ScriptedReader, "made", [])
    monkeypatch.setattr(ScriptedReader, "failures", [])
    monkeypatch.setattr(Log, "bounds", (0, 100))
    monkeypatch.setattr(Log, "closed", 0)
    monkeypatch.setattr(range_reader, "RangeReader", ScriptedReader)
    monkeypatch.setattr(range_reader, "SourceCluster", Log)
    return Log


def offsets(start, end, **options):
    """Returns the offsets that a task yields for a range."""
    given = {"kafka.bootstrap.servers": "h:1", "subscribe": "a", **options}
    batches = read_range(read_options(given, is_streaming=False), ("offset",), OffsetRange(A0, start, end))
    return [offset for batch in batches for offset in batch.column(0).to_pylist()]


def reads():
    return [each[1:] for each in ScriptedReader.made[0].reads]


def test_batches_have_the_types_of_the_schema_and_the_options_reach_the_reader():
    given = {"kafka.bootstrap.servers": "h:1", "subscribe": "a", "kafka.group.id": "g", "kafka.client.rack": "r"}
    options = read_options({**given, "kafkaConsumer.pollTimeoutMs": "1500"}, is_streaming=False)
    (batch,) = read_range(options, ("offset",), OffsetRange(A0, 4, 6))
    assert batch.schema == pyarrow.schema([("offset", pyarrow.int64())])
    (reader,) = ScriptedReader.made
    assert reader.reads == [(A0, 4, 6)] and reader.is_closed
    expected = {"columns": ("offset",), "max_rows": 65_536, "max_bytes": 16 << 20, "timeout": 1.5}
    assert reader.settings == expected
    assert "group.id" not in reader.properties and reader.properties["client.rack"] == "r"
    assert reader.properties["client.id"].startswith("kafkapy-spark-")


def test_an_empty_range_reads_nothing():
    assert offsets(4, 4) == [] and ScriptedReader.made[0].reads == []


@pytest.mark.parametrize("bounds", [(0, 100), (6, 100), (0, 6)])
def test_a_position_within_the_log_is_read_again(log, bounds):
    """A new leader did not know the end of its log yet; positions at both ends are tested too."""
    log.bounds = bounds
    ScriptedReader.failures = [(6, LOST)]
    assert offsets(4, 8) == [4, 5, 6, 7]
    assert reads() == [(4, 8), (6, 8)] and log.closed == 1


def test_a_reader_without_a_position_begins_again_at_the_start(monkeypatch):
    def read(self, partition, start, until, **settings):
        self.reads.append((partition, start, until))
        if len(self.reads) == 1:
            raise LOST
        yield pyarrow.record_batch([pyarrow.array([start], pyarrow.int64())], ["offset"])

    monkeypatch.setattr(ScriptedReader, "read", read)
    assert offsets(4, 5) == [4] and reads() == [(4, 5), (4, 5)]


def test_records_that_retention_removed_are_skipped_or_an_error(log):
    log.bounds = (8, 100)
    ScriptedReader.failures = [(6, LOST)]
    with pytest.raises(DataLossError, match="Offset 6 of partition a-0 is out of range: it has 8 to 100"):
        offsets(4, 10)
    ScriptedReader.made.clear()
    ScriptedReader.failures = [(6, LOST)]
    assert offsets(4, 10, failOnDataLoss="false") == [4, 5, 8, 9]
    assert reads() == [(4, 10), (8, 10)]


def test_a_range_behind_the_end_of_the_log_ends(log):
    log.bounds = (0, 5)
    ScriptedReader.failures = [(6, LOST)]
    assert offsets(4, 10, failOnDataLoss="false") == [4, 5]
    assert reads() == [(4, 10)]


def test_a_truncated_log_is_reported_and_read_again():
    truncated = LogTruncated(A0, 6, None)
    ScriptedReader.failures = [(6, truncated)]
    with pytest.raises(DataLossError, match="Truncated partition a-0"):
        offsets(4, 8)
    ScriptedReader.failures = [(6, truncated)]
    assert offsets(4, 8, failOnDataLoss="false") == [4, 5, 6, 7]
