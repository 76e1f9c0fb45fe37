"""`python -m bench soak`: runs a long mixed load on kafkapy and checks that memory and p99 stay flat."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from statistics import median

from bench.run import Figures, Run
from bench.servers import Kafkapy
from bench.workloads.requests import HOUSEKEEPING, LATENCY_CONNECTIONS, housekeeping

RATE = 1_000
# The first tenth of the minutes is not counted: caches fill, and the logs grow to the size that retention allows.
SETTLING = 10
ALLOWED_MEMORY_GROWTH_MB = 10
ALLOWED_LATENCY_GROWTH = 2.0


def first_and_last(minutes: list[Figures], key: str) -> tuple[float, float]:
    """Returns the medians of a figure over the first and over the last third of the counted minutes."""
    counted = minutes[len(minutes) // SETTLING :] or minutes
    third = max(1, len(counted) // 3)
    return median(each[key] for each in counted[:third]), median(each[key] for each in counted[-third:])


def memory_growth(minutes: list[Figures], key: str) -> float:
    """Returns the growth in megabytes of the resident memory that the figure `key` records."""
    first, last = first_and_last(minutes, key)
    return last - first


def verdict(minutes: list[Figures]) -> dict[str, float | bool]:
    """Compares the memory and the latency at the end of a run with those at its beginning.

    `minutes` has the figures of each minute. The first tenth of them is ignored; of the others, the last third is
    compared with the first third. The result has the growth of the median resident memory in MB, the factor by which
    the median p99 has grown, and whether both are within the allowed limits.
    """
    growth = memory_growth(minutes, "memory_mb")
    before, after = first_and_last(minutes, "p99_us")
    flat = growth <= ALLOWED_MEMORY_GROWTH_MB and after / before <= ALLOWED_LATENCY_GROWTH
    return {"memory_growth_mb": growth, "p99_growth": after / before, "is_flat": flat}


def soak(minutes: float, output: Path) -> None:
    """Runs a mixed load for `minutes`, and writes its figures to `output`.

    The load is requests at a fixed rate, a group that reads them, retention and the cleaner.
    """
    sampled: list[Figures] = []
    with tempfile.TemporaryDirectory(prefix="kafkapy-soak-") as directory:
        server = Kafkapy(Path(directory), HOUSEKEEPING)
        server.start()
        try:
            run = Run(server, 1.0, {})
            topic = run.keep(
                "topic", lambda: run.topic(1, {"retention.bytes": "67108864", "segment.bytes": "16777216"})
            )
            left = minutes * 60
            while left > 0:
                seconds = min(60.0, left)

                def load(seconds: float = seconds) -> Figures:
                    others = housekeeping(run, seconds)
                    figures = run.requests(topic, LATENCY_CONNECTIONS, seconds, acks=-1, rate=RATE).result()
                    for other in others:
                        other.result()
                    return figures

                figures = run.measure(load)
                figures["memory_mb"] = server.memory_mb()
                figures["descriptors"] = server.descriptors()
                sampled.append(figures)
                left -= seconds
                told = ", ".join(
                    f"{key} {figures[key]:,.1f}" for key in ("p99_us", "memory_mb", "descriptors", "cpu_seconds")
                )
                print(f"minute {len(sampled)}: {told}", file=sys.stderr, flush=True)
        finally:
            server.stop()
    found = verdict(sampled)
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps({"verdict": found, "minutes": sampled}, indent=1))
    print(json.dumps(found))
