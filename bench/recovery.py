"""`python -m bench.recovery`: compares a start after kill -9 with thousands of segments.

    python -m bench.recovery [--segments 5000] [--partitions 10] [--kilobytes 100] [--rounds 2] [--directory DIR]

kafkapy writes one directory and is killed. Both brokers start on it in turn; it is restored before each start. Times
are measured from the start of the process to its ready line; memory is the peak until then.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from bench.one_directory import OneDirectory, cpu_seconds, peak_megabytes

NEVER_MS = str(10**9)
PROPERTIES = {
    "log.flush.offset.checkpoint.interval.ms": NEVER_MS,  # nothing counts as flushed, so that everything is recovered
    "log.segment.bytes": str(1 << 20),
    "message.max.bytes": str(1 << 20),
    "log.cleaner.enable": "false",
    "num.recovery.threads.per.data.dir": "2",
}


def fill(bootstrap: str, segments: int, partitions: int, kilobytes: int) -> None:
    """Writes records whose timestamps are an hour apart, so that each rolls a segment by `segment.ms`."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    config = {"segment.ms": "60000", "retention.ms": "-1", "message.timestamp.after.max.ms": str(2**62)}
    admin.create_topics([NewTopic("t", partitions, 1, config=config)])["t"].result(60)
    producer = Producer({"bootstrap.servers": bootstrap, "message.max.bytes": 1 << 20, "batch.size": kilobytes << 10})
    value = bytes(range(250)) * 4
    first_ms = int(time.time() * 1000) - 3_600_000 * (segments // partitions)
    for number in range(segments // partitions):
        for partition in range(partitions):
            for _ in range(kilobytes):
                producer.produce("t", value, partition=partition, timestamp=first_ms + 3_600_000 * number)
        producer.flush(60)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--segments", type=int, default=5000)
    parser.add_argument("--partitions", type=int, default=10)
    parser.add_argument("--kilobytes", type=int, default=100, help="of each segment")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--directory", type=Path, default=None)
    options = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="recovery-", dir=options.directory))
    try:
        directory = OneDirectory(root, PROPERTIES, heap="1G")
        with directory.kafkapy() as filled:
            fill(filled.bootstrap, options.segments, options.partitions, options.kilobytes)
            filled.kill()
        directory.save()
        found = len(list(directory.logs.glob("t-*/*.log")))
        size = sum(path.stat().st_size for path in directory.logs.glob("t-*/*.log"))
        print(f"{found} segments of {size >> 20} MB in {options.partitions} partitions", flush=True)
        for name, server in directory.rounds(options.rounds):
            start = time.monotonic()
            server.start()
            figures = {
                "server": name,
                "seconds": round(time.monotonic() - start, 2),
                "cpu_seconds": round(cpu_seconds(server), 2),
                "peak_mb": round(peak_megabytes(server)),
            }
            print(json.dumps(figures), flush=True)
            server.kill()
    finally:
        shutil.rmtree(root)


if __name__ == "__main__":
    main()
