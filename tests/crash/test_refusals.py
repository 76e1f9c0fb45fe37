"""Directories and configurations with which a broker must not start: it names the reason and writes nothing."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import Producer

from kafkapy.protocol.messages.metadata_records import FeatureLevelRecord
from kafkapy.quorum.metadata_batch import metadata_batches
from kafkapy.quorum.snapshot import snapshot_bytes, write_snapshot
from kafkapy.quorum.voters import DEFAULT_CONTROLLER_LISTENER, single_voter
from kafkapy.storage.filesystem import Filesystem
from kafkapy.storage.log_directory import CLEAN_SHUTDOWN_FILE
from kafkapy.types import OffsetAndEpoch, random_uuid, uuid_to_string
from tests.broker_process import BrokerProcess
from tests.crash.kill_under_load import PARTITIONS, create_topic
from tests.crash.refusals import assert_refused, refused
from tests.directory_content import assert_unchanged, directory_content
from tests.peers import ApacheKafka
from tests.ports import free_port

METADATA_LOG = Path("__cluster_metadata-0") / "00000000000000000000.log"
# An idle broker writes nothing with these settings: no NoOp records, no checkpoints.
QUIET = {
    "metadata.max.idle.interval.ms": "0",
    "replica.high.watermark.checkpoint.interval.ms": "3600000",
    "log.flush.offset.checkpoint.interval.ms": "3600000",
    "log.flush.start.offset.checkpoint.interval.ms": "3600000",
    "log.initial.task.delay.ms": "3600000",
}
TOPICS = ("first", "second", "third")


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the folder of a broker that has some topics and was stopped cleanly. Tests copy it and do not change
    it."""
    directory = tmp_path_factory.mktemp("stopped")
    with BrokerProcess(directory) as broker:
        for topic in TOPICS:
            assert create_topic(broker.bootstrap, topic)
    return directory


@pytest.fixture
def data(stopped: Path, tmp_path: Path) -> Path:
    """Returns a copy of the data of the broker in `stopped`."""
    shutil.copytree(stopped / "data", tmp_path / "data")
    return tmp_path / "data"


def broker_on(directory: Path, properties: dict[str, str] | None = None) -> BrokerProcess:
    return BrokerProcess(directory, properties)


def rewrite(path: Path, pattern: str, replacement: str) -> None:
    text, count = re.subn(pattern, replacement, path.read_text(), flags=re.MULTILINE)
    assert count, f"{pattern} is not in {path}"
    path.write_text(text)


def write_to_each_partition(bootstrap: str, topic: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for partition in range(PARTITIONS):
        producer.produce(topic, b"value", partition=partition)
    assert producer.flush(30) == 0


# -- what may be wrong ---------------------------------------------------------------------------------------------


def leave(data: Path) -> None:
    """Leaves the directory unchanged."""


def make_zookeeper_era(data: Path) -> None:
    (data / "meta.properties").write_text("#\nbroker.id=1\nversion=0\ncluster.id=abc\n")


def garble_meta_properties(data: Path) -> None:
    (data / "meta.properties").write_text("version=1\nnode.id=one\ncluster.id=abc\n")


def change_directory_id(data: Path) -> None:
    rewrite(data / "meta.properties", "^directory.id=.*", f"directory.id={uuid_to_string(random_uuid())}")


def format_for_other_voter(data: Path) -> None:
    """Replaces the metadata log by that of `kafka-storage.sh format` for a quorum of node 2; keeps meta.properties."""
    directory = data / "__cluster_metadata-0"
    shutil.rmtree(directory)
    directory.mkdir()
    voters = single_voter(2, random_uuid(), DEFAULT_CONTROLLER_LISTENER)
    content = snapshot_bytes(0, 0, 0, voters.records(), [])
    write_snapshot(Filesystem(), str(directory), OffsetAndEpoch(0, 0), content)


def damage_the_middle(data: Path) -> None:
    path = data / METADATA_LOG
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)


def damage_the_first_batch(data: Path) -> None:
    path = data / METADATA_LOG
    content = bytearray(path.read_bytes())
    content[70] ^= 1
    path.write_bytes(content)


def cut_a_hole(data: Path) -> None:
    """Removes a batch: the other batches are complete, but the offsets are not dense."""
    path = data / METADATA_LOG
    content = path.read_bytes()
    first = 12 + int.from_bytes(content[8:12], "big")
    second = first + 12 + int.from_bytes(content[first + 8 : first + 12], "big")
    path.write_bytes(content[:first] + content[second:])


def append_newer_release(data: Path) -> None:
    """Appends a metadata.version above all known ones, as the next release of Kafka would finalize it."""
    path = data / METADATA_LOG
    content = path.read_bytes()
    position = end_offset = epoch = 0
    while position < len(content):
        end_offset = int.from_bytes(content[position : position + 8], "big")
        epoch = int.from_bytes(content[position + 12 : position + 16], "big")
        end_offset += int.from_bytes(content[position + 23 : position + 27], "big") + 1
        position += 12 + int.from_bytes(content[position + 8 : position + 12], "big")
    record = FeatureLevelRecord(name="metadata.version", feature_level=999)
    batches, _ = metadata_batches(end_offset, epoch, 0, [(record, 0)])
    path.write_bytes(content + b"".join(batches))


