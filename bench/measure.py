"""One measurement: run a load against a server and note what it cost, and whether the machine was otherwise quiet."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.servers import CLOCK_TICKS, Server

Figures = dict[str, float]
# More foreign CPU than this (cores) during a round means that the round is repeated.
FOREIGN_CPU_LIMIT = 0.1
REPEATS = 3


def busy_seconds() -> float:
    """CPU time of the whole machine spent on anything but idling."""
    fields = [int(field) for field in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
    return (sum(fields[:8]) - fields[3] - fields[4]) / CLOCK_TICKS


def own_seconds() -> float:
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in usage)


def run_load(command: list[str]) -> dict[str, Any]:
    """Runs a load program and returns the JSON line that it prints."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}: {done.stdout} {done.stderr}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def measured(server: Server, load: Callable[[], dict[str, Any]]) -> Figures:
    """The load's own figures with `cpu_seconds` and `memory_mb` of the broker and `foreign_cores` beside them."""
    for _ in range(REPEATS):
        busy, own, broker, start = busy_seconds(), own_seconds(), server.cpu_seconds(), time.monotonic()
        figures = load()
        took = time.monotonic() - start
        spent = server.cpu_seconds() - broker
        foreign = (busy_seconds() - busy - (own_seconds() - own) - spent) / took
        if foreign < FOREIGN_CPU_LIMIT:
            break
    figures["cpu_seconds"] = spent
    figures["memory_mb"] = server.memory_mb(peak=True)
    figures["foreign_cores"] = round(foreign, 3)
    return figures


def machine() -> dict[str, str]:
    model = next(line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name"))
    return {"cpu": model.partition(":")[2].strip(), "cores": str(os.cpu_count()), "kernel": os.uname().release}
