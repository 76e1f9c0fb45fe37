"""A cluster in memory, as the Spark source's driver side asks it: topics with partitions that have a first and an end
offset, and one record every millisecond from offset 0 on."""

from __future__ import annotations

from kafkapy.spark.source_cluster import SourcePartitions
from kafkapy.spark.start_and_end import EARLIEST, LATEST
from kafkapy.types import TopicPartition


class MemorySourceCluster:
    """Owns its topics. `subscribed` are asked for by name."""

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

    def truncate(self, topic: str, partition: int, first: int) -> None:
        partition = TopicPartition(topic, partition)
        self.bounds[partition] = (first, self.bounds[partition][1])

    def grow(self, topic: str, partition: int, count: int) -> None:
        partition = TopicPartition(topic, partition)
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
