"""One consumer and a pool of workers: poll, hand out, wait for all, commit, poll again.

Records of a key stay in their order: all of them go to the same worker of a poll.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

from kafkapy.client import Consumer, ConsumerRecord


def process(records: list[ConsumerRecord]) -> int:
    """The work, here only counting."""
    return len(records)


def main(bootstrap: str, topic: str, group: str, count: str) -> None:
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
    main(*sys.argv[1:5])
