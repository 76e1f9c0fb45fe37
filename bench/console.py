"""`python -m bench.console`: measures the console's search against `kcat | grep`, and its pages on a large cluster.

    python -m bench.console search [--records 10000000] [--rounds 3]
    python -m bench.console pages [--topics 2000] [--partitions 10000] [--groups 1000]

`search` fills a topic with records of 1 KB, of which the last tenth is younger than an hour, and reads "value contains
x" through the console's export and through kcat and grep in turn. A text that no record contains measures the records
per second; a text of the last record of the first hundred measures the time to the first hit. `pages` fills a broker
with topics and groups and measures the overview, the list of topics, the console's memory, and the processor time that
an open overview costs the broker. Prints JSON.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import urlencode

from bench.process_figures import cpu_seconds, memory_mb
from bench.run import LARGE_BATCHES, Run
from bench.servers import Kafkapy, raise_descriptor_limit
from kafkapy.client import Admin, Producer
from kafkapy.client.admin import NewTopic
from kafkapy.types import TopicPartition
from tests.console_process import ConsoleProcess, Visitor

RECORD_BYTES = 1_000
TOPIC = "records"
ABSENT = "a text that no record contains"
HIT = b"the one hit"
HOUR_MS = 3_600_000
PAGE_ROUNDS = 9
OPEN_SECONDS = 30.0
TOPICS_AT_ONCE = 500
FILLED_TOPICS = 100


def search(records: int, rounds: int, directory: Path) -> dict[str, Any]:
    """Returns the records per second of the console and of `kcat | grep`, and the seconds to the first hit and to the
    end of the console's work after the browser has left."""
    server = Kafkapy(directory, {})
    server.start()
    try:
        run = Run(server, 1.0, {})
        server.create_topic(TOPIC, 1, {})
        run.await_leaders(TOPIC, 1)
        _add_record(server.bootstrap, b"x" * RECORD_BYTES, -2 * HOUR_MS)
        _add_record(server.bootstrap, HIT, 0)
        run.produce(TOPIC, records, RECORD_BYTES, *LARGE_BATCHES).result()
        with ConsoleProcess(directory, "--bootstrap-server", server.bootstrap, "--name", "bench") as console:
            visitor = console.visitor()
            figures: dict[str, list[float]] = {"console": [], "kcat": [], "first_hit_s": [], "cpu": [], "kcat_cpu": []}
            for _ in range(rounds):
                figures["first_hit_s"].append(_first_hit_s(visitor))
                spent = cpu_seconds(console.pid)
                figures["console"].append(records / _timed(lambda: _read_to_the_end(visitor)))
                figures["cpu"].append((cpu_seconds(console.pid) - spent) / records * 1e6)
                spent = _children_seconds()
                figures["kcat"].append(records / _timed(lambda: _kcat(server.bootstrap)))
                figures["kcat_cpu"].append((_children_seconds() - spent) / records * 1e6)
            stop_s = _stop_s(visitor, console.pid)
            memory = memory_mb(console.pid, peak=True)
    finally:
        server.stop()
    ratios = [ours / theirs for ours, theirs in zip(figures["console"], figures["kcat"], strict=True)]
    return {
        "console_records_s": round(median(figures["console"])),
        "kcat_records_s": round(median(figures["kcat"])),
        "ratio": round(median(ratios), 2),
        "ratios": [round(each, 2) for each in ratios],
        "console_cpu_s_per_million": round(median(figures["cpu"]), 3),
        "kcat_cpu_s_per_million": round(median(figures["kcat_cpu"]), 3),
        "first_hit_s": round(median(figures["first_hit_s"]), 3),
        "stop_s": round(stop_s, 3),
        "peak_memory_mb": round(memory),
    }


def _add_record(bootstrap: str, value: bytes, age_ms: int) -> None:
    with Producer(bootstrap_servers=bootstrap) as producer:
        producer.send(TOPIC, value, timestamp=int(time.time() * 1000) + age_ms).result()


def _timed(work: Callable[[], None]) -> float:
    began_s = time.monotonic()
    work()
    return time.monotonic() - began_s


def _search_path(text: str, page: str = "/export") -> str:
    query = {"as": "json"} if page else {}
    query |= {"from": "time", "at": "1 h", "field": "value", "op": "contains", "text": text, "limit": "500"}
    return f"/c/bench/topics/{TOPIC}{page}?{urlencode(query)}"


def _open(visitor: Visitor, path: str) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
    connection = visitor.connection()
    connection.request("GET", path, headers={"Cookie": "; ".join(map("=".join, visitor.cookies.items()))})
    return connection, connection.getresponse()


def _read_to_the_end(visitor: Visitor) -> None:
    connection, response = _open(visitor, _search_path(ABSENT))
    found = response.read()
    connection.close()
    if response.status != 200 or found:
        raise RuntimeError(f"the export ended with {response.status}: {found[:500]!r}")


def _first_hit_s(visitor: Visitor) -> float:
    began_s = time.monotonic()
    connection, response = _open(visitor, _search_path(HIT.decode()))
    if not response.read1(1):
        raise RuntimeError("the export has no hit")
    took_s = time.monotonic() - began_s
    connection.close()
    return took_s


