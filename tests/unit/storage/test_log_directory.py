"""A log directory: its lock against another process, its marker, its meta.properties and partition.metadata."""

import subprocess
import sys

import pytest

from kafkapy.errors import StorageError
from kafkapy.storage.filesystem import Filesystem
from kafkapy.storage.log_directory import LogDirectory
from kafkapy.storage.meta_properties import (
    MalformedMetaProperties,
    MetaProperties,
    read_meta_properties,
    write_meta_properties,
)
from kafkapy.storage.partition_directory import parse_directory_name, unique_directory_name
from kafkapy.storage.partition_metadata import (
    MalformedPartitionMetadata,
    read_partition_metadata,
    write_partition_metadata,
)
from kafkapy.types import TopicPartition, random_uuid, uuid_from_string

HOLD_LOCK = (
    "import fcntl, sys; f = open(sys.argv[1], 'w'); fcntl.lockf(f, fcntl.LOCK_EX); print('held', flush=True); input()"
)


def test_a_locked_directory_is_refused(tmp_path):
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD_LOCK, str(tmp_path / ".lock")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout.readline() == "held\n"
    directory = LogDirectory(str(tmp_path), Filesystem())
    with pytest.raises(StorageError, match="locked"):
        directory.lock()
    holder.communicate("\n")
    directory.lock()
    directory.unlock()


def test_the_marker_is_read_once_with_its_broker_epoch(tmp_path):
    directory = LogDirectory(str(tmp_path), Filesystem())
    directory.take_clean_shutdown_marker()
    assert (directory.was_clean, directory.clean_broker_epoch) == (False, -1)
    directory.write_clean_shutdown_marker(11)
    assert (tmp_path / ".kafka_cleanshutdown").read_text() == '{"version":0,"brokerEpoch":11}'
    directory.take_clean_shutdown_marker()
    assert (directory.was_clean, directory.clean_broker_epoch) == (True, 11)
    assert not (tmp_path / ".kafka_cleanshutdown").exists()


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"brokerEpoch":"x"}'])
def test_marker_without_an_epoch(tmp_path, content):
    (tmp_path / ".kafka_cleanshutdown").write_text(content)
    directory = LogDirectory(str(tmp_path), Filesystem())
    directory.take_clean_shutdown_marker()
    assert (directory.was_clean, directory.clean_broker_epoch) == (True, -1)


def test_meta_properties_of_both_versions_are_read(tmp_path):
    assert read_meta_properties(str(tmp_path)) is None
    properties = MetaProperties("abc", 3, random_uuid())
    write_meta_properties(Filesystem(), str(tmp_path), properties)
    assert read_meta_properties(str(tmp_path)) == properties
    (tmp_path / "meta.properties").write_text("#\n#Mon Jan 01\nbroker.id=7\nversion=0\ncluster.id=xyz\n")
    assert read_meta_properties(str(tmp_path)) == MetaProperties("xyz", 7, None, 0)


@pytest.mark.parametrize("content", ["", "version=2\n", "version=1\ncluster.id=a\n", "version=1\nnode.id=1\n"])
def test_bad_meta_properties(tmp_path, content):
    (tmp_path / "meta.properties").write_text(content)
    with pytest.raises(MalformedMetaProperties, match=r"meta\.properties"):
        read_meta_properties(str(tmp_path))


def test_partition_metadata_is_written_and_verified_as_in_kafka(tmp_path):
    assert read_partition_metadata(str(tmp_path)) is None
    topic_id = uuid_from_string("71uU50UqS6-gBQoiv4X1cQ")
    write_partition_metadata(Filesystem(), str(tmp_path), topic_id)
    assert (tmp_path / "partition.metadata").read_bytes() == b"version: 0\ntopic_id: 71uU50UqS6-gBQoiv4X1cQ"
    assert read_partition_metadata(str(tmp_path)) == topic_id
    for content in ("", "version: 1\ntopic_id: 71uU50UqS6-gBQoiv4X1cQ", "version: 0\ntopic_id: x"):
        (tmp_path / "partition.metadata").write_text(content)
        with pytest.raises(MalformedPartitionMetadata):
            read_partition_metadata(str(tmp_path))


def test_names_of_partition_directories_are_parsed_and_made():
    assert parse_directory_name("my-topic-12") == TopicPartition("my-topic", 12)
    for name in ("my-topic", "-1", "t-x", "t-", "t-0.0123-delete", "t-0.0123-stray", "t-0.0123-future", "lost+found"):
        assert parse_directory_name(name) is None
    name = unique_directory_name(TopicPartition("t" * 249, 1234), "-delete")
    assert len(name) == 255
    assert name.endswith("-delete")
    assert name.startswith("t" * 200)
