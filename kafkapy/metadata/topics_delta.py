"""The changes that metadata records make to a TopicsImage, which contains all topics of the cluster.

The records are Topic, Partition, PartitionChange, RemoveTopic and ClearElr records.
"""

from __future__ import annotations

from typing import Any

from kafkapy.metadata.topics_image import (
    DIRECTORY_MIGRATING,
    DIRECTORY_UNASSIGNED,
    NO_LEADER_CHANGE,
    PartitionImage,
    TopicImage,
    TopicsImage,
)
from kafkapy.types import uuid_to_string


class TopicsDelta:
    """The changes to a TopicsImage, from which the next image is built. Not thread-safe; the old image is not changed.

    `changed` contains every topic that is new or has changed partitions, `deleted` every removed topic as it was in the
    old image, both by topic id. If a topic is deleted and created again with the same name, `deleted` contains the old
    topic and `changed` the new one, under different ids. `changed_partitions` has the new state of each partition that
    is new or was changed, by topic id and partition number.
    """

    __slots__ = ("_by_id", "_by_name", "changed", "changed_partitions", "deleted", "image")

    def __init__(self, image: TopicsImage) -> None:
        self.image = image
        self.changed: dict[bytes, TopicImage] = {}
        self.deleted: dict[bytes, TopicImage] = {}
        self.changed_partitions: dict[bytes, dict[int, PartitionImage]] = {}
        self._by_name: dict[str, TopicImage] | None = None
        self._by_id: dict[bytes, TopicImage] | None = None

    def apply(self) -> TopicsImage:
        if self._by_name is None or self._by_id is None:
            return self.image
        return TopicsImage(self._by_name, self._by_id)

    def add_topic(self, name: str, topic_id: bytes) -> None:
        by_name, by_id = self._own()
        if name in by_name:
            raise ValueError(f"topic {name} is created twice")
        if topic_id in by_id:
            raise ValueError(f"topics {by_id[topic_id].name} and {name} have one id {uuid_to_string(topic_id)}")
        self._put(TopicImage(name, topic_id, {}), by_name, by_id)

    def remove_topic(self, topic_id: bytes) -> TopicImage:
        """Removes the topic and returns its newest state.

        If the old image contains the topic, its state in the old image is added to `deleted`.
        """
        by_name, by_id = self._own()
        topic = self._topic(topic_id)
        before = self.image.by_id.get(topic_id)
        if before is not None:
            self.deleted[topic_id] = before
        self.changed.pop(topic_id, None)
        self.changed_partitions.pop(topic_id, None)
        del by_name[topic.name], by_id[topic_id]
        return topic

    def put_partition(self, record: Any) -> None:
        """Applies a PartitionRecord, which creates the partition or replaces its state."""
        replicas = tuple(record.replicas)
        directories = tuple(record.directories or ())
        if len(directories) != len(replicas):
            directories = (DIRECTORY_MIGRATING,) * len(replicas)
        partition = PartitionImage(
            replicas,
            directories,
            tuple(record.isr),
            tuple(record.removing_replicas),
            tuple(record.adding_replicas),
            tuple(record.eligible_leader_replicas or ()),
            tuple(record.last_known_elr or ()),
            record.leader,
            record.leader_recovery_state,
            record.leader_epoch,
            record.partition_epoch,
        )
        self._put_partition(record.topic_id, record.partition_id, partition)

    def change_partition(self, record: Any) -> None:
        """Applies a PartitionChangeRecord, which changes some fields of the partition."""
        partition = self._topic(record.topic_id).partitions.get(record.partition_id)
        if partition is None:
            raise ValueError(f"change of unknown partition {uuid_to_string(record.topic_id)}-{record.partition_id}")
        self._put_partition(record.topic_id, record.partition_id, merge_partition_change(partition, record))

    def clear_elr(self, topic_name: str) -> None:
        """Removes the eligible leader replicas of one topic, or of all topics if the name is empty."""
        names = [topic_name] if topic_name else list(self.apply().by_name)
        for name in names:
            topic = self.apply().by_name.get(name)
            if topic is None:
                raise ValueError(f"clearing the eligible leader replicas of unknown topic {name}")
            for partition_id, partition in tuple(topic.partitions.items()):
                if partition.elr or partition.last_known_elr:
                    cleared = partition._replace(
                        elr=(), last_known_elr=(), partition_epoch=partition.partition_epoch + 1
                    )
                    self._put_partition(topic.topic_id, partition_id, cleared)

    def replace_with(self, topics: TopicsImage) -> None:
        """Makes `topics` the result of this delta, and computes the changes from the old topics.

        This method is called instead of replaying records. The delta must not have changes.
        """
        assert self._by_id is None, "the delta has changes"
        self._by_name, self._by_id = dict(topics.by_name), dict(topics.by_id)
        before = self.image.by_id
        self.changed = {key: topic for key, topic in topics.by_id.items() if before.get(key) != topic}
        self.deleted = {key: topic for key, topic in before.items() if key not in topics.by_id}
        for key, topic in self.changed.items():
            old = before[key].partitions if key in before else {}
            self.changed_partitions[key] = {
                number: state for number, state in topic.partitions.items() if old.get(number) != state
            }

    def _own(self) -> tuple[dict[str, TopicImage], dict[bytes, TopicImage]]:
        if self._by_name is None or self._by_id is None:
            self._by_name = dict(self.image.by_name)
            self._by_id = dict(self.image.by_id)
        return self._by_name, self._by_id

    def _topic(self, topic_id: bytes) -> TopicImage:
        topic = (self.image.by_id if self._by_id is None else self._by_id).get(topic_id)
        if topic is None:
            raise ValueError(f"unknown topic id {uuid_to_string(topic_id)}")
        return topic

    def _put_partition(self, topic_id: bytes, partition_id: int, partition: PartitionImage) -> None:
        """Stores the new state of a partition. The first call for a topic copies the dictionary of its partitions."""
        topic = self.changed.get(topic_id)
        if topic is None:
            topic = self._topic(topic_id)
            topic = topic._replace(partitions=dict(topic.partitions))
            self._put(topic, *self._own())
        topic.partitions[partition_id] = self.changed_partitions[topic_id][partition_id] = partition

    def _put(self, topic: TopicImage, by_name: dict[str, TopicImage], by_id: dict[bytes, TopicImage]) -> None:
        by_name[topic.name] = by_id[topic.topic_id] = self.changed[topic.topic_id] = topic
        self.changed_partitions[topic.topic_id] = {}


