"""The log manager: several directories, start and stop, creation, deletion, strays, failure of a directory."""

import errno
import os
import random

import pytest

from kafkapy.config import BrokerConfig, TopicConfig
from kafkapy.errors import StorageError
from kafkapy.storage.filesystem import Filesystem
from kafkapy.storage.log_creation import MOST_CREATED_WITH_SYNC_EACH
from kafkapy.types import TopicPartition
from tests.harness.log import batch
from tests.harness.log_manager import TOPIC_ID, ManagerHarness
from tests.lossy_filesystem import LossyFilesystem, PowerFailure


@pytest.fixture
def harness(tmp_path):
    return ManagerHarness(tmp_path)


@pytest.fixture
def two(tmp_path):
    return ManagerHarness(tmp_path, 2)


def test_clean_stop_and_start(harness):
    manager = harness.start()
    assert harness.broker_epoch == -1
    harness.create(manager).append_as_leader(batch(5), 3)
    manager.shutdown(broker_epoch=42)
    path = harness.paths[0]
    assert (path / ".kafka_cleanshutdown").read_text() == '{"version":0,"brokerEpoch":42}'
    assert (path / "recovery-point-offset-checkpoint").read_text() == "0\n1\nt 0 5\n"
    assert (path / "log-start-offset-checkpoint").read_text() == "0\n0\n"
    manager = harness.start()
    assert harness.broker_epoch == 42
    assert manager.was_clean(manager.directories[0])
    assert not (path / ".kafka_cleanshutdown").exists()
    log = manager.get_log(TopicPartition("t", 0))
    assert (log.log_end_offset, log.recovery_point, log.topic_id, log.latest_epoch) == (5, 5, TOPIC_ID, 3)
    assert manager.directories[0].directory_id == harness.directory_ids[0]
    manager.unlock()


def test_snapshots_of_earlier_stops_are_deleted_behind_the_start(harness):
    def snapshots():
        return sorted(int(path.stem) for path in (harness.paths[0] / "t-0").glob("*.snapshot"))

    harness.create(manager := harness.start())
    for stop in range(3):
        manager.get_log(TopicPartition("t", 0)).append_as_leader(batch(5), 1)
        manager.shutdown(1)
        before = snapshots()
        assert before[-1] == 5 * (stop + 1)
        manager = harness.start()
        assert snapshots() == before, "the start does not wait for the disk"
        while harness.scheduled:
            harness.scheduled.pop()[1]()
        assert snapshots() == before[-1:]
    manager.unlock()


def test_many_logs_are_synced_at_once(harness):
    manager = harness.start()
    for partition in range(70):
        harness.create(manager, partition=partition).append_as_leader(batch(2), 1)
    manager.shutdown(1)
    manager = harness.start()
    assert [log.recovery_point for log in manager.logs()] == [2] * 70
    assert all(log.latest_epoch == 1 for log in manager.logs())
    manager.unlock()


@pytest.mark.parametrize("count", [3, 70])
def test_a_clean_stop_is_durable_with_few_logs_and_with_many(tmp_path, count):
    root = tmp_path / "before"
    root.mkdir()
    harness = ManagerHarness(root)
    harness.filesystem = LossyFilesystem(str(root))
    manager = harness.start()
    for partition in range(count):
        harness.create(manager, partition=partition).append_as_leader(batch(2), 1)
    manager.shutdown(7)
    harness.filesystem.pull_the_plug(str(tmp_path / "after"))
    harness.filesystem.close()
    after = tmp_path / "after" / "logs-0"
    assert (after / ".kafka_cleanshutdown").read_text() == '{"version":0,"brokerEpoch":7}'
    for partition in range(count):
        log = after / f"t-{partition}"
        assert (log / f"{0:020d}.log").read_bytes() == (harness.paths[0] / log.name / f"{0:020d}.log").read_bytes()
        assert (log / "leader-epoch-checkpoint").read_text() == "0\n1\n1 0\n"
        assert (log / f"{2:020d}.snapshot").stat().st_size > 0
    assert (after / "recovery-point-offset-checkpoint").read_text().count(" 2\n") == count


