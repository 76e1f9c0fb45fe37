"""Limits the number of records of a micro-batch and divides it into tasks. This module does no I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kafkapy.spark.stream_offset import OffsetRange
from kafkapy.types import TopicPartition


def limit_offsets(
    most: int, starts: Mapping[TopicPartition, int], latest: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """Returns an end for each partition, so that a batch has `most` offsets in total, or all if there are fewer.

    `starts` and `latest` are the first and the last possible offsets of the batch. Each partition gets a share in
    proportion to its unread offsets. Shares are rounded down; the offsets that remain go to the partitions with the
    largest fractions, so that the sum is exact.
    """
    unread = {partition: max(end - starts.get(partition, end), 0) for partition, end in latest.items()}
    total = sum(unread.values())
    if total <= most:
        return dict(latest)
    shares = {partition: size * most // total for partition, size in unread.items()}
    left = most - sum(shares.values())
    by_loss = sorted(unread, key=lambda partition: (-(unread[partition] * most % total), partition))
    for partition in by_loss[:left]:
        shares[partition] += 1
    return {
        partition: starts.get(partition, end) + shares[partition] if unread[partition] else end
        for partition, end in latest.items()
    }


class TriggerDelay:
    """The delay of batches that `minOffsetsPerTrigger` and `maxTriggerDelay` cause. Each stream reader has its own."""

    def __init__(self, least: int | None, longest_ms: int) -> None:
        self._least = least
        self._longest_ms = longest_ms
        self._last_ms: int | None = None

    def holds_back(self, unread: int, monotonic_ms: int) -> bool:
        """Returns whether a batch of `unread` offsets must wait at the present time `monotonic_ms`.

        A batch must wait if it has fewer offsets than `minOffsetsPerTrigger`, and less than `maxTriggerDelay` has
        passed since this method last returned False. The first batch of a reader never waits.
        """
        if self._least is None:
            return False
        is_late = self._last_ms is None or monotonic_ms - self._last_ms >= self._longest_ms
        if not is_late and unread < self._least:
            return True
        self._last_ms = monotonic_ms
        return False


def divide(ranges: Sequence[OffsetRange], least_parts: int | None, most_records: int | None) -> list[OffsetRange]:
    """Divides ranges into at least `least_parts` parts. Each part has at most `most_records` records.

    There are fewer parts if the ranges have fewer records than `least_parts`. None means no limit. Empty ranges are
    left out.
    """
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
    return [OffsetRange(whole.partition, bounds[index], bounds[index + 1]) for index in range(count)]