def _kcat(bootstrap: str) -> None:
    kcat = subprocess.Popen(
        ["kcat", "-C", "-q", "-b", bootstrap, "-t", TOPIC, "-o", "beginning", "-e"], stdout=subprocess.PIPE
    )
    subprocess.run(["grep", "-F", "-a", ABSENT], stdin=kcat.stdout, stdout=subprocess.DEVNULL, check=False)
    if kcat.wait():
        raise RuntimeError(f"kcat ended with {kcat.returncode}")


def _children_seconds() -> float:
    """Returns the processor time of the programs that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _stop_s(visitor: Visitor, pid: int) -> float:
    """Returns the processor seconds that the console spends after the browser has left in the middle of a search."""
    connection, response = _open(visitor, _search_path(ABSENT, ""))
    response.read1(1)
    time.sleep(0.2)
    connection.close()
    before = cpu_seconds(pid)
    time.sleep(3)
    return cpu_seconds(pid) - before


def pages(topics: int, partitions: int, groups: int, directory: Path) -> dict[str, Any]:
    """Returns the milliseconds that pages take on a large cluster, the console's memory, and the share of a core that
    an open overview uses in the broker."""
    server = Kafkapy(directory, {"group.max.size": "10"})
    server.start()
    try:
        _fill(server.bootstrap, topics, partitions, groups)
        with ConsoleProcess(directory, "--bootstrap-server", server.bootstrap, "--name", "bench") as console:
            visitor = console.visitor()
            paths = {
                "overview_ms": "/c/bench/",
                "topics_ms": "/c/bench/topics?sort=size&q=topic-1",
                "groups_ms": "/c/bench/groups",
            }
            pids = (console.pid, server.pid)
            figures: dict[str, Any] = {name: _page_ms(visitor, path, pids) for name, path in paths.items()}
            idle = cpu_seconds(server.pid)
            time.sleep(OPEN_SECONDS)
            idle = cpu_seconds(server.pid) - idle
            spent = cpu_seconds(server.pid)
            end_s = time.monotonic() + OPEN_SECONDS
            while time.monotonic() < end_s:  # an open page asks again every five seconds
                visitor.get("/c/bench/")
                time.sleep(5)
            spent = cpu_seconds(server.pid) - spent
            figures["broker_core_percent"] = round(max(spent - idle, 0.0) / OPEN_SECONDS * 100, 2)
            figures["memory_mb"] = round(memory_mb(console.pid))
            figures["peak_memory_mb"] = round(memory_mb(console.pid, peak=True))
    finally:
        server.stop()
    return figures


def _fill(bootstrap: str, topics: int, partitions: int, groups: int) -> None:
    names = [f"topic-{number:05}" for number in range(topics)]
    with Admin(bootstrap_servers=bootstrap, default_api_timeout_ms=120_000, request_timeout_ms=120_000) as admin:
        for start in range(0, topics, TOPICS_AT_ONCE):
            chosen = range(start, min(start + TOPICS_AT_ONCE, topics))
            counts = [partitions // topics + (number < partitions % topics) for number in chosen]
            admin.create_topics(
                [NewTopic(names[number], count, 1) for number, count in zip(chosen, counts, strict=True)]
            ).check()
    with Producer(bootstrap_servers=bootstrap) as producer:
        for number, name in enumerate(names[:FILLED_TOPICS]):
            producer.send(name, b"x" * (number % 1000 + 1), partition=0)
        producer.flush()
    with Admin(bootstrap_servers=bootstrap) as admin:
        for number in range(groups):
            admin.alter_group_offsets(f"group-{number:05}", {TopicPartition(names[number % topics], 0): 0})


def _page_ms(visitor: Visitor, path: str, pids: tuple[int, ...]) -> dict[str, int]:
    """Returns the first and the median time of a page, whose cached values have expired each time.

    `cpu` is the processor time of the processes for a page: a lower bound of the time on a machine without other work.
    """
    times = []
    spent = sum(map(cpu_seconds, pids))
    for _ in range(PAGE_ROUNDS):
        began_s = time.monotonic()
        reply = visitor.get(path)
        times.append(time.monotonic() - began_s)
        if reply.status != 200:
            raise RuntimeError(f"{path} ended with {reply.status}")
        time.sleep(2.5)
    spent = sum(map(cpu_seconds, pids)) - spent
    found = {"first": times[0], "median": median(times), "cpu": spent / PAGE_ROUNDS}
    return {name: round(seconds * 1000) for name, seconds in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.console", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("part", choices=("search", "pages"))
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--topics", type=int, default=2_000)
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--groups", type=int, default=1_000)
    parser.add_argument("--directory", type=Path, help="where the broker keeps its data; default: a temporary one")
    chosen = parser.parse_args()
    raise_descriptor_limit()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the broker is stopped too
    if chosen.part == "search" and shutil.which("kcat") is None:
        raise SystemExit("bench: the comparison needs kcat")
    with tempfile.TemporaryDirectory(prefix="kafkapy-console-", dir=chosen.directory) as directory:
        if chosen.part == "search":
            found = search(chosen.records, chosen.rounds, Path(directory))
        else:
            found = pages(chosen.topics, chosen.partitions, chosen.groups, Path(directory))
    print(json.dumps({"load_average": round(os.getloadavg()[0], 1), **found}, indent=1))


if __name__ == "__main__":
    main()
