"""Tasks of Spark whose partition changes while they read it."""

from __future__ import annotations

import pytest

from kafkapy.client import Producer
from kafkapy.spark.data_loss import DataLossError
from kafkapy.spark.options import read_options
from kafkapy.spark.range_reader import BATCH_BYTES, read_range
from kafkapy.spark.stream_offset import OffsetRange
from kafkapy.types import TopicPartition

VALUE = b"x" * 100_000
RECORDS, DELETED = 480, 400
# The number of records in one batch of rows and in the fetches ahead of it, with fetches of 1 MiB.
AHEAD = (BATCH_BYTES + (8 << 20)) // len(VALUE)


def start_reading(topics, *, fails):
    """Returns a topic, the first rows of its range, and an iterator over the others, most of which are not fetched
    yet."""
    topic = topics.create()
    with Producer(bootstrap_servers=topics.bootstrap) as producer:
        producer.send_many(topic, [VALUE] * RECORDS)
    given = {"kafka.bootstrap.servers": topics.bootstrap, "subscribe": topic, "failOnDataLoss": str(fails)}
    options = read_options({**given, "kafka.max.partition.fetch.bytes": str(1 << 20)}, is_streaming=False)
    rest = read_range(options, ("offset",), OffsetRange(TopicPartition(topic, 0), 0, RECORDS))
    return topic, next(rest), rest


def make_anew(topics, topic):
    topics.delete(topic)
    topics.create(name=topic)
    topics.fill(topic, "abc")


def offsets(batches):
    return [offset for batch in batches for offset in batch.column(0).to_pylist()]


def test_the_log_begins_later_in_the_middle_of_a_range(topics):
    topic, first, rest = start_reading(topics, fails=False)
    topics.delete_records(topic, 0, DELETED)
    found = offsets([first, *rest])
    kept = [offset for offset in found if offset < DELETED]
    assert kept == list(range(len(kept))) and 0 < len(kept) <= AHEAD < DELETED
    assert found == [*kept, *range(DELETED, RECORDS)]


def test_a_topic_made_anew_in_the_middle_of_a_range_is_not_read_again_from_its_start(topics):
    topic, first, rest = start_reading(topics, fails=False)
    make_anew(topics, topic)
    found = offsets([first, *rest])
    assert found == list(range(len(found))) and 0 < len(found) <= AHEAD


def test_lost_records_are_an_error_with_fail_on_data_loss(topics):
    topic, _, rest = start_reading(topics, fails=True)
    topics.delete_records(topic, 0, DELETED)
    with pytest.raises(DataLossError, match=f"out of range: it has {DELETED} to {RECORDS}"):
        list(rest)
    topic, _, rest = start_reading(topics, fails=True)
    make_anew(topics, topic)
    with pytest.raises(DataLossError, match="out of range: it has 0 to 3"):
        list(rest)
