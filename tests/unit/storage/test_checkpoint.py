"""Kafka's checkpoint files: format, damage, atomic replacement."""

import pytest

from kafkapy.storage.checkpoint import MalformedCheckpoint, OffsetCheckpointFile
from kafkapy.storage.filesystem import Filesystem
from kafkapy.types import TopicPartition


def test_written_as_kafka_writes_it(tmp_path):
    file = OffsetCheckpointFile(str(tmp_path / "recovery-point-offset-checkpoint"), Filesystem())
    assert file.read() == {}
    file.write({TopicPartition("b", 1): 7, TopicPartition("a", 0): 12})
    assert (tmp_path / "recovery-point-offset-checkpoint").read_text() == "0\n2\na 0 12\nb 1 7\n"
    assert file.read() == {TopicPartition("a", 0): 12, TopicPartition("b", 1): 7}


def test_same_content_is_not_written_again(tmp_path):
    path = tmp_path / "checkpoint"
    file = OffsetCheckpointFile(str(path), Filesystem())
    file.write({TopicPartition("a", 0): 12})
    path.unlink()
    file.write({TopicPartition("a", 0): 12})
    assert not path.exists()
    file.write({TopicPartition("a", 0): 13})
    assert path.read_text() == "0\n1\na 0 13\n"


@pytest.mark.parametrize("is_known", [True, False])
def test_forgotten_partitions_have_no_entry(tmp_path, is_known):
    path = tmp_path / "checkpoint"
    file = OffsetCheckpointFile(str(path), Filesystem())
    file.write({TopicPartition("a", 0): 12, TopicPartition("a", 1): 13})
    if not is_known:
        file = OffsetCheckpointFile(str(path), Filesystem())
    file.forget([TopicPartition("a", 0), TopicPartition("c", 0)])
    assert path.read_text() == "0\n1\na 1 13\n"
    path.unlink()
    file.forget([TopicPartition("c", 0)])  # there is nothing to remove
    assert not path.exists()


def test_changes_of_the_offsets_that_were_written_are_written(tmp_path):
    path = tmp_path / "checkpoint"
    file = OffsetCheckpointFile(str(path), Filesystem())
    offsets = {TopicPartition("a", 0): 12}
    file.write(offsets)
    offsets[TopicPartition("a", 0)] = 13
    file.write(offsets)
    assert path.read_text() == "0\n1\na 0 13\n"


@pytest.mark.parametrize(
    "content",
    ["\n", "1\n0\n", "0\nx\n", "0\n2\na 0 1\n", "0\n1\na 0\n", "0\n1\na 0 x\n", "0\n1\na x 1\n", "0\n0\na 0 1\n"],
)
def test_damage_is_named(tmp_path, content):
    path = tmp_path / "checkpoint"
    path.write_text(content)
    with pytest.raises(MalformedCheckpoint, match="checkpoint"):
        OffsetCheckpointFile(str(path), Filesystem()).read()


def test_a_file_with_nothing_in_it_has_no_entries(tmp_path):
    (tmp_path / "checkpoint").write_text("")
    assert OffsetCheckpointFile(str(tmp_path / "checkpoint"), Filesystem()).read() == {}
