"""A broker's logs in two directories, and moves between them on the test's own thread."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path

from kafkapy.replica.replica_alter_log_dirs import ReplicaAlterLogDirsManager
from kafkapy.storage.filesystem import Filesystem
from kafkapy.storage.log import Log
from kafkapy.storage.log_cleaner_manager import LogCleanerManager
from kafkapy.storage.meta_properties import MetaProperties, write_meta_properties
from kafkapy.types import TopicPartition
from tests.harness.replica import ReplicaHarness, partition_image, values_of

T0 = TopicPartition("t", 0)


class MoveHarness(ReplicaHarness):
    """Logs with moves between them. `assigned` stands for the metadata: partition -> directory id.

    `meanwhile()` is called before each piece of work that a move runs on the owner's thread; it stands for requests.
    """

    def __init__(self, root, *, assigned=None, start_thread=None, overrides=None, **keywords):
        self.assigned = {} if assigned is None else assigned
        self.meanwhile = lambda: None
        for number in range(2):
            directory = root / f"logs{number}"
            if not directory.exists():
                directory.mkdir(parents=True)
                properties = MetaProperties("cluster", 1, bytes([number + 1]) * 16)
                write_meta_properties(Filesystem(), str(directory), properties)
        super().__init__(root, directories=2, overrides=overrides, **keywords)
        self.first, self.second = self.log_manager.directories
        self.cleaner = LogCleanerManager(self.log_manager, self.clock, self.on_owner)
        self.moves = ReplicaAlterLogDirsManager(
            self.config,
            self.log_manager,
            self.manager,
            self.cleaner,
            clock=self.clock,
            run_on_owner=self.on_owner,
            assign_directories=self.assign,
            start_thread=start_thread or (lambda work, name: work()),
        )

    def is_assigned(self, topic_id, partition, directory_id):
        return self.assigned.get(partition, directory_id) == directory_id

    def on_owner(self, work):
        self.meanwhile()
        return work()

    def assign(self, directories):
        for (_, number), directory_id in directories.items():
            self.assigned[TopicPartition("t", number)] = directory_id
        future: Future[None] = Future()
        future.set_result(None)
        return future

    def create(self, configs=None):
        self.put_topic("t", [partition_image()], configs=configs)
        return self.log()

    def log(self) -> Log:
        log = self.log_manager.get_log(T0)
        assert log is not None
        return log

    def move(self, directory, partition=T0):
        return self.moves.alter({partition: directory.path})[partition]

    def values(self):
        """Returns every value of the partition, read by fetch requests."""
        found, log = [], self.log_manager.get_log(T0)
        assert log is not None
        offset = log.log_start_offset
        while offset < log.log_end_offset:
            (result,) = self.fetch(offset, partition_max_bytes=1 << 30, max_bytes=1 << 30)
            values = values_of(result)
            assert values, result
            found += values
            offset += len(values)
        return found

    def names(self):
        """Returns the partition directories of each log directory: partition and suffix ("" for a current one)."""
        return [
            sorted(
                (path.name.split(".")[0], path.name.rpartition("-")[2] if "." in path.name else "")
                for path in Path(directory.path).iterdir()
                if path.is_dir()
            )
            for directory in self.log_manager.directories
        ]
