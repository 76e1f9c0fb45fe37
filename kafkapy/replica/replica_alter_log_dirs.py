"""AlterReplicaLogDirs (KIP-113): moves partitions between this broker's log directories while they are served.

    1  create the future log
    2  copy the current log until little is left, and flush the copy
    3  record the new directory in the metadata (KIP-858)
    4  on the thread that owns the log: copy the last records, and make the future log the partition's log
    5  flush, delete the old directory, and rename the new one

After a kill the next start finds two logs and uses the one that has all records: the current one during the copy, and
the future one as soon as it is appended to. The threads start with the first move and end after the last one.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError, Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from math import inf

from kafkapy._core.broker_state.quota_sensor import QuotaSensor
from kafkapy.config.broker_config import BrokerConfig
from kafkapy.config.cordoned_directories import is_cordoned
from kafkapy.errors import ApiError, Error, StorageError
from kafkapy.replica.replica_manager import ReplicaManager
from kafkapy.storage.future_replica import FutureReplica
from kafkapy.storage.io_throttle import IoThrottle
from kafkapy.storage.log import Log
from kafkapy.storage.log_cleaner_manager import LogCleanerManager
from kafkapy.storage.log_directory import LogDirectory
from kafkapy.storage.log_manager import LogManager
from kafkapy.storage.partition_directory import is_too_long_to_move
from kafkapy.types import Clock, TopicPartition

logger = logging.getLogger("kafka.server.ReplicaAlterLogDirsManager")

# The most bytes to copy while the thread that owns the log waits, at the end of a move.
MOST_BYTES_AT_THE_END = 256 << 10
# Interval in seconds at which a waiting thread tests whether it has to stop.
LOOK_S = 0.5

# Records the directories of partitions in the metadata: (topic id, partition) -> directory id.
AssignDirectories = Callable[[dict[tuple[bytes, int], bytes]], "Future[None]"]


class MoveEnded(Exception):
    """Raised to end a move early: it was cancelled, its partition was deleted, a directory is offline, or the broker
    stops."""


class Move:
    """The move of one partition. `current` is its log, and `future` is the copy in the new directory. Any thread may
    set `is_given_up`; the thread that copies reads it.
    """

    __slots__ = ("current", "future", "is_given_up")

    def __init__(self, current: Log, future: Log) -> None:
        self.current = current
        self.future = future
        self.is_given_up = False


def start_thread(work: Callable[[], None], name: str) -> threading.Thread:
    thread = threading.Thread(target=work, name=name, daemon=True)
    thread.start()
    return thread


class ReplicaAlterLogDirsManager:
    """Owns the waiting and running moves, and their threads; guarded by `_condition`.

    The owner thread is the thread that owns the logs and partitions, which is the reactor's. Any other thread may call
    `alter`. `run_on_owner(work)` runs `work` on the owner thread and returns its result; it raises CancelledError if
    the owner thread has ended.
    """

    def __init__(
        self,
        config: BrokerConfig,
        log_manager: LogManager,
        replica_manager: ReplicaManager,
        cleaner: LogCleanerManager,
        *,
        clock: Clock,
        run_on_owner: Callable[[Callable[[], object]], object],
        assign_directories: AssignDirectories,
        start_thread: Callable[[Callable[[], None], str], threading.Thread | None] = start_thread,
    ) -> None:
        self._config = config
        self._log_manager = log_manager
        self._replica_manager = replica_manager
        self._cleaner = cleaner
        self._clock = clock
        self._run_on_owner = run_on_owner
        self._assign_directories = assign_directories
        self._altering = threading.Lock()
        self._condition = threading.Condition()
        self._waiting: list[Move] = []
        self._running: dict[TopicPartition, Move] = {}
        self._start_thread = start_thread
        self._threads: list[threading.Thread | None] = []
        # The copied bytes of all moves; `_condition` guards records, any thread may read the rate.
        self.copied = QuotaSensor(
            inf,
            config.alter_log_dirs_replication_quota_window_num,
            config.alter_log_dirs_replication_quota_window_size_seconds * 1000,
            is_simple=True,
        )
        self._busy_threads = 0
        self._is_stopping = False

    # -- requests ------------------------------------------------------------------------------------------------

    def alter(self, directories: Mapping[TopicPartition, str]) -> dict[TopicPartition, Error]:
        """Begins to move each partition to its directory, and returns an error for each partition.

        The error is Error.NONE if the move has begun or is not necessary. The method waits for the thread that owns the
        logs and partitions (the reactor's), so this thread must not call it.
        """
        results = {}
        with self._altering:
            for partition, path in directories.items():
                try:
                    self._alter(partition, path)
                except ApiError as error:
                    results[partition] = error.error
                except StorageError as error:
                    logger.error("%s cannot be moved to %s: %s", partition, path, error)
                    results[partition] = Error.KAFKA_STORAGE_ERROR
                else:
                    results[partition] = Error.NONE
        return results

    def _alter(self, partition: TopicPartition, path: str) -> None:
        if is_too_long_to_move(partition):
            raise ApiError(Error.INVALID_TOPIC_EXCEPTION, "The topic name is too long.")
        directory = self._log_manager.directory_at(path)
        if is_cordoned(path, self._config.cordoned_log_dirs):
            raise ApiError(Error.INVALID_REPLICA_ASSIGNMENT, f"Log directory {path} is cordoned")
        found = self._run_on_owner(lambda: self._replica_manager.find_partition(partition))
        if isinstance(found, Error):
            if found is not Error.KAFKA_STORAGE_ERROR:
                self._log_manager.prefer_directory(partition, directory)
            raise ApiError(Error.REPLICA_NOT_AVAILABLE if found is Error.NOT_LEADER_OR_FOLLOWER else found)
        future = self._log_manager.futures.get(partition)
        if future is not None:
            if future.directory is directory:
                return
            self._give_up(partition, future)
        current = self._log_manager.get_log(partition)
        if current is None:
            raise ApiError(Error.KAFKA_STORAGE_ERROR)
        if current.directory is directory:
            logger.info("Current log directory %s of %s is same as requested log dir", path, partition)
            return
        self._begin(current, self._log_manager.create_future_log(current, directory))

    def resume(self) -> None:
        """Continues the moves whose future logs were found when the broker started."""
        for future in self._log_manager.futures.logs():
            current = self._log_manager.get_log(future.topic_partition)
            if current is not None and current.topic_id == future.topic_id:
                self._begin(current, future)

    def _begin(self, current: Log, future: Log) -> None:
        with self._condition:
            if self._is_stopping:
                return
            self._waiting.append(Move(current, future))
            most = self._config.num_replica_alter_log_dirs_threads or len(self._log_manager.directories)
            if self._busy_threads >= min(most, len(self._waiting) + len(self._running)):
                return
            self._busy_threads += 1
            name = f"ReplicaAlterLogDirsThread-{self._busy_threads - 1}"
            self._threads = [thread for thread in self._threads if thread is not None and thread.is_alive()]
        thread = self._start_thread(self._run, name)
        with self._condition:
            self._threads.append(thread)

    def _give_up(self, partition: TopicPartition, future: Log) -> None:
        """Discards the future log. The thread that copies notices this at its next chunk, and closes the files."""
        with self._condition:
            moves = [*self._waiting, *self._running.values()]
            for move in moves:
                if move.future is future:
                    move.is_given_up = True
            self._condition.notify_all()
        try:
            self._log_manager.futures.discard(partition)
        except OSError as error:
            self._log_manager.take_offline(future.directory.path, error)
            raise StorageError(future.directory.path, f"Error while giving up {future}: {error}") from error

    def stop(self) -> None:
        """Interrupts the running moves, which the next start of the broker continues, and waits until the threads have
        ended."""
        with self._condition:
            self._is_stopping = True
            self._condition.notify_all()
            threads = list(self._threads)
        for thread in threads:
            if thread is not None:
                thread.join()

    # -- moving --------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while (move := self._next_move()) is not None:
            partition = move.current.topic_partition
            try:
                self._move(move)
            except (MoveEnded, CancelledError) as error:
                logger.info("The move of %s to %s ended early: %s", partition, move.future.directory.path, error)
                if move.current.is_deleted:
                    self._drop(move)
            except StorageError as error:
                logger.error("The move of %s failed: %s", partition, error)
            except ApiError as error:
                logger.error("%s cannot be moved to %s: %s", partition, move.future.directory.path, error)
                self._drop(move)
            except OSError as error:
                self._read_failed(move, error)
            except Exception:
                logger.exception("The move of %s failed", partition)
            finally:
                self._end(move)

    def _next_move(self) -> Move | None:
        """Returns the first waiting move whose partition has no running move, and marks it as running. Returns None if
        this thread must end, because no move waits or the broker stops."""
        with self._condition:
            while self._waiting and not self._is_stopping:
                for move in self._waiting:
                    if move.current.topic_partition not in self._running:
                        self._waiting.remove(move)
                        self._running[move.current.topic_partition] = move
                        return move
                self._condition.wait(LOOK_S)
            self._busy_threads -= 1
            return None

    def _end(self, move: Move) -> None:
        if self._log_manager.get_log(move.future.topic_partition) is not move.future and move.future.is_deleted:
            move.future.close_after_failure()
        with self._condition:
            del self._running[move.current.topic_partition]
            self._condition.notify_all()

    def _move(self, move: Move) -> None:
        current, future = move.current, move.future
        partition = current.topic_partition
        replica = FutureReplica(current, future)
        throttle = IoThrottle(self._rate, self._clock, lambda wait_ms: self._wait(move, wait_ms))
        self._cleaner.pause(partition)
        try:
            self._catch_up(move, replica, throttle)
            self._assign(move, future.directory)
            try:
                while not self._replace(move, replica):
                    self._catch_up(move, replica, throttle)
            except BaseException:
                self._assign_back(current)
                raise
            future.flush()
            self._log_manager.finish_replacement(current, future)
            self._cleaner.move_checkpoint(current, future)
            logger.info("The current replica of %s is now in %s", partition, future.directory.path)
        finally:
            replica.close()
            self._cleaner.resume(partition)

    def _catch_up(self, move: Move, replica: FutureReplica, throttle: IoThrottle) -> None:
        """Copies and flushes in rounds. Ends after the first round that has copied less than MOST_BYTES_AT_THE_END."""
        copied = MOST_BYTES_AT_THE_END
        while copied >= MOST_BYTES_AT_THE_END:
            copied = 0
            self._check(move)
            while size := replica.copy_some():
                copied += size
                with self._condition:
                    self.copied.record(size, self._clock.monotonic_ms())
                throttle.count(size)
                self._check(move)
            move.future.flush()

    def _replace(self, move: Move, replica: FutureReplica) -> bool:
        """Copies the last records and makes the future log the partition's log. Returns False if too many bytes are
        left to copy."""

        def replace() -> bool:
            self._check(move)
            if not replica.finish(MOST_BYTES_AT_THE_END):
                return False
            self._log_manager.replace_current(move.current, move.future)
            self._replica_manager.replace_log(move.current, move.future)
            return True

        return bool(self._run_on_owner(replace))

    def _check(self, move: Move) -> None:
        if self._is_stopping:
            raise MoveEnded("the broker stops")
        if move.is_given_up or move.future.is_deleted:
            raise MoveEnded("it was given up")
        current = move.current
        if current.is_deleted or self._log_manager.get_log(current.topic_partition) is not current:
            raise MoveEnded("the partition is no longer here")
        if not move.future.directory.is_online:
            raise MoveEnded("the log directory is offline")

    def _assign(self, move: Move, directory: LogDirectory) -> None:
        key = move.current.topic_id, move.current.topic_partition.partition
        answer = self._assign_directories({key: directory.directory_id})
        while True:
            try:
                return answer.result(LOOK_S)
            except FutureTimeoutError:
                self._check(move)

    def _assign_back(self, current: Log) -> None:
        """Assigns the partition to its old directory again in the metadata, after a move that ended early."""
        if self._log_manager.get_log(current.topic_partition) is current and not self._is_stopping:
            key = current.topic_id, current.topic_partition.partition
            self._assign_directories({key: current.directory.directory_id})

    def _rate(self) -> float:
        """Returns how many bytes per second each running move may copy."""
        limit: int = self._config.replica_alter_log_dirs_io_max_bytes_per_second
        return max(1.0, limit / max(1, len(self._running)))

    def _wait(self, move: Move, wait_ms: int) -> bool:
        """Waits at most `wait_ms`. Returns True if the move has to end."""
        with self._condition:
            return self._condition.wait_for(lambda: self._is_stopping or move.is_given_up, wait_ms / 1000)

    def _drop(self, move: Move) -> None:
        """Discards the future log of a move that cannot be completed. If that fails, the log directory is offline."""
        if self._log_manager.futures.get(move.future.topic_partition) is move.future:
            try:
                self._give_up(move.future.topic_partition, move.future)
            except StorageError as error:
                logger.error("%s", error)

    def _read_failed(self, move: Move, error: OSError) -> None:
        current = move.current
        if current.is_deleted or self._log_manager.get_log(current.topic_partition) is not current:
            logger.info("The move of %s ended early: it was deleted", current.topic_partition)
        else:
            self._log_manager.take_offline(current.directory.path, error)
