"""The three purgatories of the replica manager, and which of them an event concerns."""

from __future__ import annotations

from kafkapy.purgatory.purgatory import Purgatory, Schedule
from kafkapy.types import TopicPartition


class DelayedOperations:
    """Owns the purgatories of delayed produce, fetch and delete-records requests. Owner thread only.

    Their keys are partitions; a plain (topic, partition) tuple is as good as a TopicPartition.
    """

    __slots__ = ("delete_records", "fetch", "produce")

    def __init__(self, schedule: Schedule) -> None:
        self.produce = Purgatory("Produce", schedule)
        self.fetch = Purgatory("Fetch", schedule)
        self.delete_records = Purgatory("DeleteRecords", schedule)

    def complete_all(self, topic_partition: TopicPartition) -> None:
        """The high watermark, the low watermark or the role of the partition changed."""
        if self.fetch.delayed_count:
            self.fetch.check_and_complete(topic_partition)
        if self.produce.delayed_count:
            self.produce.check_and_complete(topic_partition)
        if self.delete_records.delayed_count:
            self.delete_records.check_and_complete(topic_partition)

    def complete_fetches(self, topic_partition: TopicPartition) -> None:
        """The log end offset grew, the high watermark did not: only followers can read more."""
        if self.fetch.delayed_count:
            self.fetch.check_and_complete(topic_partition)

    def force_complete_all(self) -> None:
        """Answers everything that waits with what there is."""
        for purgatory in (self.produce, self.fetch, self.delete_records):
            purgatory.force_complete_all()
