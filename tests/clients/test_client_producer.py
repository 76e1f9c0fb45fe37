"""Our producer: order, futures, partitioners, memory, and brokers that go away."""

from __future__ import annotations

import uuid
from collections.abc import Callable

import pytest

from kafkapy.client import Consumer, ConsumerRecord, Producer, TopicPartition
from kafkapy.errors import ApiError, Error
from tests.broker_process import BrokerProcess
from tests.clients.conftest import set_topic_config

NewTopic = Callable[[int], str]


def read(bootstrap: str, topic: str, partitions: int, count: int, **settings: object) -> list[ConsumerRecord]:
    with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest", **settings) as consumer:
        consumer.assign([(topic, number) for number in range(partitions)])
        found: list[ConsumerRecord] = []
        while len(found) < count:
            records = consumer.poll(20)
            assert records, f"{len(found)} of {count}"
            found += records
        return found


def test_many_small_batches_keep_their_order_with_five_in_flight(bootstrap: str, new_topic: NewTopic) -> None:
    topic = new_topic(2)
    with Producer(bootstrap_servers=bootstrap, batch_size=300, linger_ms=0) as producer:
        futures = [producer.send(topic, str(number), partition=number % 2) for number in range(4000)]
        assert producer.flush(30)
    assert [future.result().offset for future in futures[::2]] == list(range(2000))
    records = read(bootstrap, topic, 2, 4000)
    for partition in (0, 1):
        assert [int(r.value) for r in records if r.partition == partition] == list(range(partition, 4000, 2))


@pytest.mark.parametrize("acks", ["all", "1", "0"])
def test_acknowledgements(bootstrap: str, new_topic: NewTopic, acks: str) -> None:
    topic = new_topic(1)
    with Producer(bootstrap_servers=bootstrap, acks=acks) as producer:
        metadata = producer.send(topic, b"value", b"key", timestamp=1234).result(20)
        assert metadata.offset == (-1 if acks == "0" else 0)
        assert (metadata.topic, metadata.partition, metadata.timestamp) == (topic, 0, 1234)
    assert [record.value for record in read(bootstrap, topic, 1, 1)] == [b"value"]


class ByFirstByte:
    """A custom partitioner."""

    def partition(self, topic: str, key: object, key_bytes: bytes, value: object, partition_count: int) -> int:
        return key_bytes[0] % partition_count


class Stamp:
    """An interceptor that changes the values of records and counts acknowledgements."""

    def __init__(self) -> None:
        self.acknowledged = 0

    def on_send(self, topic: str, value: object, key: object) -> tuple[str, object, object]:
        return topic, {"stamped": value}, key

    def on_acknowledgement(self, metadata: object, error: BaseException | None) -> None:
        self.acknowledged += error is None


def test_serializers_partitioner_and_interceptor(bootstrap: str, new_topic: NewTopic) -> None:
    topic, stamp = new_topic(3), Stamp()
    with Producer(
        bootstrap_servers=bootstrap,
        key_serializer="text",
        value_serializer="json",
        partitioner_class=ByFirstByte,
        interceptor_classes=[stamp],
    ) as producer:
        for key in "abc":
            producer.send(topic, {"n": key}, key)
    assert stamp.acknowledged == 3
    records = read(bootstrap, topic, 3, 3, key_deserializer="text", value_deserializer="json")
    assert {record.key: (record.partition, record.value) for record in records} == {
        key: (ord(key) % 3, {"stamped": {"n": key}}) for key in "abc"
    }


def test_memory_is_waited_for(bootstrap: str, new_topic: NewTopic) -> None:
    topic = new_topic(1)
    with Producer(bootstrap_servers=bootstrap, buffer_memory=40_000, batch_size=10_000, linger_ms=1000) as producer:
        futures = producer.send_many(topic, [b"x" * 900] * 500)
        assert producer.flush(30)
        assert [future.result().offset for future in futures] == list(range(500))
        assert producer.memory_used == 0


