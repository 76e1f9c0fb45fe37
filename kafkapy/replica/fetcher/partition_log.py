"""The log of a partition that this broker follows.

Compiled code (`_core/gate/follower_append`) appends the fetched batches if they fit into one segment. Python code
appends all others.
"""

from __future__ import annotations

from collections.abc import Callable

from kafkapy._core.broker_state.quota_sensor import QuotaSensor
from kafkapy._core.gate.follower_append import FetchedBatches
from kafkapy.replica.partition import Partition
from kafkapy.storage.log import Log
from kafkapy.types import OffsetAndEpoch


class AppendCounters:
    """Counts the appends of fetched batches since the start, separately for compiled code and for Python code.

    Only the reactor's thread changes the counters; any thread may read them.
    """

    __slots__ = ("batches", "batches_accounted_in_python", "bytes", "native", "python")

    def __init__(self) -> None:
        self.native = 0  # appends by compiled code; an append is one partition of a response
        self.python = 0  # appends that did not fit into one segment, or had message sets
        self.batches = 0  # of native appends
        self.batches_accounted_in_python = 0  # of native appends; they changed a transaction or had a new producer
        self.bytes = 0  # of all appends


class PartitionLog:
    """Implements FollowerLog for a Partition. Each call uses the partition's current log, which is another object after
    a move between log directories. Only the thread that owns it may use it.
    """

    __slots__ = ("_counters", "_on_truncated", "_partition")

    def __init__(
        self, partition: Partition, counters: AppendCounters, on_truncated: Callable[[Log], None] = lambda log: None
    ) -> None:
        self._partition = partition
        self._counters = counters
        self._on_truncated = on_truncated

    @property
    def log_start_offset(self) -> int:
        return self._partition.log.log_start_offset

    @property
    def log_end_offset(self) -> int:
        return self._partition.log.log_end_offset

    @property
    def high_watermark(self) -> int:
        return self._partition.log.high_watermark

    @property
    def latest_epoch(self) -> int:
        return self._partition.log.latest_epoch

    @property
    def throttle(self) -> QuotaSensor | None:
        return self._partition.follower_throttle

    def end_offset_for_epoch(self, epoch: int) -> OffsetAndEpoch:
        return self._partition.log.end_offset_for_epoch(epoch)

    def append(self, records: memoryview, leader_epoch: int) -> int:
        log = self._partition.log
        counters = self._counters
        batches = FetchedBatches(records, leader_epoch)
        if batches.is_one_run(log.config):
            if not batches.batch_count:
                return 0
            log.append_runs((batches,))
            counters.native += 1
            counters.batches += batches.batch_count
            counters.batches_accounted_in_python += batches.handed_over
            size = batches.size
        else:
            if log.append_as_follower(records, leader_epoch) is None:
                return 0
            counters.python += 1
            size = len(records)
        counters.bytes += size
        return size

    def truncate_to(self, offset: int) -> None:
        log = self._partition.log
        if log.truncate_to(offset):
            self._on_truncated(log)

    def restart_at(self, offset: int) -> None:
        log = self._partition.log
        log.truncate_fully_and_start_at(offset)
        self._on_truncated(log)

    def follow(self, high_watermark: int, log_start_offset: int) -> bool:
        log = self._partition.log
        changed = log.follow_high_watermark(high_watermark)
        log.follow_log_start_offset(log_start_offset)
        return changed