def test_a_new_partition_goes_where_there_are_fewest(two):
    manager = two.start()
    for partition in range(4):
        two.create(manager, partition=partition)
    assert [sum(log.directory is directory for log in manager.logs()) for directory in manager.directories] == [2, 2]
    named = two.create(manager, partition=9, directory_id=two.directory_ids[1])
    assert named.directory.path == str(two.paths[1])
    assert manager.directory_of(TopicPartition("t", 9)).directory_id == two.directory_ids[1]
    assert two.create(manager, partition=9) is named
    manager.shutdown(7)
    os.remove(two.paths[0] / ".kafka_cleanshutdown")
    manager = two.start()
    assert two.broker_epoch == -1
    assert len(manager.logs()) == 5
    manager.unlock()


@pytest.mark.parametrize(("cordoned", "counts"), [([1], [4, 0]), ([0, 1], [2, 2])], ids=["one", "all"])
def test_a_cordoned_directory_gets_no_new_partitions(two, cordoned, counts):
    """If all directories are cordoned, the partitions that are assigned to the broker by hand are spread over them."""
    value = ",".join(str(two.paths[index]) for index in cordoned)
    two.config = BrokerConfig({**two.config.originals, "cordoned.log.dirs": value})
    manager = two.start()
    assert set(manager.cordoned_directories()) == {two.directory_ids[index] for index in cordoned}
    for partition in range(4):
        two.create(manager, partition=partition)
    assert [sum(log.directory is directory for log in manager.logs()) for directory in manager.directories] == counts
    named = two.create(manager, partition=9, directory_id=two.directory_ids[1])
    assert named.directory.path == str(two.paths[1])
    manager.unlock()


def test_a_log_that_may_be_in_an_offline_directory_is_not_created_anew(two):
    manager = two.start()
    manager.take_offline(str(two.paths[1]), OSError(5, "Input/output error"))
    with pytest.raises(StorageError, match=rf"t-0 was found, and it may be in {two.paths[1]}"):
        two.create(manager, is_new=False)
    assert two.create(manager, partition=1, directory_id=two.directory_ids[1]).directory.path == str(two.paths[0])
    manager.unlock()


class CountingFilesystem(Filesystem):
    """Counts the syncs; one of the whole file system is counted as "all"."""

    __slots__ = ("syncs",)

    def __init__(self):
        self.syncs = []

    def sync_file(self, fd):
        self.syncs.append("file")

    def sync_directory(self, path):
        self.syncs.append("directory")

    def sync_filesystem(self, path):
        self.syncs.append("all")


@pytest.mark.parametrize(
    ("count", "syncs"), [(1, 3), (MOST_CREATED_WITH_SYNC_EACH, 2 * MOST_CREATED_WITH_SYNC_EACH + 1), (100, 1)]
)
def test_many_logs_are_created_with_one_sync(harness, count, syncs):
    harness.filesystem = CountingFilesystem()
    manager = harness.start()
    harness.filesystem.syncs.clear()
    logs = manager.create_logs([harness.new_log(partition=number) for number in range(count)])
    assert len(harness.filesystem.syncs) == syncs
    assert logs == [manager.get_log(TopicPartition("t", number)) for number in range(count)]
    assert [log.topic_partition.partition for log in logs] == list(range(count))
    assert manager.create_logs([harness.new_log(partition=number) for number in range(count)]) == logs
    manager.unlock()


def test_logs_that_are_created_together_are_spread_over_the_directories(two):
    manager = two.start()
    two.create(manager, partition=10, directory_id=two.directory_ids[1])
    wanted = [two.new_log(partition=number) for number in range(5)]
    wanted.append(two.new_log(partition=5, directory_id=two.directory_ids[1]))
    paths = [log.directory.path for log in manager.create_logs(wanted)]
    assert paths == [str(two.paths[number]) for number in (0, 0, 1, 0, 1, 1)]
    manager.unlock()


