"""Test records that use every part of the format, and their form as a line of text."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable
from typing import NamedTuple

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
# Must be recent: otherwise a broker's retention by time deletes the records while a test reads them.
FIRST_TIMESTAMP = time.time_ns() // 1_000_000 - 3_600_000


class SentRecord(NamedTuple):
    """One record as an application sees it; `offset` is -1 until the record is written."""

    partition: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    offset: int = -1

    def line(self) -> str:
        """Returns partition, offset, timestamp, key, value and headers between tabs, bytes in hex, null as `-`."""
        headers = ",".join(f"{name.encode().hex()}={_hex(value)}" for name, value in self.headers)
        return "\t".join(
            [str(self.partition), str(self.offset), str(self.timestamp), _hex(self.key), _hex(self.value), headers]
        )

    @classmethod
    def from_line(cls, line: str) -> SentRecord:
        partition, offset, timestamp, key, value, headers = line.rstrip("\n").split("\t")
        pairs = [pair.partition("=")[::2] for pair in headers.split(",") if pair]
        return cls(
            int(partition),
            int(timestamp),
            _bytes(key),
            _bytes(value),
            tuple((bytes.fromhex(name).decode(), _bytes(given)) for name, given in pairs),
            int(offset),
        )


def _hex(value: bytes | None) -> str:
    return "-" if value is None else value.hex()


def _bytes(text: str) -> bytes | None:
    return None if text == "-" else bytes.fromhex(text)


def make_records(count: int, partitions: int, seed: int = 0, *, text: bool = False) -> list[SentRecord]:
    """Returns `count` records over all partitions, with missing and empty keys and values, headers of every kind, and
    both bytes that compress and bytes that do not.

    With `text` the records have only what a console tool supports: a key, a value and two headers, all of them text.
    """
    chance = random.Random(seed)
    return [_text(chance, index, partitions) if text else _any(chance, index, partitions) for index in range(count)]


def _text(chance: random.Random, index: int, partitions: int) -> SentRecord:
    key, value = f"key-{index}".encode(), f"value {index} {chance.getrandbits(128):x}".encode()
    return SentRecord(index % partitions, FIRST_TIMESTAMP + index, key, value, (("kind", b"text"), ("empty", b"")))


def _any(chance: random.Random, index: int, partitions: int) -> SentRecord:
    key = chance.choice([None, b"", f"key-{index}".encode(), chance.randbytes(12)])
    value = chance.choice([None, b"", f"{index:06}".encode() * chance.randrange(1, 40), chance.randbytes(180)])
    headers: tuple[tuple[str, bytes | None], ...] = chance.choice(
        [
            (),
            (("trace", chance.randbytes(16)),),
            (("same", b"1"), ("same", b"2"), ("kopf-\u00e4\u00f6", "w\u00f6rt".encode()), ("null", None), ("", b"")),
        ]
    )
    return SentRecord(index % partitions, FIRST_TIMESTAMP + index * 7, key, value, headers)


def by_partition(records: Iterable[SentRecord], *, with_offset: bool = False) -> dict[int, list[SentRecord]]:
    """Returns the records of each partition in their order, without offsets unless `with_offset`."""
    found: dict[int, list[SentRecord]] = {}
    for record in records:
        found.setdefault(record.partition, []).append(record if with_offset else record._replace(offset=-1))
    return found


def assert_same(sent: list[SentRecord], received: list[SentRecord]) -> None:
    """Checks that every record arrived once, unchanged and in order, with dense offsets from 0."""
    for partition, records in by_partition(received, with_offset=True).items():
        offsets = [record.offset for record in records]
        assert offsets == list(range(len(offsets))), f"partition {partition}"
    expected, actual = by_partition(sent), by_partition(received)
    assert {p: len(r) for p, r in actual.items()} == {p: len(r) for p, r in expected.items()}
    for partition, records in expected.items():
        for wanted, found in zip(records, actual[partition], strict=True):
            assert found == wanted
