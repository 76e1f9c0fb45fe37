"""The future replicas of a broker: logs in `<topic>-<partition>.<unique>-future`, on their way to another directory.

    create | copy, see future_replica | promote: in the table, then by name
    the names: the current directory becomes `-delete`, then the future one loses its suffix

A start finds a future log beside its current one and goes on copying; after an unclean stop from what is durable. If
the future log was appended to, or the current one has gone already, it takes its place.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
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

# (topic id, partition, directory id) -> whether the metadata has that replica in that directory, or in none.
IsAssigned = Callable[[bytes, TopicPartition, bytes], bool]


def assigned_everywhere(topic_id: bytes, partition: TopicPartition, directory_id: bytes) -> bool:
    return True


class FutureLogs:
    """Owns the table of future logs. The table may be read from any thread, and is changed by one at a time: the log
    manager's while it starts, later the one that alters log directories. At most one future log per partition."""

    def __init__(
        self,
        ports: LogPorts,
        run_on_owner: Callable[[Callable[[], None]], object],
        write_recovery_points: Callable[[], None],
    ) -> None:
        self._ports = ports
        self._write_recovery_points = write_recovery_points
        self._run_on_owner = run_on_owner
        self._logs: dict[TopicPartition, Log] = {}

    def get(self, partition: TopicPartition) -> Log | None:
        return self._logs.get(partition)

    def logs(self) -> list[Log]:
        return list(self._logs.values())

    # -- start ---------------------------------------------------------------------------------------------------

    def add(self, log: Log) -> None:
        """One that a start found. StorageError if there is another."""
        other = self._logs.setdefault(log.topic_partition, log)
        if other is not log:
            raise StorageError(
                log.directory.path, f"Duplicate log directories found: {log.path}, {other.path}: remove one of them"
            )

    def settle(self, current_logs: dict[TopicPartition, Log], is_assigned: IsAssigned) -> None:
        """After a start: future logs that were current when the last one ended take their place. OSError, StorageError.

        Being assigned, and ahead of the current log, means that records were appended to it instead.
        """
        for partition, future in list(self._logs.items()):
            current = current_logs.get(partition)
            assigned = is_assigned(future.topic_id, partition, future.directory.directory_id)
            if current is not None and current.topic_id == future.topic_id:
                if not assigned or future.log_end_offset <= current.log_end_offset:
                    if not future.directory.was_clean:
                        future.truncate_to(future.recovery_point)
                    logger.info("The move of %s to %s goes on", partition, future.directory.path)
                    continue
            elif current is not None or not assigned:
                logger.warning("%s is left alone: its current replica is not here", future.path)
                continue
            logger.info("%s has been copied to %s as a whole and goes on there", partition, future.directory.path)
            del self._logs[partition]
            if current is not None:
                future.flush()
                self.discard_files(current)
            current_logs[partition] = future
            self.rename_promoted(future)

    # -- moving --------------------------------------------------------------------------------------------------

    def create(self, current: Log, directory: LogDirectory) -> Log:
        """A new, empty future log of `current` in `directory`, durable. OSError, StorageError."""
        partition, filesystem = current.topic_partition, self._ports.filesystem
        path = os.path.join(directory.path, unique_directory_name(partition, FUTURE_SUFFIX))
        filesystem.make_directory(path)
        write_partition_metadata(filesystem, path, current.topic_id)
        log = LogLoader(
            partition, directory, path, current.config, self._ports, is_clean=False, topic_id=current.topic_id
        ).load()
        self._logs[partition] = log
        logger.info("Created log for partition %s in %s", partition, path)
        # Another log of the partition may have been there before: its recovery point is not this one's.
        self._ports.schedule(0, self._write_recovery_points)
        return log

    def discard(self, partition: TopicPartition) -> None:
        """The move is given up, or its topic deleted. OSError. Its owner closes the files."""
        log = self._logs.pop(partition, None)
        if log is not None and log.directory.is_online:
            self.discard_files(log, close=False)

    def forget_directory(self, directory: LogDirectory) -> None:
        """It went offline: its future logs are not written any more."""
        for partition in [partition for partition, log in self._logs.items() if log.directory is directory]:
            del self._logs[partition]

    def take_out(self, log: Log) -> None:
        """It is the current log from now on."""
        if self._logs.get(log.topic_partition) is not log:
            raise ApiError(Error.REPLICA_NOT_AVAILABLE, f"{log} is not the future replica any more")
        del self._logs[log.topic_partition]

    def discard_files(self, log: Log, *, close: bool = True) -> None:
        """Renames the directory of a log that nobody finds any more to `-delete`; its files go later. OSError."""
        ports = self._ports
        log.mark_deleted()
        target = os.path.join(log.directory.path, unique_directory_name(log.topic_partition, DELETE_SUFFIX))
        log.rename_to(target)
        ports.filesystem.sync_directory(log.directory.path)
        logger.info("%s becomes %s and is scheduled for deletion", log.topic_partition, target)

        def remove() -> None:
            if close:
                self._run_on_owner(log.close_after_failure)
            ports.filesystem.remove_tree(target)

        ports.schedule(log.config.file_delete_delay_ms, remove)

    def rename_promoted(self, log: Log) -> None:
        """Gives the new current log its plain name, durably. Not the owner's thread. OSError."""
        path = os.path.join(log.directory.path, str(log.topic_partition))
        self._run_on_owner(lambda: None if log.is_deleted else log.rename_to(path))
        self._ports.filesystem.sync_directory(log.directory.path)
