"""The three purgatories of the replica manager."""

from __future__ import annotations

from kafkapy.purgatory.purgatory import Purgatory, Schedule
from kafkapy.types import TopicPartition


class DelayedOperations:
    """Owns the purgatories of delayed produce, fetch and delete-records requests. Used by the owner thread only.

    Their keys are partitions: a TopicPartition or an equal tuple.
    """

    __slots__ = ("delete_records", "fetch", "produce")

    def __init__(self, schedule: Schedule) -> None:
        self.produce = Purgatory("Produce", schedule)
        self.fetch = Purgatory("Fetch", schedule)
        self.delete_records = Purgatory("DeleteRecords", schedule)

    def complete_all(self, topic_partition: TopicPartition) -> None:
        """Tries all operations that wait for the partition, after its high or low watermark or its role changed."""
        if self.fetch.delayed_count:
            self.fetch.check_and_complete(topic_partition)
        if self.produce.delayed_count:
            self.produce.check_and_complete(topic_partition)
        if self.delete_records.delayed_count:
            self.delete_records.check_and_complete(topic_partition)

    def force_complete_all(self) -> None:
        """Completes all operations as if their deadlines had come."""
        for purgatory in (self.produce, self.fetch, self.delete_records):
            purgatory.force_complete_all()
