"""Which partition a record goes to.  Pure: the default, and what a custom partitioner looks like."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, Protocol

from kafkapy._core.bytes.murmur2 import partition_of_key

__all__ = ["Partitioner", "choose_sticky_partition", "default_partition"]


class Partitioner(Protocol):
    """What `partitioner.class` may be: an object with this method, or a class of such."""

    def partition(self, topic: str, key: Any, key_bytes: bytes | None, value: Any, partition_count: int) -> int:
        """The partition of a record, from 0 to `partition_count` - 1; called by the thread that sends."""


def default_partition(key_bytes: bytes, partition_count: int) -> int:
    """Where Kafka's clients put a key: among all partitions, those without a leader too."""
    return partition_of_key(key_bytes, partition_count)


def choose_sticky_partition(
    waiting: Sequence[int],
    available: Sequence[int],
    partition_count: int,
    *,
    adaptive: bool = True,
    chance: Callable[[], float] = random.random,
) -> int:
    """The partition that records without a key go to for the next batch (KIP-794).

    `available` are the partitions with a leader, `waiting` the batches that wait for each of them: the more wait, the
    smaller its chance. All have the same chance if not `adaptive`; none available: any of all.
    """
    if not available:
        return min(int(chance() * partition_count), partition_count - 1)
    if len(available) == 1:
        return available[0]
    most = max(waiting)
    weights = [most + 1 - each if adaptive else 1 for each in waiting]
    sums = list(accumulate(weights))
    return available[min(bisect_right(sums, chance() * sums[-1]), len(available) - 1)]
