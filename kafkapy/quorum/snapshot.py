"""Snapshots of the metadata log: `<end offset, 20 digits>-<epoch, 10 digits>.checkpoint`.

    control batch    SnapshotHeader; in a dynamic quorum also KRaftVersion and KRaftVoters
    data batches     the whole image as records
    control batch    SnapshotFooter

A snapshot replaces the log before its end offset. It is written under another name, synced and renamed, so that a file
with the final name is always complete.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Any

from kafkapy._core.bytes.record_batch import RecordBatch, scan_batches
from kafkapy.errors import StorageError
from kafkapy.metadata.image_writer import MessageAndVersion
from kafkapy.named_tuple import NamedTuple
from kafkapy.protocol.messages.data_records import SnapshotFooterRecord, SnapshotHeaderRecord
from kafkapy.quorum.metadata_batch import control_batch, decode_control_batch, decode_metadata_batch, metadata_batches
from kafkapy.storage.filesystem import Filesystem
from kafkapy.types import OffsetAndEpoch

SUFFIX = ".checkpoint"
PART_SUFFIX = ".checkpoint.part"
DELETED_SUFFIX = ".checkpoint.deleted"
READ_ONLY_MODE = 0o400
_NAME = re.compile(r"(\d{20})-(\d{10})\.checkpoint")


class Snapshot(NamedTuple):
    """The content of a snapshot file: the control records between header and footer, and the metadata records, in
    order."""

    snapshot_id: OffsetAndEpoch
    last_contained_log_timestamp: int
    control_messages: list[Any]
    records: list[Any]


def snapshot_name(snapshot_id: OffsetAndEpoch) -> str:
    return f"{snapshot_id.offset:020d}-{snapshot_id.epoch:010d}{SUFFIX}"


def list_snapshots(directory: str) -> list[OffsetAndEpoch]:
    """Returns the ids of the snapshots in a directory, oldest first."""
    matches = (_NAME.fullmatch(name) for name in os.listdir(directory))
    return sorted(OffsetAndEpoch(int(match[1]), int(match[2])) for match in matches if match)


def snapshot_bytes(
    epoch: int, wall_ms: int, last_timestamp: int, control_messages: Iterable[Any], records: Iterable[MessageAndVersion]
) -> bytes:
    """Returns the content of a snapshot file; `last_timestamp` is the timestamp of the last log batch that the snapshot
    replaces."""
    header = SnapshotHeaderRecord(version=0, last_contained_log_timestamp=last_timestamp)
    first = [header, *control_messages]
    batches, end = metadata_batches(len(first), epoch, wall_ms, records)
    footer = control_batch(end, epoch, wall_ms, [SnapshotFooterRecord(version=0)])
    return b"".join([control_batch(0, epoch, wall_ms, first), *batches, footer])


def write_snapshot(filesystem: Filesystem, directory: str, snapshot_id: OffsetAndEpoch, content: bytes) -> None:
    """Writes a snapshot; durable on return. Raises OSError."""
    path = os.path.join(directory, snapshot_name(snapshot_id))
    part = part_path(directory, snapshot_id)
    filesystem.unlink(part)
    filesystem.write_file(part, content, mode=READ_ONLY_MODE)
    filesystem.replace(part, path)


def part_path(directory: str, snapshot_id: OffsetAndEpoch) -> str:
    """Returns the path of the file into which a snapshot of the leader is downloaded."""
    return os.path.join(directory, snapshot_name(snapshot_id).removesuffix(SUFFIX) + PART_SUFFIX)


def write_part(directory: str, snapshot_id: OffsetAndEpoch, position: int, content: bytes) -> None:
    """Writes a piece of a snapshot that is being received; position 0 begins the file. Raises OSError."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | (os.O_TRUNC if position == 0 else 0)
    fd = os.open(part_path(directory, snapshot_id), flags, 0o600)
    try:
        view = memoryview(content)
        while view:
            written = os.pwrite(fd, view, position)
            view, position = view[written:], position + written
    finally:
        os.close(fd)


def complete_part(filesystem: Filesystem, directory: str, snapshot_id: OffsetAndEpoch) -> None:
    """Gives a snapshot that was received completely its final name; durable on return. Raises OSError."""
    part = part_path(directory, snapshot_id)
    filesystem.sync_path(part)
    os.chmod(part, READ_ONLY_MODE)
    filesystem.replace(part, part.removesuffix(PART_SUFFIX) + SUFFIX)


def read_snapshot(path: str, snapshot_id: OffsetAndEpoch) -> Snapshot:
    """Reads and checks a whole snapshot. Raises OSError if the file cannot be read, and StorageError if the snapshot is
    damaged or has unknown records."""
    directory = os.path.dirname(path)
    with open(path, "rb") as file:
        content = file.read()
    summaries, valid = scan_batches(content)
    if valid != len(content):
        raise StorageError(directory, f"snapshot {path} is damaged at position {valid}")
    control: list[Any] = []
    records: list[Any] = []
    for summary in summaries:
        batch = RecordBatch(content, summary.position)
        try:
            if summary.is_control:
                control.extend(decode_control_batch(batch))
            else:
                records.extend(decode_metadata_batch(batch))
        except Exception as error:
            raise StorageError(directory, f"snapshot {path}, position {summary.position}: {error}") from error
    if (
        len(control) < 2
        or not isinstance(control[0], SnapshotHeaderRecord)
        or not isinstance(control[-1], SnapshotFooterRecord)
    ):
        raise StorageError(directory, f"snapshot {path} is not complete: header or footer is missing")
    return Snapshot(snapshot_id, control[0].last_contained_log_timestamp, control[1:-1], records)
