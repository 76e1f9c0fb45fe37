"""`python -m bench`: runs workloads in turn against kafkapy, Apache Kafka and the ceiling; prints medians and ratios.

    python -m bench [--set quick|must-show|cluster|full] [--workloads produce-100B,...]
                    [--servers kafkapy,kafka,ceiling] [--rounds 5] [--output FILE.json] [--against COMMIT]
    python -m bench list
    python -m bench soak --minutes 30

The servers take turns inside each round, so that a disturbance of the machine affects all of them. One additional round
is run first and discarded (cold page cache, cold compiler of the peer). A turn during which other processes used more
than --foreign-limit cores is repeated, twice at most.

The workloads of the set `cluster` run on three nodes of each program, one program at a time (see `bench.cluster`).

With --against, a commit is built in a temporary folder and takes its turns as the server `before`. The table at the end
compares each workload's own figure and its processor time; the exit status is 1 if one is worse by more than 10 %.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterable
from pathlib import Path

from bench import report
from bench.cluster.clusters import CLUSTERS, Cluster, cluster_of
from bench.cluster.measure import run_clusters
from bench.goals import Result, outcomes
from bench.measure import FOREIGN_CPU_LIMIT, run_workload
from bench.other_commit import build_commit, compare, comparison_table, server_of
from bench.programs import RESULTS
from bench.servers import SERVERS, Server, raise_descriptor_limit
from bench.soak import soak
from bench.table import WORKLOADS, in_set
from bench.workload import SETS


def choose(names: str, known: Iterable[str], what: str) -> list[str]:
    chosen = [name for name in names.split(",") if name]
    for name in chosen:
        if name not in known:
            raise SystemExit(f"bench: there is no {what} {name!r}; known: {', '.join(known)}")
    return chosen


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("action", nargs="?", default="run", choices=("run", "list", "soak"))
    parser.add_argument("--set", default="quick", choices=SETS, help="which workloads, unless --workloads names them")
    parser.add_argument("--workloads", default="", help="comma separated; `list` shows them all")
    parser.add_argument("--servers", default="", help="comma separated; default: all, or only kafkapy with --against")
    parser.add_argument("--against", metavar="COMMIT", help="a commit to build, and to compare this tree with")
    parser.add_argument("--rounds", type=int, default=5, help="counted rounds, behind one that warms up")
    parser.add_argument("--foreign-limit", type=float, default=FOREIGN_CPU_LIMIT, metavar="CORES")
    parser.add_argument("--scale", type=float, default=1.0, help="shortens every load, to try it out")
    parser.add_argument("--directory", type=Path, help="where the brokers keep their data; default: a temporary one")
    parser.add_argument("--minutes", type=float, default=30, help="of the soak")
    parser.add_argument("--output", type=Path, default=RESULTS / "report.json")
    return parser.parse_args()


def run(chosen: argparse.Namespace) -> None:
    names = choose(chosen.servers, SERVERS, "server") or (["kafkapy"] if chosen.against else list(SERVERS))
    servers = [SERVERS[name] for name in names]
    clusters = [CLUSTERS[name] for name in names if name in CLUSTERS]
    if not chosen.against:
        run_with(chosen, servers, clusters)
        return
    with tempfile.TemporaryDirectory(prefix="kafkapy-before-") as directory:
        build_commit(chosen.against, Path(directory))
        before = Path(directory)
        result = run_with(chosen, [*servers, server_of(before)], [*clusters, cluster_of(before)])
    comparisons = compare(result)
    print()
    print(comparison_table(comparisons))
    if any(each.is_worse for each in comparisons):
        raise SystemExit(1)


def run_with(chosen: argparse.Namespace, servers: list[type[Server]], clusters: list[type[Cluster]]) -> Result:
    """Runs the chosen workloads on the servers and clusters, prints the report and returns the medians."""
    names = choose(chosen.workloads, WORKLOADS, "workload") or in_set(chosen.set)
    rounds: report.AllRounds = {}
    result: Result = {}
    failed: list[str] = []
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="kafkapy-bench-", dir=chosen.directory) as directory:
        for name in (each for each in names if WORKLOADS[each].nodes == 1):
            try:
                rounds[name] = run_workload(
                    WORKLOADS[name],
                    servers,
                    chosen.rounds,
                    Path(directory),
                    scale=chosen.scale,
                    limit=chosen.foreign_limit,
                )
            except Exception:  # the results of the other workloads are still of use
                failed.append(name)
                traceback.print_exc()
                continue
            result = report.write(chosen.output, rounds)  # after each workload: an interrupted run keeps its results
        replicated = [WORKLOADS[name] for name in names if WORKLOADS[name].nodes > 1]
        if replicated:
            of_clusters, failed_in_clusters = run_clusters(
                replicated,
                clusters,
                chosen.rounds,
                Path(directory),
                scale=chosen.scale,
                limit=chosen.foreign_limit,
                save=lambda found: report.write(chosen.output, {**rounds, **found}),
            )
            result = report.write(chosen.output, {**rounds, **of_clusters})
            failed += failed_in_clusters
    print(report.table(result))
    print()
    print(report.goal_table(outcomes(result)))
    print(f"{(time.monotonic() - begin) / 60:.1f} minutes; {chosen.output} and .html", file=sys.stderr)
    if failed:
        raise SystemExit(f"bench: failed: {', '.join(failed)}")
    return result


def main() -> None:
    chosen = options()
    raise_descriptor_limit()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the brokers are stopped too
    if chosen.action == "list":
        for workload in WORKLOADS.values():
            print(f"{workload.name:<40} {', '.join(workload.sets):<28} {', '.join(workload.servers)}")
    elif chosen.action == "soak":
        soak(chosen.minutes, chosen.output.with_name("soak.json"))
    else:
        run(chosen)


if __name__ == "__main__":
    main()
