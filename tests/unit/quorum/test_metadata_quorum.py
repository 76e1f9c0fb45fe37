"""A metadata log that is started, stopped, killed and started again; damaged, and refused or repaired."""

import logging
import shutil

import pytest

from kafkapy._core.bytes.record_batch import RecordBatch, RecordBatchBuilder, iterate_batches
from kafkapy.controller.result import ControllerResult
from kafkapy.errors import ConfigError, StorageError
from kafkapy.metadata.image_writer import snapshot_records
from kafkapy.protocol.messages.metadata_records import (
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    FeatureLevelRecord,
    TopicRecord,
)
from kafkapy.quorum.controller_loop import LONG_REPLAY
from kafkapy.quorum.metadata_batch import decode_control_batch, decode_metadata_batch, metadata_batches
from kafkapy.quorum.metadata_log import EMPTY_PRODUCER_SNAPSHOT
from kafkapy.quorum.snapshot import snapshot_bytes, write_snapshot
from kafkapy.types import OffsetAndEpoch, uuid_to_string
from tests.harness.metadata import QuorumHarness


@pytest.fixture
def harness(tmp_path):
    return QuorumHarness(tmp_path / "data")


def contents(harness):
    """Returns (epoch, record type) of everything in the log."""
    found = []
    for batch in iterate_batches(harness.log_file.read_bytes()):
        decode = decode_control_batch if batch.is_control else decode_metadata_batch
        found += [(batch.partition_leader_epoch, type(message).__name__) for message in decode(batch)]
    return found


FIRST_START = [
    "LeaderChangeMessage", "KRaftVersionRecord", "VotersRecord", "BeginTransactionRecord",
    *["FeatureLevelRecord"] * 6, "ConfigRecord", "EndTransactionRecord", "RegisterControllerRecord",
    "RegisterBrokerRecord", "BrokerRegistrationChangeRecord",
]  # fmt: skip


def test_first_start_writes_what_kafka_writes(harness):
    harness.start()
    assert contents(harness) == [(1, kind) for kind in FIRST_START]
    image = harness.loop.image
    assert image.metadata_version == 30 and image.elr_enabled
    assert image.brokers[1].epoch == 13 and image.brokers[1].is_active
    harness.stop()


def test_clean_stops_and_starts_lose_nothing(harness):
    harness.start()
    harness.create_topic("a", 3)
    before = harness.loop.image.topics.by_name["a"]
    for cycle in range(1, 4):
        harness.stop()
        stopped = harness.loop.image.topics.by_name["a"].partitions[0]
        assert (stopped.leader, stopped.isr, stopped.elr) == (-1, (), (1,))
        image = harness.start().image
        partition = image.topics.by_name["a"].partitions[2]
        assert image.topics.by_name["a"].topic_id == before.topic_id
        assert (partition.leader, partition.isr, partition.leader_epoch) == (1, (1,), 2 * cycle)
        assert (partition.leader_recovery_state, image.epoch) == (0, cycle + 1)
    harness.stop()
    assert not harness.faults


def test_a_start_after_a_kill_recovers_the_leader(harness):
    harness.start()
    harness.create_topic("a")
    harness.kill()
    image = harness.start().image
    partition = image.topics.by_name["a"].partitions[0]
    assert (partition.leader, partition.isr, partition.elr, partition.last_known_elr) == (1, (1,), (), ())
    assert partition.leader_recovery_state == 1
    harness.stop()


def test_the_marker_of_another_epoch_is_an_unclean_stop(harness):
    harness.start()
    harness.create_topic("a")
    harness.stop()
    image = harness.start(clean_broker_epoch=harness.broker_epoch + 1).image
    assert image.topics.by_name["a"].partitions[0].leader_recovery_state == 1
    harness.stop()


