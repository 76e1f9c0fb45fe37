"""The table of the workloads of three nodes. A turn runs them in this order, so nodes are killed at its end."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from bench.cluster.elections import preferred_election
from bench.cluster.failures import controller_fails, leader_fails
from bench.cluster.life import catch_up, idle, reassigned, started
from bench.cluster.partitions import many_partitions
from bench.cluster.requests import closed_loop, latency
from bench.cluster.throughput import FOLLOWERS_RACK, consume, produce
from bench.cluster.turn import ClusterTurn
from bench.run import Figures
from bench.workload import ALL, BROKERS, CLUSTER, Workload

SMALL, LARGE = 100, 1000
# Numbers of messages that three nodes of Apache Kafka handle in about four seconds, by size.
MESSAGES = {SMALL: 3_000_000, LARGE: 400_000}
READ_MESSAGES = {SMALL: 4_000_000, LARGE: 600_000}
NAMES = {SMALL: "100B", LARGE: "1KB"}


def cluster_workload(
    name: str,
    key: str,
    higher_is_better: bool,
    run: Callable[[ClusterTurn], Figures],
    servers: tuple[str, ...] = BROKERS,
) -> Workload:
    return Workload(f"cluster-{name}", key, higher_is_better, run, servers, (CLUSTER,), nodes=3)


def rows() -> Iterator[Workload]:
    yield cluster_workload("start", "start_seconds", False, started)
    yield cluster_workload("idle", "memory_mb", False, idle)
    for acks in ("all", "1"):
        for size in (SMALL, LARGE):
            load = produce(MESSAGES[size], size, acks)
            yield cluster_workload(f"produce-{NAMES[size]}-acks-{acks}", "per_second", True, load, ALL)
    for acks, number in (("all", -1), ("1", 1)):
        name = f"requests-64-connections-acks-{acks}"
        yield cluster_workload(name, "per_second", True, closed_loop(64, 4, number), ALL)
    for rate in (500, 2_000):
        yield cluster_workload(f"latency-{rate}-per-second", "p99_us", False, latency(rate, 6), ALL)
    for size in (SMALL, LARGE):
        name, count = f"consume-{NAMES[size]}-from", READ_MESSAGES[size]
        yield cluster_workload(f"{name}-leader", "per_second", True, consume(count, size))
        yield cluster_workload(f"{name}-follower", "per_second", True, consume(count, size, *FOLLOWERS_RACK))
    yield cluster_workload("catch-up", "mb_per_second", True, catch_up(READ_MESSAGES[LARGE]))
    yield cluster_workload("reassignment", "mb_per_second", True, reassigned(12, READ_MESSAGES[LARGE]))
    yield cluster_workload("failover-leader", "failover_seconds", False, leader_fails(is_controller=False))
    yield cluster_workload("failover-controller", "failover_seconds", False, controller_fails)
    yield cluster_workload("failover-both", "failover_seconds", False, leader_fails(is_controller=True))
    yield cluster_workload("preferred-election", "election_seconds", False, preferred_election)
    yield cluster_workload("10000-partitions", "failover_seconds", False, many_partitions)


CLUSTER_ROWS = tuple(rows())
