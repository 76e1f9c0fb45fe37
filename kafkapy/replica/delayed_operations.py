"""The three purgatories of the replica manager."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from kafkapy._core.broker_state.partition_state import PartitionState
from kafkapy.purgatory.delayed_operation import DelayedOperation
from kafkapy.purgatory.purgatory import Purgatory, Schedule
from kafkapy.types import TopicPartition


class FetchOperation(DelayedOperation):
    """Base class of the fetches that wait: a follower's fetch waits for a higher log end offset, a consumer's fetch for
    a higher high watermark.
    """

    __slots__ = ("is_from_follower",)

    def __init__(self, timeout_ms: int, *, is_from_follower: bool) -> None:
        super().__init__(timeout_ms)
        self.is_from_follower = is_from_follower


class DelayedOperations:
    """Owns the purgatories of delayed produce, fetch and delete-records requests. Used only by the thread that owns it.

    Operations are watched under the keys of their partitions (a TopicPartition or an equal tuple). The exception is a
    HeldFetch of a follower, a fetch that compiled code (the gate) serves and that waits for data. It may have thousands
    of partitions, and is watched under the follower's broker id.
    """

    __slots__ = ("_postponed", "delete_records", "fetch", "produce")

    def __init__(self, schedule: Schedule) -> None:
        self.produce = Purgatory("Produce", schedule)
        self.fetch = Purgatory("Fetch", schedule)  # of FetchOperations
        self.delete_records = Purgatory("DeleteRecords", schedule)
        self._postponed: set[int] | None = None  # the followers whose held fetches `held_fetches_together` will try

    def complete_all(self, partition: PartitionState, topic_partition: TopicPartition) -> None:
        """Tries to complete the operations that wait for the partition, after an append or a change of its watermarks
        or role.

        Does not change the partition's fields `is_watched` and `is_commit_watched`. While one of them is set, the
        compiled request path (the gate) reports its changes of the partition to Python. If they stay set although no
        operation waits any longer, the gate reports one change more than necessary, and `complete_and_mark`, which is
        called for this report, clears them.
        """
        if self.fetch.delayed_count:
            self.complete_held(partition.remote_replicas)
        self.complete_watching(topic_partition)

    def complete_watching(self, topic_partition: TopicPartition) -> None:
        """Tries to complete the operations that wait for the partition, except the followers' fetches (HeldFetch).

        It is used after an event that changes neither the log nor the high watermark nor the leader, such as a
        confirmed ISR that does not increase the high watermark. Followers' fetches do not wait for such an event.
        """
        if self.fetch.delayed_count:
            self.fetch.check_and_complete(topic_partition)
        if self.produce.delayed_count:
            self.produce.check_and_complete(topic_partition)
        if self.delete_records.delayed_count:
            self.delete_records.check_and_complete(topic_partition)

    def complete_held(self, followers: Iterable[int]) -> None:
        """Tries to complete the fetches that wait (HeldFetch) of the followers with these broker ids."""
        if self._postponed is not None:
            self._postponed.update(followers)
            return
        for broker_id in followers:
            self.fetch.check_and_complete(broker_id)

    @contextmanager
    def held_fetches_together(self) -> Iterator[None]:
        """Returns a context manager that postpones the attempts to complete followers' fetches that wait (HeldFetch).

        At its end, the fetches of each follower that had an event are tried once. A caller that changes many partitions
        uses it, because a follower's fetch has many partitions and would otherwise be tried after each change.
        """
        self._postponed = set()
        try:
            yield
        finally:
            followers, self._postponed = self._postponed, None
            self.complete_held(followers)

    def complete_and_mark(self, partition: PartitionState, topic_partition: TopicPartition) -> None:
        """Calls `complete_all`, then sets the partition's fields `is_watched` and `is_commit_watched` for the
        operations that still wait, and clears them if there are none.

        The compiled request path (the gate) reports a change of the partition to Python only if these fields are set.
        This method examines all waiting operations. It is therefore not called after every append, but after a report
        of the gate, and after a change of the partition's role or ISR. A HeldFetch sets the fields itself when it was
        tried and continues to wait.
        """
        partition.is_watched = partition.is_commit_watched = False
        self.complete_all(partition, topic_partition)
        for operation in self.fetch.watchers(topic_partition):
            assert isinstance(operation, FetchOperation)
            partition.watch_fetch(is_from_follower=operation.is_from_follower)
        if self.produce.is_watched(topic_partition) or self.delete_records.is_watched(topic_partition):
            partition.is_commit_watched = True

    def force_complete_all(self) -> None:
        """Completes all operations as if their deadlines had passed."""
        for purgatory in (self.produce, self.fetch, self.delete_records):
            purgatory.force_complete_all()
