"""Sends ten records one by one: each waits for the broker's answer before the next leaves."""

from __future__ import annotations

import sys

from kafkapy.client import Producer


def main(bootstrap: str, topic: str) -> None:
    with Producer(bootstrap_servers=bootstrap, acks="1", enable_idempotence=False) as producer:
        for number in range(10):
            sent = producer.send(topic, f"message{number}", key=str(number)).result(timeout=30)
            print(f"partition={sent.partition},offset={sent.offset}")


if __name__ == "__main__":
    main(*sys.argv[1:3])