def test_an_error_in_one_directory_fails_the_logs_there_and_no_other_ones(two):
    manager = two.start()
    (two.paths[1] / "t-3").write_bytes(b"not a directory")
    found = manager.create_logs([two.new_log(partition=number) for number in range(4)])
    assert [isinstance(each, StorageError) for each in found] == [False, True, False, True]
    assert two.failures == [str(two.paths[1])]
    assert [log.topic_partition.partition for log in manager.logs()] == [0, 2]
    manager.unlock()


@pytest.mark.parametrize("fail_at", [0, None])
def test_a_power_failure_leaves_whole_directories_or_none(harness, tmp_path, fail_at):
    """The logs of many partitions are durable together; before that, the next start removes what is there of them."""
    lossy = harness.filesystem = LossyFilesystem(str(harness.paths[0]))
    manager = harness.start()
    lossy.fail_at = fail_at if fail_at is None else lossy.syncs + fail_at
    wanted = [harness.new_log(partition=number) for number in range(40)]
    if fail_at is None:
        manager.create_logs(wanted)
    else:
        with pytest.raises(PowerFailure):
            manager.create_logs(wanted)
    survived = tmp_path / "survived"
    lossy.pull_the_plug(str(survived), random.Random(3))
    lossy.close()
    again = ManagerHarness(tmp_path / "again", paths=[survived])
    logs = again.start().logs()
    assert len(logs) == 40 if fail_at is None else len(logs) < 40
    assert all(log.topic_id == TOPIC_ID for log in logs)
    assert len(list(survived.glob("t-*"))) == len(logs)


def test_partition_metadata_is_there_before_the_log(harness):
    manager = harness.start()
    log = harness.create(manager, "topic-with-dashes", 3)
    names = sorted(os.listdir(log.path))
    assert names == [
        "00000000000000000000.index",
        "00000000000000000000.log",
        "00000000000000000000.timeindex",
        "partition.metadata",
    ]
    assert os.path.basename(log.path) == "topic-with-dashes-3"
    manager.unlock()


def test_a_deleted_log_is_renamed_at_once_and_removed_later(harness):
    manager = harness.start()
    log = harness.create(manager)
    log.append_as_leader(batch(), 0)
    data = log.read(0, 1000)
    manager.delete_log(TopicPartition("t", 0))
    assert manager.get_log(TopicPartition("t", 0)) is None
    [name] = [name for name in os.listdir(harness.paths[0]) if name.endswith("-delete")]
    assert name.startswith("t-0.")
    harness.create(manager).append_as_leader(batch(), 0)
    [(delay_ms, work)] = harness.scheduled
    assert delay_ms == 60_000
    work()
    assert not [name for name in os.listdir(harness.paths[0]) if name.endswith("-delete")]
    assert len(data.records.read()) == len(data.records)
    assert manager.get_log(TopicPartition("t", 0)).log_end_offset == 1
    manager.unlock()


def test_only_the_owner_closes_the_files_of_a_deleted_log(harness):
    for_owner = []
    manager = harness.start(run_on_owner=for_owner.append)
    log = harness.create(manager)
    log.append_as_leader(batch(), 0)
    file = log.segments.active.file
    manager.delete_log(TopicPartition("t", 0))
    [(_, remove)] = harness.scheduled
    remove()
    assert not file.closed
    [close] = for_owner
    close()
    assert file.closed
    assert file.fd == -1
    manager.unlock()


def test_retention_leaves_a_deleted_log_alone(harness):
    manager = harness.start()
    log = harness.create(manager)
    log.append_as_leader(batch(), 0)
    log.high_watermark = 1
    manager.update_topic_config("t", TopicConfig(harness.config, {"retention.ms": "0"}))
    harness.clock.advance(1)
    log.mark_deleted()
    assert log.delete_old_segments() == 0
    assert len(log.segments) == 1
    manager.unlock()


