"""The threads of the log cleaner. Each thread repeatedly cleans the log with the largest share of bytes that were not
cleaned before, and sleeps while no log has to be cleaned.

A log that cannot be cleaned is marked as uncleanable, and a failed disk is taken offline; neither ends a thread. A
thread that ends for another reason is logged and counted, because otherwise compaction would stop silently.
"""

import logging
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING

from kafkapy._core.bytes.offset_map import OffsetMap
from kafkapy.errors import StorageError
from kafkapy.storage.cleaned_segment import SegmentsChanged
from kafkapy.storage.filesystem import Filesystem
from kafkapy.storage.io_throttle import IoThrottle
from kafkapy.storage.log import Log
from kafkapy.storage.log_cleaner_manager import CleaningAborted, LogCleanerManager
from kafkapy.storage.log_cleaner_pass import CleaningPass, CleaningResult, CleaningTools
from kafkapy.storage.log_cleaner_reader import CleanerBuffer
from kafkapy.storage.log_cleaner_selection import LogToClean
from kafkapy.storage.log_manager import LogManager
from kafkapy.types import Clock

if TYPE_CHECKING:
    from kafkapy.config import BrokerConfig

logger = logging.getLogger("kafka.log.LogCleaner")

LARGEST_MAP_BYTES = 2**31 - 1  # for one thread, as in Kafka
# The keys that determine a thread's memory, which is allocated again when one of them changes.
MEMORY_KEYS = (
    "log.cleaner.threads",
    "log.cleaner.dedupe.buffer.size",
    "log.cleaner.io.buffer.size",
    "log.cleaner.io.buffer.load.factor",
)


