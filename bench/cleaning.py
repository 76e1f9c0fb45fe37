"""`python -m bench.cleaning`: compares the log cleaner with Apache Kafka's on a large compacted topic.

    python -m bench.cleaning [--megabytes 2048] [--rounds 2] [--rate 500] [--directory DIR]

Both brokers start in turn on the same directory of 1 KB keyed records, in which each key is written twice on average;
the directory is restored before each start. The seconds are measured from the ready line until the cleaner's checkpoint
names the topic; memory is the peak until then. At the same time a producer sends records of 100 bytes to another topic
at `--rate`; the percentiles are its latencies.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import tempfile
import time
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from bench.one_directory import OneDirectory, cpu_seconds, peak_megabytes
from bench.quantiles import quantile

PROPERTIES = {"log.cleaner.backoff.ms": "100", "log.cleaner.min.cleanable.ratio": "0.01", "log.cleaner.threads": "1"}
SEGMENT_BYTES = 128 << 20
TIMEOUT = 600


def fill(bootstrap: str, megabytes: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    compacted = {"cleanup.policy": "compact", "segment.bytes": str(SEGMENT_BYTES)}
    topics = [NewTopic("c", 1, 1, config=compacted), NewTopic("probe", 1, 1)]
    for future in admin.create_topics(topics).values():
        future.result(60)
    settings = {"bootstrap.servers": bootstrap, "linger.ms": 10, "batch.size": 65536, "enable.idempotence": True}
    producer = Producer({**settings, "queue.buffering.max.kbytes": 200_000})
    chance = random.Random(1)
    value = chance.randbytes(1000)
    count = megabytes * 1024
    for number in range(count):
        while True:
            try:
                producer.produce("c", key=b"%016d" % chance.randrange(count // 2), value=value, partition=0)
                break
            except BufferError:
                producer.poll(0.1)
        if number % 1000 == 0:
            producer.poll(0)
    assert producer.flush(TIMEOUT) == 0


class Probe:
    """A producer that sends at a steady rate on the caller's thread."""

    def __init__(self, bootstrap: str, rate: int) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, "acks": "all"})
        self._rate = rate
        self.latencies_ms: list[float] = []

    def send_for(self, seconds: float) -> None:
        end = time.perf_counter() + seconds
        due = time.perf_counter()
        while due < end:
            self._producer.poll(max(0.0, due - time.perf_counter()))
            if time.perf_counter() < due:
                continue
            sent = time.perf_counter()
            self._producer.produce("probe", bytes(100), on_delivery=lambda error, _, at=sent: self._note(error, at))
            due += 1 / self._rate
        self._producer.poll(0)

    def _note(self, error: object, sent: float) -> None:
        assert error is None, error
        self.latencies_ms.append((time.perf_counter() - sent) * 1000)

    def percentile(self, share: float) -> float:
        return round(quantile(self.latencies_ms, share), 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=2048)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--rate", type=int, default=500, help="records per second of the producer beside it")
    parser.add_argument("--directory", type=Path, default=None)
    options = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="cleaning-", dir=options.directory))
    try:
        directory = OneDirectory(root, PROPERTIES, heap="1G")
        with directory.kafkapy({"log.cleaner.enable": "false"}) as filled:
            fill(filled.bootstrap, options.megabytes)
        directory.save()
        size = sum(path.stat().st_size for path in (directory.logs / "c-0").glob("*.log"))
        print(f"{size >> 20} MB", flush=True)
        checkpoint = directory.logs / "cleaner-offset-checkpoint"
        for name, server in directory.rounds(options.rounds):
            server.start()
            start, cpu = time.monotonic(), cpu_seconds(server)
            probe = Probe(server.bootstrap, options.rate)
            while not (checkpoint.exists() and "\nc 0 " in checkpoint.read_text()):
                probe.send_for(0.1)
                if time.monotonic() - start > TIMEOUT:
                    raise RuntimeError(f"{name} has not cleaned in {TIMEOUT} s:\n{server.log()[-3000:]}")
            seconds = time.monotonic() - start
            figures = {
                "server": name,
                "seconds": round(seconds, 2),
                "mb_per_second": round(size / seconds / (1 << 20)),
                "cpu_seconds": round(cpu_seconds(server) - cpu, 2),
                "peak_mb": round(peak_megabytes(server)),
                "p50_ms": probe.percentile(0.5),
                "p99_ms": probe.percentile(0.99),
            }
            print(json.dumps(figures), flush=True)
            server.stop()
    finally:
        shutil.rmtree(root)


if __name__ == "__main__":
    main()
