"""Our producer's transactions: the records that readers see, offsets in transactions, fencing."""

from __future__ import annotations

import uuid
from collections.abc import Callable

import pytest

from kafkapy.client import Consumer, Producer, TopicPartition
from kafkapy.errors import ApiError, Error

NewTopic = Callable[[int], str]


def producer_of(bootstrap: str, transactional_id: str) -> Producer:
    return Producer(bootstrap_servers=bootstrap, transactional_id=transactional_id)


def committed_values(bootstrap: str, topic: str, partitions: int, count: int) -> list[str]:
    with Consumer(
        bootstrap_servers=bootstrap,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
        value_deserializer="text",
    ) as consumer:
        consumer.assign([(topic, number) for number in range(partitions)])
        found: list[str] = []
        while len(found) < count:
            records = consumer.poll(20)
            assert records, found
            found += [record.value for record in records]
        return found


def test_committed_records_are_seen_and_aborted_ones_are_not(bootstrap: str, new_topic: NewTopic) -> None:
    topic = new_topic(2)
    with producer_of(bootstrap, str(uuid.uuid4())) as producer:
        producer.init_transactions(30)
        for turn in range(6):
            producer.begin_transaction()
            futures = [producer.send(topic, f"{turn}-{number}", partition=number % 2) for number in range(10)]
            if turn % 2:
                producer.flush(20)
                producer.abort_transaction(30)
            else:
                producer.commit_transaction(30)
                assert all(future.done() for future in futures)
        with pytest.raises(RuntimeError, match="OPEN is required"):
            producer.send(topic, "outside")
    expected = {f"{turn}-{number}" for turn in (0, 2, 4) for number in range(10)}
    assert set(committed_values(bootstrap, topic, 2, 30)) == expected


def test_an_empty_transaction_and_one_whose_records_never_left(bootstrap: str, new_topic: NewTopic) -> None:
    topic = new_topic(1)
    with Producer(bootstrap_servers=bootstrap, transactional_id=str(uuid.uuid4()), linger_ms=10_000) as producer:
        producer.init_transactions(30)
        producer.begin_transaction()
        producer.commit_transaction(30)
        producer.begin_transaction()
        future = producer.send(topic, "never")
        producer.abort_transaction(30)
        assert isinstance(future.exception(10), ApiError)
        producer.begin_transaction()
        producer.send(topic, "kept")
        producer.commit_transaction(30)
    assert committed_values(bootstrap, topic, 1, 1) == ["kept"]


def test_offsets_within_a_transaction(bootstrap: str, new_topic: NewTopic) -> None:
    source, target, group = new_topic(1), new_topic(1), str(uuid.uuid4())
    where = TopicPartition(source, 0)
    with Producer(bootstrap_servers=bootstrap) as plain:
        plain.send_many(source, [str(number) for number in range(20)])
    settings = {"bootstrap_servers": bootstrap, "group_id": group, "enable_auto_commit": False}
    with (
        Consumer(auto_offset_reset="earliest", max_poll_records=10, **settings) as consumer,
        producer_of(bootstrap, str(uuid.uuid4())) as producer,
    ):
        producer.init_transactions(30)
        consumer.subscribe(source)
        for ends_well in (True, False):
            records = consumer.poll(20)
            producer.begin_transaction()
            for record in records:
                producer.send(target, b"seen " + record.value)
            offsets = {where: records[-1].offset + 1}
            producer.send_offsets_to_transaction(offsets, consumer.group_metadata(), 30)
            if ends_well:
                producer.commit_transaction(30)
            else:
                producer.abort_transaction(30)
    with Consumer(**settings) as reader:
        assert reader.committed([where])[where].offset == 10
    assert committed_values(bootstrap, target, 1, 10) == [f"seen {number}" for number in range(10)]


def test_a_producer_whose_id_is_taken_over_is_fenced(bootstrap: str, new_topic: NewTopic) -> None:
    topic, name = new_topic(1), str(uuid.uuid4())
    with producer_of(bootstrap, name) as old, producer_of(bootstrap, name) as new:
        old.init_transactions(30)
        old.begin_transaction()
        old.send(topic, "old").result(20)
        new.init_transactions(30)
        with pytest.raises(ApiError) as fenced:
            old.commit_transaction(30)
        assert fenced.value.error in (Error.PRODUCER_FENCED, Error.INVALID_PRODUCER_EPOCH)
        new.begin_transaction()
        new.send(topic, "new")
        new.commit_transaction(30)
    assert committed_values(bootstrap, topic, 1, 1) == ["new"]