def test_a_pending_deletion_goes_on_after_a_restart(harness):
    manager = harness.start()
    harness.create(manager)
    manager.delete_log(TopicPartition("t", 0))
    manager.unlock()
    harness.scheduled.clear()
    manager = harness.start()
    assert manager.logs() == []
    harness.scheduled[0][1]()
    assert not [name for name in os.listdir(harness.paths[0]) if name.startswith("t-0")]
    manager.unlock()


def test_strays_are_renamed_and_stay(harness):
    manager = harness.start()
    harness.create(manager, "known")
    harness.create(manager, "gone")
    harness.create(manager, "nameless")
    manager.shutdown(1)
    os.remove(harness.paths[0] / "nameless-0" / "partition.metadata")
    (harness.paths[0] / "lost+found").mkdir()
    manager = harness.start(lambda topic_id, partition: topic_id is None or partition.topic == "gone")
    assert [log.topic_partition.topic for log in manager.logs()] == ["known"]
    strays = sorted(name for name in os.listdir(harness.paths[0]) if name.endswith("-stray"))
    assert [name.split(".")[0] for name in strays] == ["gone-0", "nameless-0"]
    manager.shutdown(1)
    manager = harness.start()
    assert sorted(name for name in os.listdir(harness.paths[0]) if name.endswith("-stray")) == strays
    manager.unlock()


@pytest.mark.parametrize("name", ["recovery-point-offset-checkpoint", "log-start-offset-checkpoint"])
@pytest.mark.parametrize("content", ["7\n0\n", "0\n2\nt 0 4\nu 0", "0\n", "\n"])
def test_a_damaged_checkpoint_takes_the_directory_offline(two, name, content):
    """A broker that ignored the damage could return deleted records; Kafka does the same."""
    manager = two.start()
    manager.shutdown(1)
    with open(os.path.join(two.paths[1], name), "w") as file:
        file.write(content)
    again = two.start()
    assert [directory.is_online for directory in again.directories] == [True, False]


@pytest.mark.parametrize("name", ["photos", "a-b", "t-0.copy", "-3"])
def test_a_foreign_directory_is_refused_before_anything_is_done(harness, name):
    manager = harness.start()
    manager.shutdown(1)
    marker = os.path.join(harness.paths[0], ".kafka_cleanshutdown")
    os.mkdir(os.path.join(harness.paths[0], name))
    with pytest.raises(StorageError, match="is not in the form of topic-partition"):
        harness.start()
    assert os.path.exists(marker)


def test_the_same_partition_twice_is_refused(two):
    manager = two.start()
    two.create(manager, directory_id=two.directory_ids[0])
    manager.shutdown(1)
    os.system(f"cp -r {two.paths[0]}/t-0 {two.paths[1]}/t-0")
    with pytest.raises(StorageError, match="Duplicate log directories for t-0"):
        two.start()


class Broken(Filesystem):
    """A filesystem whose syncs fail below one directory."""

    __slots__ = ("path",)

    def __init__(self, path):
        self.path = str(path)

    def sync_file(self, fd):
        if os.readlink(f"/proc/self/fd/{fd}").startswith(self.path):
            raise OSError(errno.EIO, "Input/output error")
        super().sync_file(fd)


def test_a_failed_directory_leaves_the_others(two):
    manager = two.start()
    logs = [two.create(manager, partition=number, directory_id=two.directory_ids[number]) for number in (0, 1)]
    manager.shutdown(1)
    two.filesystem = Broken(two.paths[0])
    manager = two.start()
    logs = [manager.get_log(TopicPartition("t", number)) for number in (0, 1)]
    for log in logs:
        log.append_as_leader(batch(), 0)
    with pytest.raises(StorageError, match=r"trying to flush t-0: .*Input/output error"):
        logs[0].flush()
    assert two.failures == [str(two.paths[0])]
    assert [directory.is_online for directory in manager.directories] == [False, True]
    assert manager.get_log(TopicPartition("t", 0)) is None
    with pytest.raises(StorageError, match="log directory of t-0 is offline"):
        logs[0].append_as_leader(batch(), 0)
    logs[1].append_as_leader(batch(), 0)
    assert two.create(manager, partition=5).directory.path == str(two.paths[1])
    described = manager.describe_directories()
    assert [description.total_bytes >= 0 for description in described] == [False, True]
    assert described[1].sizes[TopicPartition("t", 1)] == logs[1].size
    manager.shutdown(9)
    assert not (two.paths[0] / ".kafka_cleanshutdown").exists()
    assert (two.paths[1] / ".kafka_cleanshutdown").exists()
    assert two.failures == [str(two.paths[0])]


