"""The rows that a consumer must see of fetched batches, in plain Python: the oracle for `FetchedRecords.fill`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tests.reference.record_batch import PlainRecord, decode_records

LARGEST, SMALLEST = 2**63 - 1, -(2**63)


class PlainBatch(NamedTuple):
    """A batch before it is encoded; with `log_append_time` None the records keep their own timestamps."""

    records: Sequence[PlainRecord]
    log_append_time: int | None = None


def row(record: PlainRecord, topic: str, partition: int, timestamp: int, timestamp_type: int, unit: str) -> dict:
    factor = 1000 if unit == "us" else 1
    scaled = timestamp * factor
    if abs(timestamp) > LARGEST // 1000 and unit == "us":
        scaled = LARGEST if timestamp > 0 else SMALLEST
    names = [name.encode("utf-8", "surrogateescape") for name, _ in record.headers]
    return {
        "key": record.key,
        "value": record.value,
        "topic": topic,
        "partition": partition,
        "offset": record.offset,
        "timestamp": scaled,
        "timestampType": timestamp_type,
        "headers": [
            {"key": text(name), "value": content} for name, (_, content) in zip(names, record.headers, strict=True)
        ]
        or None,
    }


def text(name: bytes) -> str:
    """Decodes UTF-8; each byte that belongs to no character becomes one U+FFFD."""
    return "".join(
        "\ufffd" if "\udc80" <= each <= "\udcff" else each for each in name.decode("utf-8", "surrogateescape")
    )


def visible(batch: PlainBatch, topic: str, partition: int, first: int, until: int, unit: str) -> list[dict]:
    """Yields the rows of a batch with offsets from `first` up to `until`, in ascending order of offsets."""
    rows = []
    for record in batch.records:
        if record.offset >= until:
            break
        if record.offset >= first:
            own = batch.log_append_time is None
            timestamp = wrapped(record.timestamp) if batch.log_append_time is None else batch.log_append_time
            rows.append(row(record, topic, partition, timestamp, 0 if own else 1, unit))
            first = record.offset + 1
    return rows


def wrapped(timestamp: int) -> int:
    """Returns the number with the wrap-around of int64 arithmetic."""
    return (timestamp + 2**63) % 2**64 - 2**63


def decoded_prefix(body: bytes, base_offset: int, base_timestamp: int, count: int) -> tuple[list[PlainRecord], bool]:
    """Returns the records before the first damaged one, and whether none was damaged."""
    for end in range(count, 0, -1):
        try:
            return whole_records(body, base_offset, base_timestamp, end), end == count
        except ValueError:
            continue
    return [], False


def whole_records(body: bytes, base_offset: int, base_timestamp: int, count: int) -> list[PlainRecord]:
    """Returns the first `count` records; bytes may follow. Raises ValueError."""
    for end in range(len(body), -1, -1):
        try:
            return decode_records(body[:end], base_offset, base_timestamp, count)
        except ValueError:
            continue
    raise ValueError("no such records")
