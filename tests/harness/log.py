"""Logs in a directory for tests, with a mock clock and lists of scheduled work and of failures."""

import struct
from collections.abc import Callable
from pathlib import Path

from kafkapy._core.bytes.record_batch import RecordBatchBuilder, iterate_batches
from kafkapy.config import BrokerConfig, TopicConfig
from kafkapy.storage.control_record import ABORT, COMMIT
from kafkapy.storage.filesystem import Filesystem
from kafkapy.storage.log_config import LogConfig
from kafkapy.storage.log_directory import LogDirectory
from kafkapy.storage.log_ports import LogPorts
from kafkapy.storage.log_recovery import LogLoader
from kafkapy.types import ZERO_UUID, TopicPartition
from tests.mock_clock import MockClock

NOW_MS = 1_700_000_000_000


def batch(count=1, *, timestamp=NOW_MS, value=b"value", key=None, **keywords):
    """Returns an encoded batch of `count` records, one millisecond apart, as a client would send it."""
    builder = RecordBatchBuilder(**keywords)
    for number in range(count):
        builder.append(timestamp + number, key, value)
    return bytearray(builder.build())


def with_base_offset(records, base_offset):
    """Returns the batch with another base offset, as a leader sends it; the checksum does not cover the offset."""
    return base_offset.to_bytes(8, "big") + bytes(records)[8:]


def values_of(fetched):
    """Returns (offset, value) of every record of the whole batches that a read returned."""
    data = fetched.records if isinstance(fetched.records, bytes) else fetched.records.read()
    return [(record.offset, record.value) for found in iterate_batches(data) for record in found]


def topic_config(overrides=None):
    config = {name: str(value) for name, value in (overrides or {}).items()}
    return TopicConfig(BrokerConfig({"process.roles": "broker,controller", "node.id": "1"}), config)


class LogHarness:
    """A log directory and the dependencies of its logs."""

    def __init__(self, root, *, filesystem=None, is_clean=False):
        self.root = Path(root)
        self.path = self.root / "t-0"
        self.clock = MockClock(NOW_MS)
        self.filesystem = filesystem or Filesystem()
        self.is_clean = is_clean
        self.failures: list[tuple[str, OSError]] = []
        self.scheduled: list[Callable[[], object]] = []
        self.directory = LogDirectory(str(self.root), self.filesystem)
        self.ports = LogPorts(
            self.filesystem,
            self.clock,
            schedule=lambda delay_ms, work: self.scheduled.append(work),
            on_io_error=self._on_io_error,
        )

    def _on_io_error(self, path, error):
        self.directory.take_offline()
        self.failures.append((path, error))

    def log(self, overrides=None, *, name="t", recovery_point=0, log_start_offset=0, topic_id=ZERO_UUID):
        """Opens the log of `<name>-0`, which is created if it does not exist."""
        path = self.root / f"{name}-0"
        self.filesystem.make_directory(str(path))
        loader = LogLoader(
            TopicPartition(name, 0),
            self.directory,
            str(path),
            LogConfig(topic_config(overrides)),
            self.ports,
            is_clean=self.is_clean,
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
            topic_id=topic_id,
        )
        return loader.load()

    def run_scheduled(self):
        scheduled, self.scheduled = self.scheduled, []
        for work in scheduled:
            work()

    def marker(self, producer_id, producer_epoch, *, commit, coordinator_epoch=0):
        """Returns a control batch that ends a transaction."""
        builder = RecordBatchBuilder(
            producer_id=producer_id, producer_epoch=producer_epoch, is_transactional=True, is_control=True
        )
        key = struct.pack(">hh", 0, COMMIT if commit else ABORT)
        builder.append(self.clock.wall_ms(), key, struct.pack(">hi", 0, coordinator_epoch))
        return bytearray(builder.build())
