"""Message sets of magic 0 and 1 by struct: the oracle for _core.message_set. No compression."""

import struct
import zlib


def encode_message(
    offset: int, timestamp: int, key: bytes | None, value: bytes | None, magic: int, attributes: int = 0
):
    checked = struct.pack(">bb", magic, attributes)
    if magic == 1:
        checked += struct.pack(">q", timestamp)
    for field in (key, value):
        checked += struct.pack(">i", -1) if field is None else struct.pack(">i", len(field)) + field
    return struct.pack(">qiI", offset, len(checked) + 4, zlib.crc32(checked)) + checked


def decode_messages(data: bytes) -> list[tuple[int, int, bytes | None, bytes | None, int]]:
    """Returns (offset, timestamp, key, value, attributes) of the whole messages at the beginning."""
    messages, pos = [], 0
    while len(data) - pos >= 12:
        offset, size = struct.unpack_from(">qi", data, pos)
        end = pos + 12 + size
        if end > len(data):
            break
        magic, attributes = struct.unpack_from(">bb", data, pos + 16)
        at = pos + 18
        timestamp = -1
        if magic == 1:
            (timestamp,) = struct.unpack_from(">q", data, at)
            at += 8
        fields = []
        for _ in range(2):
            (length,) = struct.unpack_from(">i", data, at)
            at += 4
            fields.append(None if length < 0 else data[at : at + length])
            at += max(length, 0)
        assert at == end
        messages.append((offset, timestamp, *fields, attributes))
        pos = end
    return messages
