"""Tests of confluent-kafka's Producer on kafkapy's producer, without a broker."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from kafkapy.client.coordinator import GroupMetadata, MemberIdentity, OffsetAndMetadata
from kafkapy.compat.confluent_kafka import KafkaException, Producer, TopicPartition
from kafkapy.compat.confluent_kafka._group_metadata import group_metadata_bytes
from kafkapy.types import TopicPartition as Place

NOWHERE = {"bootstrap.servers": "127.0.0.1:1"}
GROUP = group_metadata_bytes(GroupMetadata("group", MemberIdentity(1, "member", None)))


def test_offsets_of_a_transaction_keep_their_metadata_and_leader_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Any] = []
    with Producer({**NOWHERE, "transactional.id": "id"}) as producer:
        monkeypatch.setattr(producer._client, "send_offsets_to_transaction", lambda offsets, *_: sent.append(offsets))
        positions = [TopicPartition("t", 0, 5, metadata="mine", leader_epoch=3), TopicPartition("t", 1)]
        producer.send_offsets_to_transaction(positions, GROUP)
        assert sent == [{Place("t", 0): OffsetAndMetadata(5, "mine", 3)}]
        for wrong in (None, (), [1]):
            with pytest.raises(TypeError):
                producer.send_offsets_to_transaction(wrong, GROUP)  # type: ignore[arg-type]


def test_records_that_are_reported_while_a_batch_ends_are_counted() -> None:
    with Producer(NOWHERE) as producer:
        client = producer._client

        class Batch:
            queue = SimpleNamespace(topic="t", partition=0)
            size_estimate = 1

            def take_callbacks(self) -> list[Any]:
                return []

            @property
            def record_count(self) -> int:
                """Returns 3; the first call lets the reports of another thread be counted first."""
                if client.finished_records == before:
                    client.finished_records += 10
                return 3

        before = client.finished_records
        client._on_batch_finished(Batch())  # type: ignore[arg-type]
        assert client.finished_records == before + 13
        client.finished_records = client.records_appended


class Future:
    """The future of a record whose delivery callback adds its number to a list, or raises KeyError."""

    def __init__(self, number: int, called: list[int], *, fails: bool = False) -> None:
        self.number, self.called, self.fails = number, called, fails

    def notify(self) -> None:
        self.called.append(self.number)
        if self.fails:
            raise KeyError(self.number)


@pytest.fixture
def reporting() -> Iterator[tuple[Producer, list[int]]]:
    """Yields a producer with a delivered batch of three records, and the list to which their callbacks add numbers.

    The callbacks of the first and the second record fail.
    """
    called: list[int] = []
    with Producer(NOWHERE) as producer:
        futures = [Future(1, called, fails=True), Future(2, called, fails=True), Future(3, called)]
        batch: Any = SimpleNamespace(queue=SimpleNamespace(topic="t", partition=0), log_append_time=-1)
        producer._client.finished_records -= 3
        producer._client.finished.append((futures, 3, batch, 0.1))
        yield producer, called


def test_a_poll_after_one_with_a_failed_callback_calls_the_other_callbacks(
    reporting: tuple[Producer, list[int]],
) -> None:
    producer, called = reporting
    for number, left in ((1, 2), (2, 1)):
        with pytest.raises(KeyError, match=str(number)):
            producer.poll(0)
        assert len(producer) == left
    assert producer.poll(0) == 1
    assert called == [1, 2, 3]
    assert len(producer) == 0


def test_a_flush_calls_all_callbacks_and_raises_the_first_error(reporting: tuple[Producer, list[int]]) -> None:
    producer, called = reporting
    with pytest.raises(KeyError, match="1"):
        producer.flush()
    assert called == [1, 2, 3]
    assert producer.flush() == 0


def test_the_report_of_a_purged_record_has_the_chosen_partition() -> None:
    found: list[Any] = []
    with Producer(NOWHERE) as producer:
        for partition in (2, -1):
            producer.produce("t", "v", partition=partition, callback=lambda _, message: found.append(message))
        producer.purge()
        assert producer.flush() == 0
    assert [each.partition() for each in found] == [2, -1]


def test_records_of_an_unknown_topic_do_not_exceed_the_size_of_the_queue() -> None:
    with Producer({**NOWHERE, "queue.buffering.max.kbytes": 100}) as producer:
        for _ in range(2):  # a purge makes room again
            for _ in range(10):
                producer.produce("t", b"v" * 10_000)
            with pytest.raises(BufferError):
                producer.produce("t", b"v" * 10_000)
            producer.purge()
            producer.flush()


def test_a_buffer_can_be_changed_while_its_record_waits_for_the_metadata() -> None:
    with Producer(NOWHERE) as producer:
        key, value = bytearray(b"key"), bytearray(b"value")
        producer.produce("t", memoryview(value), key)
        key[:], value[:] = b"KEY", b"VALUE"
        [(waiting_value, waiting_key, *_)] = producer._unknown["t"]
        assert (waiting_key, waiting_value) == (b"key", b"value")
        producer.purge()


def test_the_size_of_a_waiting_buffer_is_that_of_its_bytes() -> None:
    with Producer({**NOWHERE, "message.max.bytes": 1000}) as producer:
        producer.produce("t", memoryview(array("d", [0.0] * 100)))
        assert producer._unknown_bytes == 800
        with pytest.raises(KafkaException):
            producer.produce("t", memoryview(array("d", [0.0] * 200)))
        producer.purge()
        assert producer._unknown_bytes == 0
