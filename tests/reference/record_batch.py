"""Record batch v2 (magic 2), field by field: the oracle for _core.record_batch. Uncompressed unless told how."""

import struct
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tests.reference.crc32c import crc32c

HEADER = struct.Struct(">qiibIhiqqqhii")
OVERHEAD = 61

Headers = Sequence[tuple[str, bytes | None]]


class PlainRecord(NamedTuple):
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


def unsigned_varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def varint(value: int) -> bytes:
    return unsigned_varint((value << 1) ^ (value >> 63) if value >= 0 else (-value << 1) - 1)


def read_varint(data: bytes, pos: int, bits: int = 32) -> tuple[int, int]:
    result = shift = 0
    while True:
        if pos >= len(data) or shift >= (bits + 6) // 7 * 7:
            raise ValueError("bad varint")
        byte = data[pos]
        pos += 1
        result |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    if result >> bits:
        raise ValueError("varint too long")
    return (result >> 1) ^ -(result & 1), pos


def nullable(data: bytes | None) -> bytes:
    return varint(-1) if data is None else varint(len(data)) + data


def encode_record(
    timestamp_delta: int, offset_delta: int, key: bytes | None, value: bytes | None, headers: Headers = ()
):
    body = b"\0" + varint(timestamp_delta) + varint(offset_delta) + nullable(key) + nullable(value)
    body += varint(len(headers))
    for name, content in headers:
        body += nullable(name.encode()) + nullable(content)
    return varint(len(body)) + body


def encode_batch(
    records: Sequence[PlainRecord],
    *,
    base_offset: int = 0,
    partition_leader_epoch: int = -1,
    attributes: int = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    compress: Callable[[bytes], bytes] = bytes,
    **overrides: int,
) -> bytes:
    """Encodes a batch; `overrides` are wrong header fields: magic, last_offset_delta, base_timestamp, max_timestamp,
    count.
    """
    base_timestamp = overrides.get("base_timestamp", records[0].timestamp if records else -1)
    body = b"".join(
        encode_record(record.timestamp - base_timestamp, record.offset - base_offset, *record[2:]) for record in records
    )
    return wrap_batch(
        compress(body),
        base_offset=base_offset,
        partition_leader_epoch=partition_leader_epoch,
        attributes=attributes,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        base_timestamp=base_timestamp,
        max_timestamp=overrides.get("max_timestamp", max(-1, -1, *(record.timestamp for record in records))),
        last_offset_delta=overrides.get("last_offset_delta", records[-1].offset - base_offset if records else -1),
        count=overrides.get("count", len(records)),
        magic=overrides.get("magic", 2),
    )


def wrap_batch(
    body: bytes,
    *,
    base_offset: int = 0,
    partition_leader_epoch: int = -1,
    magic: int = 2,
    attributes: int = 0,
    last_offset_delta: int = 0,
    base_timestamp: int = 0,
    max_timestamp: int = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    count: int = 1,
    crc: int | None = None,
) -> bytes:
    checked = (
        struct.pack(
            ">hiqqqhii",
            attributes,
            last_offset_delta,
            base_timestamp,
            max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            count,
        )
        + body
    )
    crc = crc32c(checked) if crc is None else crc
    return struct.pack(">qiibI", base_offset, len(checked) + 9, partition_leader_epoch, magic, crc) + checked


def decode_records(body: bytes, base_offset: int, base_timestamp: int, count: int) -> list[PlainRecord]:
    """Returns the records of an uncompressed body; raises ValueError if they do not fill it exactly."""
    records, pos = [], 0
    for _ in range(count):
        length, pos = read_varint(body, pos)
        end = pos + length
        if length < 0 or end > len(body):
            raise ValueError("bad record length")
        record, at = decode_record(body[:end], pos + 1, base_offset, base_timestamp)
        if at != end:
            raise ValueError("record length does not fit its fields")
        records.append(record)
        pos = end
    if pos != len(body):
        raise ValueError("bytes after the last record")
    return records


def decode_record(data: bytes, pos: int, base_offset: int, base_timestamp: int) -> tuple[PlainRecord, int]:
    timestamp_delta, pos = read_varint(data, pos, 64)
    offset_delta, pos = read_varint(data, pos)
    key, pos = read_nullable(data, pos)
    value, pos = read_nullable(data, pos)
    header_count, pos = read_varint(data, pos)
    if header_count < 0 or header_count > len(data) - pos:
        raise ValueError("bad header count")
    headers = []
    for _ in range(header_count):
        name, pos = read_nullable(data, pos)
        content, pos = read_nullable(data, pos)
        if name is None:
            raise ValueError("null header key")
        headers.append((name.decode("utf-8", "surrogateescape"), content))
    return PlainRecord(base_offset + offset_delta, base_timestamp + timestamp_delta, key, value, tuple(headers)), pos


def read_nullable(data: bytes, pos: int) -> tuple[bytes | None, int]:
    length, pos = read_varint(data, pos)
    if length < 0:
        return None, pos
    if length > len(data) - pos:
        raise ValueError("bytes end early")
    return data[pos : pos + length], pos + length
