"""Records as columns: what a poll returns as an Arrow stream, and ranges of offsets."""

from __future__ import annotations

import threading

import pyarrow
import pytest

from kafkapy.client import ArrowBatches, ConfigError, NoOffsetForPartition, RangeReader, RequestTimedOut, TopicPartition
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.api import ApiKey
from tests.harness.client import client_settings
from tests.harness.client_log import LogBrokers

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.fixture
def brokers():
    harness = LogBrokers()
    harness.fill("t", [f"a{number}" for number in range(25)], [f"b{number}" for number in range(5)])
    yield harness
    harness.close()


@pytest.fixture
def consumer(brokers):
    with brokers.consumer(auto_offset_reset="earliest") as made:
        made.partitions_for("t")
        made.assign([T0, T1])
        yield made


def poll_arrow(consumer, **options):
    for _ in range(100):
        found = consumer.poll_arrow(0.5, **options)
        if found:
            return found
    raise AssertionError("no records")


def collect(reader, *arguments, **options):
    return [
        row["offset"] for batch in reader.read(*arguments, **options) for row in pyarrow.record_batch(batch).to_pylist()
    ]


def test_a_result_is_one_arrow_table(consumer):
    result = poll_arrow(consumer)
    assert isinstance(result, ArrowBatches) and len(result) == 2 and result.row_count == 15
    table = pyarrow.table(result)
    table.validate(full=True)
    assert table.num_rows == 15
    assert table.column_names == ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType"]
    assert sorted(table["value"].to_pylist()) == sorted(
        [f"a{number}".encode() for number in range(10)] + [f"b{number}".encode() for number in range(5)]
    )


def test_a_result_can_be_read_as_a_stream_more_than_once(consumer):
    result = poll_arrow(consumer, columns=["offset", "partition"])
    first, second = (pyarrow.RecordBatchReader.from_stream(result).read_all() for _ in range(2))
    assert first == second and first.num_rows == 15


def test_a_stream_may_outlive_its_result_and_be_left_unread(consumer):
    reader = pyarrow.RecordBatchReader.from_stream(poll_arrow(consumer, columns=["value"]))
    assert reader.read_next_batch().num_rows in (5, 10)
    unread = poll_arrow(consumer).__arrow_c_stream__()
    del unread
    assert reader.read_all().num_rows in (5, 10)


def test_an_empty_result_has_the_columns_and_no_rows(consumer):
    consumer.pause([T0, T1])
    result = consumer.poll_arrow(0, columns=["offset", "headers"])
    assert not result and len(result) == result.row_count == 0
    table = pyarrow.table(result)
    assert table.num_rows == 0 and table.column_names == ["offset", "headers"]
    assert pyarrow.schema(result) == table.schema


def test_columns_that_do_not_exist_are_refused_before_anything_is_read(brokers, consumer):
    with pytest.raises(ValueError, match="columns"):
        consumer.poll_arrow(1, columns=["valeu"])
    assert not brokers.of(ApiKey.FETCH)


def test_positions_follow_the_columns(consumer):
    poll_arrow(consumer)
    assert consumer.position(T0) == 10 and consumer.position(T1) == 5


def test_batches_have_no_more_rows_than_wanted(consumer):
    result = poll_arrow(consumer, max_rows=4)
    assert [len(each) for each in result] == [4, 4]
    assert sum(poll_arrow(consumer, max_rows=4).row_count for _ in range(2)) >= 5


def test_an_error_comes_after_the_rows_before_it(brokers, consumer):
    consumer.assign([T0])
    brokers.fetch_errors[T0] = [Error.TOPIC_AUTHORIZATION_FAILED]
    with pytest.raises(ApiError) as raised:
        poll_arrow(consumer)
    assert raised.value.error is Error.TOPIC_AUTHORIZATION_FAILED
    assert poll_arrow(consumer).row_count == 10


class DamagedBrokers(LogBrokers):
    """Brokers whose batches at and above the offset 10 do not match their checksums."""

    def _batch(self, topic_partition, offset):
        batch = super()._batch(topic_partition, offset)
        return batch[:-1] + b"?" if offset >= 10 else batch


@pytest.fixture
def damaged_brokers():
    harness = DamagedBrokers()
    harness.fill("t", [f"a{number}" for number in range(25)])
    yield harness
    harness.close()


def test_a_damaged_batch_comes_after_the_rows_of_earlier_fetches(damaged_brokers):
    with damaged_brokers.range_reader() as reader:
        batches = reader.read(T0, 0, 25, max_rows=4)
        sizes = [len(next(batches))]
        assert reader._network.wait_until(lambda: len(reader._state.buffers) == 2, 10)  # the damaged one, too
        sizes += [len(next(batches)), len(next(batches))]
        with pytest.raises(ApiError) as raised:
            next(batches)
        assert raised.value.error is Error.CORRUPT_MESSAGE
        assert sizes == [4, 4, 2] and reader.position == 10


def test_a_range_is_read_from_its_start_up_to_its_end(brokers):
    with brokers.range_reader() as reader:
        assert reader.position is None
        assert collect(reader, T0, 3, 17) == list(range(3, 17))
        assert reader.position >= 17
        assert collect(reader, ("t", 1), 0, 5, columns=["offset"], max_rows=2) == list(range(5))
        assert collect(reader, T0, 4, 4) == []


def test_a_range_begins_again_after_one_that_was_left(brokers):
    with brokers.range_reader() as reader:
        next(iter(reader.read(T0, 0, 25)))
        assert collect(reader, T0, 20, 25) == list(range(20, 25))


def test_a_range_before_the_log_is_an_error(brokers):
    brokers.starts[T0] = 10
    with brokers.range_reader() as reader:
        with pytest.raises(NoOffsetForPartition, match="Fetch position 2 is out of range"):
            collect(reader, T0, 2, 20)
        assert collect(reader, T0, 10, 12) == [10, 11]


def test_a_range_before_the_log_begins_at_its_start_if_so_configured(brokers):
    brokers.starts[T0] = 10
    with brokers.range_reader(auto_offset_reset="earliest") as reader:
        assert collect(reader, T0, 2, 12) == [10, 11]


def test_a_range_that_does_not_arrive_times_out(brokers):
    with brokers.range_reader() as reader, pytest.raises(RequestTimedOut, match="position 25 of a range up to 30"):
        collect(reader, T0, 20, 30, timeout=3)


def test_a_reader_has_a_thread_until_it_is_closed(brokers):
    environment = brokers.environment._replace(has_thread=True)
    reader_class = type("RangeReader", (RangeReader,), {"_environment": environment})
    before = set(threading.enumerate())
    with reader_class(client_settings()):
        (thread,) = set(threading.enumerate()) - before
    assert not thread.is_alive()


def test_a_reader_has_no_group(brokers):
    with pytest.raises(ConfigError, match=r"group\.id"):
        brokers.range_reader(group_id="g")


def test_a_reader_fetches_large_portions_unless_told_otherwise(brokers):
    with brokers.range_reader() as reader:
        collect(reader, T0, 0, 5)
    assert brokers.of(ApiKey.FETCH)[0].topics[0].partitions[0].partition_max_bytes == 4 << 20
    with brokers.range_reader(max_partition_fetch_bytes=1000) as reader:
        collect(reader, T0, 0, 5)
    assert brokers.of(ApiKey.FETCH)[-1].topics[0].partitions[0].partition_max_bytes == 1000
