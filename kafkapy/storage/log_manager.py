"""All partition logs of a broker, over its `log.dirs`: lock, load, create, delete, checkpoint, stop.

The order of durable steps: the clean-shutdown marker goes before anything is appended; a new partition directory holds
its partition.metadata before its log is published; at a clean stop logs are closed, then the checkpoints are written,
then the marker.
"""

import logging
import os
from collections.abc import Callable, Iterator
from threading import RLock
from typing import TYPE_CHECKING, Any, NamedTuple

from kafkapy.errors import ApiError, Error, StorageError
from kafkapy.storage.checkpoint import MalformedCheckpoint, OffsetCheckpointFile
from kafkapy.storage.filesystem import Filesystem
from kafkapy.storage.future_logs import FutureLogs, IsAssigned, assigned_everywhere
from kafkapy.storage.log import Log
from kafkapy.storage.log_config import LogConfig
from kafkapy.storage.log_directory import UNKNOWN_BROKER_EPOCH, LogDirectory
from kafkapy.storage.log_ports import LogPorts, Work, run_now
from kafkapy.storage.log_recovery import LogLoader
from kafkapy.storage.meta_properties import read_meta_properties
from kafkapy.storage.partition_directory import (
    DELETE_SUFFIX,
    FUTURE_SUFFIX,
    STRAY_SUFFIX,
    parse_directory_name,
    parse_future_name,
    unique_directory_name,
)
from kafkapy.storage.partition_metadata import FILE_NAME as PARTITION_METADATA_FILE
from kafkapy.storage.partition_metadata import (
    MalformedPartitionMetadata,
    read_partition_metadata,
    write_partition_metadata,
)
from kafkapy.types import ZERO_UUID, Clock, TopicPartition

if TYPE_CHECKING:
    from kafkapy.config import BrokerConfig, TopicConfig

logger = logging.getLogger("kafka.log.LogManager")

METADATA_PARTITION = TopicPartition("__cluster_metadata", 0)

# Above it a clean stop syncs the file system once: a log takes up to eight syncs, 0.2 ms each on a good disk.
LARGEST_SYNC_EACH = 64

# What mkfs makes at the root of a file system. Kafka refuses it; a disk of its own is no mistake, though.
LOST_AND_FOUND = "lost+found"
MARKED_SUFFIXES = (DELETE_SUFFIX, STRAY_SUFFIX, FUTURE_SUFFIX)

# Directories asked for partitions that are not here yet: beyond it the oldest are forgotten.
MOST_PREFERENCES = 10_000

IsStray = Callable[[bytes | None, TopicPartition, bytes], bool]


class DirectoryDescription(NamedTuple):
    """What DescribeLogDirs answers for a directory. Sizes in bytes; -1 and no logs if it is offline."""

    directory: LogDirectory
    total_bytes: int
    usable_bytes: int
    sizes: dict[TopicPartition, int]
    futures: dict[TopicPartition, Log]


