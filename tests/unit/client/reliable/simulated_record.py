"""A record as a consumer returns it."""

from __future__ import annotations

from kafkapy.named_tuple import NamedTuple


class SimulatedRecord(NamedTuple):
    """The fields of a ConsumerRecord that the patterns use."""

    topic: str = "t"
    partition: int = 1
    offset: int = 7
    timestamp: int = 1000
    key: bytes | None = b"k"
    value: bytes | None = b"v"
    headers: tuple = ()
