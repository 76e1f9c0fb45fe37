"""Reads the metadata log of a cluster for the tools: from a directory, or from the active controller."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Any

from kafkapy._core.bytes.record_batch import RecordBatch, iterate_batches
from kafkapy.client.admin import Admin
from kafkapy.errors import ApiError, Error
from kafkapy.metadata.history import LoggedRecord, MetadataHistory
from kafkapy.metadata.image import EMPTY_IMAGE, MetadataImage
from kafkapy.metadata.loader import MetadataLoader
from kafkapy.protocol.messages.data_records import LeaderChangeMessage
from kafkapy.protocol.record_frame import decode_metadata_record
from kafkapy.tools.dump_batches import LogContent
from kafkapy.tools.option import ToolError
from kafkapy.types import METADATA_TOPIC

LOG_NAME = f"{METADATA_TOPIC}-0"
_SEGMENT = re.compile(r"(\d{20})\.log")
_SNAPSHOT = re.compile(r"(\d{20})-(\d{10})\.checkpoint")
_LEADER_CHANGE = 2


def read_directory(directory: str) -> MetadataHistory:
    """Returns the records of the metadata log in a directory, as a history. The node that uses the directory may be
    running.

    `directory` is a log directory, or its folder `__cluster_metadata-0`. Raises ToolError if it has no metadata log.
    """
    if os.path.isdir(os.path.join(directory, LOG_NAME)):
        directory = os.path.join(directory, LOG_NAME)
    names = sorted(os.listdir(directory)) if os.path.isdir(directory) else []
    segments = [(int(found[1]), found[0]) for name in names if (found := _SEGMENT.fullmatch(name))]
    snapshots = [(int(found[1]), int(found[2]), name) for name in names if (found := _SNAPSHOT.fullmatch(name))]
    if not segments:
        raise ToolError(f"There is no metadata log in {directory}")
    start = segments[0][0]
    base = EMPTY_IMAGE
    for offset, epoch, name in snapshots if start else ():
        if offset >= start:  # the oldest snapshot after which the log has all records
            base = image_of_snapshot(read_batches(os.path.join(directory, name)), offset, epoch)
            break
    history = MetadataHistory(base)
    for _, name in segments:
        append_batches(history, read_batches(os.path.join(directory, name)))
    return history


def read_batches(path: str) -> list[RecordBatch]:
    """Returns the batches of a file up to the first invalid batch. A running node may still be writing an invalid
    batch.
    """
    found = []
    for each in LogContent(path).batches():
        if each.batch is None or not each.batch.is_valid():
            break
        found.append(each.batch)
    return found


def image_of_snapshot(batches: Iterable[RecordBatch], offset: int, epoch: int) -> MetadataImage:
    """Returns the image (the state of all metadata) that a snapshot contains.

    `batches` are the batches of the snapshot's file; `offset` and `epoch` are the id of the snapshot.
    """
    loader = MetadataLoader(EMPTY_IMAGE)
    for batch in batches:
        if not batch.is_control:
            for record in batch:
                loader.replay(decode_metadata_record(bytes(record.value or b"")))
    return loader.delta.to_image(offset, epoch)


def append_batches(history: MetadataHistory, batches: Iterable[RecordBatch], end: int = 1 << 62) -> None:
    """Appends the records in `batches` to `history`, except for the records that `history` contains already.

    Records in batches that begin at or after the offset `end` are not appended.
    """
    for batch in batches:
        if batch.base_offset >= end:
            return
        for record in batch:
            if record.offset < history.end_offset:
                continue
            message: Any = _control(record) if batch.is_control else decode_metadata_record(bytes(record.value or b""))
            history.append(
                LoggedRecord(
                    record.offset,
                    batch.base_offset,
                    batch.partition_leader_epoch,
                    record.timestamp,
                    message,
                    batch.is_control,
                )
            )


def _control(record: Any) -> Any:
    """Returns the LeaderChangeMessage in a control record of the metadata log; None for another control record."""
    if int.from_bytes(bytes(record.key or b"")[2:4], "big") != _LEADER_CHANGE:
        return None
    return LeaderChangeMessage.decode(bytes(record.value or b""), 0)


def fetch_history(admin: Admin) -> MetadataHistory:
    """Returns the committed records of the metadata log that the active controller has, as a history. Blocks.

    `admin` is connected to controllers. Raises ApiError if a request fails.
    """
    epoch = admin.describe_metadata_quorum().leader_epoch
    first = admin.fetch_metadata_log(0, epoch)
    if first.snapshot is None:
        return _fetch_rest(admin, MetadataHistory(), 0, epoch)
    # The leader refers a fetch at offset 0 to its newest snapshot, even if it still has all records. Without the record
    # at offset 0 the history lacks only the first change of the leader.
    start = first.log_start_offset
    if start <= 0:
        return _fetch_rest(admin, MetadataHistory(), 1, epoch)
    base = _oldest_snapshot(admin, start, epoch)
    if base is None:
        offset, snapshot_epoch = first.snapshot
        base = image_of_snapshot(_downloaded(admin, offset, snapshot_epoch, epoch), offset, snapshot_epoch)
    return _fetch_rest(admin, MetadataHistory(base), base.offset, epoch, base.epoch)


def _fetch_rest(
    admin: Admin, history: MetadataHistory, offset: int, epoch: int, last_epoch: int | None = None
) -> MetadataHistory:
    """Appends the committed records from `offset` on to `history`, and returns `history`.

    `epoch` is the active controller's present epoch; `last_epoch` is the epoch of the record before `offset`, if known.
    """
    while True:
        part = admin.fetch_metadata_log(offset, epoch, last_epoch=last_epoch)
        last_epoch = None
        batches = list(iterate_batches(part.records))
        if not batches or batches[0].base_offset >= part.high_watermark:
            return history
        append_batches(history, batches, part.high_watermark)
        offset = batches[-1].next_offset
        if offset >= part.high_watermark:
            return history


def _oldest_snapshot(admin: Admin, start: int, epoch: int) -> MetadataImage | None:
    """Returns the image of the snapshot at the log start offset `start`, or None if there is no such snapshot.

    `epoch` is the present epoch. The snapshot's epoch is not known, so all epochs from `epoch` down are tried.
    """
    for candidate in range(epoch, -1, -1):
        try:
            return image_of_snapshot(_downloaded(admin, start, candidate, epoch), start, candidate)
        except ApiError as error:
            if error.error is not Error.SNAPSHOT_NOT_FOUND:
                raise
    return None


def _downloaded(admin: Admin, offset: int, snapshot_epoch: int, epoch: int) -> list[RecordBatch]:
    return list(iterate_batches(admin.fetch_metadata_snapshot(offset, snapshot_epoch, epoch)))
