"""A broker's log directories, and log managers that are started on them, one after the other."""

from typing import Any

from kafkapy.config import BrokerConfig, TopicConfig
from kafkapy.errors import StorageError
from kafkapy.storage.filesystem import Filesystem
from kafkapy.storage.future_logs import assigned_everywhere
from kafkapy.storage.log import Log
from kafkapy.storage.log_creation import NewLog
from kafkapy.storage.log_manager import LogManager
from kafkapy.storage.meta_properties import MetaProperties, write_meta_properties
from kafkapy.types import TopicPartition, random_uuid
from tests.mock_clock import MockClock

TOPIC_ID = random_uuid()


def create_log(
    manager: LogManager, partition: TopicPartition, topic_id: bytes, topic_config: TopicConfig, **keywords: Any
) -> Log:
    """Returns the log of a partition, which is created if it does not exist. `keywords` are further fields of NewLog.
    Raises StorageError."""
    (found,) = manager.create_logs([NewLog(partition, topic_id, topic_config, **keywords)])
    if isinstance(found, StorageError):
        raise found
    return found


class ManagerHarness:
    """The directories, and what their managers have scheduled and reported."""

    def __init__(self, root, directories=1, *, paths=None, **properties):
        self.paths = paths or [root / f"logs-{number}" for number in range(directories)]
        self.directory_ids = [random_uuid() for _ in self.paths]
        for path, directory_id in zip(self.paths, self.directory_ids, strict=True):
            path.mkdir(exist_ok=True)
            write_meta_properties(Filesystem(), str(path), MetaProperties("cluster", 1, directory_id))
        self.config = BrokerConfig(
            {
                "process.roles": "broker,controller",
                "node.id": "1",
                "log.dirs": ",".join(str(path) for path in self.paths),
                **properties,
            }
        )
        self.clock = MockClock()
        self.filesystem = Filesystem()
        self.scheduled = []
        self.failures = []

    def topic_config(self, topic="t"):
        return TopicConfig(self.config, {})

    def start(
        self,
        is_stray=lambda topic_id, partition: topic_id is None,
        *,
        is_assigned=assigned_everywhere,
        **ports,
    ):
        """Starts a manager on the directories, as a broker does."""
        manager = LogManager(
            self.config,
            filesystem=self.filesystem,
            clock=self.clock,
            on_directory_failure=lambda path, error: self.failures.append(path),
            schedule=lambda delay_ms, work: self.scheduled.append((delay_ms, work)),
            **ports,
        )
        manager.lock()
        self.broker_epoch = manager.take_clean_shutdown_markers()
        manager.startup(self.topic_config, is_stray, is_assigned)
        return manager

    def new_log(self, topic="t", partition=0, **keywords):
        return NewLog(TopicPartition(topic, partition), TOPIC_ID, self.topic_config(), **keywords)

    def create(self, manager, topic="t", partition=0, **keywords):
        return create_log(manager, TopicPartition(topic, partition), TOPIC_ID, self.topic_config(), **keywords)
