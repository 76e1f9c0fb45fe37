"""Checks that the files of an unused log directory agree: batches, indexes, epochs, snapshots, checkpoints."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kafkapy._core.bytes.record_batch import scan_batches
from kafkapy.storage.checkpoint import LEADER_EPOCH_CHECKPOINT, RECOVERY_POINT_CHECKPOINT, read_entries
from kafkapy.storage.producer_snapshot import decode_snapshot

OFFSET_ENTRY = struct.Struct(">ii")
TIME_ENTRY = struct.Struct(">qi")


def check_log_directory(directory: Path) -> dict[str, int]:
    """Checks every partition of a directory whose broker was stopped cleanly.

    Returns the number of objects of each kind. Raises AssertionError if files disagree.
    """
    counts = {"partitions": 0, "segments": 0, "batches": 0, "index entries": 0, "time index entries": 0, "snapshots": 0}
    ends = {}
    for path in sorted(directory.iterdir()):
        if path.is_dir() and not path.name.endswith(("-delete", "-stray")):
            ends[path.name] = check_partition(path, counts)
    for topic, partition, offset in read_entries(str(directory / RECOVERY_POINT_CHECKPOINT), 3):
        assert int(offset) == ends[f"{topic}-{partition}"], f"recovery point of {topic}-{partition}"
    return counts


def check_partition(path: Path, counts: dict[str, int]) -> int:
    """Checks one partition and returns its log end offset."""
    counts["partitions"] += 1
    end_offset = None
    epochs = []
    for log in sorted(path.glob("*.log")):
        base_offset = int(log.stem)
        assert end_offset in (None, base_offset), f"{log}: the segment before ends at {end_offset}"
        content = log.read_bytes()
        batches, valid = scan_batches(content)
        assert valid == len(content), f"{log}: no valid batch at {valid} of {len(content)}"
        end_offset = base_offset
        for batch in batches:
            assert batch.base_offset == end_offset, f"{log}: offset {batch.base_offset} after {end_offset}"
            end_offset = batch.last_offset + 1
            epochs.append((batch.partition_leader_epoch, batch.base_offset))
        check_offset_index(log, base_offset, batches, counts)
        check_time_index(log, base_offset, batches, counts)
        counts["segments"] += 1
        counts["batches"] += len(batches)
    for snapshot in path.glob("*.snapshot"):
        list(decode_snapshot(str(snapshot), snapshot.read_bytes()))
        assert end_offset is not None and int(snapshot.stem) <= end_offset, snapshot
        counts["snapshots"] += 1
    check_epochs(path, epochs)
    return end_offset or 0


def check_offset_index(log: Path, base_offset: int, batches: list[Any], counts: dict[str, int]) -> None:
    """Checks that each entry has the last offset of a batch and the position at which the batch begins; both ascend."""
    places = {batch.last_offset: batch.position for batch in batches}
    before = (-1, -1)
    for relative, position in entries(log.with_suffix(".index"), OFFSET_ENTRY):
        offset = base_offset + relative
        assert (relative, position) > before and position > before[1], f"{log}: index entry {offset} does not rise"
        assert places.get(offset) == position, (
            f"{log}: index says {offset} at {position}, it is at {places.get(offset)}"
        )
        before = (relative, position)
        counts["index entries"] += 1


def check_time_index(log: Path, base_offset: int, batches: list[Any], counts: dict[str, int]) -> None:
    """Checks that each entry has the greatest timestamp so far and the last offset of its first batch; both ascend."""
    timestamps = {batch.last_offset: batch.max_timestamp for batch in batches}
    before = (-1, -1)
    for timestamp, relative in entries(log.with_suffix(".timeindex"), TIME_ENTRY):
        offset = base_offset + relative
        assert timestamp > before[0] and relative > before[1], f"{log}: time index entry {timestamp} does not rise"
        assert timestamps.get(offset) == timestamp, f"{log}: time index says {timestamp} at {offset}"
        assert all(found < timestamp for end, found in timestamps.items() if end < offset), f"{log}: {timestamp}"
        before = (timestamp, relative)
        counts["time index entries"] += 1


def check_epochs(path: Path, batches: list[tuple[int, int]]) -> None:
    """Checks that the leader epoch checkpoint has the leader epoch of every batch."""
    history = [(int(epoch), int(start)) for epoch, start in read_entries(str(path / LEADER_EPOCH_CHECKPOINT), 2)]
    assert history == sorted(history), path
    for epoch, offset in batches:
        known = [entry for entry, start in history if start <= offset]
        assert known and known[-1] == epoch, f"{path}: offset {offset} is of epoch {epoch}, the history says {history}"


def entries(path: Path, entry: struct.Struct) -> Iterator[tuple[int, int]]:
    content = path.read_bytes() if path.exists() else b""
    assert len(content) % entry.size == 0, f"{path} has {len(content)} bytes"
    found: Iterator[tuple[int, int]] = entry.iter_unpack(content)
    return found
