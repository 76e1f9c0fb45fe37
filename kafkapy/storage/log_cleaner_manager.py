"""The choice of the log that is cleaned next, the state of each cleaning, and the cleaner's checkpoints.

A *pass* is one cleaning of one log. The states of a partition follow each other in these orders:

    none -> in progress -> none                         a pass that nothing interrupts
    none -> in progress -> aborted -> paused -> none    a pause during a pass, which stops at its next check
    none -> paused -> none                              a pause without a pass

A log whose cleaning failed is uncleanable until the broker restarts or the log is deleted. The failure is logged and
counted; the log is not compacted and grows.
"""

import logging
import os
from collections.abc import Callable
from enum import Enum
from threading import Condition
from typing import TypeVar

from kafkapy._core.bytes.segment_scan import first_batch_timestamp
from kafkapy.errors import StorageError
from kafkapy.named_tuple import NamedTuple
from kafkapy.storage.checkpoint import MalformedCheckpoint, OffsetCheckpointFile
from kafkapy.storage.log import Log
from kafkapy.storage.log_cleaner_selection import (
    NO_LAG_LIMIT,
    CompactedLog,
    LogToClean,
    SegmentAge,
    filthiest,
    log_to_clean,
)
from kafkapy.storage.log_directory import LogDirectory
from kafkapy.storage.log_manager import LogManager
from kafkapy.storage.log_segment import LOG_SUFFIX, LogSegment
from kafkapy.types import Clock, TopicPartition

logger = logging.getLogger("kafka.log.LogCleanerManager")

Result = TypeVar("Result")


class CleaningState(Enum):
    """The state of the cleaning of one partition: it runs, it has been asked to stop, or it must not begin."""

    IN_PROGRESS = "in progress"
    ABORTED = "aborted"
    PAUSED = "paused"


class CleaningAborted(Exception):
    """Raised to stop a pass, because its log is paused or the cleaner is stopping. The log is unharmed, and a later
    pass repeats the work."""


class _Checkpoint(NamedTuple):
    """The offset at which the last pass over a log ended. A later log with the partition's name has no part in it."""

    log: Log
    offset: int


