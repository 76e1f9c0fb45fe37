"""The values of the flags --from and --to: positions in partitions, such as `end`, `-10` or `@2026-11-23T10:00`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Protocol

from kafkapy.client import TopicPartition
from kafkapy.decimal_text import is_number
from kafkapy.named_tuple import NamedTuple
from kafkapy.tools.option import UsageError

POSITION_HELP = (
    "start, end, an offset such as 42, -10 for 10 records before the end, +10 for 10 after the start, or @TIME: "
    "@2026-11-23T10:00, ms since 1970, or a time ago such as @-1h (s, m, h, d)"
)
START, END, OFFSET, BEFORE_END, AFTER_START, TIME = "start", "end", "offset", "before end", "after start", "time"
_NAMES = {"start": START, "beginning": START, "earliest": START, "end": END, "latest": END}
_AGO = re.compile(r"-(\d+)(s|m|h|d)")
_UNITS_MS = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


class Position(NamedTuple):
    """A position in every partition, as a kind and a number.

    The number is an offset, a count of records after the start or before the end, or a time in ms since 1970, according
    to the kind. The kinds START and END do not use it.
    """

    kind: str
    number: int = 0


class Offsets(Protocol):
    """The methods of a consumer with which the offsets of a position are looked up."""

    def beginning_offsets(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> Mapping[TopicPartition, int]: ...

    def end_offsets(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> Mapping[TopicPartition, int]: ...

    def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int], timeout: float | None = None
    ) -> Mapping[TopicPartition, Any]: ...


def parse_position(text: str, now_ms: int) -> Position:
    """Returns the position that a text such as `end`, `-10` or `@2026-11-23T10:00` names.

    `now_ms` is the present time in ms since 1970. Relative times are relative to it. Raises UsageError for any other
    text.
    """
    if text.lower() in _NAMES:
        return Position(_NAMES[text.lower()])
    if text.startswith("@"):
        return Position(TIME, _time_ms(text[1:], now_ms))
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (is_number(digits)):
        raise UsageError(f"{text} is not a position: {POSITION_HELP}")
    kind = {"+": AFTER_START, "-": BEFORE_END}.get(text[:1], OFFSET)
    return Position(kind, int(digits))


def _time_ms(text: str, now_ms: int) -> int:
    ago = _AGO.fullmatch(text)
    if ago is not None:
        return max(now_ms - int(ago[1]) * _UNITS_MS[ago[2]], 0)
    if is_number(text):
        return int(text)
    try:
        return int(datetime.fromisoformat(text).timestamp() * 1000)
    except ValueError:
        raise UsageError(f"@{text} is not a time: {POSITION_HELP}") from None


def offsets_of(
    position: Position, consumer: Offsets, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, int]:
    """Returns the offset of a position in each partition. Blocks until the brokers have answered.

    An offset before the start or after the end of a partition is replaced by the start or the end. A time after the
    last record means the end.
    """
    wanted = list(partitions)
    kind, number = position
    if kind == END:
        return dict(consumer.end_offsets(wanted))
    starts = consumer.beginning_offsets(wanted)
    if kind == START:
        return dict(starts)
    ends = consumer.end_offsets(wanted)
    if kind == TIME:
        times = consumer.offsets_for_times(dict.fromkeys(wanted, number))
        found = {each: ends[each] if times[each] is None else times[each].offset for each in wanted}
    elif kind == BEFORE_END:
        found = {each: ends[each] - number for each in wanted}
    elif kind == AFTER_START:
        found = {each: starts[each] + number for each in wanted}
    else:
        found = dict.fromkeys(wanted, number)
    return {each: min(max(offset, starts[each]), ends[each]) for each, offset in found.items()}


def parse_partition_numbers(text: str) -> list[int]:
    """Returns the numbers of a list such as `0,2-4`, ascending. Raises UsageError for any other text."""
    numbers: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if not is_number(first) or (dash and (not is_number(last) or int(last) < int(first))):
            raise UsageError(f"{text} is not a list of partitions, such as 0,2-4")
        numbers.update(range(int(first), int(last if dash else first) + 1))
    return sorted(numbers)
