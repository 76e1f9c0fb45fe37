"""All partition logs of a broker in its `log.dirs`: lock, load, create, delete, checkpoint, stop.

The order of durable steps: the clean-shutdown marker is removed before anything is appended; a new partition directory
contains its partition.metadata before its log is published; a clean stop closes the logs, writes the checkpoints, and
writes the marker last.
"""

import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from threading import Lock, RLock
from typing import TYPE_CHECKING, Any

from kafkapy.config.cordoned_directories import is_cordoned
from kafkapy.errors import ApiError, Error, StorageError
from kafkapy.named_tuple import NamedTuple
from kafkapy.storage.checkpoint import MalformedCheckpoint
from kafkapy.storage.filesystem import Filesystem
from kafkapy.storage.future_logs import FutureLogs, IsAssigned, assigned_everywhere
from kafkapy.storage.log import Log
from kafkapy.storage.log_config import LogConfig
from kafkapy.storage.log_creation import NewLog, create_directories, is_unfinished_creation
from kafkapy.storage.log_directory import UNKNOWN_BROKER_EPOCH, LogDirectory
from kafkapy.storage.log_ports import LogPorts, Work, run_now
from kafkapy.storage.log_recovery import LogLoader
from kafkapy.storage.meta_properties import read_meta_properties
from kafkapy.storage.offset_checkpoints import OffsetCheckpoints
from kafkapy.storage.partition_directory import (
    DELETE_SUFFIX,
    FUTURE_SUFFIX,
    STRAY_SUFFIX,
    parse_directory_name,
    parse_future_name,
    unique_directory_name,
)
from kafkapy.storage.partition_metadata import MalformedPartitionMetadata, read_partition_metadata
from kafkapy.types import METADATA_PARTITION, METADATA_TOPIC, ZERO_UUID, Clock, TopicPartition

if TYPE_CHECKING:
    from kafkapy.config import BrokerConfig, TopicConfig

logger = logging.getLogger("kafka.log.LogManager")

METADATA_TOPIC_PARTITION = TopicPartition(METADATA_TOPIC, METADATA_PARTITION)

# With more logs to sync than this, a clean stop syncs the file system once: a log takes up to eight syncs, 0.2 ms each
# on a good disk.
LARGEST_SYNC_EACH = 64

# The greatest number of directories chosen for partitions that do not exist yet; the oldest choice is dropped.
MOST_PREFERENCES = 10_000

IsStray = Callable[[bytes | None, TopicPartition], bool]


class DirectoryDescription(NamedTuple):
    """The description of a log directory for DescribeLogDirs. An offline directory has the sizes -1 and no logs.

    `total_bytes` and `usable_bytes` are the size and the free space of the directory's file system. `sizes` has the
    bytes of each current log. `futures` has the future logs in the directory, to which logs are being moved.
    """

    directory: LogDirectory
    total_bytes: int
    usable_bytes: int
    sizes: dict[TopicPartition, int]
    futures: dict[TopicPartition, Log]