class LogCleanerManager:
    """The states of cleanings, the checkpoints and the uncleanable logs, all guarded by `_condition`. Any thread may
    use it.

    `run_on_owner(work)` calls `work` on the thread that owns the logs, and returns the result of `work`.
    """

    def __init__(
        self, log_manager: LogManager, clock: Clock, run_on_owner: Callable[[Callable[[], object]], object]
    ) -> None:
        self._log_manager = log_manager
        self._clock = clock
        self._run_on_owner = run_on_owner
        self._condition = Condition()
        self._states: dict[TopicPartition, CleaningState] = {}
        self._pauses: dict[TopicPartition, int] = {}
        self._checkpoints: dict[str, dict[TopicPartition, _Checkpoint]] = {}  # by the paths of log directories
        self._uncleanable: dict[TopicPartition, Log] = {}
        self.max_dirty_percent = 0

    # -- choosing ------------------------------------------------------------------------------------------------

    def take_filthiest(self) -> tuple[Log, LogToClean] | None:
        """Chooses the log to clean next and marks its partition as in progress.

        Returns the log and the range of its offsets to clean, or None if no log is due.
        """
        found: dict[TopicPartition, tuple[Log, LogToClean]] = {}
        for log in self._candidates():
            described = self.on_owner(lambda of=log: describe(of))  # type: ignore[misc]
            if described is not None:
                checkpoint = self.checkpoint_of(log)
                found[log.topic_partition] = log, log_to_clean(described, checkpoint, self._clock.wall_ms())
        with self._condition:
            free = [to_clean for partition, (_, to_clean) in found.items() if partition not in self._states]
            self.max_dirty_percent = int(100 * max((each.cleanable_ratio for each in free), default=0))
            chosen = filthiest(free)
            if chosen is None:
                return None
            self._states[chosen.partition] = CleaningState.IN_PROGRESS
        return found[chosen.partition]

    def on_owner(self, work: Callable[[], Result]) -> Result:
        """Calls `work` on the thread that owns the logs, and returns the result of `work`."""
        result: Result = self._run_on_owner(work)  # type: ignore[assignment]
        return result

    def _candidates(self) -> list[Log]:
        logs = {log.topic_partition: log for log in self._log_manager.logs()}
        with self._condition:
            for partition, log in list(self._uncleanable.items()):
                if logs.get(partition) is not log:
                    del self._uncleanable[partition]
            return [
                log
                for partition, log in logs.items()
                if log.config.is_compacted and partition not in self._states and partition not in self._uncleanable
            ]

    # -- states --------------------------------------------------------------------------------------------------

    def check(self, partition: TopicPartition) -> None:
        """Raises CleaningAborted if `pause` has been called since the pass over the partition began."""
        if self._states.get(partition) is CleaningState.ABORTED:
            raise CleaningAborted(f"cleaning of {partition} was aborted")

    def state_of(self, partition: TopicPartition) -> CleaningState | None:
        """Returns the state of the partition's cleaning, or None if it is neither being cleaned nor paused."""
        return self._states.get(partition)

    def pause(self, partition: TopicPartition) -> None:
        """Aborts the pass over the partition and prevents further passes until the matching call of `resume`.

        Waits until a running pass has ended. The thread that owns the logs must not call it, because a pass waits for
        this thread.
        """
        with self._condition:
            self._pauses[partition] = self._pauses.get(partition, 0) + 1
            state = self._states.get(partition)
            if state is CleaningState.IN_PROGRESS:
                self._states[partition] = CleaningState.ABORTED
            elif state is None:
                self._states[partition] = CleaningState.PAUSED
            self._condition.wait_for(lambda: self._states.get(partition) is CleaningState.PAUSED)
        logger.info("The cleaning for partition %s is paused", partition)

    def resume(self, partition: TopicPartition) -> None:
        """Ends a pause of the partition. Raises ValueError if it is not paused."""
        with self._condition:
            pauses = self._pauses.get(partition, 0)
            if pauses == 0:
                raise ValueError(f"the cleaning of {partition} is not paused")
            self._pauses[partition] = pauses - 1
            if pauses == 1:
                del self._pauses[partition], self._states[partition]
        logger.info("The cleaning for partition %s is resumed", partition)

    def release(self, log: Log) -> None:
        """Records that the pass over the log has ended."""
        with self._condition:
            if self._pauses.get(log.topic_partition):
                self._states[log.topic_partition] = CleaningState.PAUSED
            else:
                self._states.pop(log.topic_partition, None)
            self._condition.notify_all()

    # -- uncleanable ---------------------------------------------------------------------------------------------

    def mark_uncleanable(self, log: Log, reason: Exception) -> None:
        """Excludes a log from cleaning until the broker restarts, and logs the reason."""
        logger.error(
            "Unexpected error while cleaning %s in %s. Marking its partition as uncleanable: it is not compacted again "
            "until the broker restarts. %s",
            log.topic_partition,
            log.directory.path,
            reason,
            exc_info=reason,
        )
        with self._condition:
            self._uncleanable[log.topic_partition] = log

    @property
    def uncleanable_partitions(self) -> list[TopicPartition]:
        """The partitions of the uncleanable logs, sorted."""
        with self._condition:
            return sorted(self._uncleanable)

    def uncleanable_logs(self) -> list[Log]:
        """Returns the logs that `mark_uncleanable` has excluded from cleaning."""
        with self._condition:
            return list(self._uncleanable.values())

    @property
    def uncleanable_bytes(self) -> int:
        """The size of the uncleanable logs in bytes."""
        with self._condition:
            return sum(log.size for log in self._uncleanable.values())

    # -- checkpoints ---------------------------------------------------------------------------------------------

    def checkpoint_of(self, log: Log) -> int | None:
        """Returns the offset at which the last pass over the log ended, or None if the log has no checkpoint."""
        with self._condition:
            found = self._checkpoint_of(log)
            return None if found is None else found.offset

    def advance_checkpoint(self, log: Log, first_dirty_offset: int, truncations: int | None = None) -> None:
        """Writes `first_dirty_offset` as the log's checkpoint durably, and removes the entries of logs that no longer
        exist. A log that was deleted during its pass gets no checkpoint.

        The checkpoint does not change if the log was truncated during its pass: if `truncations`, the value of
        `log.truncations` when the pass began, is outdated.

        If the file cannot be written, takes the directory offline and raises StorageError.
        """
        directory = log.directory
        with self._condition:
            if truncations in (None, log.truncations):
                self._checkpoints_in(directory)[log.topic_partition] = _Checkpoint(log, first_dirty_offset)
            error = self._write(directory)
            if error is not None:
                raise StorageError(directory.path, f"Error while writing the cleaner's checkpoint: {error}") from error

    def truncate_checkpoint(self, log: Log) -> None:
        """Lowers the log's checkpoint to the log end offset after a truncation of the log, because the records that are
        appended there later are not clean.

        Takes the directory offline if the file cannot be written.
        """
        end_offset = log.log_end_offset
        with self._condition:
            found = self._checkpoint_of(log)
            if found is not None and found.offset > end_offset:
                self._checkpoints_in(log.directory)[log.topic_partition] = _Checkpoint(log, end_offset)
                self._write(log.directory)

    def move_checkpoint(self, replaced: Log, log: Log) -> None:
        """Moves the checkpoint of `replaced` to `log`, which has replaced it in another log directory; takes a
        directory offline if its file cannot be written."""
        with self._condition:
            found = self._checkpoint_of(replaced)
            if found is not None:
                self._checkpoints_in(log.directory)[log.topic_partition] = _Checkpoint(log, found.offset)
                self._write(log.directory)
                self._write(replaced.directory)

    def _checkpoint_of(self, log: Log) -> _Checkpoint | None:
        found = self._checkpoints_in(log.directory).get(log.topic_partition)
        return found if found is not None and found.log is log else None

    def _checkpoints_in(self, directory: LogDirectory) -> dict[TopicPartition, _Checkpoint]:
        checkpoints = self._checkpoints.get(directory.path)
        if checkpoints is None:
            offsets = read_checkpoint(directory.cleaner_offsets)
            checkpoints = self._checkpoints[directory.path] = {
                log.topic_partition: _Checkpoint(log, offsets[log.topic_partition])
                for log in self._log_manager.logs()
                if log.directory is directory and log.topic_partition in offsets
            }
        return checkpoints

    def _write(self, directory: LogDirectory) -> OSError | None:
        """Removes the checkpoints of logs that no longer exist, and writes the others durably.

        If the file cannot be written, takes the directory offline and returns the error.
        """
        checkpoints = self._checkpoints_in(directory)
        for partition, each in list(checkpoints.items()):
            if self._log_manager.get_log(partition) is not each.log:
                del checkpoints[partition]
        try:
            directory.cleaner_offsets.write({partition: each.offset for partition, each in checkpoints.items()})
        except OSError as error:
            self._log_manager.take_offline(directory.path, error)
            return error
        return None


