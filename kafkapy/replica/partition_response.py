"""The result of an append to one partition, as the response to a produce request contains it."""

from __future__ import annotations

from kafkapy.errors import Error
from kafkapy.types import NO_TIMESTAMP

UNKNOWN_OFFSET = -1


class PartitionResponse:
    """The result for one partition of a produce request. Offsets are -1 if they are unknown because of an error.

    `log_append_time_ms` is -1 unless message.timestamp.type is LogAppendTime. `record_errors` holds (index in the
    batch, message) of each refused record.
    """

    __slots__ = ("base_offset", "error", "error_message", "log_append_time_ms", "log_start_offset", "record_errors")

    def __init__(
        self,
        error: Error = Error.NONE,
        base_offset: int = UNKNOWN_OFFSET,
        log_append_time_ms: int = NO_TIMESTAMP,
        log_start_offset: int = UNKNOWN_OFFSET,
        error_message: str | None = None,
        record_errors: tuple[tuple[int, str | None], ...] = (),
    ) -> None:
        self.error = error
        self.base_offset = base_offset
        self.log_append_time_ms = log_append_time_ms
        self.log_start_offset = log_start_offset
        self.error_message = error_message
        self.record_errors = record_errors