class LogManager:
    """Owns the log directories and the table of logs.

    A lock guards the table, and any thread may use it. The logs in the table belong to one thread, their owner thread,
    which is the reactor's. `on_directory_failure` is called on the thread on which the error occurred, after the
    directory's logs have been removed from the table; it must not block. Any thread may call `schedule(delay_ms,
    work)`. `run_on_owner(work)` waits until the owner thread has called `work`; the owner thread itself must not call
    it.
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
            write_lowered_offsets=lambda *lowered: self.checkpoints.write_lowered_offsets(*lowered),
            producer_expiration_ms=lambda: config.producer_id_expiration_ms,
        )
        self.futures = FutureLogs(
            self._ports, run_on_owner, lambda directory, partitions: self.checkpoints.forget(directory, partitions)
        )
        self.checkpoints = OffsetCheckpoints(
            online=self._online, current=self.logs, futures=self.futures.logs, attempt=self._attempt
        )
        self._lock = RLock()
        self._last_failure = ""
        self._preferred: dict[TopicPartition, LogDirectory] = {}
        self._logs: dict[TopicPartition, Log] = {}
        self._replaced: dict[TopicPartition, Log] = {}  # logs whose directories `finish_replacement` has to delete
        # Held while the directory of a replaced log is deleted, which a new log of the partition may need.
        self._replacing = Lock()
        self._log_configs: dict[tuple[object, ...], LogConfig] = {}

    # -- start and stop ------------------------------------------------------------------------------------------

    def lock(self) -> None:
        """Locks every directory. Raises StorageError if another process holds a lock, or no directory is usable."""
        for directory in self.directories:
            try:
                directory.lock()
            except OSError as error:
                self.take_offline(directory.path, error)
        self._require_online()

    def unlock(self) -> None:
        """Releases the locks of all directories."""
        for directory in self.directories:
            directory.unlock()

    def take_clean_shutdown_markers(self) -> int:
        """Removes the clean-shutdown markers durably. Returns their broker epoch if all directories have a marker with
        the same epoch, otherwise -1.

        Raises StorageError.
        """
        self.refuse_foreign_directories()
        for directory in self._online():
            self._attempt(directory, directory.take_clean_shutdown_marker)
        self._require_online()
        epochs = {directory.clean_broker_epoch for directory in self.directories if directory.is_online}
        is_complete = len(epochs) == 1 and all(directory.is_online for directory in self.directories)
        return epochs.pop() if is_complete else UNKNOWN_BROKER_EPOCH

    def refuse_foreign_directories(self) -> None:
        """Raises StorageError if a log directory contains a directory whose name no broker gives, except lost+found."""
        for directory in self._online():
            try:
                directory.refuse_foreign_directories()
            except OSError as error:
                self.take_offline(directory.path, error)

    def was_clean(self, directory: LogDirectory) -> bool:
        """Returns whether the directory had a clean-shutdown marker at this start."""
        return directory.was_clean

    def startup(
        self,
        topic_config: Callable[[str], "TopicConfig"],
        is_stray: IsStray,
        is_assigned: IsAssigned = assigned_everywhere,
    ) -> None:
        """Loads every log. Removes the clean-shutdown markers first, if the caller has not.

        `topic_config(topic)` returns the topic's configuration. `is_stray(topic_id, partition)` returns True if the
        metadata has no such replica on this broker; its log is then not loaded. `is_assigned(topic_id, partition,
        directory_id)` returns whether the metadata assigns the replica to that directory or to no directory; only then
        can a future log in that directory become the current log. Raises StorageError if no directory is usable.
        """
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
                if directory.is_online:  # otherwise the directory went offline, which is what the error reports
                    raise
        self._require_online()
        try:
            self.futures.settle(self._logs, is_assigned, self.checkpoints.write_log_start_offsets)
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
            # Each clean stop leaves a snapshot in every log. Deleting thousands takes longer than loading the logs.
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
                    f"{other.path}: remove one of them by hand; if a disk has failed, the one on that disk",
                )
            self._logs[log.topic_partition] = log
        if any(log.recovery_point < recovery_points.get(log.topic_partition, 0) for log in logs):
            self.checkpoints.write_recovery_points(directory)  # recovery has removed damaged records; others follow

    def _load_all(self, loaders: list[LogLoader], is_clean: bool) -> list[Log]:
        """Loads logs, and returns the logs in the order of `loaders`.

        After a clean stop (`is_clean`) only this thread loads the logs. Otherwise the logs need recovery, which runs on
        several threads, because recovery releases the interpreter lock most of the time.
        """
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
        """Returns (partition, topic id) of the partition directory `name` if it has to be loaded, otherwise None.

        Renames the directory if `is_stray` returns True, that is if this broker has no such replica. Deletes it if its
        deletion or creation was not finished. Raises OSError.
        """
        path = os.path.join(directory.path, name)
        if name.endswith(DELETE_SUFFIX):
            self._ports.schedule(0, lambda: self._filesystem.remove_tree(path))
            return None
        partition = parse_directory_name(name) or parse_future_name(name)
        if partition is None or partition == METADATA_TOPIC_PARTITION:
            return None
        try:
            topic_id = read_partition_metadata(path)
        except MalformedPartitionMetadata as error:
            logger.warning("%s", error)
            topic_id = None
        if topic_id is None and is_unfinished_creation(path):
            logger.info("Deleting %s, whose creation was not finished", path)
            self._filesystem.remove_tree(path)
            return None
        if is_stray(topic_id, partition):
            target = os.path.join(directory.path, unique_directory_name(partition, STRAY_SUFFIX))
            logger.warning("Renaming %s, which belongs to no known topic, to %s", path, target)
            self._filesystem.replace(path, target)
            return None
        return partition, topic_id if topic_id is not None else ZERO_UUID

    def shutdown(self, broker_epoch: int) -> None:
        """Closes all logs, writes the checkpoints and then the clean-shutdown markers, and unlocks the directories.

        Called on the reactor's thread, which owns the logs, or after that thread has ended. A directory that fails is
        taken offline and gets no marker.
        """
        for directory in self._online():
            self._attempt(directory, lambda of=directory: self._close_logs(of))  # type: ignore[misc]
        self.checkpoints.write_recovery_points()
        self.checkpoints.write_log_start_offsets()
        for directory in self._online():
            self._attempt(directory, lambda to=directory: to.write_clean_shutdown_marker(broker_epoch))  # type: ignore[misc]
        self.unlock()

    def _close_logs(self, directory: LogDirectory) -> None:
        """Closes the logs of a directory. If many logs have changed, one sync of the file system makes them durable.
        Raises OSError."""
        logs = [log for log in (*self.logs(), *self.futures.logs()) if log.directory is directory]
        sync_each = sum(log.needs_sync for log in logs) <= LARGEST_SYNC_EACH
        for log in logs:
            log.close(sync=sync_each)
        if not sync_each:
            self._filesystem.sync_filesystem(directory.path)
            for log in logs:
                log.mark_flushed()

    def _attempt(self, directory: LogDirectory, action: Callable[[], None]) -> None:
        """Runs an action on a directory; takes the directory offline if the action raises OSError or StorageError."""
        try:
            action()
        except StorageError as error:
            logger.error("%s", error)  # the directory is offline already
        except OSError as error:
            self.take_offline(directory.path, error)

    # -- the table of logs ---------------------------------------------------------------------------------------

    def get_log(self, partition: TopicPartition) -> Log | None:
        """Returns the partition's current log; None if this broker has no log of it in a directory that is online.
        Any thread may call it."""
        return self._logs.get(partition)

    def logs(self) -> list[Log]:
        """Returns all current logs. Any thread may call it."""
        with self._lock:
            return list(self._logs.values())

    def directory_of(self, partition: TopicPartition) -> LogDirectory | None:
        """Returns the log directory of the partition's current log; None if this broker has no log of it in a directory
        that is online. Any thread may call it."""
        log = self._logs.get(partition)
        return None if log is None else log.directory

    def log_config(self, topic_config: Any) -> LogConfig:
        """Returns the LogConfig of a topic configuration; equal configurations share one object."""
        config = LogConfig(topic_config)
        return self._log_configs.setdefault(config.values(), config)

    def update_topic_config(self, topic: str, topic_config: "TopicConfig") -> None:
        """Sets the configuration of all logs of a topic. Only the reactor's thread may call it."""
        config = self.log_config(topic_config)
        for log in self.logs():
            if log.topic_partition.topic == topic:
                log.update_config(config)

    def create_logs(self, wanted: Sequence[NewLog]) -> list[Log | StorageError]:
        """Creates the logs that do not exist. Returns the log of each partition, or the error of the log's creation.

        The directories and partition.metadata of new logs are durable on return. A log whose `is_new` is False is not
        created while a log directory is offline: the partition's records may be in that directory, and an empty log
        would hide them. One thread at a time may call it.
        """
        found: dict[TopicPartition, Log | StorageError] = {}
        chosen: dict[LogDirectory, list[NewLog]] = {}
        with self._lock:
            counts = self._partition_counts()
            for each in wanted:
                log = self._logs.get(each.topic_partition)
                if log is not None:
                    found[each.topic_partition] = log
                    continue
                try:
                    directory = self._directory_for_new_log(each, counts)
                except StorageError as error:
                    found[each.topic_partition] = error
                    continue
                counts[directory] += 1
                chosen.setdefault(directory, []).append(each)
        for directory, logs in chosen.items():
            found.update(self._create_in(directory, logs))
        return [found[each.topic_partition] for each in wanted]

    def _create_in(
        self, directory: LogDirectory, wanted: Sequence[NewLog]
    ) -> Mapping[TopicPartition, Log | StorageError]:
        """Creates logs in one log directory, and adds the logs to the table.

        If the creation of the directories fails, takes the log directory offline and returns the error for all of the
        logs: some of their partition directories may exist there, so none of the logs may be created elsewhere.
        """
        path = directory.path
        names = [each.topic_partition for each in wanted]
        logs: dict[TopicPartition, Log] = {}
        failed: dict[TopicPartition, StorageError] = {}
        try:
            self.checkpoints.forget(directory, names)
            for each, its_path in zip(wanted, create_directories(self._filesystem, path, wanted), strict=True):
                config = self.log_config(each.topic_config)
                loader = LogLoader(
                    each.topic_partition, directory, its_path, config, self._ports, is_clean=False,
                    topic_id=each.topic_id,
                )  # fmt: skip
                try:
                    logs[each.topic_partition] = loader.load()
                except StorageError as error:
                    failed[each.topic_partition] = error
        except (OSError, MalformedCheckpoint) as error:
            self.take_offline(path, error)
            return dict.fromkeys(names, StorageError(path, f"Error while creating the log of {names[0]}: {error}"))
        with self._lock:
            if not directory.is_online:
                reason = StorageError(path, f"The log directory of {names[0]} is offline: {self._last_failure}")
                return dict.fromkeys(names, reason)
            self._logs.update(logs)
        return {**logs, **failed}

    def _require_all_online(self, partition: TopicPartition) -> None:
        offline = [directory.path for directory in self.directories if not directory.is_online]
        if offline:
            raise StorageError(offline[0], f"no log of {partition} was found, and it may be in {', '.join(offline)}")

    def _directory_for_new_log(self, wanted: NewLog, counts: Mapping[LogDirectory, int]) -> LogDirectory:
        """Returns the online directory in which a new log is to be created.

        It is the directory that `prefer_directory` has set or, if there is none, the directory with the id
        `wanted.directory_id`. If neither exists online, it is the directory with the fewest logs, according to
        `counts`; cordoned directories are considered only if all are cordoned. Raises StorageError if no directory is
        online, or if `wanted.is_new` is False and any directory is offline.
        """
        if not wanted.is_new:
            self._require_all_online(wanted.topic_partition)
        self._require_online()
        preferred = self._preferred.pop(wanted.topic_partition, None)
        if preferred is not None and preferred.is_online:
            return preferred
        for directory in self._online():
            if wanted.directory_id is not None and directory.directory_id == wanted.directory_id:
                return directory
        # A broker whose directories are all cordoned still gets the partitions that are assigned to it by hand.
        candidates = [each for each in self._online() if not self._is_cordoned(each)] or self._online()
        return min(candidates, key=lambda directory: counts[directory])

    def _is_cordoned(self, directory: LogDirectory) -> bool:
        return is_cordoned(directory.path, self._config.cordoned_log_dirs)

    def cordoned_directories(self) -> tuple[bytes, ...]:
        """Returns the ids of the online directories that get no new partitions (KIP-1066). Any thread may call it."""
        return tuple(each.directory_id for each in self._online() if self._is_cordoned(each))

    def _partition_counts(self) -> dict[LogDirectory, int]:
        """Returns the number of logs in each online log directory."""
        counts = dict.fromkeys(self._online(), 0)
        for log in self._logs.values():
            if log.directory.is_online:
                counts[log.directory] += 1
        return counts

    def delete_log(self, partition: TopicPartition) -> None:
        """Removes a log from the table, renames its directory to `-delete` and deletes it after file.delete.delay.ms.

        The same is done with the partition's future log and the log that a move has just replaced, if they exist. The
        caller has removed the replica. The thread that owns the logs, the reactor's, may still apply retention to the
        log, which then has no effect. The same thread closes the log's files: after a close by another thread, the
        kernel could give a descriptor that the owner still uses to a new file. Raises StorageError if a directory
        fails, after it has tried the others. Any thread may call it.
        """
        failures: list[StorageError] = []
        with self._replacing:
            with self._lock:
                logs = self._logs.pop(partition, None), self._replaced.pop(partition, None)
            for log in logs:
                if log is not None and log.directory.is_online:
                    failures += self._discard(log, lambda of=log: self.futures.discard_files(of))  # type: ignore[misc]
        future = self.futures.get(partition)
        if future is not None:
            failures += self._discard(future, lambda: self.futures.discard(partition))
        if failures:
            raise failures[0]

    def _discard(self, log: Log, action: Callable[[], None]) -> list[StorageError]:
        try:
            action()
        except OSError as error:
            self.take_offline(log.directory.path, error)
            return [StorageError(log.directory.path, f"Error while deleting {log.topic_partition}: {error}")]
        return []

    # -- moving between directories ------------------------------------------------------------------------------

    def directory_at(self, path: str) -> LogDirectory:
        """Returns the log directory with exactly this path.

        Raises ApiError LOG_DIR_NOT_FOUND if it is not one of `log.dirs`, and KAFKA_STORAGE_ERROR if it is offline.
        """
        for directory in self.directories:
            if directory.path == path:
                if not directory.is_online:
                    raise ApiError(Error.KAFKA_STORAGE_ERROR, f"Log directory {path} is offline")
                return directory
        raise ApiError(Error.LOG_DIR_NOT_FOUND, f"Log dir {path} is not found in the config.")

    def prefer_directory(self, partition: TopicPartition, directory: LogDirectory) -> None:
        """Chooses the directory in which the partition's log will be created; has no effect if the log exists
        already."""
        with self._lock:
            if partition not in self._logs:
                self._preferred.pop(partition, None)
                self._preferred[partition] = directory
                if len(self._preferred) > MOST_PREFERENCES:
                    del self._preferred[next(iter(self._preferred))]

    def create_future_log(self, current: Log, directory: LogDirectory) -> Log:
        """Creates an empty future log of `current` in `directory`, and returns it.

        Raises StorageError if the creation fails or any log directory is offline, because an offline directory may
        already contain the partition's future log.
        """
        self._require_all_online(current.topic_partition)
        try:
            return self.futures.create(current, directory)
        except (OSError, MalformedCheckpoint) as error:
            self.take_offline(directory.path, error)
            raise StorageError(directory.path, f"Error while creating a log in {directory.path}: {error}") from error

    def replace_current(self, current: Log, future: Log) -> None:
        """Makes the future log the current log in the table; `finish_replacement` renames the directories later.

        Only the reactor's thread may call it. Raises ApiError REPLICA_NOT_AVAILABLE if one of the logs is no longer in
        use.
        """
        with self._lock:
            if self._logs.get(current.topic_partition) is not current or not future.directory.is_online:
                raise ApiError(Error.REPLICA_NOT_AVAILABLE, f"{current} is no longer the current replica")
            assert future.log_end_offset == current.log_end_offset, (future, current)
            self.futures.take_out(future)
            self._logs[current.topic_partition] = future
            self._replaced[current.topic_partition] = current

    def finish_replacement(self, replaced: Log, promoted: Log) -> None:
        """Deletes the directory of `replaced` and gives its name to the directory of `promoted`.

        The reactor's thread must not call it, because it waits for work on that thread. Raises StorageError.
        """
        directory = replaced.directory
        self.checkpoints.write_log_start_offsets()  # otherwise a kill soon after would bring deleted records back
        if not promoted.directory.is_online:
            raise StorageError(promoted.directory.path, f"{replaced} is kept, because the directory has failed")
        try:
            with self._replacing:
                is_left = self._replaced.get(replaced.topic_partition) is replaced  # otherwise it was deleted
                if is_left:
                    del self._replaced[replaced.topic_partition]
                if is_left and directory.is_online:
                    self.futures.discard_files(replaced)
            directory = promoted.directory
            self.futures.rename_promoted(promoted)
        except OSError as error:
            if not promoted.is_deleted:
                self.take_offline(directory.path, error)
                raise StorageError(directory.path, f"Error while replacing {replaced}: {error}") from error

    # -- periodic work -------------------------------------------------------------------------------------------

    def run_retention(self) -> int:
        """Applies retention to all logs; returns the number of segments deleted. Only the reactor's thread may call
        it."""
        return sum(self.retention_steps())

    def retention_steps(self) -> Iterator[int]:
        """Applies retention to one log for each item that is requested of the iterator.

        Each item is the number of segments deleted in that log. The reactor's thread, which requests the items, can do
        other work between two of them.
        """
        for log in self.logs():
            try:
                yield log.delete_old_segments()
            except StorageError as error:
                logger.error("Retention of %s failed: %s", log.topic_partition, error)

    def run_flush(self) -> None:
        """Flushes the logs whose last flush was more than `flush.ms` ago. Any thread may call it."""
        wall_ms = self._clock.wall_ms()
        for log in self.logs():
            if log.log_end_offset > log.recovery_point and wall_ms - log.last_flush_ms >= log.config.flush_ms:
                self._attempt(log.directory, log.flush)

    def remove_expired_producers(self) -> int:
        """Removes expired producers of all logs; returns their number. Only the reactor's thread may call it.

        Called every `producer.id.expiration.check.interval.ms`.
        """
        return sum(log.remove_expired_producers() for log in self.logs())

    # -- directories ---------------------------------------------------------------------------------------------

    def describe_directories(self) -> list[DirectoryDescription]:
        """Returns a description of each log directory, in the order of `log.dirs`. Raises OSError."""
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
        """Removes the logs of a failed directory from the table and stops writing to it.

        Any thread may call it. Repeated calls have no further effect.
        """
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
    """Deletes the producer snapshot files that the logs no longer use. Any thread may call it. Raises OSError."""
    for log in logs:
        log.producers.delete_strays()
