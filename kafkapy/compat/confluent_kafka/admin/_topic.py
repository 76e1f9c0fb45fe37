"""Topics to be created, topics to which partitions are added, and descriptions of topics."""

from __future__ import annotations

import functools
from typing import Any

from kafkapy.compat.confluent_kafka._model import TopicPartitionInfo
from kafkapy.compat.confluent_kafka._records import Uuid
from kafkapy.compat.confluent_kafka.admin._acl import operations_of


class TopicDescription:
    """A topic: its name, its id, its partitions, and the operations that the client may perform on it."""

    def __init__(
        self,
        name: str,
        topic_id: Uuid,
        is_internal: bool,
        partitions: list[TopicPartitionInfo],
        authorized_operations: list[Any] | None = None,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.is_internal = is_internal
        self.partitions = partitions
        self.authorized_operations = operations_of(authorized_operations)


@functools.total_ordering
class NewTopic:
    """A topic to be created. A `num_partitions` or `replication_factor` of -1 means the broker's default.

    `replica_assignment` has the ids of the replicas of each partition, instead of `replication_factor`.
    """

    __slots__ = ("config", "num_partitions", "replica_assignment", "replication_factor", "topic")

    def __init__(
        self,
        topic: str,
        num_partitions: int = -1,
        replication_factor: int = -1,
        replica_assignment: list[list[int]] | None = None,
        config: dict[str, str] | None = None,
    ) -> None:
        if not isinstance(topic, str):
            raise TypeError(f"argument 1 must be str, not {type(topic).__name__}")
        self.topic = topic
        self.num_partitions = num_partitions
        self.replication_factor = replication_factor
        self.replica_assignment = replica_assignment
        self.config = config

    def __repr__(self) -> str:
        partitions = f",num_partitions={self.num_partitions}" if self.num_partitions != -1 else ""
        return f"NewTopic(topic={self.topic}{partitions})"

    def _key(self) -> tuple[str, int]:
        return self.topic, self.num_partitions

    def __hash__(self) -> int:
        return hash(self._key())

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, NewTopic) else NotImplemented

    def __lt__(self, other: object) -> bool:
        return self._key() < other._key() if isinstance(other, NewTopic) else NotImplemented


@functools.total_ordering
class NewPartitions:
    """A topic to which partitions are added, and the number of partitions that the topic has afterwards.

    `replica_assignment` has the ids of the replicas of each added partition; without it the broker chooses them.
    """

    __slots__ = ("new_total_count", "replica_assignment", "topic")

    def __init__(self, topic: str, new_total_count: int, replica_assignment: list[list[int]] | None = None) -> None:
        if not isinstance(topic, str):
            raise TypeError(f"argument 1 must be str, not {type(topic).__name__}")
        self.topic = topic
        self.new_total_count = new_total_count
        self.replica_assignment = replica_assignment

    def __repr__(self) -> str:
        return f"NewPartitions(topic={self.topic},new_total_count={self.new_total_count})"

    def _key(self) -> tuple[str, int]:
        return self.topic, self.new_total_count

    def __hash__(self) -> int:
        return hash(self._key())

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, NewPartitions) else NotImplemented

    def __lt__(self, other: object) -> bool:
        return self._key() < other._key() if isinstance(other, NewPartitions) else NotImplemented
