"""Reading batch headers from segment files: chunks, torn and damaged ends, messages of magic 0 and 1."""

import pytest

from kafkapy._core.bytes.message_set import build_message
from kafkapy._core.bytes.segment_file import SegmentFile
from kafkapy.storage.segment_reader import CHUNK, batch_size, scan_old_entries, scan_segment
from tests.harness.log import NOW_MS, batch


def segment(tmp_path, *batches):
    """Returns a segment file with the batches at offsets from 0, and their sizes."""
    file = SegmentFile(str(tmp_path / "segment"), create=True)
    for offset, records in enumerate(batches):
        file.append((offset.to_bytes(8, "big") + bytes(records)[8:],))
    return file, [len(records) for records in batches]


def scanned(file, position, end, **keywords):
    """Returns (position, size, base offset) of every batch, and the positions of the chunks."""
    found, chunks = [], []
    for chunk, chunk_position, batches in scan_segment(file, position, end, check_crc=keywords.get("check_crc", True)):
        chunks.append(chunk_position)
        assert file.pread(chunk_position, len(chunk)) == chunk
        found += [(each.position, each.size, each.base_offset) for each in batches]
    return found, chunks


def test_batches_are_found_across_chunks_of_a_megabyte(tmp_path):
    file, (size, *_) = segment(tmp_path, *[batch(value=bytes(400_000)) for _ in range(5)])
    assert 2 * size < CHUNK < 3 * size
    found, chunks = scanned(file, 0, file.size)
    assert found == [(number * size, size, number) for number in range(5)]
    assert chunks == [0, 2 * size, 4 * size]
    assert scanned(file, 3 * size, file.size)[0] == found[3:]
    assert scanned(file, 0, 3 * size)[0] == found[:3]
    assert scanned(file, 0, 3 * size - 1)[0] == found[:2]
    assert scanned(file, file.size, file.size) == ([], [])


def test_a_batch_larger_than_a_chunk_is_read_whole(tmp_path):
    file, sizes = segment(tmp_path, batch(), batch(value=bytes(3 * CHUNK)), batch())
    found, _ = scanned(file, 0, file.size)
    assert [size for _, size, _ in found] == sizes
    assert len(scanned(file, 0, sizes[0] + sizes[1] - 1)[0]) == 1


def test_the_first_damaged_batch_ends_the_scan(tmp_path):
    file, (size, *_) = segment(tmp_path, batch(), batch(), batch())
    with open(tmp_path / "segment", "r+b") as raw:
        raw.seek(2 * size - 1)
        raw.write(b"\xff")
    assert len(scanned(file, 0, file.size)[0]) == 1
    assert len(scanned(file, 0, file.size, check_crc=False)[0]) == 3


def test_the_size_of_a_batch_needs_twelve_bytes():
    records = bytes(batch())
    assert batch_size(records) == batch_size(records[:12]) == len(records)
    assert batch_size(records[:11]) == 0


@pytest.mark.parametrize("magic", [0, 1])
def test_old_messages_are_found_with_offset_timestamp_and_size(magic):
    messages = [bytes(build_message(7 + number, NOW_MS + number, b"k", b"v", magic=magic)) for number in range(3)]
    data = b"".join(messages)
    entries, length = scan_old_entries(data + b"torn", 1000, True)
    size = len(messages[0])
    assert length == 3 * size
    expected = [(1000 + size * n, size, 7 + n, 7 + n, NOW_MS + n if magic else -1) for n in range(3)]
    assert expected == [(e.position, e.size, e.base_offset, e.last_offset, e.max_timestamp) for e in entries]
    assert {(entry.producer_id, entry.partition_leader_epoch, entry.is_control) for entry in entries} == {
        (-1, -1, False)
    }
    assert scan_old_entries(data[:-1], 0, True)[1] == 2 * size
    assert scan_old_entries(data[: 2 * size], 0, True)[1] == 2 * size


@pytest.mark.parametrize("position", [12, 16, 17, -1])
def test_a_damaged_old_message_ends_the_scan(position):
    data = bytearray(build_message(0, NOW_MS, b"k", b"v", magic=1) + build_message(1, NOW_MS, b"k", b"v", magic=1))
    size = len(data) // 2
    data[size + position if position > 0 else -1] ^= 0x40
    entries, length = scan_old_entries(bytes(data), 0, True)
    assert (len(entries), length) == (1, size)


@pytest.mark.parametrize(("magic", "smallest"), [(0, 14), (1, 22)])
def test_an_old_message_has_a_smallest_size(magic, smallest):
    smaller = bytes(8) + (smallest - 1).to_bytes(4, "big") + bytes(4) + bytes([magic]) + bytes(40)
    assert scan_old_entries(smaller, 0, False) == ([], 0)
    entries, length = scan_old_entries(smaller[:8] + smallest.to_bytes(4, "big") + smaller[12:], 0, False)
    assert entries[0].size == 12 + smallest
    assert length >= 12 + smallest