def test_what_the_broker_refuses_comes_by_the_future_and_the_callback(bootstrap: str, new_topic: NewTopic) -> None:
    topic, heard = new_topic(1), []
    with Producer(bootstrap_servers=bootstrap, max_request_size=5_000_000) as producer:
        future = producer.send(topic, b"x" * 2_000_000, on_delivery=lambda *told: heard.append(told))
        error = future.exception(20)
        assert isinstance(error, ApiError) and error.error is Error.MESSAGE_TOO_LARGE
        assert heard == [(None, error)]
        assert producer.send(topic, b"small").result(20).offset == 0


@pytest.mark.parametrize("idempotent", [True, False])
def test_batches_that_are_too_large_are_split(bootstrap: str, new_topic: NewTopic, idempotent: bool) -> None:
    """Other batches are in flight while one is split; every record is written once, in order."""
    topic, heard = new_topic(1), []
    set_topic_config(bootstrap, topic, "max.message.bytes", "3000")
    values = [uuid.uuid4().hex.encode() * 10 for _ in range(400)]
    with Producer(
        bootstrap_servers=bootstrap,
        compression_type="gzip",
        batch_size=8_000,
        linger_ms=50,
        enable_idempotence=idempotent,
        max_in_flight_requests_per_connection=5 if idempotent else 1,
    ) as producer:
        futures = [
            producer.send(topic, value, on_delivery=lambda metadata, error: heard.append(metadata.offset))
            for value in values
        ]
        assert producer.flush(30)
        assert [future.result().offset for future in futures] == list(range(400))
        assert sorted(heard) == list(range(400))
        assert producer.memory_used == 0
    assert [record.value for record in read(bootstrap, topic, 1, 400)] == values


@pytest.mark.parametrize("in_flight", [1, 5])
def test_the_neighbours_of_a_record_that_is_too_large_are_written(
    bootstrap: str, new_topic: NewTopic, in_flight: int
) -> None:
    """The batch is split nine times, and it may be sent again only three times."""
    topic, large = new_topic(1), (0, 130, 131, 299)
    set_topic_config(bootstrap, topic, "max.message.bytes", "3000")
    settings = {"retries": 3, "max_in_flight_requests_per_connection": in_flight, "linger_ms": 50}
    with Producer(bootstrap_servers=bootstrap, **settings) as producer:
        values = [str(number) + "x" * (4000 if number in large else 50) for number in range(300)]
        errors = [future.exception(30) for future in producer.send_many(topic, values)]
    assert [index for index, error in enumerate(errors) if error is not None] == list(large)
    assert {error.error for error in errors if isinstance(error, ApiError)} == {Error.MESSAGE_TOO_LARGE}
    small = [value.encode() for index, value in enumerate(values) if index not in large]
    assert [record.value for record in read(bootstrap, topic, 1, len(small))] == small


def test_a_topic_that_cannot_be(bootstrap: str) -> None:
    with Producer(bootstrap_servers=bootstrap) as producer, pytest.raises(ApiError) as refused:
        producer.send("no such:topic", b"value")
    assert refused.value.error is Error.INVALID_TOPIC_EXCEPTION


def test_without_a_broker_sending_gives_up_in_time(free_port: int) -> None:
    late = pytest.raises(TimeoutError, match="not present in metadata after 300 ms")
    with Producer(bootstrap_servers=f"localhost:{free_port}", max_block_ms=300) as producer, late:
        producer.send("topic", b"value")


def test_records_outlive_the_broker(tmp_path) -> None:
    """The broker is killed while records are in flight; each record is written once, in order."""
    with BrokerProcess(tmp_path) as broker:
        with Producer(bootstrap_servers=broker.bootstrap, batch_size=500, linger_ms=0) as producer:
            futures = [producer.send("topic", str(number)) for number in range(300)]
            broker.kill()
            futures += [producer.send("topic", str(number)) for number in range(300, 600)]
            broker.restart()
            assert producer.flush(60)
            assert [future.exception() for future in futures] == [None] * 600
            futures[-1].result()
        records = read(broker.bootstrap, "topic", 1, 600)
        assert [int(record.value) for record in records] == list(range(600))
        with Consumer(bootstrap_servers=broker.bootstrap) as consumer:
            where = TopicPartition("topic", 0)
            assert consumer.end_offsets([where]) == {where: 600}
