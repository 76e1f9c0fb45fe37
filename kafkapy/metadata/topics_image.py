"""The topics and partitions in the image, which is the cluster's metadata at one offset of the metadata log."""

from __future__ import annotations

from kafkapy.named_tuple import NamedTuple

NO_LEADER = -1
NO_LEADER_CHANGE = -2

RECOVERED = 0
RECOVERING = 1

# Reserved directory ids (KIP-858), as Kafka writes them.
DIRECTORY_MIGRATING = bytes(16)
DIRECTORY_UNASSIGNED = bytes(15) + b"\x01"
DIRECTORY_LOST = bytes(15) + b"\x02"
_RESERVED_DIRECTORIES = 100


def is_reserved_directory(directory_id: bytes) -> bool:
    """Returns True if the id can never be the id of a log directory, because Kafka reserves the ids below 100."""
    return not any(directory_id[:8]) and int.from_bytes(directory_id[8:], "big", signed=True) < _RESERVED_DIRECTORIES


class PartitionImage(NamedTuple):
    """The state of one partition. The object does not change after its construction. `directories` has the id of the
    log directory of each of `replicas`.

    Invariants: len(directories) == len(replicas); set(isr) <= set(replicas); leader is a replica or NO_LEADER;
    neither epoch ever decreases.
    """

    replicas: tuple[int, ...]
    directories: tuple[bytes, ...]
    isr: tuple[int, ...]
    removing_replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...]
    elr: tuple[int, ...]
    last_known_elr: tuple[int, ...]
    leader: int
    leader_recovery_state: int
    leader_epoch: int
    partition_epoch: int

    def directory_of(self, broker_id: int) -> bytes:
        """Returns the id of the log directory of the broker's replica; raises ValueError if the broker has no
        replica."""
        return self.directories[self.replicas.index(broker_id)]

    @property
    def preferred_replica(self) -> int:
        return self.replicas[0]


class TopicImage(NamedTuple):
    """One topic. The object does not change; a change of `partitions` makes a new object."""

    name: str
    topic_id: bytes
    partitions: dict[int, PartitionImage]


class TopicsImage(NamedTuple):
    """All topics, by name and by id (16 bytes). Both maps always have the same topics, and do not change."""

    by_name: dict[str, TopicImage]
    by_id: dict[bytes, TopicImage]

    def replica_of(self, broker_id: int, topic_id: bytes, partition: int) -> PartitionImage | None:
        """Returns the partition if the metadata assign a replica of it to the broker, otherwise None.

        If the result is None, a log of the partition in the broker's directories is a stray replica.
        """
        topic = self.by_id.get(topic_id)
        state = None if topic is None else topic.partitions.get(partition)
        return None if state is None or broker_id not in state.replicas else state

    def is_assigned(self, broker_id: int, topic_id: bytes, partition: int, directory_id: bytes) -> bool:
        """Returns True if the metadata assign the broker's replica of a partition to the log directory `directory_id`.

        Also returns True if the metadata do not name a directory for the replica. Returns False if the broker has no
        replica.
        """
        state = self.replica_of(broker_id, topic_id, partition)
        if state is None:
            return False
        return state.directory_of(broker_id) in (directory_id, DIRECTORY_UNASSIGNED, DIRECTORY_MIGRATING)

    def partition(self, topic: str, partition: int) -> PartitionImage | None:
        image = self.by_name.get(topic)
        return None if image is None else image.partitions.get(partition)


EMPTY_TOPICS = TopicsImage({}, {})
