"""Reads the topics whose names match a pattern, and selects records by a header: clients filter, brokers do not."""

from __future__ import annotations

import re

from example_support import run

from kafkapy.client import Consumer, Producer


def main(bootstrap: str, prefix: str) -> None:
    with Producer(bootstrap_servers=bootstrap) as producer:
        for region in ("north", "south"):
            for number in range(5):
                headers = {"urgent": b"yes" if number % 2 else b"no"}
                producer.send(f"{prefix}-{region}", f"{region} {number}", headers=headers)
    found: list[str] = []
    read = 0
    settings = {"group_id": f"urgent-{prefix}", "auto_offset_reset": "earliest"}
    with Consumer(bootstrap_servers=bootstrap, **settings) as consumer:
        consumer.subscribe(re.compile(rf"^{re.escape(prefix)}-(north|south)$"))
        while read < 10:
            for record in consumer.poll(1.0):
                read += 1
                if dict(record.headers).get("urgent") == b"yes":
                    found.append(record.value.decode())
    print(", ".join(sorted(found)))


if __name__ == "__main__":
    run(main, __doc__, prefix="example-filtering")
