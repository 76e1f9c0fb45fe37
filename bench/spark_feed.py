"""Sends search terms of 100 bytes to a topic at a constant rate until it is ended.

    python -m bench.spark_feed SERVERS TOPIC RATE

The records carry the time of sending. The program belongs to the set `streams` of `python -m bench.spark`.
"""

from __future__ import annotations

import sys
import time

from kafkapy.client import Producer

_STEP_S = 0.01
_TERMS = 1000


def main() -> None:
    bootstrap, topic, rate = sys.argv[1], sys.argv[2], float(sys.argv[3])
    terms = [f"term {number}".ljust(100).encode() for number in range(_TERMS)]
    with Producer(bootstrap_servers=bootstrap, linger_ms=5, buffer_memory=256 << 20) as producer:
        began, sent = time.monotonic(), 0
        while True:
            due = int((time.monotonic() - began) * rate)
            while sent < due:
                first = sent % _TERMS
                batch = terms[first : first + due - sent]
                producer.send_many(topic, batch, partition=sent // _TERMS % 4)
                sent += len(batch)
            time.sleep(_STEP_S)


if __name__ == "__main__":
    main()
