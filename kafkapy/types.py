"""Small values that every layer uses: partitions, offsets with their epoch, ids, clocks."""

from __future__ import annotations

import os
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable
from typing import Protocol

from kafkapy.named_tuple import NamedTuple

# The values that stand for "none" in requests, records and batches.
NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
NO_TIMESTAMP = -1
# The level of Kafka's loggers below DEBUG, which Python's logging lacks.
TRACE = 5


class TopicPartition(NamedTuple):
    """A partition, given by the name of its topic and its number."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Returns the partition numbers of each topic: topic -> numbers, in the given order."""
    topics: dict[str, list[int]] = {}
    for topic, number in partitions:
        topics.setdefault(topic, []).append(number)
    return topics


class TopicIdPartition(NamedTuple):
    """A partition, given by the id of its topic (16 bytes) and its number.

    `topic` is the name that the topic with this id had when it was looked up.
    """

    topic_id: bytes
    topic: str
    partition: int

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    def __str__(self) -> str:
        return f"{uuid_to_string(self.topic_id)}:{self.topic}-{self.partition}"


class OffsetAndEpoch(NamedTuple):
    """A log offset and its leader epoch."""

    offset: int
    epoch: int


ZERO_UUID = bytes(16)
# The metadata log has the name, the id and the only partition of a topic, although it is none.
METADATA_TOPIC = "__cluster_metadata"
METADATA_PARTITION = 0
METADATA_TOPIC_ID = bytes(15) + b"\x01"
# The ids that Kafka reserves: ZERO_UUID and 1 as above, and for directories 0 MIGRATING, 1 UNASSIGNED, 2 LOST.
RESERVED_UUIDS = frozenset(bytes(15) + bytes([low]) for low in range(100))


def uuid_to_string(uuid: bytes) -> str:
    """Returns Kafka's text form of a 16-byte id: 22 characters of URL-safe base64 without padding."""
    return urlsafe_b64encode(uuid)[:22].decode("ascii")


def uuid_from_string(text: str) -> bytes:
    """Returns the 16 bytes of an id in Kafka's text form (padding allowed). Raises ValueError for any other text."""
    stripped = text.rstrip("=")
    letters = stripped.replace("-", "").replace("_", "")
    if len(stripped) != 22 or not letters.isascii() or not (letters.isalnum() or not letters):
        raise ValueError(f"Input string `{text[:24]}` is not a base64-encoded UUID of 22 characters")
    return urlsafe_b64decode(stripped + "==")


def random_uuid() -> bytes:
    """Returns a random (version 4) id that is not reserved, as 16 bytes.

    Its text form never starts with '-', so that no tool takes it for a flag.
    """
    while True:
        value = bytearray(os.urandom(16))
        value[6] = value[6] & 0x0F | 0x40
        value[8] = value[8] & 0x3F | 0x80
        uuid = bytes(value)
        if uuid not in RESERVED_UUIDS and uuid[0] >> 2 != 62:  # 62 is '-' in URL-safe base64
            return uuid


def random_java_uuid() -> str:
    """Returns a random (version 4) id in the text form of Java's UUID class: groups of 8, 4, 4, 4 and 12 hex digits."""
    digits = random_uuid().hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def java_string_hash(text: str) -> int:
    """Returns the result of Java's `String.hashCode()` for `text`, a signed 32-bit number."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for position in range(0, len(units), 2):
        value = (value * 31 + (units[position] << 8 | units[position + 1])) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


class Clock(Protocol):
    """The source of time; tests pass a clock whose time they set."""

    def wall_ms(self) -> int:
        """Returns wall-clock milliseconds since 1970-01-01 UTC."""

    def monotonic_ms(self) -> int:
        """Returns milliseconds since an arbitrary start; the value never decreases."""


class SystemClock:
    """The machine's clocks. Thread-safe."""

    __slots__ = ()

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000
