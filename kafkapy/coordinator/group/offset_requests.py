"""OffsetCommit, OffsetFetch and OffsetDelete requests in a form that names topics and is the same in all versions."""

from __future__ import annotations

from kafkapy.errors import Error
from kafkapy.named_tuple import NamedTuple
from kafkapy.types import ZERO_UUID


class OffsetToCommit(NamedTuple):
    topic: str
    topic_id: bytes
    partition: int
    offset: int
    leader_epoch: int
    metadata: str


class CommitCall(NamedTuple):
    """An OffsetCommit. A `retention_ms` of -1 means the broker's retention.

    `is_new_protocol` is True for version 9 and later (KIP-848), whose response may have the error GROUP_ID_NOT_FOUND.
    """

    group_id: str
    member_id: str
    group_instance_id: str | None
    generation_id: int
    retention_ms: int
    is_new_protocol: bool
    offsets: list[OffsetToCommit]

    @property
    def names_member(self) -> bool:
        """True if the request names a member by its id, instance id or generation; False for an administrator or a
        consumer without group membership."""
        return self.generation_id >= 0 or self.member_id != "" or self.group_instance_id is not None


class FetchCall(NamedTuple):
    """An OffsetFetch. `partitions` has (topic, partition, topic id); the topic id is zero if it is not given. If
    `partitions` is None, all offsets of the group are requested.

    `member_id` and `member_epoch` name a member of a consumer group (KIP-848).
    """

    group_id: str
    partitions: list[tuple[str, int, bytes]] | None
    require_stable: bool
    member_id: str | None = None
    member_epoch: int = -1


class FetchedOffset(NamedTuple):
    """The response for one partition. An `offset` of -1 means that nothing is committed."""

    topic: str
    partition: int
    offset: int = -1
    leader_epoch: int = -1
    metadata: str = ""
    error: Error = Error.NONE
    topic_id: bytes = ZERO_UUID


# topic, partition -> error
PartitionErrors = dict[tuple[str, int], Error]
