"""OffsetCommit, OffsetFetch and OffsetDelete as the coordinator sees them: topics by name, whatever the version."""

from __future__ import annotations

from typing import NamedTuple

from kafkapy.errors import Error
from kafkapy.types import ZERO_UUID


class OffsetToCommit(NamedTuple):
    topic: str
    topic_id: bytes
    partition: int
    offset: int
    leader_epoch: int
    metadata: str


class CommitCall(NamedTuple):
    """`retention_ms` -1: the broker's. `is_new_protocol`: the version (9 and newer) knows GROUP_ID_NOT_FOUND."""

    group_id: str
    member_id: str
    group_instance_id: str | None
    generation_id: int
    retention_ms: int
    is_new_protocol: bool
    offsets: list[OffsetToCommit]

    @property
    def names_member(self) -> bool:
        """Whether a member of the group commits, rather than an administrator or a simple consumer."""
        return self.generation_id >= 0 or self.member_id != "" or self.group_instance_id is not None


class FetchCall(NamedTuple):
    """`partitions` None: everything the group has committed. The third is the topic's id, zero when not given.

    `member_id` and `member_epoch`: what a member of a consumer group says of itself (KIP-848).
    """

    group_id: str
    partitions: list[tuple[str, int, bytes]] | None
    require_stable: bool
    member_id: str | None = None
    member_epoch: int = -1


class FetchedOffset(NamedTuple):
    """`offset` -1: nothing committed."""

    topic: str
    partition: int
    offset: int = -1
    leader_epoch: int = -1
    metadata: str = ""
    error: Error = Error.NONE
    topic_id: bytes = ZERO_UUID


# topic, partition -> error
PartitionErrors = dict[tuple[str, int], Error]
