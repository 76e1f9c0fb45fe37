"""Batches and records in the format of kafka-dump-log."""

from __future__ import annotations

import io
import struct
from pathlib import Path

import pytest

from kafkapy._core.bytes.record_batch import RecordBatchBuilder
from kafkapy.tools.dump_batches import BatchPrinter, LogContent
from kafkapy.tools.dump_decoders import text_decoder
from kafkapy.tools.option import ToolError

NAME = "00000000000000000000.log"
TEXT = text_decoder(bytes.decode, bytes.decode)


def batch(base_offset: int, *values: bytes | None, timestamp: int = 5, **attributes) -> bytes:
    """Returns a batch of records with the key k and the header h."""
    builder = RecordBatchBuilder(base_offset, partition_leader_epoch=0, **attributes)
    for value in values:
        builder.append(timestamp, b"k", value, [("h", b"1")])
    return builder.build()


def end_marker(base_offset: int, kind: int, epoch: int) -> bytes:
    """Returns the control batch that ends a transaction."""
    attributes = {"producer_id": 7, "producer_epoch": 0, "is_transactional": True, "is_control": True}
    builder = RecordBatchBuilder(base_offset, partition_leader_epoch=0, **attributes)
    builder.append(5, struct.pack(">hh", 0, kind), struct.pack(">hi", 0, epoch))
    return builder.build()


def dumped(directory: Path, content: bytes, **options) -> tuple[list[str], BatchPrinter]:
    path = directory / NAME
    path.write_bytes(content)
    output = io.StringIO()
    printer = BatchPrinter(output, **options)
    printer.print_file(str(path))
    return output.getvalue().splitlines(), printer


def test_a_line_for_each_batch(tmp_path: Path):
    first, second = batch(0, b"a", b"b"), batch(2, b"c", producer_id=7, producer_epoch=1, base_sequence=4)
    lines, printer = dumped(tmp_path, first + second)
    assert lines[0].startswith(
        "baseOffset: 0 lastOffset: 1 count: 2 baseSequence: -1 lastSequence: -1 producerId: -1 producerEpoch: -1 "
        "partitionLeaderEpoch: 0 isTransactional: false isControl: false deleteHorizonMs: OptionalLong.empty "
        f"position: 0 CreateTime: 5 size: {len(first)} magic: 2 compresscodec: none crc: "
    )
    assert lines[0].endswith(" isvalid: true")
    assert "baseOffset: 2 lastOffset: 2 count: 1 baseSequence: 4 lastSequence: 4 producerId: 7" in lines[1]
    assert f"position: {len(first)} " in lines[1]
    assert (len(lines), printer.gaps) == (2, {})


def test_a_damaged_batch_is_invalid(tmp_path: Path):
    content = bytearray(batch(0, b"a"))
    content[-1] ^= 1
    assert dumped(tmp_path, bytes(content))[0][0].endswith(" isvalid: false")


def test_a_batch_with_an_unknown_codec_is_printed(tmp_path: Path):
    content = bytearray(batch(0, b"a"))
    content[22] = 7  # the low byte of the attributes
    lines, _ = dumped(tmp_path, bytes(content) + batch(1, b"b"))
    assert "compresscodec: UNKNOWN(7) " in lines[0] and lines[0].endswith(" isvalid: false")
    assert lines[1].endswith(" isvalid: true")


@pytest.mark.parametrize("rest", [b"\0" * 3, batch(1, b"b")[:-1]], ids=["bytes", "batch"])
def test_an_incomplete_end_is_reported(rest: bytes, tmp_path: Path):
    lines, _ = dumped(tmp_path, batch(0, b"a") + rest)
    assert lines[1:] == [f"Found {len(rest)} invalid bytes at the end of {NAME}"]


def test_a_limit_ends_without_a_report(tmp_path: Path):
    first = batch(0, b"a")
    assert len(dumped(tmp_path, first + batch(1, b"b"), max_bytes=len(first))[0]) == 1
    assert len(dumped(tmp_path, first + batch(1, b"b"), max_bytes=len(first) - 1)[0]) == 0


def test_a_size_that_no_batch_has_is_an_error(tmp_path: Path):
    content = struct.pack(">qi", 0, 13) + b"\0" * 20
    with pytest.raises(ToolError, match=r"Found record size 13 smaller than minimum record overhead \(14\)"):
        dumped(tmp_path, content)


def test_an_empty_file_has_no_batches(tmp_path: Path):
    assert dumped(tmp_path, b"")[0] == []
    assert list(LogContent(str(tmp_path / NAME)).batches()) == []


def test_records_with_and_without_their_content(tmp_path: Path):
    content = batch(0, b"a", None, base_sequence=2**31 - 1, producer_id=7, producer_epoch=0)
    metadata = [
        "| offset: 0 CreateTime: 5 keySize: 1 valueSize: 1 sequence: 2147483647 headerKeys: [h]",
        "| offset: 1 CreateTime: 5 keySize: 1 valueSize: -1 sequence: 0 headerKeys: [h]",
    ]
    assert dumped(tmp_path, content, is_deep=True)[0][1:] == metadata
    assert dumped(tmp_path, content, is_deep=True, decoder=TEXT)[0][1:] == [
        f"{metadata[0]} key: k payload: a",
        f"{metadata[1]} key: k",
    ]
    lines, _ = dumped(tmp_path, content, is_deep=True, decoder=TEXT, skips_metadata=True)
    assert lines[1:] == ["| key: k payload: a", "| key: k"]


def test_offsets_that_do_not_follow_are_collected(tmp_path: Path):
    _, printer = dumped(tmp_path, batch(0, b"a", b"b") + batch(5, b"c") + batch(6, b"d"), is_deep=True)
    assert printer.gaps == {str(tmp_path / NAME): {1: 5}}


@pytest.mark.parametrize(("kind", "name"), [(0, "ABORT"), (1, "COMMIT")])
def test_markers_of_transactions(kind: int, name: str, tmp_path: Path):
    lines, _ = dumped(tmp_path, end_marker(0, kind, 3), is_deep=True, decoder=TEXT)
    assert lines[1].endswith(f" endTxnMarker: {name} coordinatorEpoch: 3")
    lines, _ = dumped(tmp_path, end_marker(0, 99, 3), is_deep=True)
    assert lines[1].endswith(" controlType: UNKNOWN(99)")


def test_compressed_records_are_decompressed(tmp_path: Path):
    lines, _ = dumped(tmp_path, batch(0, b"a" * 100, compression=1), is_deep=True, decoder=TEXT)
    assert "compresscodec: gzip" in lines[0]
    assert lines[1].endswith(f"payload: {'a' * 100}")
