"""Processes what a poll gave partition by partition, and commits each as soon as it is done.

What is committed is the offset of the next record to read: the last one processed, and one.
"""

from __future__ import annotations

import sys

from kafkapy.client import Consumer


def main(bootstrap: str, topic: str, group: str, count: str) -> None:
    settings = {"group_id": group, "auto_offset_reset": "earliest", "enable_auto_commit": False}
    left = int(count)
    with Consumer(bootstrap_servers=bootstrap, **settings) as consumer:
        consumer.subscribe([topic])
        while left > 0:
            for partition, records in consumer.poll(1.0).by_partition().items():
                for record in records:
                    print(f"{record.value.decode()},{record.partition},{record.offset}")
                consumer.commit({partition: records[-1].offset + 1})
                print(f"commit topic {topic}, partition {partition.partition}, offset {records[-1].offset + 1}")
                left -= len(records)


if __name__ == "__main__":
    main(*sys.argv[1:5])
