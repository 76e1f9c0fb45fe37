"""The metadata log as the other nodes of a quorum need it: reads by offset, truncation, a start at a snapshot."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from kafkapy._core.bytes.record_batch import RecordBatchBuilder, iterate_batches
from kafkapy.quorum.log_scanner import LogScanner
from kafkapy.quorum.metadata_log import MetadataLog
from kafkapy.storage.filesystem import Filesystem
from kafkapy.types import OffsetAndEpoch
from tests.lossy_filesystem import LossyFilesystem

SEGMENT_BYTES = 20_000


def batch_at(offset: int, records: int, size: int, epoch: int) -> bytes:
    builder = RecordBatchBuilder(offset, partition_leader_epoch=epoch)
    for number in range(records):
        builder.append(1000 + offset + number, None, bytes(size))
    return builder.build()


def opened(directory: Path, filesystem: Filesystem | None = None) -> MetadataLog:
    directory.mkdir(exist_ok=True)
    log = MetadataLog(str(directory), filesystem or Filesystem(), SEGMENT_BYTES)
    scanned = LogScanner(str(directory))
    scanned.scan(0, lambda batch: None)
    log.open(scanned, OffsetAndEpoch(max(scanned.start_offset, 0), 0))
    return log


def filled(directory: Path, filesystem: Filesystem | None = None) -> tuple[MetadataLog, list[tuple[int, bytes]]]:
    """Returns a log of several segments and epochs, with a batch larger than a segment, and (base offset, batch)."""
    rng = random.Random(7)
    log = opened(directory, filesystem)
    batches = []
    for number in range(120):
        size = 50_000 if number == 60 else rng.choice((10, 100, 3000))
        content = batch_at(log.end_offset, rng.randint(1, 3), size, 1 + number // 50)
        batches.append((log.end_offset, content))
        log.append([content])
    assert len(log.bases) > 5
    return log, batches


@pytest.mark.parametrize("max_bytes", [0, 1, 500, 10_000, 1 << 20])
def test_read_returns_whole_batches_from_the_one_with_the_offset(tmp_path, max_bytes):
    log, batches = filled(tmp_path / "log")
    starts = [base for base, _ in batches]
    for offset in range(log.end_offset):
        found = log.read(offset, max_bytes)
        number = max(index for index, base in enumerate(starts) if base <= offset)
        expected = batches[number][1]
        segment = max(base for base in log.bases if base <= offset)
        for base, content in batches[number + 1 :]:
            if (base in log.bases and base != segment) or len(expected) + len(content) > max_bytes:
                break
            expected += content
        assert found == expected, offset
    assert log.read(log.end_offset, max_bytes) == b""


@pytest.mark.parametrize("reopens", [False, True])
def test_a_truncated_log_equals_one_that_never_had_the_rest(tmp_path, reopens):
    _, batches = filled(tmp_path / "whole")
    for keep in (119, 118, 61, 60, 59, 3, 0):
        directory = tmp_path / f"{keep}-{reopens}"
        log, _ = filled(directory)
        end = batches[keep][0]
        log.truncate_to(end)
        if reopens:
            log = opened(directory)
        assert log.end_offset == end
        read = b"".join(log.read(base, 0) for base, _ in batches[:keep])
        assert read == b"".join(content for _, content in batches[:keep])
        assert [epoch for epoch, _ in log.epochs.entries] == sorted({1 + number // 50 for number in range(keep)})
        log.append([batch_at(end, 2, 10, 9)])
        assert log.read(end, 0) and log.end_offset == end + 2
        log.close()
        assert opened(directory).end_offset == end + 2


def test_a_truncation_survives_a_power_failure(tmp_path):
    directory = tmp_path / "log"
    filled(directory)
    filesystem = LossyFilesystem(str(tmp_path))
    log = opened(directory, filesystem)
    target = log.bases[-2]
    log.truncate_to(target)
    filesystem.pull_the_plug(str(tmp_path / "after"))
    assert opened(tmp_path / "after" / "log").end_offset == target


def test_a_log_that_starts_at_a_snapshot_has_nothing_before(tmp_path):
    directory = tmp_path / "log"
    log, _ = filled(directory)
    log.start_at(1000)
    assert (log.start_offset, log.end_offset, log.epochs.entries) == (1000, 1000, ())
    assert [name for name in os.listdir(directory) if name.endswith(".log")] == ["00000000000000001000.log"]
    log.append([batch_at(1000, 1, 10, 5)])
    assert [each.base_offset for each in iterate_batches(log.read(1000, 1 << 20))] == [1000]