def damage_the_snapshot(data: Path) -> None:
    path = data / "__cluster_metadata-0" / "00000000000000000000-0000000000.checkpoint"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.chmod(0o600)
    path.write_bytes(content)


class Refusal(NamedTuple):
    damage: Callable[[Path], None]
    reason: str
    properties: dict[str, str]


CONTROLLER = {
    "listeners": "PLAINTEXT://localhost:0,CONTROLLER://localhost:0",
    "controller.listener.names": "CONTROLLER",
}
REFUSALS = {
    "other node": Refusal(leave, r"Stored node id 1 doesn't match previous node id 2", {"node.id": "2"}),
    "zookeeper era": Refusal(make_zookeeper_era, r"meta\.properties version 0.*ZooKeeper", {}),
    "garbled meta.properties": Refusal(garble_meta_properties, r"meta\.properties.*'one'", {}),
    "static voter is another": Refusal(leave, r"node id 1 must", {**CONTROLLER, "controller.quorum.voters": "3@h:1"}),
    "foreign voter in the log": Refusal(format_for_other_voter, r"names the voters \[2\]", {}),
    "other directory.id": Refusal(change_directory_id, r"directory\.id=", {}),
    "damage in the middle": Refusal(damage_the_middle, r"000\.log, position \d+: bad batch, and a valid one", {}),
    "damage at the start": Refusal(damage_the_first_batch, r"000\.log, position 0: bad batch, and a valid one", {}),
    "a batch is missing": Refusal(cut_a_hole, r"000\.log, position \d+: base offset \d+, not \d+", {}),
    "newer metadata.version": Refusal(append_newer_release, r"metadata\.version is finalized at level 999", {}),
    "damaged snapshot": Refusal(damage_the_snapshot, r"0000\.checkpoint is damaged at position \d+", {}),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refused_before_anything_is_written(name: str, data: Path, tmp_path: Path) -> None:
    damage, reason, properties = REFUSALS[name]
    damage(data)
    assert_refused(broker_on(tmp_path, properties), reason, data)


def test_directories_of_two_clusters_name_both(data: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / ".lock").touch()
    ours = re.search(r"cluster\.id=(\S+)", (data / "meta.properties").read_text())
    assert ours is not None
    (other / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=another\n")
    broker = broker_on(tmp_path, {"log.dirs": f"{data},{other}"})
    assert_refused(broker, f"another.*{re.escape(ours[1])}|{re.escape(ours[1])}.*another", data, other)


def test_a_metadata_directory_that_was_moved(data: Path, tmp_path: Path) -> None:
    """A new first directory before the old one would begin a second, empty cluster."""
    new = tmp_path / "new"
    new.mkdir()
    (new / ".lock").touch()
    broker = broker_on(tmp_path, {"log.dirs": f"{new},{data}"})
    assert_refused(broker, r"metadata log.*no meta\.properties", data, new)


def test_torn_metadata_tail_is_cut_off(data: Path, tmp_path: Path) -> None:
    """A torn tail is an append that was never acknowledged before a crash."""
    path = data / METADATA_LOG
    whole = path.read_bytes()
    path.write_bytes(whole + whole[: len(whole) // 3][-150:])
    (data / CLEAN_SHUTDOWN_FILE).unlink()
    with broker_on(tmp_path) as broker:
        assert "torn tail of 150 bytes cut off" in broker.log()
        assert path.read_bytes().startswith(whole)
        assert create_topic(broker.bootstrap, "fourth")
    expected = {f"{topic}-{partition}" for topic in (*TOPICS, "fourth") for partition in range(3)}
    assert {name for name in os.listdir(data) if name[-2:] in ("-0", "-1", "-2") and name[0] != "_"} == expected


# -- two on one directory ------------------------------------------------------------------------------------------


def test_a_second_broker_is_refused_and_the_first_goes_on(tmp_path: Path) -> None:
    with broker_on(tmp_path / "first", QUIET) as first:
        assert create_topic(first.bootstrap, "before")
        second = broker_on(tmp_path / "second", {"log.dirs": str(first.data)})
        assert_refused(second, r"locked", first.data)
        two = broker_on(tmp_path / "third", {"log.dirs": f"{tmp_path / 'own'},{first.data}"})
        assert_refused(two, r"locked", first.data)
        assert create_topic(first.bootstrap, "after")
        assert_refused(second, r"locked", first.data)
        first.restart()
        assert {"before-0", "after-0"} <= set(os.listdir(first.data))
    with second:  # the first broker has released the directory
        assert create_topic(second.bootstrap, "later")


def test_a_directory_that_apache_kafka_serves(kafka_43: Path, tmp_path: Path) -> None:
    with ApacheKafka(kafka_43, tmp_path / "kafka", dynamic=True, properties=QUIET) as kafka:
        assert create_topic(kafka.bootstrap, "before")
        write_to_each_partition(kafka.bootstrap, "before")  # Kafka creates the directories after its response
        ours = BrokerProcess(tmp_path / "ours", config=kafka.config, port=free_port())
        before = directory_content(*kafka.log_dirs)
        line = refused(ours)
        assert "locked" in line
        assert_unchanged(before, directory_content(*kafka.log_dirs))
        assert create_topic(kafka.bootstrap, "after")
