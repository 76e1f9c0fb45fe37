"""Sends records by surname: frequent names have partitions of their own, rare ones share the last partition.

The most frequent names of a census are so frequent that two of them in one partition would make it much larger than the
others. The names in the middle are distributed over partitions that they share, by the hash of the name.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

from example_support import make_topic, run
from partitioners import java_hash

from kafkapy.client import Producer

# Each has a partition of its own, in this order.
FREQUENT = "王李张刘陈"
MIDDLING = "杨赵黄周吴徐孙胡朱高"
SHARED_PARTITIONS = 2
PARTITIONS = len(FREQUENT) + SHARED_PARTITIONS + 1


class SurnamePartitioner:
    """Chooses the partition by the first character of the key, which is a full name."""

    def partition(self, topic: str, key: Any, key_bytes: bytes | None, value: Any, partition_count: int) -> int:
        if partition_count != PARTITIONS:
            raise ValueError(f"{topic} has {partition_count} partitions, and the surnames need {PARTITIONS}")
        surname = str(key)[:1]
        if surname and surname in FREQUENT:
            return FREQUENT.index(surname)
        if surname and surname in MIDDLING:
            return len(FREQUENT) + java_hash(surname) % SHARED_PARTITIONS
        return PARTITIONS - 1


def main(bootstrap: str, topic: str) -> None:
    make_topic(bootstrap, topic, PARTITIONS, is_exact=True)
    chance = random.Random(1)
    rare = "欧司诸上"
    names = chance.choices([*FREQUENT, *MIDDLING, *rare], weights=[10] * 5 + [3] * 10 + [1] * 4, k=200)
    placed: dict[int, Counter[str]] = {number: Counter() for number in range(PARTITIONS)}
    with Producer(bootstrap_servers=bootstrap, partitioner_class=SurnamePartitioner()) as producer:
        futures = [(surname, producer.send(topic, "registered", key=f"{surname}明")) for surname in names]
        for surname, future in futures:
            placed[future.result(timeout=30).partition][surname] += 1
    for number, counts in placed.items():
        print(f"{number}: {' '.join(f'{surname}{count}' for surname, count in sorted(counts.items()))}")


if __name__ == "__main__":
    run(main, __doc__, topic="example-surnames")