class LogCleaner:
    """The log cleaner; owns its threads. One thread calls `start` and `stop` once each. Any thread may call the other
    methods.

    `run_on_owner(work)` calls `work` on the thread that owns the logs, and returns the result of `work`. It raises
    CancelledError if the thread that owns the logs has ended. `schedule(delay_ms, work)` calls `work` after the delay,
    on any thread.
    """

    def __init__(
        self,
        config: "BrokerConfig",
        log_manager: LogManager,
        *,
        filesystem: Filesystem,
        clock: Clock,
        run_on_owner: Callable[[Callable[[], object]], object],
        schedule: Callable[[int, Callable[[], None]], object],
    ) -> None:
        self._config = config
        self._log_manager = log_manager
        self._filesystem = filesystem
        self._clock = clock
        self._schedule = schedule
        self._stopping = threading.Event()
        self._threads: dict[int, threading.Thread] = {}  # by number
        self.manager = LogCleanerManager(log_manager, clock, run_on_owner)
        self.dead_threads = 0
        self.last_pass_ms = clock.wall_ms()  # when a thread last looked for work; shows a cleaner that is stuck

    def start(self) -> None:
        """Starts the first thread, which starts the others, if the cleaner is enabled."""
        if self._config.log_cleaner_enable:
            self._start_thread(0)

    def stop(self) -> None:
        """Aborts the current passes, which are repeated after the next start of the broker, and waits until all threads
        have ended."""
        self._stopping.set()
        first = self._threads.get(0)
        if first is not None:
            first.join()  # the first thread starts the others
        for thread in list(self._threads.values()):
            thread.join()

    def _start_thread(self, number: int) -> None:
        name = f"kafka-log-cleaner-thread-{number}"
        thread = threading.Thread(target=self._run, args=(number, name), name=name, daemon=True)
        self._threads[number] = thread
        thread.start()

    def _run(self, number: int, name: str) -> None:
        try:
            self._work(number)
        except (CleaningAborted, CancelledError):
            if not self._stopping.is_set():
                self._died(name)
        except Exception:
            self._died(name)

    def _work(self, number: int) -> None:
        """Cleans logs until the cleaner stops.

        The thread with number 0 starts the other threads. A thread ends when its number is not below the configured
        number of threads.
        """
        worker: CleanerWorker | None = None
        built_for: list[object] = []
        while not self._stopping.is_set():
            threads = self._config.log_cleaner_threads
            if number == 0:
                for other in range(1, threads):
                    if other not in self._threads:
                        self._start_thread(other)
            elif number >= threads:
                del self._threads[number]
                return
            settings = [self._config[name] for name in MEMORY_KEYS]
            if worker is None or built_for != settings:
                worker, built_for = self.worker(), settings
            self.last_pass_ms = self._clock.wall_ms()
            if number >= threads or not worker.clean_filthiest():
                self._stopping.wait(self._config.log_cleaner_backoff_ms / 1000)

    def _died(self, name: str) -> None:
        self.dead_threads += 1
        logger.critical("%s died: it compacts no log until the broker restarts", name, exc_info=True)

    def worker(self) -> "CleanerWorker":
        """Returns a new worker for one thread.

        Its map from keys to offsets and its read buffer have the configured sizes divided by the number of threads.
        """
        config, threads = self._config, max(1, self._config.log_cleaner_threads)
        throttle = IoThrottle(
            lambda: config.log_cleaner_io_max_bytes_per_second,
            self._clock,
            lambda wait_ms: self._stopping.wait(wait_ms / 1000),
        )
        memory = min(config.log_cleaner_dedupe_buffer_size // threads, LARGEST_MAP_BYTES)
        tools = CleaningTools(
            OffsetMap(memory, config.log_cleaner_io_buffer_load_factor),
            CleanerBuffer(config.log_cleaner_io_buffer_size // threads // 2, throttle.count),
            self.manager,
            self._filesystem,
            throttle.count,
            self._check_running,
            self._schedule,
        )
        return CleanerWorker(self._log_manager, self._clock, tools)

    def _check_running(self) -> None:
        if self._stopping.is_set():
            raise CleaningAborted("the log cleaner is stopping")


class CleanerWorker:
    """Cleans one log at a time, with the read buffer and the map from keys to offsets of one cleaner thread."""

    def __init__(self, log_manager: LogManager, clock: Clock, tools: CleaningTools) -> None:
        self._log_manager = log_manager
        self._clock = clock
        self._tools = tools

    def clean_filthiest(self) -> bool:
        """Cleans the log with the largest share of dirty bytes; returns False if no log was due. Raises CleaningAborted
        if the thread must stop."""
        manager = self._tools.manager
        taken = manager.take_filthiest()
        if taken is None:
            return False
        log, to_clean = taken
        try:
            self._clean(log, to_clean)
        finally:
            manager.release(log)
        return True

    def _clean(self, log: Log, to_clean: LogToClean) -> None:
        manager = self._tools.manager
        started_ms = self._clock.monotonic_ms()
        logger.info(
            "Cleaning %s: offsets %d to %d, %.0f%% of %d bytes are dirty",
            log.topic_partition,
            to_clean.first_dirty_offset,
            to_clean.first_uncleanable_offset,
            100 * to_clean.cleanable_ratio,
            to_clean.clean_bytes + to_clean.cleanable_bytes,
        )
        try:
            result = CleaningPass(log, to_clean, self._tools, self._clock.wall_ms()).run()
            manager.advance_checkpoint(log, result.end_offset, result.truncations)
        except (CleaningAborted, SegmentsChanged) as error:
            logger.info("Cleaning of %s ended early: %s", log.topic_partition, error)
            self._tools.check()
        except StorageError as error:
            logger.error("Cleaning of %s failed: %s", log.topic_partition, error)
        except OSError as error:
            self._disk_failed(log, error)
        except MemoryError as error:
            logger.error("Cleaning of %s is postponed, because memory is short: %s", log.topic_partition, error)
        except CancelledError:
            raise
        except Exception as error:
            manager.mark_uncleanable(log, error)  # a damaged log or a bug, which must not stop compaction of other logs
        else:
            self._report(log, result, self._clock.monotonic_ms() - started_ms)

    def _disk_failed(self, log: Log, error: OSError) -> None:
        """Takes the log's directory offline, unless the error occurred because the log was deleted."""
        if log.is_deleted or self._log_manager.get_log(log.topic_partition) is not log:
            logger.info("Cleaning of %s ended early: it was deleted", log.topic_partition)
        else:
            self._log_manager.take_offline(log.directory.path, error)

    def _report(self, log: Log, result: CleaningResult, elapsed_ms: int) -> None:
        logger.info(
            "Cleaned %s to offset %d in %d ms: %d of %d records kept, %d bytes read, %d written",
            log.topic_partition,
            result.end_offset,
            elapsed_ms,
            result.records_kept,
            result.records_read,
            result.bytes_read,
            result.bytes_written,
        )
        if result.keyless_records:
            logger.warning("%d records without a key were dropped from %s", result.keyless_records, log.topic_partition)
