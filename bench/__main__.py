"""`python -m bench`: workloads against kafkapy, Apache Kafka and the ceiling, in turn in one run; medians and ratios.

    python -m bench [--rounds 3] [--servers kafkapy,kafka,ceiling] [--workloads produce-100B,...] [--output FILE.json]

The servers take turns inside each round, so that what the machine does meanwhile meets all of them. The first round is
thrown away (cold page cache, cold compiler of the peer) when there is more than one.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from statistics import median

from bench.measure import Figures, machine
from bench.report import table, write_html
from bench.servers import SERVERS, Server
from bench.workloads import WORKLOADS, Workload

Rounds = dict[str, dict[str, list[Figures]]]


def choose(names: str, known: dict[str, object], what: str) -> list[str]:
    chosen = names.split(",") if names else list(known)
    for name in chosen:
        if name not in known:
            raise SystemExit(f"bench: there is no {what} {name!r}; known: {', '.join(known)}")
    return chosen


def run_rounds(
    workload: Workload, servers: list[type[Server]], rounds: int, directory: Path
) -> dict[str, list[Figures]]:
    figures: dict[str, list[Figures]] = {server.name: [] for server in servers}
    started = [server(directory / workload.name) for server in servers]
    for number in range(rounds):
        for server in started:
            if number == 0 or server.process is None or server.process.poll() is not None:
                server.start()
            try:
                measurement = workload.run(server)
            except BaseException:
                for other in started:
                    other.stop()
                raise
            figures[server.name].append(measurement)
            figure = f"{workload.key} {measurement[workload.key]:,.1f}"
            print(f"{workload.name:<28} {server.name:<8} round {number + 1}: {figure}", file=sys.stderr)
    for server in started:
        server.stop()
    return figures


def medians(rounds: list[Figures]) -> Figures:
    counted = rounds[1:] or rounds
    return {key: median(each[key] for each in counted) for key in counted[0]}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--servers", default="", help="comma separated; default: " + ",".join(SERVERS))
    parser.add_argument("--workloads", default="", help="comma separated; default: all")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "report.json")
    options = parser.parse_args()
    servers = [SERVERS[name] for name in choose(options.servers, dict(SERVERS), "server")]
    chosen = [WORKLOADS[name] for name in choose(options.workloads, dict(WORKLOADS), "workload")]
    rounds: Rounds = {}
    with tempfile.TemporaryDirectory(prefix="kafkapy-bench-") as directory:
        for workload in chosen:
            rounds[workload.name] = run_rounds(workload, servers, options.rounds, Path(directory))
    result = {name: {server: medians(each) for server, each in of.items()} for name, of in rounds.items()}
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps({"machine": machine(), "medians": result, "rounds": rounds}, indent=1))
    write_html(options.output.with_suffix(".html"), result, machine())
    print(table(result))


if __name__ == "__main__":
    main()
