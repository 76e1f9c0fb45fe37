"""The state of one partition that a fetcher reads, and the rules by which its log is truncated."""

from __future__ import annotations

from enum import Enum, auto
from typing import Protocol

from kafkapy._core.broker_state.quota_sensor import QuotaSensor
from kafkapy.named_tuple import NamedTuple
from kafkapy.storage.leader_epoch_cache import UNDEFINED_EPOCH, UNDEFINED_OFFSET
from kafkapy.types import OffsetAndEpoch, TopicPartition

NOT_DELAYED = -1


class FollowerLog(Protocol):
    """The local log of a followed partition. Methods that write raise StorageError if the log directory fails."""

    @property
    def log_start_offset(self) -> int: ...
    @property
    def log_end_offset(self) -> int: ...
    @property
    def high_watermark(self) -> int: ...
    @property
    def latest_epoch(self) -> int: ...
    @property
    def throttle(self) -> QuotaSensor | None:
        """The sensor that measures the rate of all throttled partitions (KIP-73); None if this partition is not
        throttled."""

    def end_offset_for_epoch(self, epoch: int) -> OffsetAndEpoch:
        """Returns the largest epoch <= `epoch` in the log, with its end offset.

        If `epoch` is below all epochs of the log, returns `epoch` itself with the offset at which the first epoch of
        the log begins. The returned epoch and offset are -1 if `epoch` is -1 or above the newest epoch, or if the log
        has no epoch.
        """

    def append(self, records: memoryview, leader_epoch: int) -> int:
        """Appends the whole batches whose leader epoch is at most `leader_epoch`; returns their size in bytes.

        Raises ApiError CORRUPT_MESSAGE for a damaged batch, and another ApiError if the offsets do not continue the
        log.
        """

    def truncate_to(self, offset: int) -> None:
        """Removes every batch whose last offset is at or above `offset`."""

    def restart_at(self, offset: int) -> None:
        """Removes all batches; the empty log then starts and ends at `offset`."""

    def follow(self, high_watermark: int, log_start_offset: int) -> bool:
        """Sets high watermark and log start offset to the leader's, limited to the offsets in this log.

        Returns whether the high watermark changed.
        """


class Phase(Enum):
    """The state of a followed partition, which determines what is done for it next."""

    TRUNCATING = auto()  # its log has no epoch, and is truncated to the high watermark before the first fetch
    FETCHING = auto()
    ASKING_END = auto()  # its offset was out of range, and the leader is asked for its end offset
    ASKING_START = auto()  # the end offset did not explain it, and the leader is asked for its start offset
    FAILED = auto()  # stopped until the leader epoch rises


class FetchPosition(NamedTuple):
    """The fields of one partition in a fetch request. The object does not change after its construction."""

    topic_id: bytes
    fetch_offset: int
    log_start_offset: int
    leader_epoch: int
    last_fetched_epoch: int


class FollowedPartition:
    """One partition of a fetcher: its log, the leader epoch, and the state of fetching.

    Invariant: in FETCHING, `fetch_offset` is the log end offset and `last_fetched_epoch` is the leader epoch of the
    last batch.
    """

    __slots__ = (
        "delayed_until_ms",
        "fetch_offset",
        "is_in_sync",
        "last_fetched_epoch",
        "leader_epoch",
        "log",
        "phase",
        "topic_id",
        "topic_partition",
        "transient_errors",
    )

    def __init__(self, topic_partition: TopicPartition, topic_id: bytes, leader_epoch: int, log: FollowerLog) -> None:
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.leader_epoch = leader_epoch
        self.log = log
        self.delayed_until_ms = NOT_DELAYED
        self.transient_errors = 0  # in a row
        self.is_in_sync = False  # the last response left no records below the leader's high watermark to be fetched
        self.last_fetched_epoch = log.latest_epoch
        has_epoch = self.last_fetched_epoch != UNDEFINED_EPOCH
        self.phase = Phase.FETCHING if has_epoch else Phase.TRUNCATING
        self.fetch_offset = log.log_end_offset if has_epoch else log.high_watermark

    @property
    def is_fetchable(self) -> bool:
        """True if the next fetch request contains the partition."""
        return self.phase is Phase.FETCHING and self.delayed_until_ms == NOT_DELAYED

    def position(self) -> FetchPosition:
        return FetchPosition(
            self.topic_id, self.fetch_offset, self.log.log_start_offset, self.leader_epoch, self.last_fetched_epoch
        )

    def resume(self) -> None:
        """Makes fetching continue at the end of the log, after the log was appended to, truncated or restarted."""
        self.phase = Phase.FETCHING
        self.fetch_offset = self.log.log_end_offset
        self.last_fetched_epoch = self.log.latest_epoch


def truncation_offset(diverging: OffsetAndEpoch, own_end: OffsetAndEpoch, log_end_offset: int) -> int:
    """Returns the offset to which to truncate the follower's log; it is never above `log_end_offset`.

    `diverging` is the leader's response: an epoch, and the offset at which this epoch ends in the leader's log.
    `own_end` is the largest epoch of the follower's log that is not above the epoch of `diverging`, and the offset at
    which it ends in the follower's log. If the epochs are equal, the result is the smaller of the two offsets. If they
    differ, the result is the offset of `own_end`; the next fetch then compares the epoch of `own_end` (KIP-279). If the
    offset of `own_end` is undefined, the result is the offset of `diverging`.
    """
    if own_end.offset == UNDEFINED_OFFSET:
        return min(diverging.offset, log_end_offset)
    if own_end.epoch != diverging.epoch:
        return min(own_end.offset, log_end_offset)
    return min(own_end.offset, diverging.offset, log_end_offset)
