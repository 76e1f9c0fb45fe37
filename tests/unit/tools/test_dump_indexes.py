"""Indexes, producer snapshots and aborted transactions in the format of kafka-dump-log, and contradictions."""

from __future__ import annotations

import io
import struct
import time
from pathlib import Path

import pytest

from kafkapy._core.broker_state.producer_table import BatchMetadata, ProducerEntry
from kafkapy._core.bytes.record_batch import RecordBatchBuilder
from kafkapy.storage.filesystem import Filesystem
from kafkapy.storage.producer_snapshot import encode_snapshot
from kafkapy.storage.transaction_index import AbortedTransaction, TransactionIndex
from kafkapy.tools.dump_indexes import IndexDump, dump_producer_snapshot, dump_transaction_index
from kafkapy.tools.option import ToolError

BASE = 100
STEM = f"{BASE:020}"


class Partition:
    """A directory with a segment of two batches of two records, offsets 100 to 103, and indexes that tests write."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.output = io.StringIO()
        batches = []
        for number in range(2):
            builder = RecordBatchBuilder(BASE + 2 * number)
            for timestamp in (10 * number + 1, 10 * number + 2):
                builder.append(timestamp, None, b"v")
            batches.append(builder.build())
        self.second = len(batches[0])
        self.end = self.second + len(batches[1])
        (directory / f"{STEM}.log").write_bytes(b"".join(batches))

    def write(self, suffix: str, layout: str, *entries: tuple[int, int], rest: bytes = b"") -> str:
        path = self.directory / f"{STEM}{suffix}"
        path.write_bytes(b"".join(struct.pack(layout, *entry) for entry in entries) + rest)
        return str(path)

    def offset_index(self, *entries: tuple[int, int], rest: bytes = b"") -> str:
        return self.write(".index", ">ii", *entries, rest=rest)

    def time_index(self, *entries: tuple[int, int], rest: bytes = b"") -> str:
        return self.write(".timeindex", ">qi", *entries, rest=rest)

    def dump(self, *, is_sanity_check: bool = False, is_quiet: bool = False) -> IndexDump:
        return IndexDump(
            self.output, is_sanity_check=is_sanity_check, is_quiet=is_quiet, max_message_size=5 * 1024 * 1024
        )

    def printed(self) -> list[str]:
        return self.output.getvalue().splitlines()


@pytest.fixture
def partition(tmp_path: Path) -> Partition:
    return Partition(tmp_path)


def test_an_offset_index_that_fits_its_segment(partition: Partition, capsys: pytest.CaptureFixture[str]):
    dump = partition.dump()
    dump.dump_offset_index(partition.offset_index((1, 0), (3, partition.second), rest=bytes(16)))
    dump.print_offset_mismatches()
    assert partition.printed() == ["offset: 101 position: 0", f"offset: 103 position: {partition.second}"]
    assert capsys.readouterr().err == ""


def test_offsets_that_contradict_the_segment_are_reported(partition: Partition, capsys: pytest.CaptureFixture[str]):
    dump = partition.dump(is_quiet=True)
    path = partition.offset_index((0, 0), (2, partition.second))
    dump.dump_offset_index(path)
    dump.print_offset_mismatches()
    assert partition.printed() == []
    assert capsys.readouterr().err.splitlines() == [
        f"Mismatches in :{path}",
        "  Index offset: 102, log offset: 103",
        "  Index offset: 100, log offset: 101",
    ]


def test_a_position_without_a_batch_is_an_error(partition: Partition):
    with pytest.raises(ToolError, match=f"entry of offset 103 points to {partition.end}, where no batch begins"):
        partition.dump().dump_offset_index(partition.offset_index((3, partition.end)))


def test_an_empty_offset_index(partition: Partition):
    path = partition.offset_index()
    partition.dump().dump_offset_index(path)
    assert partition.printed() == [f"{path} is empty."]


def test_a_time_index_that_fits_its_segment(partition: Partition, capsys: pytest.CaptureFixture[str]):
    partition.offset_index((1, 0), (3, partition.second))
    dump = partition.dump()
    dump.dump_time_index(partition.time_index((2, 1), (12, 3), rest=bytes(24)))
    dump.print_time_index_errors()
    assert partition.printed() == ["timestamp: 2 offset: 101", "timestamp: 12 offset: 103"]
    assert capsys.readouterr().err == ""


def test_times_that_contradict_the_segment_are_reported(partition: Partition, capsys: pytest.CaptureFixture[str]):
    partition.offset_index((1, 0), (3, partition.second))
    path = partition.time_index((12, 1), (12, 3), (13, 2), (14, 9))
    dump = partition.dump(is_quiet=True)
    dump.dump_time_index(path)
    dump.print_time_index_errors()
    assert partition.printed() == []
    assert capsys.readouterr().err.splitlines() == [
        f"Found timestamp mismatch in :{path}",
        "  Index timestamp: 12, log timestamp: 2",
        f"Found out of order timestamp in :{path}",
        "  Index timestamp: 12, Previously indexed timestamp: 12",
        "The following indexed offsets are not found in the log.",
        "Indexed offset: 102, found log offset: 103",
        "Indexed offset: 109, found log offset: -1",
    ]


def test_the_time_index_of_a_large_segment_is_compared_in_linear_time(partition: Partition):
    partition.offset_index((1, 0), *(((3, partition.second),) * 30_000))
    dump = partition.dump(is_quiet=True)
    path = partition.time_index(*(((2, 1),) * 30_000))
    before_s = time.process_time()
    dump.dump_time_index(path)
    assert time.process_time() - before_s < 10  # a comparison of all pairs takes more than twice as long


@pytest.mark.parametrize("kind", ["offset", "time"])
def test_the_sanity_check_accepts_whole_ascending_entries(kind: str, partition: Partition):
    if kind == "offset":
        path = partition.offset_index((1, 0))
        partition.dump(is_sanity_check=True).dump_offset_index(path)
    else:
        path = partition.time_index((2, 1), (2, 3))
        partition.dump(is_sanity_check=True).dump_time_index(path)
    assert partition.printed() == [f"{path} passed sanity check."]


@pytest.mark.parametrize(
    ("entries", "rest", "message"),
    [
        (((2, 1), (1, 3)), b"", "last timestamp is 1 which is less than the first timestamp 2"),
        (((2, 1), (3, -1)), b"", "last offset is 99 which is less than the first offset 100"),
        (
            ((2, 1),),
            b"\0",
            "Time index file .* is corrupt, found 13 bytes which is neither positive nor a multiple of 12",
        ),
    ],
)
def test_the_sanity_check_refuses(
    entries: tuple[tuple[int, int], ...], rest: bytes, message: str, partition: Partition
):
    with pytest.raises(ToolError, match=message):
        partition.dump(is_sanity_check=True).dump_time_index(partition.time_index(*entries, rest=rest))


def test_the_name_of_an_index_is_its_first_offset(tmp_path: Path):
    (tmp_path / "x.index").touch()
    with pytest.raises(ToolError, match='For input string: "x"'):
        Partition(tmp_path).dump().dump_offset_index(str(tmp_path / "x.index"))


def test_a_snapshot_lists_producers_with_their_last_batch(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    idle, busy = ProducerEntry(7, 1, 5, 2), ProducerEntry(8, 0, 6, -1, 40)
    busy.add(0, BatchMetadata(3, 4, 40, 41, 6))
    path = tmp_path / f"{STEM}.snapshot"
    path.write_bytes(encode_snapshot([idle, busy]))
    output = io.StringIO()
    dump_producer_snapshot(str(path), output)
    first, second = output.getvalue().splitlines()
    assert first == (
        "producerId: 7 producerEpoch: 1 coordinatorEpoch: 2 currentTxnFirstOffset: OptionalLong.empty lastTimestamp: 5"
    )
    assert "currentTxnFirstOffset: OptionalLong[40]" in second
    assert second.endswith("lastSequence: 4 lastOffset: 41 offsetDelta: 1 timestamp: 6")
    path.write_bytes(path.read_bytes()[:-1])
    dump_producer_snapshot(str(path), output)
    assert len(output.getvalue().splitlines()) == 2
    assert str(path) in capsys.readouterr().err


def test_aborted_transactions(tmp_path: Path):
    path = str(tmp_path / f"{STEM}.txnindex")
    TransactionIndex(path, Filesystem()).append(AbortedTransaction(7, 100, 110, 105))
    output = io.StringIO()
    dump_transaction_index(path, output)
    assert output.getvalue() == "version: 0 producerId: 7 firstOffset: 100 lastOffset: 110 lastStableOffset: 105\n"
    with open(path, "ab") as file:
        file.write(b"\0")
    with pytest.raises(ToolError, match="35 bytes are not a number of entries"):
        dump_transaction_index(path, output)
