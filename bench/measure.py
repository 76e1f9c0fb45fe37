"""Rounds: the servers take turns, disturbed turns are repeated, the first round is discarded, medians are computed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from bench.run import Figures, Run
from bench.servers import Kafkapy, Server
from bench.workload import Workload

# A turn with more foreign CPU (cores) than the limit is repeated; REPEATS is the largest number of turns.
FOREIGN_CPU_LIMIT = 0.1
REPEATS = 3

Rounds = dict[str, list[Figures]]


def undisturbed(turn: Callable[[], Figures], limit: float, repeats: int = REPEATS) -> Figures:
    """Repeats a turn until foreign CPU is below `limit`.

    After `repeats` turns returns the figures of the turn with the least foreign CPU.
    """
    tries: list[Figures] = []
    while len(tries) < repeats:
        tries.append(turn())
        if tries[-1].get("foreign_cores", 0.0) < limit:
            break
    best = min(tries, key=lambda figures: figures.get("foreign_cores", 0.0))
    return {**best, "tries": len(tries)}


def run_workload(
    workload: Workload, servers: list[type[Server]], rounds: int, directory: Path, *, scale: float, limit: float
) -> Rounds:
    """Runs `rounds` rounds that count, after one round that warms up the page cache and the peer's compiler.

    `scale` shortens the workload, and `limit` is the foreign CPU (cores) above which a turn is repeated.
    """
    chosen = [
        server
        for server in servers
        if server.name in workload.servers or (issubclass(server, Kafkapy) and Kafkapy.name in workload.servers)
    ]
    figures: Rounds = {server.name: [] for server in chosen}
    started = [server(directory / workload.name, workload.properties, workload.security) for server in chosen]
    kept: dict[str, dict[str, Any]] = {server.name: {} for server in chosen}
    try:
        for server in started:
            server.start()
            server.secure()
        for number in range(rounds + 1):
            for server in started:
                begin = time.monotonic()
                turn = Run(server, scale, kept[server.name])
                result = undisturbed(partial(workload.run, turn), limit if number else float("inf"))
                if number:
                    figures[server.name].append(result)
                tell(workload, server.name, number, result, time.monotonic() - begin)
    finally:
        end(started)
    return figures


def end(servers: list[Server]) -> None:
    """Stops all servers.

    A server that does not stop cleanly is killed, and reported when all servers have ended.
    """
    complaints = []
    for server in servers:
        try:
            server.stop()
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            complaints.append(str(error))
            server.kill()
        server.remove()
    if complaints:
        raise RuntimeError("; ".join(complaints))


def tell(workload: Workload, server: str, number: int, figures: Figures, took: float) -> None:
    what = f"round {number}" if number else "warm-up"
    value = f"{workload.key} {figures[workload.key]:,.4g}"
    foreign = f"foreign {figures.get('foreign_cores', 0):.2f}"
    print(f"{workload.name:<38} {server:<8} {what:<8} {value:<28} {foreign} {took:5.1f} s", file=sys.stderr, flush=True)


def medians(rounds: list[Figures]) -> Figures:
    """Returns the median of each figure that every round has."""
    keys = [key for key in rounds[0] if all(key in each for each in rounds)]
    return {key: median(each[key] for each in rounds) for key in keys}


def machine() -> dict[str, str]:
    model = next(line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name"))
    return {"cpu": model.partition(":")[2].strip(), "cores": str(os.cpu_count()), "kernel": os.uname().release}