def read_checkpoint(file: OffsetCheckpointFile) -> dict[TopicPartition, int]:
    """Returns the offsets in a checkpoint file of the cleaner. Raises OSError.

    A damaged file counts as empty, because this costs only another pass over the logs.
    """
    try:
        return file.read()
    except MalformedCheckpoint as error:
        logger.warning("%s", error)
        return {}


def describe(log: Log) -> CompactedLog | None:
    """Returns the offsets, the inactive segments and the limits of a log, by which the cleaner chooses a log.

    Returns None if nothing in the log can be cleaned, or if a segment cannot be read. Only the thread that owns the log
    may call it.
    """
    config = log.config
    segments = list(log.segments)
    if log.is_deleted or len(segments) == 1:
        return None
    has_min, has_max = config.min_compaction_lag_ms > 0, config.max_compaction_lag_ms != NO_LAG_LIMIT
    try:
        ages = [
            SegmentAge(
                segment.base_offset,
                segment.size,
                segment.largest_timestamp() if has_min else -1,
                first_timestamp(segment) if has_max else -1,
            )
            for segment in segments[:-1]
        ]
    except OSError as error:
        logger.error("The segments of %s cannot be read for cleaning: %s", log.topic_partition, error)
        return None
    return CompactedLog(
        log.topic_partition,
        ages,
        segments[-1].base_offset,
        log.log_start_offset,
        log.log_end_offset,
        log.last_stable_offset,
        config.min_cleanable_ratio,
        config.min_compaction_lag_ms,
        config.max_compaction_lag_ms,
    )


def first_timestamp(segment: LogSegment) -> int:
    """Returns the greatest timestamp (ms) of the first batch of a segment. Raises OSError.

    Returns -1 if the segment has no batch, or if the records of that batch have no timestamps.
    """
    fd = os.open(segment.path(LOG_SUFFIX), os.O_RDONLY | os.O_CLOEXEC)
    try:
        return first_batch_timestamp(fd, segment.size)
    finally:
        os.close(fd)
