"""Isolation levels and kinds of offsets, as in kafka-python's `kafka.protocol.consumer`."""

from __future__ import annotations

from enum import IntEnum

from kafkapy.compat.kafka.enum_helper import EnumHelper


class IsolationLevel(EnumHelper, IntEnum):
    """The visibility of the records of open and aborted transactions."""

    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


class OffsetSpec(EnumHelper, IntEnum):
    """The offsets of a partition that can be looked up."""

    LATEST = -1
    EARLIEST = -2
    MAX_TIMESTAMP = -3
    EARLIEST_LOCAL = -4
    LATEST_TIERED = -5


class OffsetTimestamp(int):
    """A time in ms since 1970, which stands for the first record with this timestamp or a later one."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"OffsetTimestamp({int(self)})"
