"""The interface through which a coordinator uses the replicated log that holds its records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from kafkapy.errors import Error
from kafkapy.types import TopicPartition


class CoordinatorLog(Protocol):
    """The log of one internal topic, with the methods that its only writer, a coordinator, needs.

    A coordinator and the log belong to the same thread, the reactor's. All methods and callbacks are called on it.
    """

    def log_start_offset(self, partition: TopicPartition) -> int:
        """Returns the offset of the first record in the log; raises ApiError when this broker does not lead the
        partition."""

    def log_end_offset(self, partition: TopicPartition) -> int:
        """Returns the offset that the next appended record will get; raises ApiError when this broker does not lead the
        partition."""

    def high_watermark(self, partition: TopicPartition) -> int:
        """Returns the offset below which records are committed; raises ApiError when this broker does not lead the
        partition."""

    def read(self, partition: TopicPartition, offset: int, max_bytes: int) -> bytes:
        """Returns whole batches, at least one, beginning with the batch that contains `offset`.

        The result may include batches above the high watermark, and is about `max_bytes` long.
        """

    def append(self, partition: TopicPartition, batch: bytes, on_committed: Callable[[Error], None]) -> None:
        """Appends one batch with acks=all.

        Calls `on_committed` exactly once, perhaps before this method returns: with Error.NONE when the batch is
        committed, or with an error, after which it is unknown whether the batch will be committed.
        """
