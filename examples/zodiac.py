"""Twelve signs of the zodiac as keys of a topic with twelve partitions, one sign to a partition.

The default hash spreads keys evenly only when there are many: of these twelve partitions several get no sign. What
is to be apart needs a partitioner that knows it.
"""

from __future__ import annotations

import sys
from typing import Any

from kafkapy.client import Producer

SIGNS = "鼠牛虎兔龙蛇马羊猴鸡狗猪"


class ZodiacPartitioner:
    """The place of the sign in the year's order."""

    def partition(self, topic: str, key: Any, key_bytes: bytes | None, value: Any, partition_count: int) -> int:
        return SIGNS.index(key) % partition_count


def places(producer: Producer, topic: str) -> str:
    """Where each sign goes."""
    futures = {sign: producer.send(topic, f"born in the year of {sign}", key=sign) for sign in SIGNS}
    return " ".join(f"{sign}{future.result(timeout=30).partition}" for sign, future in futures.items())


def main(bootstrap: str, topic: str) -> None:
    with Producer(bootstrap_servers=bootstrap) as producer:
        print(f"default: {places(producer, topic)}")
    with Producer(bootstrap_servers=bootstrap, partitioner_class=ZodiacPartitioner()) as producer:
        print(f"zodiac: {places(producer, topic)}")


if __name__ == "__main__":
    main(*sys.argv[1:3])
