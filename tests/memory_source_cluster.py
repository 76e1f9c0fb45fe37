"""A cluster in memory with the interface of `SourceCluster`: each partition has a first and an end offset, and the
record of each offset has that number of milliseconds as its timestamp."""

from __future__ import annotations

from kafkapy.spark.source_cluster import SourcePartitions
from kafkapy.spark.start_and_end import EARLIEST, LATEST
from kafkapy.types import TopicPartition


class MemorySourceCluster:
    """A cluster of topics; `subscribed` are those that the options name."""

    def __init__(self, *subscribed: str) -> None:
        self.subscribed = subscribed
        self.ids: dict[str, str] = {}
        self.bounds: dict[TopicPartition, tuple[int, int]] = {}
        self.is_closed = False

    def add(self, topic: str, *ends: int, topic_id: str | None = None) -> None:
        self.ids[topic] = topic_id or f"id-of-{topic}"
        for partition, end in enumerate(ends):
            self.bounds[TopicPartition(topic, partition)] = (0, end)

    def delete(self, topic: str) -> None:
        del self.ids[topic]
        self.bounds = {partition: bounds for partition, bounds in self.bounds.items() if partition.topic != topic}

    def truncate(self, topic: str, number: int, first: int) -> None:
        partition = TopicPartition(topic, number)
        self.bounds[partition] = (first, self.bounds[partition][1])

    def grow(self, topic: str, number: int, count: int) -> None:
        partition = TopicPartition(topic, number)
        first, end = self.bounds.get(partition, (0, 0))
        self.bounds[partition] = (first, end + count)

    def partitions(self) -> SourcePartitions:
        missing = sorted(set(self.subscribed) - set(self.ids))
        return SourcePartitions(sorted(self.bounds), dict(self.ids), missing)

    def earliest(self, partitions):
        return {partition: self.bounds[partition][0] for partition in partitions}

    def latest(self, partitions):
        return {partition: self.bounds[partition][1] for partition in partitions}

    def look_up(self, wanted):
        found = {}
        for partition, timestamp in wanted.items():
            first, end = self.bounds[partition]
            by_time = max(first, timestamp) if timestamp < end else None
            found[partition] = {EARLIEST: first, LATEST: end}.get(timestamp, by_time)
        return found

    def close(self) -> None:
        self.is_closed = True
