"""The producer's methods: partitions, serializers, interceptors, memory, flushing and closing."""

from __future__ import annotations

from itertools import pairwise

import pytest

from kafkapy._core.bytes.record_batch import RecordBatch
from kafkapy.client import ApiError, ConfigError, RequestTimedOut
from kafkapy.client.partitioner import default_partition
from kafkapy.errors import Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.produce import ProduceResponse
from tests.harness.client import MemoryBrokers


class Brokers(MemoryBrokers):
    """One broker with a topic of four partitions, and the records written to it: (partition, key, value)."""

    def __init__(self):
        super().__init__()
        self.add_topic("t", [(1, 0)] * 4)
        self.written = []
        self.answers[ApiKey.PRODUCE] = self.produce

    def produce(self, request, version):
        (topic,) = request.topic_data
        results = []
        for data in topic.partition_data:
            for record in RecordBatch(bytes(data.records)):
                self.written.append((data.index, record.key, record.value))
            results.append(ProduceResponse.PartitionProduceResponse(index=data.index, base_offset=0))
        response = ProduceResponse.TopicProduceResponse(topic_id=topic.topic_id, partition_responses=results)
        return ProduceResponse(responses=[response])


@pytest.fixture
def brokers():
    harness = Brokers()
    yield harness
    harness.close()


def producer_of(brokers, **settings):
    return brokers.producer(**{"enable_idempotence": False, "linger_ms": 5, **settings})


def test_the_metadata_of_a_topic_without_writes_are_not_requested_any_more(brokers):
    """A request would create the topic again, if it has been deleted and the broker creates topics."""

    def requested():
        return [topic.name for topic in brokers.of(ApiKey.METADATA)[-1].topics]

    with producer_of(brokers, metadata_max_idle_ms=5000, metadata_max_age_ms=1000) as producer:
        producer.send("t", "v").result(10)
        brokers.add_topic("u", [(1, 0)])
        for _ in range(4):
            producer.send("u", "v").result(10)
            brokers.clock.advance(1500)
            producer.partitions_for("u")
        producer.send("u", "v").result(10)
        assert requested() == ["u"]
        producer.send("t", "w").result(10)
        assert requested() == ["t", "u"]
    assert [value for _, _, value in brokers.written].count(b"w") == 1


def test_a_key_decides_the_partition(brokers):
    with producer_of(brokers) as producer:
        for number in range(20):
            producer.send("t", "v", f"k{number}")
        producer.flush(10)
    assert {(partition, key) for partition, key, _ in brokers.written} == {
        (default_partition(f"k{number}".encode(), 4), f"k{number}".encode()) for number in range(20)
    }


def test_the_same_partition_is_chosen_for_a_serialized_key(brokers):
    with producer_of(
        brokers, key_serializer="json", value_serializer=lambda topic, value: f"{topic}:{value}"
    ) as producer:
        producer.send("t", 5, {"a": 1}).result(10)
    assert brokers.written == [(default_partition(b'{"a":1}', 4), b'{"a":1}', b"t:5")]


def test_keys_may_be_ignored(brokers):
    with producer_of(brokers, partitioner_ignore_keys=True) as producer:
        for number in range(20):
            producer.send("t", "v", f"k{number}")
    assert len({partition for partition, _, _ in brokers.written}) == 1


@pytest.mark.parametrize("settings", [{}, {"value_serializer": "text"}])
def test_records_without_a_key_change_the_partition_after_each_batch_size(brokers, settings):
    with producer_of(brokers, linger_ms=1000, batch_size=1000, **settings) as producer:
        for _ in range(10):
            producer.send("t", "x" * 42)  # 20 such records are as large as a batch
            producer.flush(10)
        assert len({partition for partition, _, _ in brokers.written}) == 1
        for _ in range(190):
            producer.send("t", "x" * 42)
            producer.flush(10)
    partitions = [partition for partition, _, _ in brokers.written]
    assert len(set(partitions)) > 1
    changes = sum(first != second for first, second in pairwise(partitions))
    assert changes <= 9


def test_a_partition_can_be_given_and_must_exist(brokers):
    with producer_of(brokers) as producer:
        producer.send("t", "a", partition=3).result(10)
        for partition in (4, -1):
            with pytest.raises(ValueError, match=f"Topic t has no partition {partition}: it has 4 partitions"):
                producer.send("t", "a", partition=partition)
    assert [partition for partition, _, _ in brokers.written] == [3]


def test_a_negative_timestamp_is_refused(brokers):
    with (
        producer_of(brokers, value_serializer="text") as producer,
        pytest.raises(ValueError, match="Invalid timestamp: -2"),
    ):
        producer.send("t", "a", timestamp=-2)


