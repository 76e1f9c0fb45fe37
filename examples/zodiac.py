"""Sends twelve keys, the signs of the Chinese zodiac, to twelve partitions: a partition for each sign.

The default hash distributes keys evenly only if there are many: several of the twelve partitions get no sign. Keys that
each need a partition of their own need a partitioner that knows them.
"""

from __future__ import annotations

from typing import Any

from example_support import make_topic, run

from kafkapy.client import Producer

SIGNS = "鼠牛虎兔龙蛇马羊猴鸡狗猪"


class ZodiacPartitioner:
    """Chooses the partition by the position of the sign in the order of the years."""

    def partition(self, topic: str, key: Any, key_bytes: bytes | None, value: Any, partition_count: int) -> int:
        return SIGNS.index(key) % partition_count


def places(producer: Producer, topic: str) -> str:
    """Sends a record for each sign and returns the signs with their partitions."""
    futures = {sign: producer.send(topic, f"born in the year of {sign}", key=sign) for sign in SIGNS}
    return " ".join(f"{sign}{future.result(timeout=30).partition}" for sign, future in futures.items())


def main(bootstrap: str, topic: str) -> None:
    make_topic(bootstrap, topic, len(SIGNS), is_exact=True)
    with Producer(bootstrap_servers=bootstrap) as producer:
        print(f"default: {places(producer, topic)}")
    with Producer(bootstrap_servers=bootstrap, partitioner_class=ZodiacPartitioner()) as producer:
        print(f"zodiac: {places(producer, topic)}")


if __name__ == "__main__":
    run(main, __doc__, topic="example-zodiac")
