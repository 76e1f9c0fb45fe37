"""Three user-defined partitioners: round robin, hash and random.

A partitioner is an object with the method `partition(topic, key, key_bytes, value, partition_count)`, which the
producer calls for every record that is sent without a partition.
"""

from __future__ import annotations

import itertools
import random
from typing import Any

from example_support import make_topic, run

from kafkapy.client import Producer


class RoundRobinPartitioner:
    """Chooses the partitions in turn, beginning with partition 1, and ignores the key."""

    def __init__(self) -> None:
        self._counter = itertools.count(1)

    def partition(self, topic: str, key: Any, key_bytes: bytes | None, value: Any, partition_count: int) -> int:
        return next(self._counter) % partition_count


class HashPartitioner:
    """Chooses the partition by the key: by its value if it is a number, otherwise by Java's hash of its text. Every
    record needs a key."""

    def partition(self, topic: str, key: Any, key_bytes: bytes | None, value: Any, partition_count: int) -> int:
        if key is None:
            raise ValueError("a record without a key has no partition")
        number = key if isinstance(key, int) else java_hash(str(key))
        return abs(number) % partition_count


class RandomPartitioner:
    """Chooses a partition at random."""

    def partition(self, topic: str, key: Any, key_bytes: bytes | None, value: Any, partition_count: int) -> int:
        return random.randrange(partition_count)


def java_hash(text: str) -> int:
    """Returns the String.hashCode of Java: 32 bits with a sign."""
    result = 0
    for unit in memoryview(text.encode("utf-16-le")).cast("H"):
        result = (31 * result + unit) & 0xFFFFFFFF
    return result - (1 << 32) if result >> 31 else result


def main(bootstrap: str, topic: str) -> None:
    make_topic(bootstrap, topic, 3, is_exact=True)
    for partitioner in (RoundRobinPartitioner(), HashPartitioner(), RandomPartitioner()):
        with Producer(bootstrap_servers=bootstrap, partitioner_class=partitioner) as producer:
            futures = [producer.send(topic, f"message{number}", key=str(number)) for number in range(10)]
            chosen = [future.result(timeout=30).partition for future in futures]
        print(f"{type(partitioner).__name__}: {' '.join(map(str, chosen))}")


if __name__ == "__main__":
    run(main, __doc__, topic="example-partitioners")
