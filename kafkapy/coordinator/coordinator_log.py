"""The port between a coordinator and the replicated log that holds its records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from kafkapy.errors import Error
from kafkapy.types import TopicPartition


class CoordinatorLog(Protocol):
    """Log of one internal topic as its single writer sees it. Every call is made on the owner thread."""

    def log_start_offset(self, partition: TopicPartition) -> int:
        """First offset still present; raises ApiError when this broker does not lead the partition."""

    def log_end_offset(self, partition: TopicPartition) -> int:
        """Offset of the next record; raises ApiError when this broker does not lead the partition."""

    def high_watermark(self, partition: TopicPartition) -> int:
        """Records below it are committed; raises ApiError when this broker does not lead the partition."""

    def read(self, partition: TopicPartition, offset: int, max_bytes: int) -> bytes:
        """Whole batches from the one that holds `offset`, at least one, also above the high watermark."""

    def append(self, partition: TopicPartition, batch: bytes, on_committed: Callable[[Error], None]) -> None:
        """Appends one batch with acks=all. `on_committed` is called exactly once, perhaps before this returns."""
