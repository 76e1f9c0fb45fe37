"""`Producer.send_arrow`: what it waits for, what it raises, and the outcome of the rows."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

from kafkapy._core.bytes.record_batch import RecordBatch
from kafkapy.client import ApiError, ClientClosed, RequestTimedOut, TransactionError, UndeliveredRows
from kafkapy.errors import Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.init_producer_id import InitProducerIdResponse
from kafkapy.protocol.messages.produce import ProduceResponse
from tests.harness.client import MemoryBrokers


class Brokers(MemoryBrokers):
    """A broker with a topic of two partitions, which refuses batches that are too large or contain `refused`."""

    def __init__(self):
        super().__init__()
        self.add_topic("t", [(1, 0)] * 2)
        self.largest = 1 << 20
        self.refused = b"refused"
        self.written: list[tuple[int, bytes | None, bytes | None]] = []
        self.answers |= {
            ApiKey.PRODUCE: self._produce,
            ApiKey.INIT_PRODUCER_ID: lambda request, version: InitProducerIdResponse(producer_id=7, producer_epoch=0),
        }

    def _produce(self, request, version):
        (topic,) = request.topic_data
        results = []
        for data in topic.partition_data:
            content = bytes(data.records)
            result = ProduceResponse.PartitionProduceResponse(index=data.index, base_offset=0)
            if len(content) > self.largest:
                result.error_code = int(Error.MESSAGE_TOO_LARGE)
            elif self.refused in content:
                result.error_code = int(Error.INVALID_RECORD)
            else:
                self.written += [(data.index, each.key, each.value) for each in RecordBatch(content)]
            results.append(result)
        response = ProduceResponse.TopicProduceResponse(topic_id=topic.topic_id, partition_responses=results)
        return ProduceResponse(responses=[response])


@pytest.fixture
def brokers():
    harness = Brokers()
    yield harness
    harness.close()


def test_rows_are_delivered(brokers):
    table = pa.table({"key": ["a", None], "value": ["x", b"y".decode()], "partition": pa.array([1, 0])})
    with brokers.producer(linger_ms=1000) as producer:
        delivery = producer.send_arrow("t", table)
        assert not delivery.done() and delivery.row_count == 2
        assert repr(delivery) == "<ArrowDelivery t: 0 of 2 rows delivered, 0 failed>"
        assert delivery.result(60) == 2
        assert delivery.done() and delivery.failures == [] and delivery.delivered == 2
    assert sorted(brokers.written) == [(0, None, b"y"), (1, b"a", b"x")]


def test_a_table_without_rows_is_delivered_at_once(brokers):
    with brokers.producer() as producer:
        delivery = producer.send_arrow("t", pa.table({"value": pa.array([], pa.string())}))
        assert delivery.done() and delivery.result(0) == 0


def test_rows_that_are_refused_are_named(brokers):
    values = ["a", "refused", "b", "c", "x" * 3000, "d"]
    brokers.largest = 2000
    with brokers.producer(linger_ms=1000, enable_idempotence=False) as producer:
        delivery = producer.send_arrow("t", pa.table({"value": values, "partition": [1, 0, 1, 0, 1, 1]}))
        producer.flush()
        with pytest.raises(UndeliveredRows) as raised:
            delivery.result(60)
    assert sorted((list(each.rows), each.partition, each.error.error) for each in delivery.failures) == [
        ([1, 3], 0, Error.INVALID_RECORD),
        ([4], 1, Error.MESSAGE_TOO_LARGE),
    ]
    assert raised.value.error is Error.INVALID_RECORD and raised.value.failures == delivery.failures
    words = "3 of 6 rows were not delivered to the topic t; the first one is row 1: INVALID_RECORD"
    first = next(each for each in delivery.failures if 1 in each.rows)
    assert words in raised.value.message and raised.value.__cause__ is first.error
    assert sorted(value for _, _, value in brokers.written) == [b"a", b"b", b"d"]
    assert repr(delivery) == "<ArrowDelivery t: 3 of 6 rows delivered, 3 failed>"
    copy = pickle.loads(pickle.dumps(raised.value))
    assert (copy.message, [list(each.rows) for each in copy.failures]) == (
        raised.value.message,
        [list(each.rows) for each in delivery.failures],
    )


def test_a_result_that_does_not_come_is_a_time_out(brokers):
    brokers.answers[ApiKey.PRODUCE] = lambda request, version: None
    with brokers.producer(request_timeout_ms=5000, delivery_timeout_ms=10_000, linger_ms=0) as producer:
        delivery = producer.send_arrow("t", pa.table({"value": ["a", "b"]}))
        with pytest.raises(RequestTimedOut, match="2 rows are not acknowledged within 3 s"):
            delivery.result(3)
        with pytest.raises(UndeliveredRows) as raised:
            delivery.result(60)
        assert isinstance(raised.value.__cause__, ApiError)


def test_memory_is_waited_for(brokers):
    with brokers.producer(buffer_memory=4000, batch_size=1000, linger_ms=10_000) as producer:
        delivery = producer.send_arrow("t", pa.table({"value": [b"%05d" % number * 20 for number in range(200)]}))
        assert producer.flush(60) and delivery.result(60) == 200
        assert producer.memory_used == 0
    assert sorted(value for _, _, value in brokers.written) == [b"%05d" % number * 20 for number in range(200)]


def test_memory_is_waited_for_no_longer_than_a_call_may_block(brokers):
    brokers.answers[ApiKey.PRODUCE] = lambda request, version: None
    table = pa.table({"value": [b"x" * 900] * 10})
    settings = {"buffer_memory": 3000, "batch_size": 1000, "max_block_ms": 2000, "enable_idempotence": False}
    with (
        brokers.producer(**settings, request_timeout_ms=5000, delivery_timeout_ms=10_000, linger_ms=0) as producer,
        pytest.raises(RequestTimedOut, match="Failed to allocate 1000 bytes within the configured max blocking time"),
    ):
        producer.send_arrow("t", table)


def test_a_row_that_cannot_be_sent_leaves_those_before_it(brokers):
    with brokers.producer(max_request_size=500) as producer:
        with pytest.raises(ApiError, match=r"Row 2: The message is .* more than max\.request\.size") as raised:
            producer.send_arrow("t", pa.table({"value": ["a", "b", "x" * 500, "c"]}))
        assert raised.value.error is Error.MESSAGE_TOO_LARGE
    assert [value for _, _, value in brokers.written] == [b"a", b"b"]


def test_a_topic_and_a_table_must_be_valid(brokers):
    with brokers.producer(max_block_ms=2000) as producer:
        with pytest.raises(TypeError, match="a table with Arrow's interface is needed"):
            producer.send_arrow("t", ["a"])
        with pytest.raises(RequestTimedOut, match="Topic u not present in metadata after 2000 ms"):
            producer.send_arrow("u", pa.table({"value": ["a"]}))
    with pytest.raises(ClientClosed):
        producer.send_arrow("t", pa.table({"value": ["a"]}))


def test_serializers_partitioners_and_interceptors_see_each_row(brokers):
    class Constant:
        def partition(self, topic, key, key_bytes, value, partition_count):
            return 1

    class Mark:
        def on_send(self, topic, value, key):
            return topic, f"{value}!", key

    settings = {"partitioner_class": Constant, "interceptor_classes": [Mark()], "key_serializer": "json"}
    with brokers.producer(**settings, value_serializer=lambda topic, value: f"{topic}:{value}".encode()) as producer:
        delivery = producer.send_arrow("t", pa.table({"key": ["k", None], "value": ["a", "b"]}))
        assert delivery.result(60) == 2
    assert brokers.written == [(1, b'"k"', b"t:a!"), (1, None, b"t:b!")]


def test_rows_belong_to_the_open_transaction(brokers):
    table = pa.table({"value": ["a"]})
    with brokers.producer(transactional_id="x") as producer:
        producer.init_transactions(10)
        with pytest.raises(TransactionError, match="READY where OPEN is required"):
            producer.send_arrow("t", table)
        producer._transactions._state.phase = type(producer._transactions._state.phase).OPEN
        failure = ApiError(Error.INVALID_RECORD)
        producer._transactions._state.on_error(failure)
        with pytest.raises(ApiError) as raised:
            producer.send_arrow("t", table)
        assert raised.value is failure
        producer._transactions._state.reset()
