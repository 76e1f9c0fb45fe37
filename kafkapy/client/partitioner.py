"""The choice of a record's partition: Kafka's default and the interface of custom partitioners. This module has no
state and does no I/O.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, count
from typing import Any, Protocol

from kafkapy._core.bytes.murmur2 import partition_of_key

__all__ = ["JAVA_PARTITIONERS", "Partitioner", "RoundRobinPartitioner", "choose_sticky_partition", "default_partition"]


class Partitioner(Protocol):
    """The interface of a custom partitioner.

    The value of `partitioner.class` is an object with this interface, or a class whose instances have it.
    """

    def partition(self, topic: str, key: Any, key_bytes: bytes | None, value: Any, partition_count: int) -> int:
        """Returns the partition of a record, from 0 to `partition_count` - 1; called by the thread that sends.

        `key` and `value` are those that the application has passed, and `key_bytes` is the serialized key, None without
        a key.
        """


class RoundRobinPartitioner:
    """Java's RoundRobinPartitioner: distributes the records of each topic evenly, whatever their keys are."""

    def __init__(self) -> None:
        self._counters: dict[str, Iterator[int]] = {}

    def partition(self, topic: str, key: Any, key_bytes: bytes | None, value: Any, partition_count: int) -> int:
        """Returns the partition after that of the previous record of the topic."""
        counter = self._counters.get(topic)
        if counter is None:
            counter = self._counters.setdefault(topic, count())
        return next(counter) % partition_count


_JAVA = "org.apache.kafka.clients.producer."
# The values of partitioner.class that name Java's classes; None stands for the partitioner of the client itself.
JAVA_PARTITIONERS: dict[str, type[Partitioner] | None] = {
    f"{_JAVA}RoundRobinPartitioner": RoundRobinPartitioner,
    f"{_JAVA}internals.DefaultPartitioner": None,
}


def default_partition(key_bytes: bytes, partition_count: int) -> int:
    """Returns the partition of a key as Kafka's clients choose it; the partition may be without a leader."""
    return partition_of_key(key_bytes, partition_count)


def choose_sticky_partition(
    waiting: Sequence[int],
    available: Sequence[int],
    partition_count: int,
    *,
    adaptive: bool = True,
    chance: Callable[[], float] = random.random,
) -> int:
    """Returns the partition for the records without a key until the next batch (KIP-794).

    `available` are the partitions with a leader, and `waiting` has the number of waiting batches of each of them. With
    `adaptive`, a partition with more waiting batches is less likely; otherwise all are equally likely. If `available`
    is empty, any partition is returned. `chance` returns a random number from 0 to below 1.
    """
    if not available:
        return min(int(chance() * partition_count), partition_count - 1)
    if len(available) == 1:
        return available[0]
    most = max(waiting)
    weights = [most + 1 - each if adaptive else 1 for each in waiting]
    sums = list(accumulate(weights))
    return available[min(bisect_right(sums, chance() * sums[-1]), len(available) - 1)]
