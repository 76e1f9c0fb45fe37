"""Offsets by timestamp, and the special timestamps that mean the earliest, the latest and others (ListOffsets)."""

from __future__ import annotations

import os

from kafkapy.errors import ApiError, Error
from kafkapy.replica.fetch import FetchIsolation
from kafkapy.replica.partition import Partition
from kafkapy.storage.log_results import TimestampAndOffset

LATEST_TIMESTAMP = -1
EARLIEST_TIMESTAMP = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL_TIMESTAMP = -4
LATEST_TIERED_TIMESTAMP = -5
EARLIEST_PENDING_UPLOAD_TIMESTAMP = -6

# The first ListOffsets version that knows each special timestamp.
FIRST_VERSION = {
    LATEST_TIMESTAMP: 0,
    EARLIEST_TIMESTAMP: 0,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL_TIMESTAMP: 8,
    LATEST_TIERED_TIMESTAMP: 9,
    EARLIEST_PENDING_UPLOAD_TIMESTAMP: 11,
}
NOT_FOUND = TimestampAndOffset(-1, -1, -1)


def is_timestamp_supported(timestamp: int, version: int) -> bool:
    """Returns whether a request of this version may contain `timestamp`."""
    return timestamp >= 0 or version >= FIRST_VERSION.get(timestamp, 1 << 15)


def find_offset(
    partition: Partition,
    timestamp: int,
    *,
    isolation: FetchIsolation,
    from_client: bool,
    current_leader_epoch: int,
    only_leader: bool,
) -> TimestampAndOffset:
    """Returns the first record with `timestamp` (ms) or later, or the offset that a special timestamp denotes; returns
    the constant NOT_FOUND if there is none.

    Records at or above the limit of `isolation` are not found. Raises ApiError: NOT_LEADER_OR_FOLLOWER if `only_leader`
    and this broker does not lead; FENCED_LEADER_EPOCH or UNKNOWN_LEADER_EPOCH if `current_leader_epoch` is neither -1
    nor the partition's epoch; OFFSET_NOT_AVAILABLE for a client (`from_client`) while a new leader's high watermark is
    below the start of its epoch, because the former leader may have returned a higher offset; CORRUPT_MESSAGE if the
    log is damaged. Raises StorageError if the log cannot be read.
    """
    partition.check_access(current_leader_epoch, only_leader=only_leader)
    log = partition.log
    if timestamp in (LATEST_TIERED_TIMESTAMP, EARLIEST_PENDING_UPLOAD_TIMESTAMP):
        return NOT_FOUND  # there is no tiered storage
    if timestamp in (EARLIEST_TIMESTAMP, EARLIEST_LOCAL_TIMESTAMP):
        start_offset = log.log_start_offset
        return TimestampAndOffset(-1, start_offset, log.leader_epochs.epoch_for_offset(start_offset))
    is_lagging = from_client and log.high_watermark < partition.leader_epoch_start_offset and partition.is_leader
    if timestamp == LATEST_TIMESTAMP:
        if is_lagging:
            raise ApiError(Error.OFFSET_NOT_AVAILABLE)
        return TimestampAndOffset(-1, partition.end_offset(isolation), partition.leader_epoch)
    found = log.fetch_max_timestamp() if timestamp == MAX_TIMESTAMP else log.fetch_offset_by_timestamp(timestamp)
    if found is not None and found.offset < partition.end_offset(isolation):
        return found
    if is_lagging:
        raise ApiError(Error.OFFSET_NOT_AVAILABLE)
    return NOT_FOUND


def find_offsets_before(
    partition: Partition, timestamp: int, max_offsets: int, *, wall_ms: int, from_client: bool
) -> list[int]:
    """Returns at most `max_offsets` base offsets of segments last modified at or before `timestamp`, newest first.

    This is version 0 of ListOffsets. `wall_ms` is the present time. If `timestamp` is -1 (latest), or if it is equal to
    or greater than `wall_ms`, the log end offset comes first. For a client, offsets above the high watermark are
    replaced by the high watermark. Raises ApiError if this broker does not lead the partition, and StorageError if a
    segment's file cannot be examined.
    """
    partition.check_access(-1, only_leader=True)
    log = partition.log
    end_offset = log.high_watermark if from_client else log.log_end_offset
    starts: list[tuple[int, float]] = []
    try:
        for segment in log.segments:
            modified_ms = os.stat(segment.path(".log")).st_mtime * 1000
            starts.append((max(segment.base_offset, log.log_start_offset), modified_ms))
    except OSError as error:
        log.report_failed_read(error)
    if log.segments.active.size:
        starts.append((log.log_end_offset, wall_ms))
    if timestamp == LATEST_TIMESTAMP:
        last = len(starts)
    elif timestamp == EARLIEST_TIMESTAMP:
        last = 1
    else:
        last = max((at for at, (_, modified_ms) in enumerate(starts, 1) if modified_ms <= timestamp), default=0)
    offsets = [offset for offset, _ in reversed(starts[:last])]
    above = [offset for offset in offsets if offset > end_offset]
    if above:
        offsets = [end_offset, *(offset for offset in offsets if offset < end_offset)]
    return offsets[: max(0, max_offsets)]