def test_no_directory_left(harness):
    manager = harness.start()
    manager.take_offline(str(harness.paths[0]), OSError(errno.EIO, "Input/output error"))
    with pytest.raises(StorageError, match="no log directory is usable: Input/output error"):
        harness.create(manager)
    manager.unlock()


def test_flush_retention_and_expiry_run_periodically(tmp_path):
    harness = ManagerHarness(tmp_path, **{"log.retention.ms": "1000", "log.flush.interval.ms": "500"})
    manager = harness.start()
    log = harness.create(manager)
    log.append_as_leader(batch(3, producer_id=1, producer_epoch=0, base_sequence=0), 0)
    manager.run_flush()
    assert log.recovery_point == 0
    harness.clock.advance(500)
    manager.run_flush()
    assert log.recovery_point == 3
    log.high_watermark = 3
    manager.checkpoints.write_high_watermarks()
    assert (harness.paths[0] / "replication-offset-checkpoint").read_text() == "0\n1\nt 0 3\n"
    harness.clock.advance(2000)
    assert manager.run_retention() == 1
    assert (log.log_start_offset, log.size) == (3, 0)
    assert manager.remove_expired_producers() == 0
    harness.clock.advance(86_400_000)
    assert manager.remove_expired_producers() == 1
    manager.shutdown(1)


def test_a_change_of_the_expiration_of_producers_applies_at_once_and_at_the_next_start(harness):
    harness.config.apply_dynamic({"producer.id.expiration.ms": "1000"}, {})
    manager = harness.start()
    log = harness.create(manager)
    log.append_as_leader(batch(3, producer_id=1, producer_epoch=0, base_sequence=0), 0)
    harness.clock.advance(999)
    assert manager.remove_expired_producers() == 0
    harness.config.apply_dynamic({"producer.id.expiration.ms": "172800000"}, {})
    harness.clock.advance(86_400_001)
    assert manager.remove_expired_producers() == 0
    manager.shutdown(1)
    again = harness.start()
    assert len(again.get_log(log.topic_partition).producers.entries) == 1
    harness.config.apply_dynamic({}, {})
    assert again.remove_expired_producers() == 1
    again.shutdown(1)


def test_log_start_offset_survives(harness):
    manager = harness.start()
    log = harness.create(manager)
    log.append_as_leader(batch(10), 0)
    log.high_watermark = 10
    log.maybe_increment_log_start_offset(7)
    manager.checkpoints.write_log_start_offsets()
    manager.unlock()
    manager = harness.start()
    assert manager.get_log(TopicPartition("t", 0)).log_start_offset == 7
    manager.unlock()


def test_a_new_log_has_nothing_of_the_checkpoints_of_a_deleted_one(harness):
    manager = harness.start()
    log = harness.create(manager)
    log.append_as_leader(batch(10), 0)
    log.flush()
    log.high_watermark = 10
    log.maybe_increment_log_start_offset(7)
    checkpoints = [
        (manager.checkpoints.write_recovery_points, "recovery-point-offset-checkpoint", 10),
        (manager.checkpoints.write_log_start_offsets, "log-start-offset-checkpoint", 7),
        (manager.checkpoints.write_high_watermarks, "replication-offset-checkpoint", 10),
    ]
    for write, name, offset in checkpoints:
        write()
        assert (harness.paths[0] / name).read_text() == f"0\n1\nt 0 {offset}\n"
    manager.directories[0].cleaner_offsets.write({TopicPartition("t", 0): 10})
    manager.delete_log(TopicPartition("t", 0))
    harness.create(manager).append_as_leader(batch(3), 0)
    for name in [*(name for _, name, _ in checkpoints), "cleaner-offset-checkpoint"]:
        assert (harness.paths[0] / name).read_text() == "0\n0\n"
    manager.unlock()
    manager = harness.start()  # after a kill
    log = manager.get_log(TopicPartition("t", 0))
    assert (log.log_start_offset, log.log_end_offset) == (0, 3)
    manager.unlock()


