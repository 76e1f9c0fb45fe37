"""Processes the records of a poll partition by partition, and commits each partition as soon as it is done.

The committed offset is the offset of the next record to read: the last processed record's offset plus one. The program
sends COUNT records and processes as many.
"""

from __future__ import annotations

from example_support import fill, run

from kafkapy.client import Consumer


def main(bootstrap: str, topic: str, group: str, count: str) -> None:
    fill(bootstrap, topic, int(count))
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
    run(main, __doc__, topic="example-commits", group="example-commits", count="30")
