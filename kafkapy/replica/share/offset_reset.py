"""The offset from which a share group consumes a partition for the first time (share.auto.offset.reset)."""

from __future__ import annotations

import re

from kafkapy.replica.fetch import FetchIsolation
from kafkapy.replica.list_offsets import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, NOT_FOUND, find_offset
from kafkapy.replica.partition import Partition

_BY_DURATION = "by_duration:"
_DURATION_PARTS = r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?"
# The longest duration of Java, whose number of seconds has 64 bits.
_LONGEST_MS = (1 << 63) * 1000
_UNITS_MS = (86_400_000, 3_600_000, 60_000, 1000)


def initial_offset(partition: Partition, reset: str, wall_ms: int) -> int:
    """Returns the start offset for the policy `reset`: "latest", "earliest", or "by_duration:P...".

    With by_duration the group begins at the first record that is at most this ISO 8601 duration older than `wall_ms`,
    or at the latest offset if there is none. Raises ApiError, for example if this broker does not lead the partition,
    and StorageError if the log cannot be read.
    """
    timestamp = LATEST_TIMESTAMP
    if reset.lower() == "earliest":
        timestamp = EARLIEST_TIMESTAMP
    elif reset.lower().startswith(_BY_DURATION):
        timestamp = max(0, wall_ms - _duration_ms(reset[len(_BY_DURATION) :]))
    found = _find(partition, timestamp)
    return found if found >= 0 else _find(partition, LATEST_TIMESTAMP)


def _find(partition: Partition, timestamp: int) -> int:
    found = find_offset(
        partition,
        timestamp,
        isolation=FetchIsolation.HIGH_WATERMARK,
        from_client=True,
        current_leader_epoch=-1,
        only_leader=True,
    )
    return -1 if found is NOT_FOUND else found.offset


def _duration_ms(text: str) -> int:
    """Returns the milliseconds of a duration PnDTnHnMn.nS, which the configuration has checked."""
    match = re.fullmatch(_DURATION_PARTS, text, re.IGNORECASE)
    assert match is not None, "the configuration has checked the duration"
    parts = zip(match.groups(), _UNITS_MS, strict=True)
    return int(min(_LONGEST_MS, sum(float(number) * unit for number, unit in parts if number)))
