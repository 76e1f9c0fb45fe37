"""`python -m bench.zookeeper`: compares `zookeeper.listener` with Apache ZooKeeper; prints medians and ratios.

    python -m bench.zookeeper [--workloads getData,setData,...] [--rounds 3] [--scale 1.0] [--output FILE.json]

The servers take turns inside each round, after one round that warms up and is discarded. `zookeeper` syncs its log to
the disk before it answers a change, as it does by default; `zookeeper-unsynced` (`forceSync=no`) leaves that to the
system, as the broker does. 16 sessions have up to 32 requests each in flight, from one process. Nodes have 100 bytes.
An operation of `create-delete` is one create or one delete. A `multi` checks and changes a node, and creates and
deletes another one. `idle-broker` and `produce-1KB` compare brokers without and with the listener.

The virtual machine of ZooKeeper has `-Xmx512M`; its other options, and those of ZooKeeper, are the defaults.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from bench.__main__ import choose
from bench.measure import FOREIGN_CPU_LIMIT, Rounds, machine, medians, run_workload
from bench.programs import RESULTS
from bench.run import Figures
from bench.servers import Server, raise_descriptor_limit
from bench.zookeeper.servers import ListenerOff, ListenerOn, Listening, UnsyncedZooKeeper, ZooKeeper
from bench.zookeeper.workloads import WORKLOADS

# For each server of kafkapy the servers that it is compared with.
PEERS = {Listening.name: (ZooKeeper.name, UnsyncedZooKeeper.name), ListenerOn.name: (ListenerOff.name,)}
SERVERS: dict[str, type[Server]] = {
    each.name: each for each in (Listening, ZooKeeper, UnsyncedZooKeeper, ListenerOff, ListenerOn)
}
NOT_SHOWN = ("requests", "messages", "tries", "cpu_seconds", "seconds")
Result = dict[str, dict[str, Figures]]


def table(result: Result, ours: str) -> str:
    """Returns a table in Markdown with a row for each figure of the server `ours`.

    A row has the medians of this server and of its peers, and the ratios to the peers.
    """
    peers = PEERS[ours]
    heading = ["workload", "figure", ours, *peers, *(f"/ {peer}" for peer in peers)]
    lines = [heading, ["---"] * len(heading)]
    for name, figures in result.items():
        for figure in (key for key in figures.get(ours, {}) if key not in NOT_SHOWN):
            own = figures[ours][figure]
            values = [figures.get(peer, {}).get(figure) for peer in peers]
            ratios = [f"{own / value:.2f}" if value else "-" for value in values]
            shown = ["-" if value is None else f"{value:,.4g}" for value in (own, *values)]
            lines.append([name, figure, *shown, *ratios])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def main(arguments: Iterable[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.zookeeper", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--workloads", default="", help=f"comma separated; known: {', '.join(WORKLOADS)}")
    parser.add_argument("--servers", default="", help=f"comma separated; known: {', '.join(SERVERS)}")
    parser.add_argument("--rounds", type=int, default=3, help="counted rounds, behind one that warms up")
    parser.add_argument("--scale", type=float, default=1.0, help="shortens every load, to try it out")
    parser.add_argument("--foreign-limit", type=float, default=FOREIGN_CPU_LIMIT, metavar="CORES")
    parser.add_argument("--directory", type=Path, help="where the servers keep their data; default: a temporary one")
    parser.add_argument("--output", type=Path, default=RESULTS / "zookeeper.json")
    chosen = parser.parse_args(None if arguments is None else list(arguments))
    raise_descriptor_limit()
    servers = choose(chosen.servers, SERVERS, "server") or list(SERVERS)
    names = choose(chosen.workloads, WORKLOADS, "workload") or list(WORKLOADS)
    rounds: dict[str, Rounds] = {}
    result: Result = {}
    began_s = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="kafkapy-zookeeper-", dir=chosen.directory) as directory:
        for name in names:
            workload = WORKLOADS[name]
            taking_part = [SERVERS[server] for server in servers if server in workload.servers]
            rounds[name] = run_workload(
                workload,
                taking_part,
                chosen.rounds,
                Path(directory),
                scale=chosen.scale,
                limit=chosen.foreign_limit,
            )
            result[name] = {server: medians(each) for server, each in rounds[name].items() if each}
            chosen.output.parent.mkdir(parents=True, exist_ok=True)
            about = {**machine(), "load_average": f"{os.getloadavg()[0]:.1f}"}
            content = {"machine": about, "medians": result, "rounds": rounds}
            chosen.output.write_text(json.dumps(content, indent=1))
    for ours in PEERS:
        if any(ours in figures for figures in result.values()):
            print(table(result, ours), end="\n\n")
    print(f"{(time.monotonic() - began_s) / 60:.1f} minutes; {chosen.output}", file=sys.stderr)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the servers are stopped too
    main()
