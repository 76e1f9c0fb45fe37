"""The future replicas of a broker: logs in `<topic>-<partition>.<unique>-future` that move to another directory.

A move creates an empty future log, copies the current log into it (module future_replica), and then makes it the
current log: first in the table of logs, then by renaming directories. The old directory is renamed to `-delete` before
the future directory loses its suffix.

A broker that starts with both logs of a partition continues the copy. After an unclean stop, it first truncates the
future log to its recovery point. If the broker had already used the future log as the current one before the stop, or
if the current log no longer exists, the future log becomes the current log at the start.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from kafkapy.errors import ApiError, Error, StorageError
from kafkapy.storage.log_ports import LogPorts
from kafkapy.storage.log_recovery import LogLoader
from kafkapy.storage.partition_directory import DELETE_SUFFIX, FUTURE_SUFFIX, unique_directory_name
from kafkapy.storage.partition_metadata import write_partition_metadata
from kafkapy.types import TopicPartition

if TYPE_CHECKING:
    from kafkapy.storage.log import Log
    from kafkapy.storage.log_directory import LogDirectory

logger = logging.getLogger("kafka.log.LogManager")

# (topic id, partition, directory id) -> whether the metadata assigns the replica to that directory or to no directory.
IsAssigned = Callable[[bytes, TopicPartition, bytes], bool]


def assigned_everywhere(topic_id: bytes, partition: TopicPartition, directory_id: bytes) -> bool:
    """Returns True: every replica counts as assigned to every log directory.

    This is for tools that open log directories without the cluster metadata, which has the real assignments.
    """
    return True


class FutureLogs:
    """The table of future logs, at most one per partition.

    Any thread may read the table. Only one thread at a time changes it: the log manager's thread when the broker
    starts, later the thread that handles AlterReplicaLogDirs.
    """

    def __init__(
        self,
        ports: LogPorts,
        run_on_owner: Callable[[Callable[[], None]], object],
        forget_checkpoints: Callable[[LogDirectory, Collection[TopicPartition]], None],
    ) -> None:
        self._ports = ports
        self._forget_checkpoints = forget_checkpoints
        self._run_on_owner = run_on_owner
        self._logs: dict[TopicPartition, Log] = {}

    def get(self, partition: TopicPartition) -> Log | None:
        """Returns the future log of the partition, or None if the partition is not being moved."""
        return self._logs.get(partition)

    def logs(self) -> list[Log]:
        """Returns all future logs."""
        return list(self._logs.values())

    # -- start ---------------------------------------------------------------------------------------------------

    def add(self, log: Log) -> None:
        """Adds a future log that was found when the broker started. Raises StorageError if the partition has another
        future log."""
        other = self._logs.setdefault(log.topic_partition, log)
        if other is not log:
            raise StorageError(
                log.directory.path, f"Duplicate log directories found: {log.path}, {other.path}: remove one of them"
            )

    def settle(
        self,
        current_logs: dict[TopicPartition, Log],
        is_assigned: IsAssigned,
        write_log_start_offsets: Callable[[], None] = lambda: None,
    ) -> None:
        """Decides, when the broker starts, which future logs become current logs, and which continue to be copied.

        A future log becomes the current log if the metadata assigns the replica to its directory, and one of two
        conditions is met: the partition has no current log, or the future log has the topic id of the current log, ends
        after it, and in no earlier leader epoch. In the second case, the broker has already appended records to the
        future log as the current one.

        Any other future log continues to be copied if it has the topic id of the current log; otherwise it is ignored.
        Records that the current log has lost or replaced since they were copied are removed first. Deleted
        records remain deleted: each log takes over a higher start offset of the other, and `write_log_start_offsets` is
        called before a current log is deleted. Raises OSError or StorageError.
        """
        had_current = frozenset(current_logs)
        for partition, future in list(self._logs.items()):
            current = current_logs.get(partition)
            if partition not in self._logs or (current is None and partition in had_current):
                continue  # a log directory has failed since the loop began
            assigned = is_assigned(future.topic_id, partition, future.directory.directory_id)
            if current is not None and current.topic_id == future.topic_id:
                if future.log_start_offset > future.segments.first.base_offset:  # it was the current log already
                    follow_start(current, future.log_start_offset)
                is_longer = future.log_end_offset > current.log_end_offset
                if not (assigned and is_longer and future.latest_epoch >= current.latest_epoch):
                    end_offset = common_end(current, future)
                    if not future.directory.was_clean:
                        end_offset = min(end_offset, future.recovery_point)
                    future.truncate_to(end_offset)
                    logger.info("Continuing the move of %s to %s", partition, future.directory.path)
                    continue
            elif current is not None or not assigned:
                logger.warning("Ignoring %s, because its current replica is not on this broker", future.path)
                continue
            logger.info("Completing the move of %s to %s, which has all records", partition, future.directory.path)
            del self._logs[partition]
            current_logs[partition] = future
            if current is not None:
                follow_start(future, current.log_start_offset)
                future.flush()
                write_log_start_offsets()
                if not future.directory.is_online:
                    current_logs[partition] = current
                    continue
                self.discard_files(current)
            self.rename_promoted(future)

    # -- moving --------------------------------------------------------------------------------------------------

    def create(self, current: Log, directory: LogDirectory) -> Log:
        """Creates an empty future log of `current` in `directory`; its directory is durable on return. Raises OSError
        or StorageError."""
        partition, filesystem = current.topic_partition, self._ports.filesystem
        self._forget_checkpoints(directory, [partition])
        path = os.path.join(directory.path, unique_directory_name(partition, FUTURE_SUFFIX))
        filesystem.make_directory(path)
        write_partition_metadata(filesystem, path, current.topic_id)
        log = LogLoader(
            partition, directory, path, current.config, self._ports, is_clean=False, topic_id=current.topic_id
        ).load()
        self._logs[partition] = log
        logger.info("Created log for partition %s in %s", partition, path)
        return log

    def discard(self, partition: TopicPartition) -> None:
        """Deletes the future log of a partition whose move was cancelled or whose topic was deleted. The thread that
        owns the future log closes the files. Raises OSError."""
        log = self._logs.pop(partition, None)
        if log is not None and log.directory.is_online:
            self.discard_files(log, close=False)

    def forget_directory(self, directory: LogDirectory) -> None:
        """Removes the future logs of a directory that went offline from the table. The files stay."""
        for partition in [partition for partition, log in self._logs.items() if log.directory is directory]:
            del self._logs[partition]

    def take_out(self, log: Log) -> None:
        """Removes a future log from the table, because it becomes the current log.

        Raises ApiError REPLICA_NOT_AVAILABLE if the log is not in the table.
        """
        if self._logs.get(log.topic_partition) is not log:
            raise ApiError(Error.REPLICA_NOT_AVAILABLE, f"{log} is no longer the future replica")
        del self._logs[log.topic_partition]

    def discard_files(self, log: Log, *, close: bool = True) -> None:
        """Renames the directory of a log to a name that ends in `-delete`; deletes it after file.delete.delay.ms.

        The log must not be in a table of logs any more. If `close` is True, the thread that owns the log closes the
        log's files before they are deleted. Raises OSError.
        """
        ports = self._ports
        log.mark_deleted()
        target = os.path.join(log.directory.path, unique_directory_name(log.topic_partition, DELETE_SUFFIX))
        log.rename_to(target)
        ports.filesystem.sync_directory(log.directory.path)
        logger.info("Renamed the directory of %s to %s; it is scheduled for deletion", log.topic_partition, target)

        def remove() -> None:
            if close:
                self._run_on_owner(log.close_after_failure)
            ports.filesystem.remove_tree(target)

        ports.schedule(log.config.file_delete_delay_ms, remove)

    def rename_promoted(self, log: Log) -> None:
        """Removes the suffix from the directory name of a future log that has become current; the name is durable on
        return. Raises OSError.

        The thread that owns the log must not call the method, because the method waits until this thread has renamed
        the directory.
        """
        path = os.path.join(log.directory.path, str(log.topic_partition))
        self._run_on_owner(lambda: None if log.is_deleted else log.rename_to(path))
        self._ports.filesystem.sync_directory(log.directory.path)


def common_end(current: Log, future: Log) -> int:
    """Returns the offset before which a copy has the records of the current log, according to their leader epochs.

    A truncation of the current log, after which it gets other records, is always followed by a new leader epoch.
    """
    end_offset = min(current.log_end_offset, future.log_end_offset)
    current_epochs, future_epochs = current.leader_epochs, future.leader_epochs
    starts = {start_offset for _, start_offset in (*current_epochs.entries, *future_epochs.entries)}
    different = (
        offset
        for offset in (*starts, current.log_start_offset)
        if current_epochs.epoch_for_offset(offset) != future_epochs.epoch_for_offset(offset)
    )
    return min([end_offset, *(offset for offset in different if offset >= current.log_start_offset)])


def follow_start(log: Log, start_offset: int) -> None:
    """Raises the start offset of a log that was just loaded to that of the partition's other log."""
    start_offset = min(start_offset, log.log_end_offset)
    log.high_watermark = max(log.high_watermark, start_offset)
    log.maybe_increment_log_start_offset(start_offset)
