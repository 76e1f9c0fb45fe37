"""Records that are held until a time, while their partitions are paused."""

from __future__ import annotations

from kafkapy.client.reliable.held_records import HeldRecords
from kafkapy.types import TopicPartition

A, B = TopicPartition("a", 0), TopicPartition("b", 0)


class PausingConsumer:
    """The methods of a consumer that pause partitions."""

    def __init__(self) -> None:
        self.now_paused: set[TopicPartition] = set()

    def pause(self, partitions) -> None:
        self.now_paused |= {*partitions}

    def resume(self, partitions) -> None:
        self.now_paused -= {*partitions}

    def paused(self) -> frozenset[TopicPartition]:
        return frozenset(self.now_paused)


def test_records_are_returned_at_their_time_and_their_partition_stays_paused():
    held, consumer = HeldRecords(), PausingConsumer()
    held.hold(consumer, A, 100, ["a1", "a2"])
    held.hold(consumer, B, 200, ["b1"])
    assert held.next_ms() == 100 and not held.take_due(99)
    assert held.take_due(100) == {A: ["a1", "a2"]}
    assert held.next_ms() == 200 and consumer.now_paused == {A, B}


def test_records_of_revoked_partitions_are_forgotten():
    held, consumer = HeldRecords(), PausingConsumer()
    held.hold(consumer, A, 100, ["a1"])
    held.hold(consumer, B, 100, ["b1"])
    held.forget([A, TopicPartition("c", 0)])
    assert held.take_due(100) == {B: ["b1"]}


def test_after_an_abort_all_partitions_are_read_again():
    held, consumer = HeldRecords(), PausingConsumer()
    held.hold(consumer, A, 100, ["a1"])
    held.hold(consumer, B, 200, ["b1"])
    held.take_due(100)
    held.clear(consumer)
    assert held.next_ms() is None and not consumer.now_paused
