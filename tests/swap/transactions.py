"""Transactions that are open while a directory passes from one broker to another."""

from __future__ import annotations

from collections.abc import Callable

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.swap.committed_offsets import committed_offsets

TIMEOUT = 60
# The longest timeout that Apache Kafka allows by default, so that no transaction times out between two brokers.
TRANSACTION_TIMEOUT_MS = 900_000


class OpenTransactions:
    """One topic for each round, with a committed, an aborted and two open transactions.

    In the next round, at another broker, the producer of one open transaction commits it, including offsets of a group.
    A new producer with the transactional id of the other one aborts that transaction.
    """

    def __init__(self) -> None:
        self.committed: dict[str, list[bytes]] = {}
        self.uncommitted: dict[str, list[bytes]] = {}
        self.offsets: dict[str, tuple[str, int]] = {}  # group -> (topic, offset; -1001 while open)
        self._open: list[tuple[str, Producer]] = []

    def write(self, bootstrap: str, round_number: int, create_topic: Callable[[str], None]) -> None:
        self._end_what_is_open(bootstrap)
        topic = f"transactional.{round_number}"
        create_topic(topic)
        writer = producer(bootstrap, f"done.{round_number}")
        for value, end in ((b"committed", writer.commit_transaction), (b"aborted", writer.abort_transaction)):
            begin_with(writer, topic, value)
            end(TIMEOUT)
        self.committed[topic] = [b"committed"]
        self.uncommitted[topic] = [b"committed", b"aborted", b"open", b"abandoned"]
        surviving = producer(bootstrap, f"surviving.{round_number}")
        begin_with(surviving, topic, b"open")
        group = f"transactional-group.{round_number}"
        metadata = Consumer({"bootstrap.servers": bootstrap, "group.id": group}).consumer_group_metadata()
        surviving.send_offsets_to_transaction([TopicPartition(topic, 0, round_number)], metadata, TIMEOUT)
        self.offsets[group] = (topic, -1001)
        begin_with(producer(bootstrap, f"abandoned.{round_number}"), topic, b"abandoned")
        self._open.append((topic, surviving))

    def _end_what_is_open(self, bootstrap: str) -> None:
        for topic, surviving in self._open:
            round_number = int(topic.rpartition(".")[2])
            surviving.commit_transaction(TIMEOUT)
            self.committed[topic].append(b"open")
            self.offsets[f"transactional-group.{round_number}"] = (topic, round_number)
            successor = producer(bootstrap, f"abandoned.{round_number}")
            begin_with(successor, topic, b"successor")
            successor.commit_transaction(TIMEOUT)
            self.committed[topic].append(b"successor")
            self.uncommitted[topic].append(b"successor")
        self._open.clear()

    def check(self, bootstrap: str) -> None:
        assert seen(bootstrap, list(self.committed), "read_committed") == self.committed
        assert seen(bootstrap, list(self.committed), "read_uncommitted") == self.uncommitted
        admin = AdminClient({"bootstrap.servers": bootstrap})
        for group, (topic, offset) in self.offsets.items():
            assert committed_offsets(admin, group, [TopicPartition(topic, 0)]) == {(topic, 0): offset}


def producer(bootstrap: str, transactional_id: str) -> Producer:
    settings = {"transactional.id": transactional_id, "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS}
    made = Producer({"bootstrap.servers": bootstrap, **settings})
    made.init_transactions(TIMEOUT)
    return made


def begin_with(writer: Producer, topic: str, value: bytes) -> None:
    writer.begin_transaction()
    writer.produce(topic, value, partition=0)
    assert writer.flush(TIMEOUT) == 0


def seen(bootstrap: str, topics: list[str], isolation: str) -> dict[str, list[bytes]]:
    """Returns the values in partition 0 of each topic, up to the end that the isolation level allows."""
    settings: dict[str, str | bool] = {"isolation.level": isolation, "enable.partition.eof": True}
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False, **settings})
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING) for topic in topics])
    values: dict[str, list[bytes]] = {topic: [] for topic in topics}
    unfinished = set(topics)
    try:
        while unfinished:
            message = consumer.poll(TIMEOUT)
            if message is None:
                raise TimeoutError(f"{unfinished} have no end")
            error = message.error()
            if error is None:
                values[message.topic()].append(message.value())
            elif error.code() == KafkaError._PARTITION_EOF:
                unfinished.discard(message.topic())
            else:
                raise KafkaException(error)
        return values
    finally:
        consumer.close()
