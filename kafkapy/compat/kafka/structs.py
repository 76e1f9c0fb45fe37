"""The tuples of kafka-python's `kafka.structs`."""

from __future__ import annotations

from typing import NamedTuple


class TopicPartition(NamedTuple):
    """A partition, given by the name of its topic and its number."""

    topic: str
    partition: int


class TopicPartitionReplica(NamedTuple):
    """The replica of a partition on one broker."""

    topic: str
    partition: int
    broker_id: int


class OffsetAndMetadata(NamedTuple):
    """A committed offset (of the next record to read), text of the application, and the leader epoch of the last
    record that was read."""

    offset: int | None = None
    metadata: str = ""
    leader_epoch: int | None = -1


class OffsetAndTimestamp(NamedTuple):
    """The offset of a record, its timestamp in ms since 1970, and its leader epoch."""

    offset: int
    timestamp: int
    leader_epoch: int | None


class MemberState:
    """The states of a consumer in its group."""

    UNJOINED = "<unjoined>"
    REBALANCING = "<rebalancing>"
    STABLE = "<stable>"


class ConsumerGroupMetadata(NamedTuple):
    """A consumer's membership in its group, which brokers check when offsets are committed in a transaction."""

    group_id: str | None = None
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    state: str = MemberState.UNJOINED
