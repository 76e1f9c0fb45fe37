"""Loads the state of a coordinator's partition (a shard) by replaying the partition's log.

The load is made in short slices, so that the thread that owns the shard can do other work between two slices.
"""

from __future__ import annotations

from collections.abc import Iterator

from kafkapy._core.bytes.record_batch import RecordBatch, iterate_batches
from kafkapy.coordinator.coordinator_log import CoordinatorLog
from kafkapy.coordinator.shard import CoordinatorShard
from kafkapy.errors import ApiError, Error
from kafkapy.storage.control_record import end_transaction_marker
from kafkapy.types import Clock, TopicPartition

# One slice occupies the thread for at most this long, plus one batch.
SLICE_MS = 1
_READ_BYTES = 256 * 1024


class PartitionLoader:
    """The load of one partition, with the position that has been reached in its log. Only the thread that owns it may
    use it.

    The log end offset is queried again after each read, so that batches appended during the load (transaction markers)
    are loaded too.
    """

    def __init__(
        self, log: CoordinatorLog, partition: TopicPartition, shard: CoordinatorShard, clock: Clock, read_bytes: int
    ) -> None:
        self._log = log
        self._partition = partition
        self._shard = shard
        self._clock = clock
        self._read_bytes = min(read_bytes, _READ_BYTES)
        self._next_offset = log.log_start_offset(partition)
        self._batches: Iterator[RecordBatch] = iter(())

    def step(self) -> bool:
        """Replays the next slice of the log; returns True if the end of the log has been reached.

        Raises ApiError if the log cannot be read, and any error that replaying an invalid record raises.
        """
        deadline = self._clock.monotonic_ms() + SLICE_MS
        while True:
            batch = next(self._batches, None)
            if batch is None:
                if not self._read_more():
                    return True
                continue
            if batch.last_offset >= self._next_offset:
                self._replay(batch)
                self._next_offset = batch.last_offset + 1
            if self._clock.monotonic_ms() >= deadline:
                return False

    def _read_more(self) -> bool:
        if self._next_offset >= self._log.log_end_offset(self._partition):
            return False
        data = self._log.read(self._partition, self._next_offset, self._read_bytes)
        if not data:
            raise ApiError(Error.CORRUPT_MESSAGE, f"{self._partition} ends at {self._next_offset}, before its log end")
        self._batches = iter(iterate_batches(data))
        return True

    def _replay(self, batch: RecordBatch) -> None:
        replay = self._shard.replay
        if batch.is_control:
            self._replay_control(batch)
            return
        producer_id = batch.producer_id if batch.is_transactional else -1
        for record in batch:
            if record.key is not None:
                replay(record.offset, producer_id, record.key, record.value)

    def _replay_control(self, batch: RecordBatch) -> None:
        marker = end_transaction_marker(batch)
        if marker is not None:
            self._shard.replay_end_of_transaction(batch.base_offset, batch.producer_id, marker.is_commit)
