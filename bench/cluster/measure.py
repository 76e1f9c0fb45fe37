"""Rounds of clusters: only one of them runs at a time, and runs all workloads before the next one starts.

Three idle nodes of Apache Kafka use a tenth of a core, so they would disturb the others. The first round, which does
not count, warms up the page cache: it is shorter, and includes only rates. Every turn starts new nodes, and warms up
the compiler of the peer before it measures.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from bench.cluster.clusters import Cluster, KafkapyCluster
from bench.cluster.life import START, start
from bench.cluster.throughput import produce
from bench.cluster.turn import ClusterTurn
from bench.measure import Rounds, tell, undisturbed
from bench.run import Figures
from bench.workload import Workload

FIRST_SCALE = 0.3
# The workloads that need no warm nodes; they come before the others.
COLD = ("cluster-start", "cluster-idle")


def run_clusters(
    workloads: Sequence[Workload],
    clusters: Sequence[type[Cluster]],
    rounds: int,
    directory: Path,
    *,
    scale: float,
    limit: float,
    save: Callable[[dict[str, Rounds]], object],
) -> tuple[dict[str, Rounds], list[str]]:
    """Runs `rounds` rounds that count; returns their figures by workload and cluster, and the workloads that failed.

    `save` gets all figures so far after each turn.
    """
    found: dict[str, Rounds] = {}
    failed: list[str] = []
    for number in range(rounds + 1):
        for cluster in clusters:
            chosen = [each for each in workloads if has_part(cluster, each) and (number or each.higher_is_better)]
            turn_scale = scale if number else scale * FIRST_SCALE
            for name, result in take_turn(cluster, chosen, number, directory, turn_scale, limit).items():
                if result is None:
                    failed.append(name)
                elif number:
                    found.setdefault(name, {}).setdefault(cluster.name, []).append(result)
            save(found)
    return found, list(dict.fromkeys(failed))


def has_part(cluster: type[Cluster], workload: Workload) -> bool:
    return cluster.name in workload.servers or issubclass(cluster, KafkapyCluster)


def take_turn(
    cluster_type: type[Cluster],
    workloads: Sequence[Workload],
    number: int,
    directory: Path,
    scale: float,
    limit: float,
) -> dict[str, Figures | None]:
    """Runs the workloads on a new cluster and returns their figures; None for each one that failed."""
    if not workloads:
        return {}
    found: dict[str, Figures | None] = {}
    cluster = cluster_type(directory)
    turn = ClusterTurn(cluster, scale, {})
    is_warm = False
    try:
        turn.kept[START] = start(turn)
        for workload in workloads:
            if workload.name not in COLD and not is_warm:
                warm_up(turn)
                is_warm = True
            begin = time.monotonic()
            try:
                found[workload.name] = result = undisturbed(
                    partial(workload.run, turn), limit if number else float("inf")
                )
            except Exception:  # the results of the other workloads are still of use
                found[workload.name] = None
                traceback.print_exc()
                continue
            tell(workload, cluster.name, number, result, time.monotonic() - begin)
    finally:
        cluster.kill()
        cluster.remove()
    return found


def warm_up(turn: ClusterTurn) -> None:
    """Makes the nodes compile what the workloads use."""
    produce(1_000_000, 100, "all")(turn)
    produce(200_000, 1000, "1")(turn)
    topic = turn.topic()
    turn.requests(topic, 64, turn.seconds(3), acks=-1).result()
    turn.cluster.delete_topic(topic)
