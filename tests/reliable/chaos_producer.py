"""The application of the chaos test: writes unique records to a topic until it is killed."""

from __future__ import annotations

import os
import sys
import time

from kafkapy.client import Producer


def main(bootstrap: str, topic: str, rate: int) -> None:
    with Producer(bootstrap_servers=bootstrap, linger_ms=5) as producer:
        producer.partitions_for(topic)
        print("ready", flush=True)
        number = 0
        while True:
            name = f"{os.getpid()}-{number}"
            producer.send(topic, name, f"k{number % 50}")
            number += 1
            time.sleep(1 / rate)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
