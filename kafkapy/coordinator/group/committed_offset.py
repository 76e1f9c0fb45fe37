"""One committed offset."""

from __future__ import annotations

from kafkapy.types import ZERO_UUID


class CommittedOffset:
    """An offset that a group has committed for a partition.

    The object does not change after its construction, except `previous`. `previous` is the older commit for the same
    partition. Readers get the older commit while the record of this commit is above the high watermark. `log_offset` is
    the offset of this commit's record in `__consumer_offsets`. `is_deleted` is True if the record is a tombstone.
    """

    __slots__ = (
        "commit_timestamp_ms",
        "expire_timestamp_ms",
        "is_deleted",
        "leader_epoch",
        "log_offset",
        "metadata",
        "offset",
        "previous",
        "topic_id",
    )

    def __init__(
        self,
        offset: int,
        leader_epoch: int = -1,
        metadata: str = "",
        commit_timestamp_ms: int = -1,
        expire_timestamp_ms: int = -1,
        topic_id: bytes = ZERO_UUID,
        log_offset: int = -1,
        is_deleted: bool = False,
    ) -> None:
        self.offset = offset
        self.leader_epoch = leader_epoch
        self.metadata = metadata
        self.commit_timestamp_ms = commit_timestamp_ms
        self.expire_timestamp_ms = expire_timestamp_ms
        self.topic_id = topic_id
        self.log_offset = log_offset
        self.is_deleted = is_deleted
        self.previous: CommittedOffset | None = None