class LogManager:
    """Owns the log directories and the table of logs.

    The table is guarded by a lock and may be used from any thread; a Log belongs to its owner thread once published.
    `on_directory_failure` is called on the thread that met the error, after the directory's logs have left the table;
    it must not block. `schedule(delay_ms, work)` may be called from any thread; `run_on_owner(work)`, which waits until
    the logs' owner thread has done it, from any other than that one.
    """

    def __init__(
        self,
        config: "BrokerConfig",
        *,
        filesystem: Filesystem,
        clock: Clock,
        on_directory_failure: Callable[[str, Exception], None],
        schedule: Callable[[int, Work], object],
        run_in_background: Callable[[Work], None] = run_now,
        run_on_owner: Callable[[Work], object] = run_now,
    ) -> None:
        self.directories = [LogDirectory(os.path.abspath(path), filesystem) for path in config.log_dirs]
        self._config = config
        self._filesystem = filesystem
        self._clock = clock
        self._on_directory_failure = on_directory_failure
        self._run_on_owner = run_on_owner
        self._ports = LogPorts(
            filesystem,
            clock,
            schedule=schedule,
            on_io_error=self.take_offline,
            run_in_background=run_in_background,
            producer_expiration_ms=config.producer_id_expiration_ms,
        )
        self.futures = FutureLogs(self._ports, run_on_owner, self.write_recovery_points)
        self._lock = RLock()
        self._last_failure = ""
        self._preferred: dict[TopicPartition, LogDirectory] = {}
        self._logs: dict[TopicPartition, Log] = {}
        self._log_configs: dict[tuple[object, ...], LogConfig] = {}

    # -- start and stop ------------------------------------------------------------------------------------------

    def lock(self) -> None:
        """Takes `.lock` of every directory. StorageError if another process holds one, or none can be used."""
        for directory in self.directories:
            try:
                directory.lock()
            except OSError as error:
                self.take_offline(directory.path, error)
        self._require_online()

    def unlock(self) -> None:
        for directory in self.directories:
            directory.unlock()

    def take_clean_shutdown_markers(self) -> int:
        """Removes the markers, durably; the broker epoch that all of them name, else -1. StorageError."""
        self._refuse_foreign_directories()
        for directory in self._online():
            try:
                directory.take_clean_shutdown_marker()
            except OSError as error:
                self.take_offline(directory.path, error)
        self._require_online()
        epochs = {directory.clean_broker_epoch for directory in self.directories if directory.is_online}
        is_complete = len(epochs) == 1 and all(directory.is_online for directory in self.directories)
        return epochs.pop() if is_complete else UNKNOWN_BROKER_EPOCH

    def _refuse_foreign_directories(self) -> None:
        """StorageError for a directory that is none of a broker's, as in Kafka: `log.dirs` may be a mistake."""
        for directory in self._online():
            try:
                names = sorted(entry.name for entry in os.scandir(directory.path) if entry.is_dir())
            except OSError as error:
                self.take_offline(directory.path, error)
                continue
            for name in names:
                is_ours = parse_directory_name(name) is not None or name.endswith(MARKED_SUFFIXES)
                if not is_ours and name != LOST_AND_FOUND:
                    raise StorageError(
                        directory.path,
                        f"Found directory {os.path.join(directory.path, name)}, '{name}' is not in the form of "
                        "topic-partition or topic-partition.uniqueId-delete (if marked for deletion).",
                    )

    def was_clean(self, directory: LogDirectory) -> bool:
        """Whether the directory had a clean-shutdown marker at this start."""
        return directory.was_clean

    def startup(
        self,
        topic_config: Callable[[str], "TopicConfig"],
        is_stray: IsStray,
        is_assigned: IsAssigned = assigned_everywhere,
    ) -> None:
        """Loads every log. Removes the markers first, if the caller has not. StorageError if no directory is left."""
        self.take_clean_shutdown_markers()
        for directory in self._online():
            try:
                properties = read_meta_properties(directory.path)
                if properties is not None and properties.directory_id is not None:
                    directory.directory_id = properties.directory_id
                self._load_directory(directory, topic_config, is_stray)
            except (OSError, MalformedCheckpoint) as error:
                self.take_offline(directory.path, error)
            except StorageError:
                if directory.is_online:  # else that is what it says
                    raise
        self._require_online()
        try:
            self.futures.settle(self._logs, is_assigned)
        except OSError as error:
            raise StorageError(self.directories[0].path, f"a moved partition cannot be taken over: {error}") from error

    def _load_directory(
        self, directory: LogDirectory, topic_config: Callable[[str], "TopicConfig"], is_stray: IsStray
    ) -> None:
        recovery_points = directory.recovery_points.read()
        start_offsets = directory.log_start_offsets.read()
        loaders = []
        configs: dict[str, LogConfig] = {}
        for name in sorted(entry.name for entry in os.scandir(directory.path) if entry.is_dir()):
            found = self._partition_in(directory, name, is_stray)
            if found is None:
                continue
            partition, topic_id = found
            if partition.topic not in configs:
                configs[partition.topic] = self.log_config(topic_config(partition.topic))
            loader = LogLoader(
                partition,
                directory,
                os.path.join(directory.path, name),
                configs[partition.topic],
                self._ports,
                is_clean=directory.was_clean,
                recovery_point=recovery_points.get(partition, 0),
                log_start_offset=start_offsets.get(partition, 0),
                topic_id=topic_id,
            )
            loaders.append(loader)
        logs = self._load_all(loaders, directory.was_clean)
        with_strays = [log for log in logs if log.producers.has_strays]
        if with_strays:
            # Each clean stop leaves one to every log. To delete thousands takes longer than to load them.
            self._ports.schedule(0, lambda: self._attempt(directory, lambda: delete_strays_of(with_strays)))
        for log in logs:
            if log.path.endswith(FUTURE_SUFFIX):
                self.futures.add(log)
                continue
            other = self._logs.get(log.topic_partition)
            if other is not None:
                raise StorageError(
                    directory.path,
                    f"Duplicate log directories for {log.topic_partition} are found in both {log.path} and "
                    f"{other.path}: one of them has to be removed by hand, that of a failed disk if there was one",
                )
            self._logs[log.topic_partition] = log

    def _load_all(self, loaders: list[LogLoader], is_clean: bool) -> list[Log]:
        """Recovery reads and checks everything, without the interpreter lock for the most part: on several threads."""
        if is_clean:
            return [loader.load() for loader in loaders]
        threads = self._config.num_recovery_threads_per_data_dir
        finished = 0

        def recover(loader: LogLoader) -> Log:
            nonlocal finished
            log = loader.load()
            with self._lock:
                finished += 1
                logger.info(
                    "Loaded %s with %d segments (%d of %d logs in %s)",
                    log.topic_partition,
                    len(log.segments),
                    finished,
                    len(loaders),
                    log.directory.path,
                )
            return log

        if threads == 1 or len(loaders) < 2:
            return [recover(loader) for loader in loaders]
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(threads, thread_name_prefix="log-recovery") as executor:
            return list(executor.map(recover, loaders))

    def _partition_in(
        self, directory: LogDirectory, name: str, is_stray: IsStray
    ) -> tuple[TopicPartition, bytes] | None:
        """The partition of a directory to be loaded, and its topic id; None for one that is not a log of ours."""
        path = os.path.join(directory.path, name)
        if name.endswith(DELETE_SUFFIX):
            self._ports.schedule(0, lambda: self._filesystem.remove_tree(path))
            return None
        partition = parse_directory_name(name) or parse_future_name(name)
        if partition is None or partition == METADATA_PARTITION:
            return None
        try:
            topic_id = read_partition_metadata(path)
        except MalformedPartitionMetadata as error:
            logger.warning("%s", error)
            topic_id = None
        if topic_id is None and is_unfinished_creation(path):
            logger.info("%s is an unfinished creation and goes", path)
            self._filesystem.remove_tree(path)
            return None
        if is_stray(topic_id, partition, directory.directory_id):
            target = os.path.join(directory.path, unique_directory_name(partition, STRAY_SUFFIX))
            logger.warning("%s belongs to no known topic and becomes %s", path, target)
            self._filesystem.replace(path, target)
            return None
        return partition, topic_id if topic_id is not None else ZERO_UUID

    def shutdown(self, broker_epoch: int) -> None:
        """Closes all logs, writes the checkpoints and, last, the markers; unlocks. Owner thread, or after its end.

        A directory that fails meanwhile gets no marker and goes offline like any other time.
        """
        for directory in self._online():
            self._attempt(directory, lambda of=directory: self._close_logs(of))  # type: ignore[misc]
        self.write_recovery_points()
        self.write_log_start_offsets()
        for directory in self._online():
            self._attempt(directory, lambda to=directory: to.write_clean_shutdown_marker(broker_epoch))  # type: ignore[misc]
        self.unlock()

    def _close_logs(self, directory: LogDirectory) -> None:
        """Many logs are closed unsynced and made durable by one sync of the file system."""
        logs = [log for log in (*self.logs(), *self.futures.logs()) if log.directory is directory]
        sync_each = sum(log.needs_sync for log in logs) <= LARGEST_SYNC_EACH
        for log in logs:
            log.close(sync=sync_each)
        if not sync_each:
            self._filesystem.sync_filesystem(directory.path)
            for log in logs:
                log.mark_flushed()

    def _attempt(self, directory: LogDirectory, action: Callable[[], None]) -> None:
        try:
            action()
        except StorageError as error:
            logger.error("%s", error)  # the directory is offline already
        except OSError as error:
            self.take_offline(directory.path, error)

    # -- the table of logs ---------------------------------------------------------------------------------------

    def get_log(self, partition: TopicPartition) -> Log | None:
        return self._logs.get(partition)

    def logs(self) -> list[Log]:
        with self._lock:
            return list(self._logs.values())

    def directory_of(self, partition: TopicPartition) -> LogDirectory | None:
        log = self._logs.get(partition)
        return None if log is None else log.directory

    def log_config(self, topic_config: Any) -> LogConfig:
        """The LogConfig of a topic configuration; equal ones are one object."""
        config = LogConfig(topic_config)
        return self._log_configs.setdefault(config.values(), config)

    def update_topic_config(self, topic: str, topic_config: "TopicConfig") -> None:
        """Owner thread."""
        config = self.log_config(topic_config)
        for log in self.logs():
            if log.topic_partition.topic == topic:
                log.update_config(config)

    def create_log(
        self,
        partition: TopicPartition,
        topic_id: bytes,
        topic_config: "TopicConfig",
        directory_id: bytes | None = None,
        *,
        is_new: bool = True,
    ) -> Log:
        """The partition's log, created if it does not exist: directory and partition.metadata are durable. Any thread.

        It goes to the directory named, else to the one with the fewest partitions. StorageError, also for a partition
        that is not new while a directory is offline: its records may be there, and an empty log would hide them.
        """
        with self._lock:
            log = self._logs.get(partition)
            if log is not None:
                return log
            if not is_new:
                self._require_all_online(partition)
            directory = self._directory_for_new_log(partition, directory_id)
            path = os.path.join(directory.path, str(partition))
            try:
                self._filesystem.make_directory(path)
                write_partition_metadata(self._filesystem, path, topic_id)
                config = self.log_config(topic_config)
                log = LogLoader(
                    partition, directory, path, config, self._ports, is_clean=False, topic_id=topic_id
                ).load()
            except OSError as error:
                self.take_offline(directory.path, error)
                raise StorageError(directory.path, f"Error while creating the log of {partition}: {error}") from error
            self._logs[partition] = log
            return log

    def _require_all_online(self, partition: TopicPartition) -> None:
        offline = [directory.path for directory in self.directories if not directory.is_online]
        if offline:
            raise StorageError(offline[0], f"no log of {partition} was found, and it may be in {', '.join(offline)}")

    def _directory_for_new_log(self, partition: TopicPartition, directory_id: bytes | None) -> LogDirectory:
        self._require_online()
        preferred = self._preferred.pop(partition, None)
        if preferred is not None and preferred.is_online:
            return preferred
        for directory in self._online():
            if directory_id is not None and directory.directory_id == directory_id:
                return directory
        counts = {directory.path: 0 for directory in self._online()}
        for log in self._logs.values():
            if log.directory.is_online:
                counts[log.directory.path] += 1
        return min(self._online(), key=lambda directory: counts[directory.path])

    def delete_log(self, partition: TopicPartition) -> None:
        """Takes the log out of the table and renames its directory to `-delete`; the files go later. Any thread.

        No replica has it any more. What else the owner does with it meanwhile (retention) has no effect; only the
        owner closes its files, so that none of their descriptors is another file's under its hands. StorageError.
        """
        with self._lock:
            log = self._logs.pop(partition, None)
        if log is None or not log.directory.is_online:
            return
        try:
            self.futures.discard_files(log)
            self.futures.discard(partition)
        except OSError as error:
            self.take_offline(log.directory.path, error)
            raise StorageError(log.directory.path, f"Error while deleting {partition}: {error}") from error

    # -- moving between directories ------------------------------------------------------------------------------

    def directory_at(self, path: str) -> LogDirectory:
        """LOG_DIR_NOT_FOUND unless `path` is one of `log.dirs`, letter by letter; KAFKA_STORAGE_ERROR: offline."""
        for directory in self.directories:
            if directory.path == path:
                if not directory.is_online:
                    raise ApiError(Error.KAFKA_STORAGE_ERROR, f"Log directory {path} is offline")
                return directory
        raise ApiError(Error.LOG_DIR_NOT_FOUND, f"Log dir {path} is not found in the config.")

    def prefer_directory(self, partition: TopicPartition, directory: LogDirectory) -> None:
        """Where the partition's log is to be created, if it is not here yet. The oldest wish of too many is dropped."""
        with self._lock:
            if partition not in self._logs:
                self._preferred.pop(partition, None)
                self._preferred[partition] = directory
                if len(self._preferred) > MOST_PREFERENCES:
                    del self._preferred[next(iter(self._preferred))]

    def create_future_log(self, current: Log, directory: LogDirectory) -> Log:
        """StorageError, also while any directory is offline: a future log of the partition may be in it."""
        self._require_all_online(current.topic_partition)
        try:
            return self.futures.create(current, directory)
        except OSError as error:
            self.take_offline(directory.path, error)
            raise StorageError(directory.path, f"Error while creating a log in {directory.path}: {error}") from error

    def replace_current(self, current: Log, future: Log) -> None:
        """The future log is the current one from now on; by name after `finish_replacement`. ApiError if either is not
        in use any more. Owner thread."""
        with self._lock:
            if self._logs.get(current.topic_partition) is not current or not future.directory.is_online:
                raise ApiError(Error.REPLICA_NOT_AVAILABLE, f"{current} is not the current replica any more")
            assert future.log_end_offset == current.log_end_offset, (future, current)
            self.futures.take_out(future)
            self._logs[current.topic_partition] = future

    def finish_replacement(self, replaced: Log, promoted: Log) -> None:
        """The replaced log's directory goes, the promoted one's gets its name. Not the owner's thread. StorageError."""
        directory = replaced.directory
        try:
            if directory.is_online:
                self.futures.discard_files(replaced)
            directory = promoted.directory
            self.futures.rename_promoted(promoted)
        except OSError as error:
            if not promoted.is_deleted:
                self.take_offline(directory.path, error)
                raise StorageError(directory.path, f"Error while replacing {replaced}: {error}") from error

    # -- periodic work -------------------------------------------------------------------------------------------

    def run_retention(self) -> int:
        """Deletes what retention allows, in all logs; the number of segments. Owner thread."""
        return sum(self.retention_steps())

    def retention_steps(self) -> Iterator[int]:
        """The same, a log at a time: the segments deleted in each, so that the owner can do other work in between."""
        for log in self.logs():
            try:
                yield log.delete_old_segments()
            except StorageError as error:
                logger.error("Retention of %s failed: %s", log.topic_partition, error)

    def run_flush(self) -> None:
        """Flushes the logs whose `flush.ms` has passed. Any thread."""
        wall_ms = self._clock.now_ms()
        for log in self.logs():
            if log.log_end_offset > log.recovery_point and wall_ms - log.last_flush_ms >= log.config.flush_ms:
                self._attempt(log.directory, log.flush)

    def remove_expired_producers(self) -> int:
        """Owner thread, every `producer.id.expiration.check.interval.ms`."""
        return sum(log.remove_expired_producers() for log in self.logs())

    def write_recovery_points(self) -> None:
        """Every `log.flush.offset.checkpoint.interval.ms`. One thread at a time."""
        logs = [*self.logs(), *self.futures.logs()]
        self._write_checkpoints(lambda directory: directory.recovery_points, lambda log: log.recovery_point, logs)

    def write_log_start_offsets(self) -> None:
        """Every `log.flush.start.offset.checkpoint.interval.ms`. Only what the segments do not say themselves."""
        self._write_checkpoints(
            lambda directory: directory.log_start_offsets,
            lambda log: log.log_start_offset if log.log_start_offset > log.segments.first.base_offset else None,
            self.logs(),
        )

    def write_high_watermarks(self) -> None:
        """Every `replica.high.watermark.checkpoint.interval.ms`."""
        self._write_checkpoints(
            lambda directory: directory.high_watermarks, lambda log: log.high_watermark, self.logs()
        )

    def _write_checkpoints(
        self,
        file_of: Callable[[LogDirectory], OffsetCheckpointFile],
        offset_of: Callable[[Log], int | None],
        logs: list[Log],
    ) -> None:
        offsets: dict[str, dict[TopicPartition, int]] = {directory.path: {} for directory in self._online()}
        for log in logs:
            offset = offset_of(log)
            if offset is not None and log.directory.path in offsets:
                offsets[log.directory.path][log.topic_partition] = offset
        for directory in self._online():
            to_write = offsets[directory.path]
            self._attempt(directory, lambda to=directory, what=to_write: file_of(to).write(what))  # type: ignore[misc]

    # -- directories ---------------------------------------------------------------------------------------------

    def describe_directories(self) -> list[DirectoryDescription]:
        sizes: dict[str, dict[TopicPartition, int]] = {directory.path: {} for directory in self.directories}
        futures: dict[str, dict[TopicPartition, Log]] = {directory.path: {} for directory in self.directories}
        for log in self.logs():
            sizes[log.directory.path][log.topic_partition] = log.size
        for log in self.futures.logs():
            futures[log.directory.path][log.topic_partition] = log
        described = []
        for directory in self.directories:
            total, usable = -1, -1
            if directory.is_online:
                total, usable = directory.total_bytes(), directory.usable_bytes()
            described.append(
                DirectoryDescription(directory, total, usable, sizes[directory.path], futures[directory.path])
            )
        return described

    def take_offline(self, path: str, error: Exception) -> None:
        """A directory failed: its logs leave the table, nothing more is written. Any thread, any number of times."""
        directory = next(directory for directory in self.directories if directory.path == path)
        with self._lock:
            if not directory.take_offline():
                return
            for partition in [key for key, log in self._logs.items() if log.directory is directory]:
                del self._logs[partition]
            self.futures.forget_directory(directory)
        self._last_failure = f"{error.strerror}: {error.filename}" if isinstance(error, OSError) else str(error)
        logger.error("Stopping serving logs in dir %s: %s", path, error)
        self._on_directory_failure(path, error)

    def _online(self) -> list[LogDirectory]:
        return [directory for directory in self.directories if directory.is_online]

    def _require_online(self) -> None:
        if not self._online():
            raise StorageError(self.directories[-1].path, f"no log directory is usable: {self._last_failure}")


def delete_strays_of(logs: list[Log]) -> None:
    for log in logs:
        log.producers.delete_strays()


def is_unfinished_creation(path: str) -> bool:
    """Whether a partition directory was made and the power, or the disk, failed before it got its topic id. OSError.

    A log is created behind `partition.metadata`, so that there are no records in it.
    """
    return set(os.listdir(path)) <= {PARTITION_METADATA_FILE, PARTITION_METADATA_FILE + ".tmp"}
