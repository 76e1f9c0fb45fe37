"""The three purgatories of the replica manager."""

from __future__ import annotations

from kafkapy._core.broker_state.partition_state import PartitionState
from kafkapy.purgatory.delayed_operation import DelayedOperation
from kafkapy.purgatory.purgatory import Purgatory, Schedule
from kafkapy.types import TopicPartition


class FetchOperation(DelayedOperation):
    """Base of the fetches that wait: a follower waits for the log end, and a consumer for the high watermark."""

    __slots__ = ("is_from_follower",)

    def __init__(self, timeout_ms: int, *, is_from_follower: bool) -> None:
        super().__init__(timeout_ms)
        self.is_from_follower = is_from_follower


def watch_fetch(partition: PartitionState, *, is_from_follower: bool) -> None:
    """Notes that a fetch waits for the partition. Without followers each append raises the high watermark."""
    if is_from_follower or not partition.remote_replicas:
        partition.is_watched = True
    if not is_from_follower:
        partition.is_commit_watched = True


class DelayedOperations:
    """Owns the purgatories of delayed produce, fetch and delete-records requests. Used by the owner thread only.

    Their keys are partitions: a TopicPartition or an equal tuple.
    """

    __slots__ = ("delete_records", "fetch", "produce")

    def __init__(self, schedule: Schedule) -> None:
        self.produce = Purgatory("Produce", schedule)
        self.fetch = Purgatory("Fetch", schedule)  # of FetchOperations
        self.delete_records = Purgatory("DeleteRecords", schedule)

    def complete_all(self, topic_partition: TopicPartition) -> None:
        """Tries all operations that wait for the partition, after its high or low watermark or its role changed."""
        if self.fetch.delayed_count:
            self.fetch.check_and_complete(topic_partition)
        if self.produce.delayed_count:
            self.produce.check_and_complete(topic_partition)
        if self.delete_records.delayed_count:
            self.delete_records.check_and_complete(topic_partition)

    def mark_watched(self, partition: PartitionState, topic_partition: TopicPartition) -> None:
        """Sets the two fields by which the gate knows whether a change of the partition may complete an operation."""
        partition.is_watched = partition.is_commit_watched = False
        for operation in self.fetch.watchers(topic_partition):
            assert isinstance(operation, FetchOperation)
            watch_fetch(partition, is_from_follower=operation.is_from_follower)
        partition.is_commit_watched = (
            partition.is_commit_watched
            or self.produce.is_watched(topic_partition)
            or self.delete_records.is_watched(topic_partition)
        )

    def force_complete_all(self) -> None:
        """Completes all operations as if their deadlines had come."""
        for purgatory in (self.produce, self.fetch, self.delete_records):
            purgatory.force_complete_all()
