"""Transactions through librdkafka: the records of each isolation level, fencing, time-outs, offsets, killed brokers."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer, TopicPartition

from kafkapy.coordinator.transaction.transaction_state import TransactionState
from tests.broker_process import BrokerProcess
from tests.clients.confluent_client import group_consumer
from tests.clients.conftest import create_topic
from tests.peers import run_tool

NewTopic = Callable[[int], str]
VALUES = [b"msg1", b"msg2", b"msg3"]
DEADLINE_SECONDS = 60


@pytest.fixture
def transactional_id() -> str:
    return f"id-{uuid.uuid4()}"


def producer(bootstrap: str, transactional_id: str, **properties: object) -> Producer:
    made = Producer({"bootstrap.servers": bootstrap, "transactional.id": transactional_id, **properties})
    made.init_transactions(DEADLINE_SECONDS)
    return made


def send(writer: Producer, topic: str, values: list[bytes] = VALUES) -> None:
    for value in values:
        writer.produce(topic, value, partition=0)
    assert writer.flush(DEADLINE_SECONDS) == 0


def seen(bootstrap: str, topic: str, isolation: str) -> list[bytes]:
    """Returns the values of all records that this isolation level can read now."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "enable.auto.commit": False,
            "isolation.level": isolation,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    values: list[bytes] = []
    try:
        while True:
            message = consumer.poll(DEADLINE_SECONDS)
            assert message is not None
            error = message.error()
            if error is None:
                values.append(message.value())
            elif error.code() == KafkaError._PARTITION_EOF:
                return values
            else:
                raise KafkaException(error)
    finally:
        consumer.close()


def both(bootstrap: str, topic: str) -> tuple[list[bytes], list[bytes]]:
    return seen(bootstrap, topic, "read_committed"), seen(bootstrap, topic, "read_uncommitted")


def test_open_records_are_for_the_uncommitted_only_and_a_commit_shows_them(
    bootstrap: str, new_topic: NewTopic, transactional_id: str
) -> None:
    topic = new_topic(1)
    writer = producer(bootstrap, transactional_id)
    writer.begin_transaction()
    send(writer, topic)
    assert both(bootstrap, topic) == ([], VALUES)
    writer.commit_transaction(DEADLINE_SECONDS)
    assert both(bootstrap, topic) == (VALUES, VALUES)


def test_an_abort_hides_them_and_what_follows_is_read(
    bootstrap: str, new_topic: NewTopic, transactional_id: str
) -> None:
    topic = new_topic(1)
    writer = producer(bootstrap, transactional_id)
    writer.begin_transaction()
    send(writer, topic)
    writer.abort_transaction(DEADLINE_SECONDS)
    assert both(bootstrap, topic) == ([], VALUES)
    writer.begin_transaction()
    send(writer, topic, [b"next"])
    writer.commit_transaction(DEADLINE_SECONDS)
    assert both(bootstrap, topic) == ([b"next"], [*VALUES, b"next"])


def test_many_transactions_one_after_the_other(bootstrap: str, new_topic: NewTopic, transactional_id: str) -> None:
    topic = new_topic(1)
    writer = producer(bootstrap, transactional_id)
    committed = []
    for number in range(40):
        writer.begin_transaction()
        send(writer, topic, [b"%d" % number])
        if number % 3:
            writer.commit_transaction(DEADLINE_SECONDS)
            committed.append(b"%d" % number)
        else:
            writer.abort_transaction(DEADLINE_SECONDS)
    assert seen(bootstrap, topic, "read_committed") == committed


def test_a_second_producer_with_the_same_id_fences_the_first(
    bootstrap: str, new_topic: NewTopic, transactional_id: str
) -> None:
    topic = new_topic(1)
    first = producer(bootstrap, transactional_id)
    first.begin_transaction()
    send(first, topic)
    second = producer(bootstrap, transactional_id)  # aborts the open transaction of the first
    second.begin_transaction()
    send(second, topic, [b"second"])
    with pytest.raises(KafkaException) as raised:
        first.commit_transaction(DEADLINE_SECONDS)
    assert raised.value.args[0].fatal()
    second.commit_transaction(DEADLINE_SECONDS)
    assert both(bootstrap, topic) == ([b"second"], [*VALUES, b"second"])


def test_a_producer_that_dies_is_followed_by_one_that_aborts_for_it(
    bootstrap: str, new_topic: NewTopic, transactional_id: str
) -> None:
    topic = new_topic(1)
    dying = producer(bootstrap, transactional_id)
    dying.begin_transaction()
    send(dying, topic)
    del dying  # ends without committing or aborting
    producer(bootstrap, transactional_id)
    assert both(bootstrap, topic) == ([], VALUES)


