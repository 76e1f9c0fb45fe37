"""The history of a metadata log with a snapshot: in a directory, and as the active controller sends it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from kafkapy.client.admin.quorum import MetadataLogPart
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.messages.metadata_records import TopicRecord
from kafkapy.quorum.metadata_batch import metadata_batches
from kafkapy.tools.metadata_log import fetch_history, read_directory

START, SNAPSHOT_EPOCH, EPOCH = 5, 2, 4


def batch(offset: int, epoch: int, name: str) -> bytes:
    """Returns a batch with the record of one topic."""
    (data,), _ = metadata_batches(offset, epoch, 0, [(TopicRecord(name=name, topic_id=name.encode().ljust(16)), 0)])
    return data


class Leader:
    """An active controller whose log begins at START, at the end of its only snapshot."""

    def __init__(self) -> None:
        self.batches = {5: batch(5, SNAPSHOT_EPOCH, "b"), 6: batch(6, EPOCH, "c")}

    def describe_metadata_quorum(self) -> Any:
        return SimpleNamespace(leader_epoch=EPOCH)

    def fetch_metadata_log(self, offset: int, epoch: int, *, last_epoch: int | None = None) -> MetadataLogPart:
        """Refers a client to the snapshot as Kafka's KafkaRaftLog.validateOffsetAndEpoch does."""
        before = epoch if last_epoch is None else last_epoch
        if offset < START or (offset == START and before != SNAPSHOT_EPOCH):
            return MetadataLogPart(b"", START, 7, (START, SNAPSHOT_EPOCH))
        found = b"".join(data for base, data in self.batches.items() if base >= offset)
        return MetadataLogPart(found, START, 7, None)

    def fetch_metadata_snapshot(self, offset: int, snapshot_epoch: int, epoch: int) -> bytes:
        if (offset, snapshot_epoch) != (START, SNAPSHOT_EPOCH):
            raise ApiError(Error.SNAPSHOT_NOT_FOUND)
        return batch(0, 0, "a")


def test_the_history_contains_the_first_record_after_the_snapshot() -> None:
    history = fetch_history(Leader())  # type: ignore[arg-type]
    assert history.base.offset == START
    assert [record.offset for record in history.records] == [5, 6]
    assert sorted(history.image_at(history.end_offset).topics.by_name) == ["a", "b", "c"]


def write(directory: Path, name: str, *batches: bytes) -> None:
    (directory / name).write_bytes(b"".join(batches))


def test_a_snapshot_does_not_shorten_the_history_of_a_log_that_has_its_beginning(tmp_path: Path) -> None:
    write(tmp_path, "00000000000000000000.log", batch(0, 1, "a"), batch(1, 1, "b"))
    write(tmp_path, "00000000000000000001-0000000001.checkpoint", batch(0, 0, "a"))
    assert [record.offset for record in read_directory(str(tmp_path)).records] == [0, 1]


def test_a_snapshot_precedes_a_log_without_its_beginning(tmp_path: Path) -> None:
    write(tmp_path, "00000000000000000001.log", batch(1, 1, "b"))
    write(tmp_path, "00000000000000000001-0000000001.checkpoint", batch(0, 0, "a"))
    history = read_directory(str(tmp_path))
    assert (history.base.offset, [record.offset for record in history.records]) == (1, [1])
    assert sorted(history.image_at(history.end_offset).topics.by_name) == ["a", "b"]
