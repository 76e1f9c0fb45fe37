"""Sends ten records one by one: the program waits for each delivery before it sends the next record."""

from __future__ import annotations

from example_support import run

from kafkapy.client import Producer


def main(bootstrap: str, topic: str) -> None:
    with Producer(bootstrap_servers=bootstrap, acks="1", enable_idempotence=False) as producer:
        for number in range(10):
            sent = producer.send(topic, f"message{number}", key=str(number)).result(timeout=30)
            print(f"partition={sent.partition},offset={sent.offset}")


if __name__ == "__main__":
    run(main, __doc__, topic="example-sync")
