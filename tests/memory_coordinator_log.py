"""The coordinator's log in memory: commits at once, or when the test releases it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from kafkapy._core.bytes.record_batch import iterate_batches
from kafkapy.errors import Error
from kafkapy.types import TopicPartition


class LoggedRecord(NamedTuple):
    offset: int
    key: bytes
    value: bytes | None


class MemoryCoordinatorLog:
    """Owns one partition's batches. While `is_holding` the high watermark does not move until `release`."""

    def __init__(self) -> None:
        self.batches: list[tuple[int, int, bytes]] = []  # first offset, last offset, bytes
        self.records: list[LoggedRecord] = []
        self.is_holding = False
        self.next_failure: Error | None = None
        self.reads = 0
        self._committed = 0
        self._waiting: list[Callable[[Error], None]] = []

    def log_start_offset(self, partition: TopicPartition) -> int:
        return 0

    def log_end_offset(self, partition: TopicPartition) -> int:
        return self.batches[-1][1] + 1 if self.batches else 0

    def high_watermark(self, partition: TopicPartition) -> int:
        return self._committed

    def read(self, partition: TopicPartition, offset: int, max_bytes: int) -> bytes:
        self.reads += 1
        found = b""
        for _, last, data in self.batches:
            if last >= offset and (not found or len(found) + len(data) <= max_bytes):
                found += data
        return found

    def append(self, partition: TopicPartition, batch: bytes, on_committed: Callable[[Error], None]) -> None:
        failure, self.next_failure = self.next_failure, None
        if failure is not None:
            on_committed(failure)
            return
        self.append_raw(batch)
        if self.is_holding:
            self._waiting.append(on_committed)
            return
        self._committed = self.log_end_offset(partition)
        on_committed(Error.NONE)

    def append_raw(self, batch: bytes) -> None:
        """Appends a batch with its offsets, like one that another broker wrote."""
        view = next(iter(iterate_batches(batch)))
        self.batches.append((view.base_offset, view.last_offset, batch))
        for record in () if view.is_control else view:
            value = None if record.value is None else bytes(record.value)
            self.records.append(LoggedRecord(record.offset, bytes(record.key or b""), value))
        if not self.is_holding:
            self._committed = view.last_offset + 1

    def give_up(self, error: Error) -> None:
        """Ends the appends that wait, although their batches are in the log: the followers have not fetched them in
        time, or another broker has become the leader."""
        waiting, self._waiting = self._waiting, []
        for on_committed in waiting:
            on_committed(error)

    def release(self) -> None:
        self.is_holding = False
        self._committed = self.batches[-1][1] + 1 if self.batches else 0
        waiting, self._waiting = self._waiting, []
        for on_committed in waiting:
            on_committed(Error.NONE)