def merge_partition_change(partition: PartitionImage, record: Any) -> PartitionImage:
    """Returns the partition after a PartitionChangeRecord.

    A field that is not set in the record does not change. Records contain no epochs: the partition epoch increases by
    one, and the leader epoch also increases by one if the record names a leader.
    """
    replicas = partition.replicas if record.replicas is None else tuple(record.replicas)
    leader_changes = record.leader != NO_LEADER_CHANGE
    return PartitionImage(
        replicas,
        _directories_after(partition, replicas, record.directories),
        partition.isr if record.isr is None else tuple(record.isr),
        partition.removing_replicas if record.removing_replicas is None else tuple(record.removing_replicas),
        partition.adding_replicas if record.adding_replicas is None else tuple(record.adding_replicas),
        partition.elr if record.eligible_leader_replicas is None else tuple(record.eligible_leader_replicas),
        partition.last_known_elr if record.last_known_elr is None else tuple(record.last_known_elr),
        record.leader if leader_changes else partition.leader,
        partition.leader_recovery_state if record.leader_recovery_state < 0 else record.leader_recovery_state,
        partition.leader_epoch + 1 if leader_changes else partition.leader_epoch,
        partition.partition_epoch + 1,
    )


def _directories_after(
    partition: PartitionImage, replicas: tuple[int, ...], directories: list[bytes] | None
) -> tuple[bytes, ...]:
    if directories is not None and len(directories) == len(replicas):
        return tuple(directories)
    if replicas == partition.replicas:
        return partition.directories
    known = dict(zip(partition.replicas, partition.directories, strict=True))
    return tuple(known.get(replica, DIRECTORY_UNASSIGNED) for replica in replicas)