def test_a_partitioner_chooses_the_partition(brokers):
    calls = []

    class Last:
        def partition(self, *arguments):
            calls.append(arguments)
            return arguments[-1] - 1

    with producer_of(brokers, partitioner_class=Last) as producer:
        producer.send("t", "v", "k").result(10)
    assert calls == [("t", "k", "k", "v", 4)]
    assert [partition for partition, _, _ in brokers.written] == [3]
    with pytest.raises(ConfigError, match="it has no method partition"):
        producer_of(brokers, partitioner_class=object())


def test_interceptors_change_records_and_see_their_outcome(brokers):
    seen = []

    class Interceptor:
        def on_send(self, topic, value, key):
            return topic, value + "!", key

        def on_acknowledgement(self, metadata, error):
            seen.append((metadata and metadata.offset, error))

        def close(self):
            seen.append("closed")

    delivered = []
    with producer_of(brokers, interceptor_classes=[Interceptor]) as producer:
        producer.send("t", "a", partition=0, on_delivery=lambda *outcome: delivered.append(outcome)).result(10)
        assert seen == [(0, None)] and delivered[0][0].offset == 0
    assert seen[-1] == "closed"
    assert brokers.written == [(0, None, b"a!")]


def test_a_callback_that_fails_is_logged(brokers, caplog):
    def fail(metadata, error):
        raise RuntimeError("no")

    with producer_of(brokers) as producer:
        assert producer.send("t", "a", on_delivery=fail).result(10)
    assert "A delivery callback failed" in caplog.text


def fill(producer):
    for number in range(8):
        producer.send("t", "x" * 400, partition=number % 4)


def test_a_record_waits_for_memory_and_times_out(brokers):
    with producer_of(brokers, batch_size=1000, buffer_memory=2000, max_block_ms=2000, linger_ms=100_000) as producer:
        futures = [producer.send("t", "x" * 400, partition=number % 4) for number in range(8)]
        assert producer.flush(10) and all(each.exception() is None for each in futures)
        brokers.answers[ApiKey.PRODUCE] = lambda request, version: None
        late = r"Failed to allocate 1000 bytes.*2000 ms. Total memory: 2000 bytes"
        with pytest.raises(RequestTimedOut, match=late):
            fill(producer)
        assert not producer.flush(1)
        values = {metric.name: value for metric, value in producer.metrics().items()}
        assert (values["buffer-exhausted-total"], values["waiting-threads"]) == (1.0, 0.0)
        assert values["bufferpool-wait-time-ns-total"] > 0
        assert values["flush-time-ns-total"] > 0
        producer.close(0.5)


def test_closing_fails_what_is_not_delivered(brokers):
    brokers.answers[ApiKey.PRODUCE] = lambda request, version: None
    producer = producer_of(brokers)
    future = producer.send("t", "a")
    producer.close(2)
    assert isinstance(future.exception(), ApiError) and future.exception().error is Error.NETWORK_EXCEPTION


def test_a_topic_that_is_invalid_is_an_error_at_once(brokers):
    brokers.errors["bad"] = Error.INVALID_TOPIC_EXCEPTION
    with producer_of(brokers) as producer, pytest.raises(ApiError, match="Topic bad") as raised:
        producer.send("bad", "a")
    assert raised.value.error is Error.INVALID_TOPIC_EXCEPTION


def test_an_error_of_a_topic_is_asked_for_again(brokers):
    """For example, a permission was granted after the first record had been refused."""
    brokers.errors["u"] = Error.TOPIC_AUTHORIZATION_FAILED
    with producer_of(brokers) as producer:
        with pytest.raises(ApiError, match="Topic u"):
            producer.send("u", "a")
        del brokers.errors["u"]
        brokers.add_topic("u", [(1, 0)])
        assert producer.send("u", "a", partition=0).result(10).offset == 0


def test_a_topic_that_is_unknown_is_waited_for(brokers):
    with producer_of(brokers, max_block_ms=3000) as producer:
        late = r"Topic absent not present in metadata after 3000 ms\. \(UNKNOWN_TOPIC_OR_PARTITION\)"
        with pytest.raises(RequestTimedOut, match=late):
            producer.send("absent", "a")
        assert len(producer.partitions_for("t")) == 4


def test_new_partitions_of_a_topic_are_used(brokers):
    with producer_of(brokers, metadata_max_age_ms=1000) as producer:
        producer.send("t", "a", partition=3).result(10)
        brokers.add_topic("t", [(1, 0)] * 6)
        producer._network.wait_until(lambda: len(producer._network.cluster.topics["t"].partitions) == 6, 30)
        producer.send("t", "a", partition=5).result(10)
    assert [partition for partition, _, _ in brokers.written] == [3, 5]


def test_many_records_are_sent_in_order(brokers):
    with producer_of(brokers) as producer:
        futures = producer.send_many("t", ["a", "b"], ["k", "k"])
        assert [future.result(10).offset for future in futures] == [0, 1]
        with pytest.raises(ValueError, match="shorter"):
            producer.send_many("t", ["a", "b"], ["k"])
