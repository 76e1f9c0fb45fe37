"""Streaming queries through the data source: micro-batches, limits, restarts, and topics that change."""

from __future__ import annotations

import pytest
from pyspark.errors import StreamingQueryException

from kafkapy.spark import partition_progress
from kafkapy.types import TopicPartition
from tests.broker_process import BrokerProcess
from tests.spark.conftest import Topics, with_options


class Rows:
    """The rows of a stream by the number of their micro-batch: a batch that is repeated replaces the earlier one."""

    def __init__(self) -> None:
        self.batches: dict[int, list[tuple[int, int]]] = {}
        self.fails_at: int | None = None

    def __call__(self, frame, batch_id):
        rows = [(row.partition, row.offset) for row in frame.select("partition", "offset").collect()]
        if batch_id == self.fails_at:
            raise RuntimeError("the driver is made to fail")
        self.batches[batch_id] = sorted(rows)

    @property
    def sizes(self):
        return [len(self.batches[batch_id]) for batch_id in sorted(self.batches) if self.batches[batch_id]]

    @property
    def all(self):
        return sorted(row for batch in self.batches.values() for row in batch)


def run(frame, rows, checkpoint):
    """Runs a query over all available records and returns it."""
    query = (
        frame.writeStream.foreachBatch(rows)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination(60)
    assert not query.isActive
    return query


def test_limits_progress_and_restart(read_stream, topics, tmp_path):
    topic = topics.create(2)
    topics.fill(topic, map(str, range(30)))
    topics.fill(topic, map(str, range(10)), partition=1)
    rows = Rows()
    query = run(read_stream(topic, startingOffsets="earliest", maxOffsetsPerTrigger=16), rows, tmp_path)
    assert rows.sizes == [16, 16, 8]
    first = partition_progress(query.recentProgress[0])
    assert first[TopicPartition(topic, 0)] == (12, 30, 18) and first[TopicPartition(topic, 1)] == (4, 10, 6)
    topics.fill(topic, map(str, range(5)))
    topics.add_partitions(topic, 3)
    topics.fill(topic, "x", partition=2)
    run(read_stream(topic, startingOffsets="earliest", maxOffsetsPerTrigger=16), rows, tmp_path)
    assert rows.all == [(0, n) for n in range(35)] + [(1, n) for n in range(10)] + [(2, 0)]


def test_a_batch_that_failed_is_the_same_again(read_stream, topics, tmp_path):
    topic = topics.create()
    topics.fill(topic, map(str, range(20)))
    rows = Rows()
    for batch_id in (0, 1):
        rows.fails_at = batch_id
        with pytest.raises(Exception, match="made to fail"):
            run(read_stream(topic, startingOffsets="earliest", maxOffsetsPerTrigger=16), rows, tmp_path)
        topics.fill(topic, map(str, range(7)))
    rows.fails_at = None
    run(read_stream(topic, startingOffsets="earliest", maxOffsetsPerTrigger=16), rows, tmp_path)
    assert rows.all == [(0, n) for n in range(34)] and rows.batches[0] == [(0, n) for n in range(16)]


def test_latest_means_the_start_of_the_query(read_stream, topics, tmp_path):
    topic = topics.create()
    topics.fill(topic, "abc")
    rows = Rows()
    run(read_stream(topic), rows, tmp_path)
    assert rows.all == []
    topics.fill(topic, "de")
    run(read_stream(topic), rows, tmp_path)
    assert rows.all == [(0, 3), (0, 4)]


@pytest.mark.parametrize("fails", [True, False])
def test_a_topic_deleted_and_created_again(read_stream, topics, tmp_path, fails):
    topic = topics.create()
    topics.fill(topic, "abc")
    frame = read_stream(topic, startingOffsets="earliest", failOnDataLoss=fails)
    rows = Rows()
    run(frame, rows, tmp_path)
    topics.delete(topic)
    topics.create(name=topic)
    topics.fill(topic, "vwxyz")
    if fails:
        with pytest.raises(Exception, match="deleted and created again"):
            run(frame, rows, tmp_path)
    else:
        run(frame, rows, tmp_path)
        assert rows.all == sorted([(0, n) for n in range(3)] + [(0, n) for n in range(5)])


@pytest.mark.parametrize("fails", [True, False])
def test_a_topic_deleted_and_created_again_while_the_query_runs(read_stream, topics, tmp_path, fails):
    topic = topics.create()
    topics.fill(topic, "abc")
    rows = Rows()
    frame = read_stream(topic, startingOffsets="earliest", failOnDataLoss=fails)
    query = start(frame, rows, tmp_path)
    query.processAllAvailable()
    topics.delete(topic)
    topics.create(name=topic)
    topics.fill(topic, "vwxyz")
    if fails:
        with pytest.raises(Exception, match=r"is gone|was deleted and created again|offset was changed"):
            query.awaitTermination(60)
    else:
        query.processAllAvailable()
        query.stop()
        assert rows.all == sorted([(0, n) for n in range(3)] + [(0, n) for n in range(5)])


def start(frame, rows, checkpoint):
    """Starts a query that runs until it is stopped."""
    writer = frame.writeStream.foreachBatch(rows).option("checkpointLocation", str(checkpoint))
    return writer.trigger(processingTime="100 milliseconds").start()


@pytest.mark.parametrize("fails", [True, False])
def test_an_offset_below_the_start_of_the_log(read_stream, read, topics, tmp_path, fails):
    topic = topics.create()
    topics.fill(topic, map(str, range(10)))
    topics.delete_records(topic, 0, 4)
    start = f'{{"{topic}": {{"0": 1}}}}'
    frame = read_stream(topic, startingOffsets=start, failOnDataLoss=fails)
    batch = read(topic, startingOffsets=start, failOnDataLoss=fails)
    rows = Rows()
    if fails:
        with pytest.raises(Exception, match="begins at offset 4, not 1"):
            run(frame, rows, tmp_path)
        with pytest.raises(Exception, match="begins at offset 4, not 1"):
            batch.count()
    else:
        run(frame, rows, tmp_path)
        assert rows.all == [(0, n) for n in range(4, 10)] and batch.count() == 6


def test_a_wrong_option_is_the_error_of_the_query(read_stream, topics, tmp_path):
    frame = read_stream(topics.create(), endingOffsets="latest")
    with pytest.raises(StreamingQueryException) as raised:
        run(frame, Rows(), tmp_path)
    message = str(raised.value)
    assert "ConfigError: endingOffsets is not valid in streaming queries" in message
    assert "UnboundLocalError" not in message


def test_a_broker_restart(spark, tmp_path):
    with BrokerProcess(tmp_path / "kafkapy") as broker:
        topics = Topics(broker.bootstrap)
        topic = topics.create()
        topics.fill(topic, "abc")
        rows = Rows()
        frame = with_options(spark.readStream, broker.bootstrap, topic, None, {"startingOffsets": "earliest"}).load()
        query = start(frame, rows, tmp_path / "checkpoint")
        query.processAllAvailable()
        broker.kill()
        broker.start()
        topics.fill(topic, "de")
        query.processAllAvailable()
        query.stop()
    assert rows.all == [(0, n) for n in range(5)]
