"""Records that a service has read but handles later. Until then the consumer returns no other records of their
partitions.

The records stay in memory, because it would take too long to read them again. The consumer requests a partition only
after the response to its present request, and a broker without new records delays this response by `fetch.max.wait.ms`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from kafkapy._core.client.fetched_records import ConsumerRecord
from kafkapy.types import TopicPartition

if TYPE_CHECKING:
    from kafkapy.client.consumer import Consumer


class HeldRecords:
    """The held records of each partition, and the time until which they are held, in ms since 1970.

    A partition with held records is paused, so that it has at most the records of one poll here.
    """

    def __init__(self) -> None:
        self._held: dict[TopicPartition, tuple[int, Sequence[ConsumerRecord]]] = {}

    def hold(
        self, consumer: Consumer, partition: TopicPartition, until_ms: int, records: Sequence[ConsumerRecord]
    ) -> None:
        """Stores records of a partition in their order, and pauses the partition."""
        consumer.pause([partition])
        self._held[partition] = (until_ms, records)

    def take_due(self, now_ms: int) -> dict[TopicPartition, Sequence[ConsumerRecord]]:
        """Removes the records whose time has come, and returns them by partition; the partitions stay paused.

        The caller handles the records. It then holds the records again that it could not handle yet; if there are none,
        it resumes the partition.
        """
        due = [partition for partition, (until_ms, _) in self._held.items() if until_ms <= now_ms]
        return {partition: self._held.pop(partition)[1] for partition in due}

    def next_ms(self) -> int | None:
        """Returns the first time at which held records are due, in ms since 1970; None if no records are held."""
        return min((until_ms for until_ms, _ in self._held.values()), default=None)

    def forget(self, partitions: Collection[TopicPartition]) -> None:
        """Removes the records of partitions that are no longer assigned to the consumer."""
        for partition in partitions:
            self._held.pop(partition, None)

    def clear(self, consumer: Consumer) -> None:
        """Removes all records and resumes all partitions; the consumer will read the records again."""
        self._held.clear()
        consumer.resume(consumer.paused())