def test_a_clean_stop_leaves_the_files_that_kafka_leaves(harness):
    harness.start()
    for number in range(40):
        harness.create_topic(f"t{number}", 4)
    end = harness.loop.image.offset
    harness.stop()
    directory = harness.metadata_directory
    names = sorted(path.name for path in directory.iterdir())
    stem = f"{0:020d}"
    end = harness.quorum.log.end_offset
    assert names == sorted([
        f"{stem}-{0:010d}.checkpoint", f"{stem}.index", f"{stem}.log", f"{stem}.timeindex", f"{end:020d}.snapshot",
        "leader-epoch-checkpoint", "partition.metadata", "quorum-state",
    ])  # fmt: skip
    assert (directory / f"{end:020d}.snapshot").read_bytes() == EMPTY_PRODUCER_SNAPSHOT
    assert (directory / "leader-epoch-checkpoint").read_text() == "0\n1\n1 0\n"
    content = harness.log_file.read_bytes()
    index = (directory / f"{stem}.index").read_bytes()
    assert len(index) % 8 == 0 and len(index) // 8 >= 2
    for start in range(0, len(index), 8):
        offset, position = (int.from_bytes(index[at : at + 4], "big") for at in (start, start + 4))
        assert RecordBatch(content, position).last_offset == offset
    time_index = (directory / f"{stem}.timeindex").read_bytes()
    assert len(time_index) == 12  # The mock clock stands still, so there is one timestamp and one entry.


def test_an_idle_log_does_not_grow(harness):
    harness.start()
    size = harness.log_file.stat().st_size
    harness.clock.advance(3_600_000)
    harness.loop.submit(lambda image: ControllerResult([], None)).result()
    assert harness.log_file.stat().st_size == size
    harness.stop()


def test_missing_helper_files_are_rebuilt(harness):
    harness.start()
    harness.create_topic("a")
    harness.stop()
    for path in harness.metadata_directory.iterdir():
        if path.suffix != ".log" and path.suffix != ".checkpoint":
            path.unlink()
    assert "a" in harness.start().image.topics.by_name
    harness.stop()
    assert (harness.metadata_directory / "leader-epoch-checkpoint").read_text().startswith("0\n2\n1 0\n2 ")


def test_the_epoch_is_never_below_that_of_quorum_state(harness):
    harness.start()
    harness.stop()
    state = harness.metadata_directory / "quorum-state"
    state.write_text(state.read_text().replace('"leaderEpoch":1', '"leaderEpoch":41'))
    assert harness.start().image.epoch == 42
    harness.stop()


@pytest.mark.parametrize("torn", [1, 11, 60, 70])
def test_torn_tail_is_cut_off_with_a_warning(harness, torn, caplog):
    harness.start()
    harness.create_topic("a")
    harness.stop()
    whole = harness.log_file.read_bytes()
    tail, _ = metadata_batches(harness.quorum.log.end_offset, 1, 0, [(TopicRecord(name="x", topic_id=bytes(16)), 0)])
    harness.log_file.write_bytes(whole + tail[0][:torn])
    with caplog.at_level(logging.WARNING):
        image = harness.open()
    assert "torn tail" in caplog.text and list(image.topics.by_name) == ["a"]
    assert harness.log_file.read_bytes() == whole


def test_damage_in_the_middle_is_refused_and_nothing_is_written(harness):
    harness.start()
    harness.create_topic("a")
    harness.create_topic("b")
    harness.stop()
    content = bytearray(harness.log_file.read_bytes())
    positions = [batch.position for batch in iterate_batches(bytes(content))]
    for position, change in ((positions[5], 70), (positions[5], 9), (positions[5], 0)):
        damaged = bytearray(content)
        damaged[position + change] ^= 0xFF
        harness.log_file.write_bytes(damaged)
        before = snapshot_of(harness.directory)
        with pytest.raises(StorageError, match=rf"{harness.log_file.name}, position {position}"):
            harness.open()
        assert snapshot_of(harness.directory) == before


def test_an_epoch_that_goes_back_is_refused_and_nothing_is_written(harness):
    harness.start()
    harness.stop()
    harness.start()
    harness.stop()
    end = harness.quorum.log.end_offset
    position = harness.log_file.stat().st_size
    older, _ = metadata_batches(end, 1, 0, [(TopicRecord(name="x", topic_id=bytes(15) + b"\x07"), 0)])
    appended(harness, *older)
    before = snapshot_of(harness.directory)
    with pytest.raises(StorageError, match=f"position {position}: epoch 1 after epoch 2"):
        harness.open()
    assert snapshot_of(harness.directory) == before


