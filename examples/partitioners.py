"""Three partitioners of one's own: round robin, hash and random.

A partitioner is an object with `partition(topic, key, key_bytes, value, partition_count)`; the producer asks it for
every record that names no partition.
"""

from __future__ import annotations

import itertools
import random
import sys
from typing import Any

from kafkapy.client import Producer


class RoundRobinPartitioner:
    """The partitions in turn, whatever the key. The first record goes to partition 1: the count comes first."""

    def __init__(self) -> None:
        self._counter = itertools.count(1)

    def partition(self, topic: str, key: Any, key_bytes: bytes | None, value: Any, partition_count: int) -> int:
        return next(self._counter) % partition_count


class HashPartitioner:
    """By the key: a number by itself, anything else by the hash of Java's strings. A record needs a key."""

    def partition(self, topic: str, key: Any, key_bytes: bytes | None, value: Any, partition_count: int) -> int:
        if key is None:
            raise ValueError("a record without a key has no partition")
        number = key if isinstance(key, int) else java_hash(str(key))
        return abs(number) % partition_count


class RandomPartitioner:
    """Any partition."""

    def partition(self, topic: str, key: Any, key_bytes: bytes | None, value: Any, partition_count: int) -> int:
        return random.randrange(partition_count)


def java_hash(text: str) -> int:
    """String.hashCode of Java: 32 bits with a sign."""
    result = 0
    for unit in memoryview(text.encode("utf-16-le")).cast("H"):
        result = (31 * result + unit) & 0xFFFFFFFF
    return result - (1 << 32) if result >> 31 else result


def main(bootstrap: str, topic: str) -> None:
    for partitioner in (RoundRobinPartitioner(), HashPartitioner(), RandomPartitioner()):
        with Producer(bootstrap_servers=bootstrap, partitioner_class=partitioner) as producer:
            futures = [producer.send(topic, f"message{number}", key=str(number)) for number in range(10)]
            chosen = [future.result(timeout=30).partition for future in futures]
        print(f"{type(partitioner).__name__}: {' '.join(map(str, chosen))}")


if __name__ == "__main__":
    main(*sys.argv[1:3])
