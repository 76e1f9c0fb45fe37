"""Combines the batches of a share partition's state that were written one after the other."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush

from kafkapy.replica.share.persister import StateBatch


def combine_batches(batches: Iterable[StateBatch], start_offset: int) -> list[StateBatch]:
    """Returns disjoint batches in the order of their offsets, made from `batches`, which may overlap.

    Offsets below `start_offset` are dropped. Where batches overlap, the batch with the higher delivery count applies.
    If the counts are equal, the batch whose delivery state has the higher number applies. Adjacent batches with equal
    states and counts are joined.
    """
    ordered = sorted(
        batch if batch.first_offset >= start_offset else batch._replace(first_offset=start_offset)
        for batch in batches
        if batch.last_offset >= start_offset
    )
    combined: list[StateBatch] = []
    covering: list[tuple[int, int, int]] = []  # a heap: -delivery count, -state, last offset
    following = 0
    offset = 0
    while covering or following < len(ordered):
        if not covering:
            offset = max(offset, ordered[following].first_offset)
        while following < len(ordered) and ordered[following].first_offset <= offset:
            batch = ordered[following]
            heappush(covering, (-batch.delivery_count, -batch.state, batch.last_offset))
            following += 1
        while covering and covering[0][2] < offset:
            heappop(covering)
        if not covering:
            continue
        count, state, last = covering[0]
        if following < len(ordered):
            last = min(last, ordered[following].first_offset - 1)
        _add(combined, StateBatch(offset, last, -state, -count))
        offset = last + 1
    return combined


def _add(combined: list[StateBatch], batch: StateBatch) -> None:
    if combined:
        previous = combined[-1]
        if previous.last_offset + 1 == batch.first_offset and previous[2:] == batch[2:]:
            combined[-1] = previous._replace(last_offset=batch.last_offset)
            return
    combined.append(batch)
