"""Partitioners with the interface of kafka-python's `kafka.partitioner`."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from typing import Any

from kafkapy._core.bytes.murmur2 import partition_of_key
from kafkapy.compat.kafka.cluster import ClusterMetadata


class Partitioner(ABC):
    """The interface of partitioners, which choose the partitions of records that are sent without a partition."""

    @abstractmethod
    def partition(
        self,
        topic: str,
        key: Any,
        serialized_key: bytes | None,
        value: Any,
        serialized_value: bytes | None,
        cluster: ClusterMetadata,
    ) -> int:
        """Returns the number of the partition for a record; a serialized key or value of None is null."""


class DefaultPartitioner(Partitioner):
    """Chooses the partition of a key as Java's client does, and any available partition for a record without a key.

    If the partitioner of a producer has exactly this class, and not a subclass, kafkapy's client chooses the partitions
    of records without a key: a partition at random for about one batch of records, then another one.
    """

    def partition(
        self,
        topic: str,
        key: Any,
        serialized_key: bytes | None,
        value: Any,
        serialized_value: bytes | None,
        cluster: ClusterMetadata,
    ) -> int:
        known = cluster.partitions_for_topic(topic)
        if known is None:
            raise ValueError(f"Topic {topic} not found in the metadata")
        if serialized_key is not None:
            return partition_of_key(serialized_key, len(known))
        return random.choice(sorted(cluster.available_partitions_for_topic(topic) or known))


class StickyPartitioner(DefaultPartitioner):
    """Chooses the partition of a key as DefaultPartitioner does, and one partition for all records without a key.

    `on_new_batch` chooses another partition for these records.
    """

    def __init__(self) -> None:
        self._sticky: dict[str, int] = {}

    def partition(
        self,
        topic: str,
        key: Any,
        serialized_key: bytes | None,
        value: Any,
        serialized_value: bytes | None,
        cluster: ClusterMetadata,
    ) -> int:
        chosen = self._sticky.get(topic)
        known = cluster.available_partitions_for_topic(topic) or cluster.partitions_for_topic(topic)
        if serialized_key is None and chosen is not None and known and chosen in known:
            return chosen
        found = super().partition(topic, key, serialized_key, value, serialized_value, cluster)
        if serialized_key is None:
            self._sticky[topic] = found
        return found

    def on_new_batch(self, topic: str, cluster: ClusterMetadata, prev_partition: int) -> None:
        """Chooses another partition for the topic, if `prev_partition` is still the chosen one."""
        if self._sticky.get(topic) != prev_partition:
            return
        known = cluster.available_partitions_for_topic(topic) or cluster.partitions_for_topic(topic) or set()
        others = sorted(known - {prev_partition}) or sorted(known)
        if others:
            self._sticky[topic] = random.choice(others)
