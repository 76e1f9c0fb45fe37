"""Programs with the calls of kafka-python's README and guide, for kafka-python and for what replaces it.

Each program takes the package (`import kafka`, or `import kafkapy.compat.kafka as kafka`), the address of a broker, and
a name that no other program uses. It fails by an exception.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest

Program = Callable[[Any, str, str], None]
PROGRAMS: dict[str, Program] = {}
DEADLINE_S = 60


def program(function: Program) -> Program:
    PROGRAMS[function.__name__] = function
    return function


def create(kafka: Any, bootstrap: str, topic: str, partitions: int = 1) -> None:
    with kafka.KafkaAdminClient(bootstrap_servers=bootstrap) as admin:
        counts = {"num_partitions": partitions, "replication_factor": 1}
        admin.create_topics({topic: counts}, wait_for_metadata=True)


def reader(kafka: Any, bootstrap: str, *topics: str, **options: Any) -> Any:
    chosen = {"auto_offset_reset": "earliest", "consumer_timeout_ms": DEADLINE_S * 1000, **options}
    return kafka.KafkaConsumer(*topics, bootstrap_servers=bootstrap, **chosen)


def poll_all(consumer: Any, count: int) -> list[Any]:
    found: list[Any] = []
    end = time.monotonic() + DEADLINE_S
    while len(found) < count and (left := end - time.monotonic()) > 0:
        # kafka-python 3.0.12 loses an assignment whose SyncGroup response arrives between two polls, so one poll waits.
        for records in consumer.poll(timeout_ms=int(left * 1000)).values():
            found += records
    return found


@program
def fire_and_forget(kafka: Any, bootstrap: str, name: str) -> None:
    producer = kafka.KafkaProducer(bootstrap_servers=bootstrap)
    for _ in range(100):
        producer.send(name, b"some_message_bytes")
    producer.flush()
    consumer = reader(kafka, bootstrap, name)
    values = [next(consumer).value for _ in range(100)]
    assert values == [b"some_message_bytes"] * 100
    consumer.close()
    producer.close()


@program
def result_of_a_delivery(kafka: Any, bootstrap: str, name: str) -> None:
    producer = kafka.KafkaProducer(bootstrap_servers=[bootstrap])
    result = producer.send(name, b"another_message").get(timeout=DEADLINE_S)
    assert (result.topic, result.partition, result.offset) == (name, 0, 0)
    assert result.topic_partition == kafka.TopicPartition(name, 0)
    assert (result.serialized_key_size, result.serialized_value_size) == (-1, 15)
    assert result.checksum is None
    producer.close()


@program
def callbacks_and_errbacks(kafka: Any, bootstrap: str, name: str) -> None:
    offsets: list[int] = []
    errors: list[BaseException] = []
    producer = kafka.KafkaProducer(bootstrap_servers=bootstrap, retries=5)
    futures = [
        producer.send(name, b"raw_bytes")
        .add_callback(lambda each: offsets.append(each.offset))
        .add_errback(errors.append)
        for _ in range(3)
    ]
    producer.flush()
    for future in futures:
        future.get(timeout=DEADLINE_S)
        assert future.succeeded()
        assert future.is_done
        assert not future.failed()
    assert sorted(offsets) == [0, 1, 2]
    assert not errors
    producer.close()


@program
def keys_choose_partitions(kafka: Any, bootstrap: str, name: str) -> None:
    create(kafka, bootstrap, name, partitions=8)
    producer = kafka.KafkaProducer(bootstrap_servers=bootstrap)
    partitions = {producer.send(name, key=b"foo", value=b"bar").get(DEADLINE_S).partition for _ in range(5)}
    assert partitions == {0}  # murmur2 of foo, as in Java's client
    assert producer.partitions_for(name) == set(range(8))
    assert producer.send(name, b"there", partition=3).get(DEADLINE_S).partition == 3
    producer.close()


@program
def json_values(kafka: Any, bootstrap: str, name: str) -> None:
    producer = kafka.KafkaProducer(bootstrap_servers=bootstrap, value_serializer=kafka.JsonSerializer())
    producer.send(name, {"foo": "bar"})
    producer.flush()
    consumer = reader(kafka, bootstrap, value_deserializer=kafka.JsonSerializer())
    consumer.subscribe([name])
    message = next(consumer)
    assert message.value == {"foo": "bar"}
    consumer.close()
    producer.close()


@program
def text_in_two_encodings(kafka: Any, bootstrap: str, name: str) -> None:
    for encoding in ("utf-8", "utf-16"):
        topic = f"{name}-{encoding}"
        serializer = kafka.DefaultSerializer(encoding)
        with kafka.KafkaProducer(
            bootstrap_servers=bootstrap, key_serializer=kafka.DefaultSerializer(), value_serializer=serializer
        ) as producer:
            producer.send(topic, key="ping", value="懂不懂")
            producer.flush()
        with reader(kafka, bootstrap, topic, value_deserializer=kafka.DefaultSerializer(encoding)) as consumer:
            message = next(consumer)
            assert (message.key, message.value) == (b"ping", "懂不懂")


@program
def functions_as_serializers(kafka: Any, bootstrap: str, name: str) -> None:
    producer = kafka.KafkaProducer(
        bootstrap_servers=bootstrap, key_serializer=str.encode, value_serializer=lambda number: str(number).encode()
    )
    producer.send(name, key="k", value=42).get(DEADLINE_S)
    consumer = reader(kafka, bootstrap, name, value_deserializer=int)
    assert next(consumer).value == 42
    consumer.close()
    producer.close()


@program
def compression(kafka: Any, bootstrap: str, name: str) -> None:
    for codec in ("gzip", "snappy", "lz4", "zstd"):
        with kafka.KafkaProducer(bootstrap_servers=bootstrap, compression_type=codec) as producer:
            for number in range(10):
                producer.send(name, b"msg %d" % number)
            producer.flush()
    consumer = reader(kafka, bootstrap, name)
    assert [next(consumer).value for _ in range(40)] == [b"msg %d" % number for number in range(10)] * 4
    consumer.close()


@program
def headers_and_records(kafka: Any, bootstrap: str, name: str) -> None:
    headers = [("content-encoding", b"base64")]
    with kafka.KafkaProducer(bootstrap_servers=bootstrap) as producer:
        producer.send(name, value=b"c29tZQ==", headers=headers, timestamp_ms=1_700_000_000_000).get(DEADLINE_S)
    consumer = reader(kafka, bootstrap, name)
    message = next(consumer)
    assert message.headers == headers
    assert (message.topic, message.partition, message.offset, message.key) == (name, 0, 0, None)
    assert (message.timestamp, message.timestamp_type) == (1_700_000_000_000, 0)
    assert (message.serialized_key_size, message.serialized_value_size, message.serialized_header_size) == (-1, 8, 22)
    assert message._asdict()["value"] == b"c29tZQ=="
    assert len(message) == 13
    consumer.close()


@program
def transactions(kafka: Any, bootstrap: str, name: str) -> None:
    with kafka.KafkaProducer(bootstrap_servers=bootstrap, transactional_id=name) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(name, value=b"yes").get(DEADLINE_S)
        producer.commit_transaction()
        producer.begin_transaction()
        producer.send(name, value=b"no").get(DEADLINE_S)
        producer.abort_transaction()
        producer.begin_transaction()
        producer.send(name, value=b"last").get(DEADLINE_S)
        producer.commit_transaction()
    consumer = reader(kafka, bootstrap, isolation_level=kafka.IsolationLevel.READ_COMMITTED)
    consumer.subscribe([name])
    assert [next(consumer).value, next(consumer).value] == [b"yes", b"last"]
    consumer.close()


@program
def consumer_group(kafka: Any, bootstrap: str, name: str) -> None:
    with kafka.KafkaProducer(bootstrap_servers=bootstrap) as producer:
        for number in range(5):
            producer.send(name, b"%d" % number)
    consumer = reader(kafka, bootstrap, name, group_id=name, enable_auto_commit=False)
    partition = kafka.TopicPartition(name, 0)
    for _ in range(3):
        message = next(consumer)
        consumer.commit({partition: kafka.OffsetAndMetadata(message.offset + 1, "", -1)})
    assert consumer.committed(partition) == 3
    assert consumer.committed(partition, metadata=True).offset == 3
    assert consumer.assignment() == {partition}
    assert consumer.subscription() == {name}
    assert consumer.position(partition) == 3
    consumer.close()
    consumer = reader(kafka, bootstrap, name, group_id=name)
    assert next(consumer).value == b"3"
    consumer.close()  # commits what was returned
    consumer = reader(kafka, bootstrap, name, group_id=name)
    assert next(consumer).value == b"4"
    consumer.close()


@program
def assigned_partitions(kafka: Any, bootstrap: str, name: str) -> None:
    create(kafka, bootstrap, name, partitions=3)
    partition = kafka.TopicPartition(name, 2)
    with kafka.KafkaProducer(bootstrap_servers=bootstrap) as producer:
        for number in range(10):
            producer.send(name, b"%d" % number, partition=2)
    consumer = reader(kafka, bootstrap)
    consumer.assign([partition])
    assert next(consumer).offset == 0
    assert consumer.beginning_offsets([partition]) == {partition: 0}
    assert consumer.end_offsets([partition]) == {partition: 10}
    consumer.seek(partition, 7)
    assert [record.offset for record in poll_all(consumer, 3)] == [7, 8, 9]
    assert consumer.highwater(partition) == 10
    consumer.seek_to_beginning(partition)
    assert next(consumer).offset == 0
    consumer.pause(partition)
    assert consumer.paused() == {partition}
    assert consumer.poll(timeout_ms=100) == {}
    consumer.resume(partition)
    assert poll_all(consumer, 1)[0].offset == 1
    consumer.seek_to_end()
    assert consumer.position(partition) == 10
    consumer.close()


@program
def pattern(kafka: Any, bootstrap: str, name: str) -> None:
    for topic in (f"awesome-{name}", f"not-awesome-{name}"):
        create(kafka, bootstrap, topic)
        with kafka.KafkaProducer(bootstrap_servers=bootstrap) as producer:
            producer.send(topic, topic.encode())
    consumer = reader(kafka, bootstrap)
    consumer.subscribe(pattern=f"^awesome-{name}.*")
    assert next(consumer).value == f"awesome-{name}".encode()
    consumer.close()


@program
def end_of_iteration(kafka: Any, bootstrap: str, name: str) -> None:
    create(kafka, bootstrap, name)
    consumer = reader(kafka, bootstrap, name, consumer_timeout_ms=200)
    assert list(consumer) == []
    assert name in consumer.topics()
    assert consumer.partitions_for_topic(name) == {0}
    consumer.close()


@program
def rebalance_listener(kafka: Any, bootstrap: str, name: str) -> None:
    create(kafka, bootstrap, name, partitions=2)
    with kafka.KafkaProducer(bootstrap_servers=bootstrap) as producer:
        producer.send(name, b"v").get(DEADLINE_S)
    calls: list[tuple[str, set[Any]]] = []

    class Listener(kafka.ConsumerRebalanceListener):  # type: ignore[misc,name-defined]
        def on_partitions_revoked(self, revoked: Any) -> None:
            calls.append(("revoked", set(revoked)))

        def on_partitions_assigned(self, assigned: Any) -> None:
            calls.append(("assigned", set(assigned)))

    consumer = reader(kafka, bootstrap, group_id=name)
    consumer.subscribe([name], listener=Listener())
    assert len(poll_all(consumer, 1)) == 1
    partitions = {kafka.TopicPartition(name, 0), kafka.TopicPartition(name, 1)}
    assert ("assigned", partitions) in calls
    consumer.close()
    assert calls[-1] == ("revoked", partitions)


@program
def asynchronous_commit(kafka: Any, bootstrap: str, name: str) -> None:
    outcomes: list[Any] = []
    with kafka.KafkaProducer(bootstrap_servers=bootstrap) as producer:
        producer.send(name, b"v").get(DEADLINE_S)
    consumer = reader(kafka, bootstrap, name, group_id=name, enable_auto_commit=False)
    next(consumer)
    future = consumer.commit_async(callback=lambda offsets, response: outcomes.append((offsets, response)))
    end = time.monotonic() + DEADLINE_S
    while not future.is_done and time.monotonic() < end:
        time.sleep(0.01)
    assert future.succeeded()
    while not outcomes and time.monotonic() < end:
        consumer.poll(timeout_ms=10)
    ((offsets, response),) = outcomes
    assert offsets[kafka.TopicPartition(name, 0)].offset == 1
    assert not isinstance(response, Exception)
    assert consumer.committed(kafka.TopicPartition(name, 0)) == 1
    consumer.close()


@program
def offsets_in_a_transaction(kafka: Any, bootstrap: str, name: str) -> None:
    with kafka.KafkaProducer(bootstrap_servers=bootstrap) as producer:
        producer.send(name, b"in").get(DEADLINE_S)
    partition = kafka.TopicPartition(name, 0)
    consumer = reader(kafka, bootstrap, name, group_id=name, enable_auto_commit=False)
    message = next(consumer)
    with kafka.KafkaProducer(bootstrap_servers=bootstrap, transactional_id=name) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(f"{name}-out", message.value).get(DEADLINE_S)
        offsets = {partition: kafka.OffsetAndMetadata(message.offset + 1, "", -1)}
        producer.send_offsets_to_transaction(offsets, consumer.group_metadata())
        producer.commit_transaction()
    assert consumer.committed(partition) == 1
    consumer.close()


@program
def administration(kafka: Any, bootstrap: str, name: str) -> None:
    admin = kafka.KafkaAdminClient(bootstrap_servers=[bootstrap])
    admin.create_topics([name], timeout_ms=None, validate_only=False)
    admin.create_topics(
        {f"{name}-2": {"num_partitions": 1, "replication_factor": 1, "configs": {"max.message.bytes": "1000000"}}}
    )
    admin.wait_for_topics([name, f"{name}-2"])
    assert {name, f"{name}-2"} <= set(admin.list_topics())
    with kafka.KafkaProducer(bootstrap_servers=bootstrap) as producer:
        producer.send(name, b"v").get(DEADLINE_S)
    consumer = reader(kafka, bootstrap, name, group_id=name)
    next(consumer)
    consumer.commit()
    assert admin.describe_groups([name])[name]["group_state"] == "Stable"
    consumer.close()
    assert name in {each["group_id"] for each in admin.list_groups()}
    offsets = admin.list_group_offsets([name])[name]
    assert offsets[kafka.TopicPartition(name, 0)].offset == 1
    assert admin.delete_groups([name]) == {name: "OK"}
    admin.delete_topics([name, f"{name}-2"])
    admin.close()


@program
def metrics(kafka: Any, bootstrap: str, name: str) -> None:
    producer = kafka.KafkaProducer(bootstrap_servers=bootstrap)
    producer.send(name, b"v").get(DEADLINE_S)
    assert producer.metrics()["producer-metrics"]
    consumer = reader(kafka, bootstrap, name)
    next(consumer)
    assert consumer.metrics()["kafka-metrics-count"]["count"] > 0
    consumer.close()
    producer.close()


@program
def errors(kafka: Any, bootstrap: str, name: str) -> None:
    kinds = import_module(f"{kafka.__name__}.errors")
    producer = kafka.KafkaProducer(bootstrap_servers=bootstrap, max_request_size=1000)
    for wrong, expected in (
        (lambda: producer.send(name), ValueError),
        (lambda: producer.send(name, "text"), TypeError),
        (lambda: producer.send(name, b"v", headers={"a": b"b"}), TypeError),
        (lambda: producer.send("not a topic", b"v"), ValueError),
        (lambda: producer.send(name, bytes(2000)), kinds.MessageSizeTooLargeError),
        (lambda: producer.begin_transaction(), kinds.KafkaError),
        (lambda: kafka.KafkaProducer(bootstrap_servers=bootstrap, no_such_option=1), ValueError),
        (lambda: kafka.KafkaConsumer(bootstrap_servers=bootstrap, no_such_option=1), kinds.KafkaConfigurationError),
        (
            lambda: kafka.KafkaProducer(bootstrap_servers="localhost:1", bootstrap_timeout_ms=100),
            kinds.KafkaTimeoutError,
        ),
    ):
        try:
            wrong()
        except expected:
            continue
        raise AssertionError(f"no {expected.__name__}")
    producer.close()
    try:
        producer.send(name, b"v")
    except kinds.IllegalStateError:
        return
    raise AssertionError("a closed producer sends")


@program
def partitioner_of_the_application(kafka: Any, bootstrap: str, name: str) -> None:
    create(kafka, bootstrap, name, partitions=4)
    base = import_module(f"{kafka.__name__}.partitioner").Partitioner

    class Last(base):  # type: ignore[misc,valid-type]
        def partition(
            self, topic: str, key: Any, serialized_key: Any, value: Any, serialized_value: Any, cluster: Any
        ) -> int:
            assert (key, serialized_key) == ("k", b"k")
            assert cluster.available_partitions_for_topic(topic) == cluster.partitions_for_topic(topic)
            return int(max(cluster.partitions_for_topic(topic)))

    with kafka.KafkaProducer(
        bootstrap_servers=bootstrap, partitioner=Last(), key_serializer=kafka.DefaultSerializer()
    ) as producer:
        assert producer.send(name, b"v", key="k").get(DEADLINE_S).partition == 3
        assert producer.send(name, b"v", key="k", partition=1).get(DEADLINE_S).partition == 1


@program
def asynchronous_rebalance_listener(kafka: Any, bootstrap: str, name: str) -> None:
    with kafka.KafkaProducer(bootstrap_servers=bootstrap) as producer:
        producer.send(name, b"v").get(DEADLINE_S)
    calls: list[str] = []

    class Listener(kafka.AsyncConsumerRebalanceListener):  # type: ignore[misc,name-defined]
        async def on_partitions_revoked(self, revoked: Any) -> None:
            calls.append("revoked")

        async def on_partitions_assigned(self, assigned: Any) -> None:
            calls.append("assigned")

    consumer = reader(kafka, bootstrap, group_id=name)
    consumer.subscribe([name], listener=Listener())
    assert len(poll_all(consumer, 1)) == 1
    consumer.close()
    assert "assigned" in calls


@program
def failing_deserializer(kafka: Any, bootstrap: str, name: str) -> None:
    """Checks that a record that cannot be deserialized raises an error, after the records before it were returned.

    The record remains the next one until the program seeks.
    """
    with kafka.KafkaProducer(bootstrap_servers=bootstrap) as producer:
        for value in (b"1", b"bad", b"3"):
            producer.send(name, value).get(DEADLINE_S)
    partition = kafka.TopicPartition(name, 0)
    consumer = reader(kafka, bootstrap, value_deserializer=int)
    consumer.assign([partition])
    assert poll_all(consumer, 1)[0].value == 1
    try:
        poll_all(consumer, 1)
    except ValueError:
        consumer.seek(partition, 2)
        assert poll_all(consumer, 1)[0].value == 3
        consumer.close()
        return
    raise AssertionError("the value was deserialized")


@program
def records_of_an_aborted_transaction(kafka: Any, bootstrap: str, name: str) -> None:
    errors = import_module(f"{kafka.__name__}.errors")
    producer = kafka.KafkaProducer(bootstrap_servers=bootstrap, transactional_id=name, linger_ms=60_000)
    producer.init_transactions()
    producer.begin_transaction()
    future = producer.send(name, b"v")
    producer.abort_transaction()
    assert isinstance(future.exception, errors.TransactionAbortedError), future.exception
    producer.close()


@program
def polls_without_a_subscription(kafka: Any, bootstrap: str, name: str) -> None:
    consumer = kafka.KafkaConsumer(bootstrap_servers=bootstrap, group_id=name, consumer_timeout_ms=100)
    assert consumer.poll(timeout_ms=100) == {}
    assert list(consumer) == []
    consumer.close()


@program
def sets_in_a_rebalance_listener(kafka: Any, bootstrap: str, name: str) -> None:
    create(kafka, bootstrap, name, partitions=2)
    owned: set[Any] = set()

    class Listener(kafka.ConsumerRebalanceListener):
        def on_partitions_revoked(self, revoked: Any) -> None:
            owned.difference_update(revoked & owned)

        def on_partitions_assigned(self, assigned: Any) -> None:
            owned.update(assigned - owned)

    consumer = kafka.KafkaConsumer(bootstrap_servers=bootstrap, group_id=name)
    consumer.subscribe([name], listener=Listener())
    end = time.monotonic() + DEADLINE_S
    while len(owned) < 2 and time.monotonic() < end:
        consumer.poll(timeout_ms=1000)
    assert owned == {kafka.TopicPartition(name, 0), kafka.TopicPartition(name, 1)}
    consumer.close()
    assert not owned


@program
def offsets_of_a_wrong_type(kafka: Any, bootstrap: str, name: str) -> None:
    consumer = kafka.KafkaConsumer(bootstrap_servers=bootstrap, group_id=name)
    with pytest.raises(TypeError, match="OffsetAndMetadata"):
        consumer.commit({kafka.TopicPartition(name, 0): 5})
    consumer.close()