def test_offsets_count_with_the_transaction(bootstrap: str, new_topic: NewTopic, transactional_id: str) -> None:
    source, target, group = new_topic(1), new_topic(1), f"group-{uuid.uuid4()}"
    plain = Producer({"bootstrap.servers": bootstrap})
    send(plain, source)
    consumer = group_consumer(bootstrap, group)
    consumer.subscribe([source])
    try:
        read: list[bytes] = []
        deadline = time.monotonic() + DEADLINE_SECONDS
        while len(read) < len(VALUES):
            assert time.monotonic() < deadline
            read += [message.value() for message in consumer.consume(3, 0.5) if message.error() is None]
        writer = producer(bootstrap, transactional_id)
        for commit in (False, True):
            writer.begin_transaction()
            send(writer, target, [value.upper() for value in read])
            writer.send_offsets_to_transaction(
                consumer.position(consumer.assignment()), consumer.consumer_group_metadata(), DEADLINE_SECONDS
            )
            if commit:
                writer.commit_transaction(DEADLINE_SECONDS)
            else:
                writer.abort_transaction(DEADLINE_SECONDS)
            (found,) = consumer.committed([TopicPartition(source, 0)], DEADLINE_SECONDS)
            assert (found.offset >= 0) is commit
        assert found.offset == len(VALUES)
    finally:
        consumer.close()
    assert seen(bootstrap, target, "read_committed") == [value.upper() for value in VALUES]


# -- tests with a broker of their own


@pytest.fixture
def quick_broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    """Yields a broker that checks for timed-out transactions every 100 ms."""
    properties = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "100"}
    with BrokerProcess(tmp_path, properties) as broker:
        yield broker


def wait_for(is_true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_transaction_that_lasts_too_long_is_aborted(quick_broker: BrokerProcess, transactional_id: str) -> None:
    bootstrap = quick_broker.bootstrap
    create_topic(bootstrap, "topic", 1)
    slow = producer(bootstrap, transactional_id, **{"transaction.timeout.ms": 8000})
    slow.begin_transaction()
    send(slow, "topic")
    other = producer(bootstrap, "another")
    other.begin_transaction()
    send(other, "topic", [b"other"])
    other.commit_transaction(DEADLINE_SECONDS)
    assert seen(bootstrap, "topic", "read_committed") == []  # the open transaction limits the last stable offset
    wait_for(lambda: seen(bootstrap, "topic", "read_committed") == [b"other"])
    with pytest.raises(KafkaException):
        slow.commit_transaction(DEADLINE_SECONDS)


def test_an_open_transaction_survives_kill_9_and_is_committed(
    quick_broker: BrokerProcess, transactional_id: str
) -> None:
    bootstrap = quick_broker.bootstrap
    create_topic(bootstrap, "topic", 1)
    writer = producer(bootstrap, transactional_id)
    writer.begin_transaction()
    send(writer, "topic")
    quick_broker.kill()
    quick_broker.start()
    assert both(bootstrap, "topic") == ([], VALUES)
    writer.commit_transaction(DEADLINE_SECONDS)
    assert both(bootstrap, "topic") == (VALUES, VALUES)


def test_a_decided_transaction_is_carried_out_after_kill_9(
    quick_broker: BrokerProcess, transactional_id: str, kafka_libs: Path
) -> None:
    """Simulates a kill after the decision: the marker and the state CompleteCommit are removed from the logs."""
    bootstrap = quick_broker.bootstrap
    create_topic(bootstrap, "topic", 1)
    writer = producer(bootstrap, transactional_id)
    writer.begin_transaction()
    send(writer, "topic")
    topic_log = quick_broker.data / "topic-0" / f"{0:020}.log"
    size_without_marker = topic_log.stat().st_size
    writer.commit_transaction(DEADLINE_SECONDS)
    quick_broker.kill()
    (state_log,) = [path for path in quick_broker.data.glob("__transaction_state-*/*.log") if path.stat().st_size]
    with open(topic_log, "r+b") as file:
        file.truncate(size_without_marker)
    with open(state_log, "r+b") as file:
        file.truncate(state_log.stat().st_size - last_batch_size(state_log))
    assert f'"transactionStatus":{TransactionState.PREPARE_COMMIT:d}' in dumped(kafka_libs, state_log)[-1]
    quick_broker.start()
    wait_for(lambda: f'"transactionStatus":{TransactionState.COMPLETE_COMMIT:d}' in dumped(kafka_libs, state_log)[-1])
    assert both(bootstrap, "topic") == (VALUES, VALUES)


def last_batch_size(path: Path) -> int:
    data, position, size = path.read_bytes(), 0, 0
    while position < len(data):
        size = 12 + int.from_bytes(data[position + 8 : position + 12], "big")
        position += size
    return size


def dumped(kafka_directory: Path, path: Path) -> list[str]:
    """Returns the records of transactions as Apache Kafka's tool prints them."""
    arguments = ("--transaction-log-decoder", "--files", str(path))
    output = run_tool(kafka_directory, "org.apache.kafka.tools.DumpLogSegments", *arguments)
    return [line for line in output.stdout.decode().splitlines() if '"transactionalId"' in line]
