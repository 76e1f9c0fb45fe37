"""Sends five records to three receivers, each of which reads all of them because it is a group of its own.

Receivers of one group would share the records.
"""

from __future__ import annotations

from example_support import run

from kafkapy.client import Consumer, Producer


def read_all(bootstrap: str, topic: str, group: str, count: int) -> list[str]:
    """Reads `count` records in a group."""
    found: list[str] = []
    with Consumer(bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="earliest") as consumer:
        consumer.subscribe([topic])
        while len(found) < count:
            found += [record.value.decode() for record in consumer.poll(1.0)]
    return found


def main(bootstrap: str, topic: str) -> None:
    with Producer(bootstrap_servers=bootstrap) as producer:
        for number in range(5):
            producer.send(topic, f"message {number}")
    for receiver in ("first", "second", "third"):
        print(f"{receiver}: {', '.join(sorted(read_all(bootstrap, topic, f'{receiver}-of-{topic}', 5)))}")


if __name__ == "__main__":
    run(main, __doc__, topic="example-broadcast")