def test_a_log_is_created_beside_a_damaged_checkpoint_of_the_cleaner(harness):
    """The cleaner replaces its damaged file, and only repeats some work."""
    manager = harness.start()
    (harness.paths[0] / "cleaner-offset-checkpoint").write_text("7\n0\n")
    assert harness.create(manager).log_end_offset == 0
    assert manager.directories[0].is_online
    manager.unlock()


def test_a_changed_topic_configuration_reaches_the_logs(harness):
    manager = harness.start()
    log = harness.create(manager)
    manager.update_topic_config("t", TopicConfig(harness.config, {"max.message.bytes": "100"}))
    assert log.config.max_message_bytes == 100
    manager.unlock()


def test_a_deleted_log_fails_alone(harness):
    harness.config = BrokerConfig({**harness.config.originals, "log.segment.bytes": "1048576"})
    manager = harness.start()
    log = harness.create(manager)
    log.append_as_leader(batch(10, value=bytes(50_000)), 0)
    manager.delete_log(TopicPartition("t", 0))
    harness.scheduled[0][1]()
    log.flush()
    with pytest.raises(StorageError, match=r"append to t-0: .*No such file"):  # noqa: PT012 - one of them rolls
        for _ in range(3):
            log.append_as_leader(batch(10, value=bytes(50_000)), 0)
    with pytest.raises(StorageError, match=r"read t-0: .*No such file"):
        log.read(0, 1000)
    assert harness.failures == []
    assert manager.directories[0].is_online
    manager.unlock()


@pytest.mark.parametrize("offset", [2, 0])
def test_a_truncation_lowers_the_recovery_point_in_the_checkpoint(harness, offset):
    """After a power failure, the records that replaced the truncated ones would have counted as durable."""
    manager = harness.start()
    log = harness.create(manager)
    for _ in range(5):
        log.append_as_leader(batch(), 0)
    log.flush()
    manager.checkpoints.write_recovery_points()
    if offset:
        log.truncate_to(offset)
    else:
        log.truncate_fully_and_start_at(offset)
    assert (harness.paths[0] / "recovery-point-offset-checkpoint").read_text() == f"0\n1\nt 0 {offset}\n"
    manager.unlock()


def test_records_below_the_earlier_start_offset_survive_a_kill(harness):
    """A follower that truncates below its start offset, after an unclean election, continues there."""
    manager = harness.start()
    log = harness.create(manager)
    log.append_as_leader(batch(10), 0)
    log.high_watermark = 10
    log.maybe_increment_log_start_offset(7)
    manager.checkpoints.write_log_start_offsets()
    log.truncate_fully_and_start_at(3)
    log.append_as_leader(batch(2), 1)
    manager.unlock()
    manager = harness.start()
    log = manager.get_log(TopicPartition("t", 0))
    assert (log.log_start_offset, log.log_end_offset) == (3, 5)
    manager.unlock()


def test_recovery_that_removes_records_lowers_the_recovery_point_in_the_checkpoint(harness):
    """After another kill, the records that follow would otherwise count as durable."""
    manager = harness.start()
    log = harness.create(manager)
    for _ in range(5):
        log.append_as_leader(batch(), 0)
    log.flush()
    manager.checkpoints.write_recovery_points()
    path = log.segments.active.file.path
    manager.unlock()
    with open(path, "r+b") as file:
        file.truncate(log.size - 1)
    manager = harness.start()
    assert manager.get_log(TopicPartition("t", 0)).log_end_offset == 4
    assert (harness.paths[0] / "recovery-point-offset-checkpoint").read_text() == "0\n1\nt 0 4\n"
    manager.unlock()
