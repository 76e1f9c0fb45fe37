"""`python -m bench.client_soak`: checks that the memory of the clients and the broker stays flat over many partitions.

    python -m bench.client_soak [--minutes 30] [--partitions 1000] [--rate 25] [--output FILE.json]

One process writes `--rate` records per second, one after the other to each partition, and a second process reads them
as a group that commits its offsets. The load is light, so that other programs may run on the same machine. The
resident memory of the broker, the writer and the reader is recorded every minute.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench import process_figures
from bench.programs import RESULTS
from bench.run import Figures
from bench.servers import Kafkapy, raise_descriptor_limit
from bench.soak import ALLOWED_MEMORY_GROWTH_MB, memory_growth
from kafkapy.client import Consumer, Producer

MINUTE_S = 60.0
TOPIC = "soak"
VALUE = b"v" * 100
# The logs are rolled and deleted during the run, so that memory for segments is released as well as allocated.
PROPERTIES = {"log.retention.check.interval.ms": "10000", "log.initial.task.delay.ms": "1000"}
TOPIC_CONFIG = {"segment.ms": "300000", "retention.ms": "600000"}
PARTS = ("broker", "writer", "reader")


def write(bootstrap: str, partitions: int, rate: float) -> None:
    """Writes `rate` records per second, one after the other to each partition, until the process ends."""
    with Producer(bootstrap_servers=bootstrap) as producer:
        due, number = time.monotonic(), 0
        while True:
            producer.send(TOPIC, VALUE, partition=number % partitions)
            number += 1
            due += 1 / rate
            time.sleep(max(0.0, due - time.monotonic()))


def read(bootstrap: str) -> None:
    """Reads the topic as a group, and prints the total of records every 10 seconds, until the process ends."""
    total, next_line = 0, time.monotonic()
    with Consumer(bootstrap_servers=bootstrap, group_id="soak", auto_offset_reset="earliest") as consumer:
        consumer.subscribe([TOPIC])
        while True:
            total += len(consumer.poll(1.0))
            if time.monotonic() >= next_line:
                print(total, flush=True)
                next_line += 10


def verdict(minutes: list[Figures]) -> dict[str, float | bool]:
    """Returns the growth of each process's memory between the first and the last third of the counted minutes."""
    grown: dict[str, float | bool] = {f"{part}_growth_mb": memory_growth(minutes, f"{part}_mb") for part in PARTS}
    return {**grown, "is_flat": all(each <= ALLOWED_MEMORY_GROWTH_MB for each in grown.values())}


def soak(server: Kafkapy, minutes: int, partitions: int, rate: float, *, minute_s: float = MINUTE_S) -> list[Figures]:
    """Runs the writer and the reader for `minutes`; returns the figures of each minute of `minute_s` seconds."""
    server.create_topic(TOPIC, partitions, TOPIC_CONFIG)
    program = [sys.executable, "-m", "bench.client_soak", "--bootstrap", server.bootstrap, "--partitions"]
    words = [*program, str(partitions), "--rate", str(rate), "--part"]
    sampled: list[Figures] = []
    progress = server.directory / "reader.out"
    with progress.open("wb") as output:
        reader = subprocess.Popen([*words, "reader"], stdout=output)
        writer = subprocess.Popen([*words, "writer"])
        pids = {"broker": server.pid, "writer": writer.pid, "reader": reader.pid}
        try:
            started, before = time.monotonic(), {part: process_figures.cpu_seconds(pid) for part, pid in pids.items()}
            for minute in range(1, minutes + 1):
                time.sleep(max(0.0, started + minute_s * minute - time.monotonic()))
                if reader.poll() is not None or writer.poll() is not None:
                    raise RuntimeError(f"the writer ended with {writer.poll()}, the reader with {reader.poll()}")
                now = {part: process_figures.cpu_seconds(pid) for part, pid in pids.items()}
                figures = {f"{part}_mb": process_figures.memory_mb(pid) for part, pid in pids.items()}
                figures |= {f"{part}_cpu_seconds": now[part] - before[part] for part in pids}
                figures["records"] = float(progress.read_text().split()[-1])
                sampled.append(figures)
                before = now
                told = ", ".join(f"{key} {value:,.1f}" for key, value in figures.items())
                print(f"minute {minute}: {told}", file=sys.stderr, flush=True)
        finally:
            for process in (writer, reader):
                process.kill()
                process.wait()
    return sampled


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.client_soak", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=int, default=30)
    parser.add_argument("--partitions", type=int, default=1000)
    parser.add_argument("--rate", type=float, default=25, help="records per second")
    parser.add_argument("--output", type=Path, default=RESULTS / "client-soak.json")
    parser.add_argument("--part", choices=PARTS[1:], help="run only this client, against --bootstrap")
    parser.add_argument("--bootstrap", help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    chosen = options()
    if chosen.part == "writer":
        write(chosen.bootstrap, chosen.partitions, chosen.rate)
    if chosen.part == "reader":
        read(chosen.bootstrap)
    raise_descriptor_limit()
    with tempfile.TemporaryDirectory(prefix="kafkapy-client-soak-") as directory:
        server = Kafkapy(Path(directory), PROPERTIES)
        server.start()
        try:
            sampled = soak(server, chosen.minutes, chosen.partitions, chosen.rate)
        finally:
            server.stop()
    found = verdict(sampled)
    chosen.output.parent.mkdir(parents=True, exist_ok=True)
    chosen.output.write_text(json.dumps({"verdict": found, "minutes": sampled}, indent=1))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