def snapshot_of(directory):
    return {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def appended(harness, *batches):
    with harness.log_file.open("ab") as file:
        file.writelines(batches)


def test_unknown_records_are_refused_and_named(harness):
    harness.start()
    harness.stop()
    end = harness.quorum.log.end_offset
    builder = RecordBatchBuilder(end, partition_leader_epoch=1)
    builder.append(0, None, bytes.fromhex("016300"))
    newer = metadata_batches(end, 1, 0, [(FeatureLevelRecord(name="metadata.version", feature_level=31), 0)])[0][0]
    clean = harness.log_file.read_bytes()
    for batch, text in ((builder.build(), "unknown api key 99"), (newer, "metadata.version is finalized at level 31")):
        harness.log_file.write_bytes(clean + batch)
        before = snapshot_of(harness.directory)
        with pytest.raises(StorageError, match=text):
            harness.open()
        assert snapshot_of(harness.directory) == before


def test_an_open_transaction_is_aborted(harness):
    harness.start()
    harness.stop()
    records = [(BeginTransactionRecord(), 0), (TopicRecord(name="x", topic_id=bytes(15) + b"\x07"), 0)]
    appended(harness, *metadata_batches(harness.quorum.log.end_offset, 1, 0, records)[0])
    assert harness.start().image.topics.by_name == {}
    assert (2, "AbortTransactionRecord") in contents(harness)
    harness.stop()


def test_foreign_batches_behind_ours_are_cut_off(harness, caplog):
    harness.start()
    foreign, _ = metadata_batches(harness.loop.image.offset, 9, 0, [(BrokerRegistrationChangeRecord(), 0)])
    appended(harness, *foreign)
    with caplog.at_level(logging.ERROR):
        harness.create_topic("a")
    assert "another program appended" in caplog.text
    harness.stop()
    assert all(epoch == 1 for epoch, _ in contents(harness))
    assert "a" in harness.start().image.topics.by_name
    harness.stop()


def test_a_directory_that_is_no_longer_the_voters_is_refused(harness):
    harness.start()
    harness.stop()
    path = harness.directory / "meta.properties"
    path.write_text(path.read_text().replace(uuid_to_string(harness.directory_id), uuid_to_string(bytes(range(1, 17)))))
    before = snapshot_of(harness.directory)
    with pytest.raises(ConfigError, match=r"but meta\.properties has directory\.id"):
        harness.open()
    assert snapshot_of(harness.directory) == before


def test_a_moved_controller_listener_is_recorded_once(tmp_path):
    harness = QuorumHarness(tmp_path / "data")
    harness.start()
    harness.stop()
    moved = QuorumHarness(tmp_path / "data")
    moved.config.listeners[1] = moved.config.listeners[1]._replace(port=9999)
    for _ in range(2):
        moved.start(13)
        moved.stop()
    voters = [kind for kind in contents(moved) if kind[1] == "VotersRecord"]
    assert [epoch for epoch, _ in voters] == [1, 2]


# -- snapshots


def snapshots(harness):
    return sorted(path.name for path in harness.metadata_directory.glob("*.checkpoint"))


def test_snapshots_by_bytes_and_what_they_stand_for(tmp_path):
    harness = QuorumHarness(tmp_path / "data", metadata_log_max_record_bytes_between_snapshots="500")
    harness.start()
    for number in range(20):
        harness.create_topic(f"t{number}")
    harness.stop()
    assert len(snapshots(harness)) > 3
    whole = harness.open()
    for path in harness.metadata_directory.glob("*.log"):
        path.unlink()
    alone = harness.open()
    assert set(alone.topics.by_name) <= set(whole.topics.by_name) and len(alone.topics.by_name) >= 18
    assert alone.features == whole.features and alone.brokers[1].epoch == whole.brokers[1].epoch
    assert harness.quorum.machine.kraft_version == 1
    assert (harness.metadata_directory / f"{alone.offset:020d}.log").exists()
    harness.start()
    harness.create_topic("more")
    harness.stop()
    assert "more" in harness.open().topics.by_name


def test_a_stop_leaves_a_snapshot_if_the_next_start_would_replay_long(harness):
    harness.start()
    formatted = snapshots(harness)
    harness.create_topic("a", LONG_REPLAY // 5)
    harness.stop()  # This changes each of the topics once more.
    assert snapshots(harness) == formatted
    harness.start()
    harness.create_topic("b", LONG_REPLAY // 5)
    harness.stop()
    assert len(snapshots(harness)) == len(formatted) + 1
    assert set(harness.open().topics.by_name) == {"a", "b"}
    assert harness.quorum.records_behind_snapshot == 0


def test_unfinished_snapshots_go(harness):
    harness.start()
    harness.stop()
    for suffix in (".checkpoint.part", ".checkpoint.deleted"):
        (harness.metadata_directory / f"{5:020d}-{1:010d}{suffix}").write_bytes(b"half")
    harness.open()
    assert not [name for name in harness.metadata_directory.iterdir() if "checkpoint." in name.name]


def test_snapshots_by_time(tmp_path):
    harness = QuorumHarness(tmp_path / "data", metadata_log_max_snapshot_interval_ms="60000")
    harness.start()
    harness.create_topic("a")
    assert len(snapshots(harness)) == 1
    harness.clock.advance(60_001)
    harness.create_topic("b")
    harness.stop()
    assert len(snapshots(harness)) == 2


def test_old_segments_and_snapshots_go(tmp_path):
    harness = QuorumHarness(
        tmp_path / "data",
        metadata_log_max_record_bytes_between_snapshots="2000",
        metadata_log_segment_bytes="8388608",
        metadata_max_retention_bytes="8000",
    )
    harness.start()
    harness.quorum.log.segment_bytes = 1500
    for number in range(60):
        harness.create_topic(f"t{number}")
    assert harness.quorum.log.start_offset > 0
    harness.stop()
    size = sum(path.stat().st_size for path in harness.metadata_directory.iterdir())
    assert size < 20_000
    image = harness.start().image
    assert len(image.topics.by_name) == 60
    harness.stop()


def test_a_log_that_begins_late_needs_its_snapshot(tmp_path):
    harness = QuorumHarness(tmp_path / "data", metadata_log_max_record_bytes_between_snapshots="1000")
    harness.start()
    for number in range(10):
        harness.create_topic(f"t{number}")
    harness.stop()
    shutil.move(harness.log_file, harness.metadata_directory / f"{999:020d}.log")
    with pytest.raises(StorageError, match="not"):
        harness.open()


def test_damaged_snapshot_is_refused(tmp_path):
    harness = QuorumHarness(tmp_path / "data", metadata_log_max_record_bytes_between_snapshots="1000")
    harness.start()
    harness.create_topic("a", 20)
    harness.stop()
    path = harness.metadata_directory / snapshots(harness)[-1]
    content = bytearray(path.read_bytes())
    content[200] ^= 0xFF
    path.unlink()
    path.write_bytes(content)
    with pytest.raises(StorageError, match="damaged at position"):
        harness.open()


def test_a_log_of_an_older_epoch_than_the_snapshot_is_replaced(harness, caplog):
    # A follower whose log diverges has stored a snapshot of the leader, and was killed before it removed its log.
    harness.start()
    harness.create_topic("a")
    image = harness.loop.image
    harness.create_topic("uncommitted")
    control = harness.quorum.machine.voters_at(image.offset)[0].records()
    harness.stop()
    snapshot_id = OffsetAndEpoch(image.offset, 3)
    content = snapshot_bytes(3, harness.clock.wall_ms(), -1, control, snapshot_records(image))
    write_snapshot(harness.filesystem, str(harness.metadata_directory), snapshot_id, content)
    opened = harness.open()
    assert (opened.offset, opened.epoch, list(opened.topics.by_name)) == (*snapshot_id, ["a"])
    log = harness.quorum.log
    assert (log.start_offset, log.end_offset) == (image.offset, image.offset)
    assert "the log starts again there" in caplog.text
