"""The power fails after every sync of a log's life: no acknowledged record may be lost.

With `flush.messages=1` an append is acknowledged when it returns. Only data that passed through `sync_file` and
`sync_directory` of the Filesystem survive.
"""

import random

import pytest

from kafkapy.config import BrokerConfig, TopicConfig
from kafkapy.storage.log_manager import LogManager
from kafkapy.storage.meta_properties import MetaProperties, write_meta_properties
from kafkapy.types import TopicPartition, random_uuid
from tests.harness.log import batch, values_of
from tests.harness.log_manager import create_log
from tests.lossy_filesystem import LossyFilesystem, PowerFailure
from tests.mock_clock import MockClock

PARTITION = TopicPartition("t", 0)
TOPIC_ID = random_uuid()


class Broker:
    """A log manager on a disk that loses unsynced data, and the values that it acknowledged."""

    def __init__(self, path, filesystem, *, acknowledged=()):
        overrides = {"flush.messages": "1", "segment.bytes": "1048576", "index.interval.bytes": "4096"}
        self.filesystem = filesystem
        self.config = BrokerConfig({"process.roles": "broker,controller", "node.id": "1", "log.dirs": str(path)})
        self.topic_config = TopicConfig(self.config, overrides)
        self.clock = MockClock()
        self.scheduled = []
        self.failures = []
        self.acknowledged = list(acknowledged)
        self.truncated_to = None
        self.manager = LogManager(
            self.config,
            filesystem=filesystem,
            clock=self.clock,
            on_directory_failure=lambda path, error: self.failures.append(error),
            schedule=lambda delay_ms, work: self.scheduled.append(work),
        )

    def start(self):
        self.manager.startup(lambda topic: self.topic_config, lambda topic_id, partition: topic_id is None)
        return self

    def live(self, seed):
        """Creates the partition, then appends, rolls, moves the log start offset, and stops cleanly."""
        chance = random.Random(seed)
        log = create_log(self.manager, PARTITION, TOPIC_ID, self.topic_config)
        for _ in range(20):
            count = chance.randint(1, 20)
            value = bytes([chance.randrange(256)]) * chance.choice((10, 3000, 9000))
            sequence = log.log_end_offset
            records = batch(count, value=value, producer_id=1, producer_epoch=0, base_sequence=sequence)
            log.append_as_leader(records, max(0, log.latest_epoch) + (chance.random() < 0.1))
            self.acknowledged += [value] * count
            log.high_watermark = log.log_end_offset
            action = chance.randrange(8)
            if action == 0:
                log.roll()
            elif action == 1:
                self.manager.checkpoints.write_recovery_points()
            elif action == 2:
                log.maybe_increment_log_start_offset(chance.randint(log.log_start_offset, log.log_end_offset))
                log.delete_old_segments()
                self.manager.checkpoints.write_log_start_offsets()
            elif action == 3:
                for work in self.scheduled:
                    work()
                self.scheduled.clear()
        self.manager.shutdown(11)


def check(path, broker):
    """Opens the surviving directory on a disk without failures, and checks every acknowledged record."""
    survivor = Broker(path, LossyFilesystem(str(path)), acknowledged=broker.acknowledged).start()
    log = survivor.manager.get_log(PARTITION)
    if log is None:
        assert not broker.acknowledged
        return
    assert log.log_end_offset >= len(broker.acknowledged), "an acknowledged record is lost"
    offset, seen = log.log_start_offset, {}
    while offset < log.log_end_offset:
        found = values_of(log.read(offset, 1 << 20))
        assert found, f"nothing to read at {offset}"
        seen.update(found)
        offset = found[-1][0] + 1
    numbers = [number for number in seen if number >= log.log_start_offset]
    assert numbers == list(range(log.log_start_offset, log.log_end_offset)), "offsets are not dense"
    for number in numbers[: len(broker.acknowledged)]:
        if number < len(broker.acknowledged):
            assert seen[number] == broker.acknowledged[number]
    for segment in log.segments:
        for slot in range(segment.offset_index.entries):
            entry_offset, position = segment.offset_index.entry(slot)
            found = segment.find(entry_offset)
            assert found is not None
            assert found[0] == position
    if log.log_end_offset > log.log_start_offset:
        assert log.producers.entries[1].last_sequence == log.log_end_offset - 1
    again = log.append_as_leader(batch(3), max(0, log.latest_epoch))
    assert again.first_offset == log.log_end_offset - 3
    survivor.filesystem.close()


@pytest.mark.parametrize("seed", range(2))
def test_power_failure_after_every_sync(tmp_path, seed):
    failed_at, syncs = 0, 1
    while failed_at < syncs:
        root = tmp_path / f"life-{failed_at}"
        root.mkdir()
        filesystem = LossyFilesystem(str(root))
        write_meta_properties(filesystem, str(root), MetaProperties("cluster", 1, random_uuid()))
        before = filesystem.syncs
        filesystem.fail_at = before + failed_at
        broker = Broker(root, filesystem)
        try:
            broker.start().live(seed)
            syncs = filesystem.syncs - before
        except PowerFailure:
            syncs = failed_at + 2
        survived = tmp_path / f"survived-{failed_at}"
        filesystem.pull_the_plug(str(survived))
        filesystem.close()
        assert not broker.failures
        check(survived, broker)
        failed_at += 1


@pytest.mark.parametrize("seed", range(20))
def test_torn_and_damaged_tails(tmp_path, seed):
    """Cuts, overwrites or zeroes the bytes after the last sync; the bytes before it must survive."""
    chance = random.Random(seed)
    filesystem = LossyFilesystem(str(tmp_path / "life")) if (tmp_path / "life").mkdir() is None else None
    write_meta_properties(filesystem, str(tmp_path / "life"), MetaProperties("cluster", 1, random_uuid()))
    broker = Broker(tmp_path / "life", filesystem).start()
    broker.topic_config = TopicConfig(broker.config, {"segment.bytes": "1048576"})
    log = create_log(broker.manager, PARTITION, TOPIC_ID, broker.topic_config)
    flushed = chance.randint(0, 20)
    flushed_size = 0
    for number in range(30):
        value = bytes([number]) * 500
        log.append_as_leader(batch(2, value=value, producer_id=1, producer_epoch=0, base_sequence=2 * number), 0)
        if number <= flushed:
            broker.acknowledged += [value] * 2
        if number == flushed:
            log.flush()
            broker.manager.checkpoints.write_recovery_points()
            flushed_size = log.size
    path = tmp_path / "life" / "t-0" / "00000000000000000000.log"
    size = path.stat().st_size
    with open(path, "r+b") as file:
        at = chance.randint(flushed_size, size)
        kind = chance.randrange(3)
        if kind == 0:
            file.truncate(at)
        else:
            file.seek(at)
            length = chance.randint(0, size - at)
            file.write(bytes(length) if kind == 1 else chance.randbytes(length))
    filesystem.close()
    check(tmp_path / "life", broker)
