"""Tests of confluent-kafka's Consumer on kafkapy's consumer, without a broker."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kafkapy._core.bytes.record_batch import RecordBatchBuilder
from kafkapy._core.client.fetched_records import FetchedRecords
from kafkapy.client.coordinator import OffsetAndMetadata
from kafkapy.compat.confluent_kafka import Consumer, TopicPartition, _consumer
from kafkapy.errors import ApiError, Error
from kafkapy.types import TopicPartition as Place

PLACES = [Place("t", 0), Place("t", 1)]
PARTITIONS = [TopicPartition("t", 0), TopicPartition("t", 1)]


def records(partition: int, first: int, count: int) -> list[Any]:
    """Returns records of a partition of the topic "t" with consecutive offsets from `first`."""
    builder = RecordBatchBuilder(first)
    for number in range(count):
        builder.append(1000, None, str(first + number).encode(), ())
    return FetchedRecords(builder.build(), "t", partition, first).take(count)


class AfterRelease:
    """A lock that calls `action` once, on another thread, when it is released for the first time."""

    def __init__(self, action: Callable[[], Any]) -> None:
        self._lock = threading.RLock()
        self._action: Callable[[], Any] | None = action

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()
        action, self._action = self._action, None
        if action is not None:
            on_another_thread(action)


def on_another_thread(action: Callable[[], Any], patience_s: float = 30) -> threading.Thread:
    """Calls `action` on another thread, and returns the thread when the call has ended or `patience_s` has passed."""
    thread = threading.Thread(target=action)
    thread.start()
    thread.join(patience_s)
    return thread


@pytest.fixture
def consumer() -> Iterator[Consumer]:
    """Yields a consumer without a broker, to which two partitions are assigned."""
    made = Consumer({"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "enable.auto.commit": False})
    made.assign([TopicPartition("t", 0, 0), TopicPartition("t", 1, 0)])
    yield made
    made.close()


def polled(consumer: Consumer) -> list[tuple[int | None, int | None]]:
    """Returns the partitions and offsets of all records that the consumer has buffered."""
    found = []
    while consumer._buffer:
        message = consumer.poll(0)
        assert message is not None
        found.append((message.partition(), message.offset()))
    return found


def test_records_that_are_fetched_as_soon_as_a_seek_has_ended_are_returned(
    consumer: Consumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched = [records(0, 100, 3)]
    monkeypatch.setattr(consumer._client, "poll", lambda timeout: fetched.pop() if fetched else [])
    consumer._buffer.extend(records(0, 0, 3))
    consumer._lock = AfterRelease(lambda: consumer._refill(0))  # type: ignore[assignment]
    consumer.seek(TopicPartition("t", 0, 100))
    consumer._refill(0)
    assert polled(consumer) == [(0, 100), (0, 101), (0, 102)]


@pytest.mark.parametrize("method", [Consumer.pause, Consumer.incremental_unassign])
def test_a_record_that_another_thread_receives_during_a_call_is_returned_once(
    consumer: Consumer, monkeypatch: pytest.MonkeyPatch, method: Callable[[Consumer, list[TopicPartition]], None]
) -> None:
    monkeypatch.setattr(consumer._client, "poll", lambda timeout: [])
    consumer._buffer.extend(records(0, 0, 2) + records(1, 0, 2))
    consumer._attention_s = float("inf")  # the other thread does not serve the group
    received: list[Any] = []
    threads: list[threading.Thread] = []
    place_of = _consumer.place_of

    def place_after_a_poll(record: Any) -> Place:
        if not threads:
            threads.append(on_another_thread(lambda: received.append(consumer.poll(5)), 0.2))
        return place_of(record)

    monkeypatch.setattr(_consumer, "place_of", place_after_a_poll)
    method(consumer, PARTITIONS[1:])
    threads[0].join(30)
    offsets = [(each.partition(), each.offset()) for each in received] + polled(consumer)
    assert offsets == [(0, 0), (0, 1)]


def test_a_commit_while_another_thread_receives_the_first_record_of_a_partition(consumer: Consumer) -> None:
    class Offsets(dict[int, int]):
        """The offsets of the first topic; while they are read, a record of another topic arrives."""

        def items(self) -> Any:
            consumer._delivered["other"] = {0: 5}
            return super().items()

    consumer._delivered["t"] = Offsets({0: 7})
    assert Place("t", 0) in consumer._uncommitted(None)


def test_a_poll_waits_on_if_another_thread_takes_the_message(
    consumer: Consumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched = [[], records(0, 7, 1)]

    def refill(limit_s: float | None) -> bool:
        consumer._buffer.extend(fetched.pop(0))  # the other thread takes the first message before the call returns
        return True

    monkeypatch.setattr(consumer, "_refill", refill)
    message = consumer.poll(5)
    assert message is not None
    assert message.offset() == 7


def unassign(consumer: Consumer) -> None:
    consumer.unassign()


def unassign_incrementally(consumer: Consumer) -> None:
    consumer.incremental_unassign(PARTITIONS)


def assign_again(consumer: Consumer) -> None:
    consumer.assign(PARTITIONS)


@pytest.fixture
def committing() -> Iterator[Consumer]:
    """Yields a consumer with auto-commit and without a broker, which has delivered a record with the offset 6."""
    made = Consumer({"bootstrap.servers": "127.0.0.1:1", "group.id": "g"})
    made.assign([TopicPartition("t", 0, 0), TopicPartition("t", 1, 0)])
    made._delivered["t"] = {0: 6}
    yield made
    made._committing.drop(PLACES, ApiError(Error.COORDINATOR_NOT_AVAILABLE))  # so that `close` does not wait for them
    made.close()


@pytest.mark.parametrize("give_up", [unassign, unassign_incrementally, assign_again])
def test_partitions_are_given_up_without_waiting_for_the_commit(
    committing: Consumer, monkeypatch: pytest.MonkeyPatch, give_up: Callable[[Consumer], None]
) -> None:
    calls: list[Any] = []
    monkeypatch.setattr(committing._client, "commit", calls.append)
    give_up(committing)
    assert calls == []
    assert committing._committing.pending(PLACES[0]) == OffsetAndMetadata(7)
    assert committing._committing.committed == {}


def test_a_partition_that_is_assigned_again_begins_where_its_pending_commit_ends(committing: Consumer) -> None:
    committing.unassign()
    committing.assign(PARTITIONS)
    partitions = committing._client._subscription.partitions
    assert [partitions[each].position for each in PLACES] == [7, None]


def test_on_commit_is_called_after_all_partitions_have_been_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes: list[Any] = []
    conf = {"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "on_commit": lambda error, _: outcomes.append(error)}
    with Consumer(conf) as consumer:
        commits = consumer._client._group.commits
        monkeypatch.setattr(consumer._client, "knows_coordinator", lambda: True)
        monkeypatch.setattr(
            commits, "commit_async", lambda offsets, done: commits._callbacks.append(lambda: done(None))
        )
        consumer.assign(PARTITIONS)
        consumer._delivered["t"] = {0: 6}
        consumer.unassign()
        for _ in range(2):
            consumer.poll(0.1)
        assert outcomes == [None]
