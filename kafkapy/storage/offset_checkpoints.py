"""Writes the offset checkpoints of all log directories of a broker."""

from __future__ import annotations

from collections.abc import Callable, Collection
from threading import Lock

from kafkapy.storage.checkpoint import OffsetCheckpointFile
from kafkapy.storage.log import Log
from kafkapy.storage.log_directory import LogDirectory
from kafkapy.types import TopicPartition

Logs = Callable[[], list[Log]]


class OffsetCheckpoints:
    """Writes offsets of the logs to the checkpoint files of their directories. Any thread may use it.

    `online()` returns the directories that can be written. `current()` returns the current logs and `futures()` the
    future logs, to which logs are being moved. `attempt(directory, action)` runs an action that writes to a directory,
    and takes the directory offline if the action fails.
    """

    def __init__(
        self,
        *,
        online: Callable[[], list[LogDirectory]],
        current: Logs,
        futures: Logs,
        attempt: Callable[[LogDirectory, Callable[[], None]], None],
    ) -> None:
        self._online = online
        self._current = current
        self._futures = futures
        self._attempt = attempt
        # Held while offsets are collected and written, so that no entry of a deleted log is written after its removal.
        self._lock = Lock()

    def write_recovery_points(self, only: LogDirectory | None = None) -> None:
        """Writes the recovery points, or those in `only`; called every `log.flush.offset.checkpoint.interval.ms`."""
        self._write(
            lambda directory: directory.recovery_points,
            lambda log: log.recovery_point,
            lambda: [*self._current(), *self._futures()],
            only,
        )

    def write_log_start_offsets(self, only: LogDirectory | None = None) -> None:
        """Writes the log start offsets that differ from the base offset of the first segment, or those in `only`.

        Called every `log.flush.start.offset.checkpoint.interval.ms`.
        """
        self._write(
            lambda directory: directory.log_start_offsets,
            lambda log: log.log_start_offset if log.log_start_offset > log.segments.first.base_offset else None,
            self._current,
            only,
        )

    def write_high_watermarks(self) -> None:
        """Writes the high watermarks; called every `replica.high.watermark.checkpoint.interval.ms`."""
        self._write(lambda directory: directory.high_watermarks, lambda log: log.high_watermark, self._current)

    def write_lowered_offsets(self, directory: LogDirectory, starts_earlier: bool) -> None:
        """Writes the recovery points in a directory, because a truncation has lowered one of them, and if
        `starts_earlier` is True also the log start offsets.

        After a kill the checkpoints of before would make recovery trust records that are not durable, or remove
        records that were appended below the earlier start offset.
        """
        self.write_recovery_points(directory)
        if starts_earlier:
            self.write_log_start_offsets(directory)

    def forget(self, directory: LogDirectory, partitions: Collection[TopicPartition]) -> None:
        """Removes what the checkpoints say of earlier logs of partitions whose logs are going to be created.

        After a kill, the new logs would otherwise begin at the start offsets of the deleted ones, and count as durable
        up to their recovery points. Raises MalformedCheckpoint or OSError.
        """
        with self._lock:
            directory.forget(partitions)

    def _write(
        self,
        file_of: Callable[[LogDirectory], OffsetCheckpointFile],
        offset_of: Callable[[Log], int | None],
        logs: Logs,
        only: LogDirectory | None = None,
    ) -> None:
        directories = [directory for directory in self._online() if only is None or directory is only]
        offsets: dict[str, dict[TopicPartition, int]] = {directory.path: {} for directory in directories}
        with self._lock:
            for log in logs():
                offset = offset_of(log)
                if offset is not None and log.directory.path in offsets:
                    offsets[log.directory.path][log.topic_partition] = offset
            for directory in directories:
                entries = offsets[directory.path]
                self._attempt(directory, lambda to=directory, content=entries: file_of(to).write(content))  # type: ignore[misc]
