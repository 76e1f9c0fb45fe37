"""Producer snapshots: the format, and every kind of damage."""

import struct

import pytest

from kafkapy._core.broker_state.producer_table import BatchMetadata, ProducerEntry
from kafkapy._core.bytes.crc32c import crc32c
from kafkapy.storage.filesystem import Filesystem
from kafkapy.storage.producer_snapshot import CorruptSnapshot, encode_snapshot, read_snapshot, write_snapshot


def entries():
    with_data = ProducerEntry(7, 2, 1000, 5, 40)
    with_data.add(2, BatchMetadata(3, 6, 40, 43, 1000))
    return [with_data, ProducerEntry(9, 1, 2000, 4, -1)]


def fields_of(entry):
    last = entry.last_batch
    return (
        *(entry.producer_id, entry.producer_epoch, entry.last_timestamp, entry.coordinator_epoch),
        entry.transaction_first_offset,
        last and (last.first_sequence, last.last_sequence, last.first_offset, last.last_offset, last.timestamp),
    )


def test_entries_are_read_as_they_were_written(tmp_path):
    path = write_snapshot(Filesystem(), str(tmp_path), 44, entries(), sync=False)
    assert path == str(tmp_path / "00000000000000000044.snapshot")
    assert [fields_of(entry) for entry in read_snapshot(str(tmp_path), 44)] == [
        (7, 2, 1000, 5, 40, (3, 6, 40, 43, 1000)),
        (9, 1, 2000, 4, -1, None),
    ]


def test_the_layout_is_kafkas():
    content = encode_snapshot(entries())
    assert len(content) == 10 + 2 * 46
    assert struct.unpack(">hIi", content[:10]) == (1, crc32c(content[6:]), 2)
    assert struct.unpack(">qhiqiqiq", content[10:56]) == (7, 2, 6, 43, 3, 1000, 5, 40)
    assert struct.unpack(">qhiqiqiq", content[56:]) == (9, 1, -1, -1, 0, 2000, 4, -1)


def with_checksum(content):
    return content[:2] + struct.pack(">I", crc32c(content[6:])) + content[6:]


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda content: b"", "0 bytes"),
        (lambda content: content[:9], "9 bytes"),
        (lambda content: b"\0\2" + content[2:], "unknown version 2"),
        (lambda content: content[:-1] + b"\x55", "wrong checksum"),
        (lambda content: content[:-46], "wrong checksum"),
        (lambda content: with_checksum(content[:-46]), "bytes"),
        (lambda content: with_checksum(content + bytes(46)), "bytes"),
    ],
)
def test_damage_is_found_before_an_entry_is_used(tmp_path, damage, reason):
    path = write_snapshot(Filesystem(), str(tmp_path), 44, entries(), sync=False)
    with open(path, "rb") as file:
        content = file.read()
    with open(path, "wb") as file:
        file.write(damage(content))
    with pytest.raises(CorruptSnapshot, match=reason):
        read_snapshot(str(tmp_path), 44)
