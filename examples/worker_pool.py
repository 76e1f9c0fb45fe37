"""Processes the records of one consumer in a pool of workers, and commits when all workers have finished.

The records of a key keep their order, because one worker processes all of them. The program sends COUNT records and
processes as many.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from example_support import fill, run

from kafkapy.client import Consumer, ConsumerRecord


def process(records: list[ConsumerRecord]) -> int:
    """Does the work; here it only counts the records."""
    return len(records)


def main(bootstrap: str, topic: str, group: str, count: str) -> None:
    fill(bootstrap, topic, int(count))
    settings = {"group_id": group, "auto_offset_reset": "earliest", "enable_auto_commit": False}
    done = 0
    with Consumer(bootstrap_servers=bootstrap, **settings) as consumer, ThreadPoolExecutor(4) as pool:
        consumer.subscribe([topic])
        while done < int(count):
            by_key: dict[bytes | None, list[ConsumerRecord]] = {}
            for record in consumer.poll(1.0):
                by_key.setdefault(record.key, []).append(record)
            done += sum(pool.map(process, by_key.values()))
            consumer.commit()
    print(f"{done} records processed")


if __name__ == "__main__":
    run(main, __doc__, topic="example-workers", group="example-workers", count="50")
