"""How much of what is there a micro-batch takes, and into how many tasks it is divided.  Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kafkapy.spark.stream_offset import OffsetRange
from kafkapy.types import TopicPartition


def limit_offsets(
    most: int, starts: Mapping[TopicPartition, int], latest: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """The end of each partition so that all together take `most` offsets, or all there are: in proportion to what
    waits in each, what division leaves going to those that lost most by it. No partition starves, the sum is exact."""
    waiting = {where: max(end - starts.get(where, end), 0) for where, end in latest.items()}
    total = sum(waiting.values())
    if total <= most:
        return dict(latest)
    shares = {where: size * most // total for where, size in waiting.items()}
    left = most - sum(shares.values())
    by_loss = sorted(waiting, key=lambda where: (-(waiting[where] * most % total), where))
    for where in by_loss[:left]:
        shares[where] += 1
    return {where: starts.get(where, end) + shares[where] if waiting[where] else end for where, end in latest.items()}


class TriggerDelay:
    """Whether a batch waits for more: `minOffsetsPerTrigger` and `maxTriggerDelay`.  Owned by one reader."""

    def __init__(self, least: int | None, longest_ms: int) -> None:
        self._least = least
        self._longest_ms = longest_ms
        self._last_ms: int | None = None

    def holds_back(self, waiting: int, now_ms: int) -> bool:
        """Whether so few offsets are to wait. The first batch of a run never does."""
        if self._least is None:
            return False
        is_late = self._last_ms is None or now_ms - self._last_ms >= self._longest_ms
        if not is_late and waiting < self._least:
            return True
        self._last_ms = now_ms
        return False


def divide(ranges: Sequence[OffsetRange], least_parts: int | None, most_records: int | None) -> list[OffsetRange]:
    """The same offsets in more ranges: at least `least_parts` if records suffice, none above `most_records`."""
    wanted = [each for each in ranges if each.size]
    total = sum(each.size for each in wanted)
    parts = [1] * len(wanted)
    for index, each in enumerate(wanted):
        if least_parts is not None and least_parts > len(wanted):
            parts[index] = max(1, min(each.size, round(least_parts * each.size / total)))
        if most_records is not None:
            parts[index] = max(parts[index], -(-each.size // most_records))
    while least_parts is not None and sum(parts) < min(least_parts, total):
        largest = max(range(len(wanted)), key=lambda index: wanted[index].size / parts[index])
        parts[largest] += 1
    return [piece for each, count in zip(wanted, parts, strict=True) for piece in _cut(each, count)]


def _cut(whole: OffsetRange, count: int) -> list[OffsetRange]:
    bounds = [whole.start + whole.size * index // count for index in range(count + 1)]
    return [OffsetRange(whole.where, bounds[index], bounds[index + 1]) for index in range(count)]
