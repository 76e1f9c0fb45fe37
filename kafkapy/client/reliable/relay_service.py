"""The base class of services whose loop is a relay, and the partitions that a service has paused until a time."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from kafkapy.client.closing import Closing
from kafkapy.types import TopicPartition

if TYPE_CHECKING:
    from kafkapy.client.consumer import Consumer
    from kafkapy.client.reliable.relay import Relay


class RelayService(Closing):
    """The base class of services whose loop is a relay, which the subclass creates as `relay`.

    It is a context manager whose end calls `close`.
    """

    relay: Relay

    @property
    def counts(self) -> Mapping[str, int]:
        """The numbers of records that the service has handled since its start, by outcome.

        The keys, such as "dead" for dead letters, differ between the subclasses.
        """
        return self.relay.counts

    def run(self) -> None:
        """Serves until `stop` is called. Raises ApiError for an error that cannot be retried."""
        self.relay.run()

    def stop(self) -> None:
        """Makes `run` return after the present transaction. May be called by any thread and by a signal's handler."""
        self.relay.stop()

    def close(self) -> None:
        """Leaves the group and closes the connections."""
        self.relay.close()


class PausedPartitions:
    """The partitions of a consumer that are paused, each until a time in ms since 1970."""

    def __init__(self) -> None:
        self._until_ms: dict[TopicPartition, int] = {}

    def pause(self, consumer: Consumer, partition: TopicPartition, until_ms: int) -> None:
        """Pauses a partition until `until_ms` (ms since 1970), also if it is paused until another time already."""
        consumer.pause([partition])
        self._until_ms[partition] = until_ms

    def resume_due(self, consumer: Consumer, now_ms: int) -> int | None:
        """Resumes the partitions whose time has come; returns the next time, or None if no partition is paused.

        Times are in ms since 1970.
        """
        due = [partition for partition, until_ms in self._until_ms.items() if until_ms <= now_ms]
        for partition in due:
            del self._until_ms[partition]
        consumer.resume(due)
        return min(self._until_ms.values(), default=None)

    def forget(self, partitions: Collection[TopicPartition]) -> None:
        """Removes partitions that are no longer assigned to the consumer."""
        for partition in partitions:
            self._until_ms.pop(partition, None)
