"""The goals of the benchmark as ratios within one run, and whether each was reached."""

from __future__ import annotations

from typing import NamedTuple

from bench.run import Figures

Result = dict[str, dict[str, Figures]]  # workload -> server -> medians


class Goal(NamedTuple):
    """A bound for kafkapy's `figure` of `workload`, or, with a `peer`, for its ratio to the peer's figure."""

    workload: str
    figure: str
    peer: str | None
    at_least: float | None = None
    at_most: float | None = None


class Outcome(NamedTuple):
    goal: str
    value: float
    reached: bool


# Where the goal is parity and the client is the limit, this share counts as parity.
NOISE = 0.97

GOALS = (
    *(
        Goal(workload, "per_second", "ceiling", at_least=0.9)
        for workload in ("produce-100B", "produce-1KB", "produce-1KB-lz4", "produce-100B-16KB-batches")
    ),
    Goal("consume-100B", "per_second", "kafka", at_least=NOISE),
    Goal("consume-1KB", "per_second", "kafka", at_least=NOISE),
    Goal("produce-100B", "cpu_s_per_gb", "kafka", at_most=0.25),
    Goal("produce-1KB", "cpu_s_per_gb", "kafka", at_most=0.25),
    Goal("produce-100B-16KB-batches", "cpu_s_per_gb", "kafka", at_most=0.25),
    Goal("produce-1KB-lz4", "cpu_s_per_gb", "ceiling", at_most=1.3),
    Goal("consume-100B", "cpu_s_per_gb", "kafka", at_most=0.5),
    Goal("consume-1KB", "cpu_s_per_gb", "kafka", at_most=0.5),
    Goal("requests-64-connections", "per_second", "kafka", at_least=2),
    Goal("requests-64-connections", "cpu_us_per_request", "kafka", at_most=1 / 3),
    Goal("requests-1-connection", "per_second", "kafka", at_least=1.2),
    Goal("latency-1000-per-second", "p99_us", "kafka", at_most=0.5),
    Goal("latency-10000-per-second", "p99_us", "kafka", at_most=0.5),
    Goal("latency-1000-per-second-busy", "p99_us", "kafka", at_most=0.5),
    Goal("latency-10000-per-second-busy", "p99_us", "kafka", at_most=0.5),
    Goal("start-up", "start_seconds", None, at_most=0.25),
    Goal("idle", "memory_mb", None, at_most=40),
    Goal("idle", "cpu_percent", None, at_most=0.2),
    Goal("10000-partitions", "start_seconds", None, at_most=3),
    Goal("10000-partitions", "memory_mb", None, at_most=200),
    Goal("10000-partitions", "produce_per_second", "kafka", at_least=1),
    Goal("10000-partitions", "fetch_per_second", "kafka", at_least=1),
    Goal("5000-idle-connections", "grown_mb", None, at_most=100),
    *(
        goal
        for tool in ("java", "kafkapy")
        for goal in (
            Goal(f"share-consume-{tool}", "per_second", "kafka", at_least=NOISE),
            Goal(f"share-consume-{tool}", "cpu_s_per_gb", "kafka", at_most=0.5),
        )
    ),
    *(
        goal
        for records in ("100B-acks-all", "1KB-acks-all", "100B-acks-1", "1KB-acks-1")
        for goal in (
            Goal(f"cluster-produce-{records}", "per_second", "kafka", at_least=3),
            Goal(f"cluster-produce-{records}", "cpu_s_per_gb", "kafka", at_most=0.2),
        )
    ),
    *(
        goal
        for acks in ("all", "1")
        for goal in (
            Goal(f"cluster-requests-64-connections-acks-{acks}", "per_second", "kafka", at_least=3),
            Goal(f"cluster-requests-64-connections-acks-{acks}", "cpu_us_per_request", "kafka", at_most=0.2),
        )
    ),
    Goal("cluster-latency-500-per-second", "p99_us", "kafka", at_most=0.25),
    Goal("cluster-latency-2000-per-second", "p99_us", "kafka", at_most=0.25),
    Goal("cluster-start", "ready_seconds", None, at_most=1.5),
    Goal("cluster-idle", "memory_mb", None, at_most=100),
    Goal("cluster-catch-up", "mb_per_second", "kafka", at_least=3),
    Goal("cluster-failover-leader", "failover_seconds", None, at_most=1),
    Goal("cluster-failover-controller", "failover_seconds", None, at_most=1.5),
    Goal("cluster-failover-both", "failover_seconds", None, at_most=2.5),
)
# p99.9: at most half of Apache Kafka's, or 1.5 times the ceiling's in the same run, whichever is larger.
TAILS = {
    "latency-1000-per-second": "latency-1000-per-second",
    "latency-10000-per-second": "latency-10000-per-second",
    "latency-1000-per-second-busy": "latency-1000-per-second",
    "latency-10000-per-second-busy": "latency-10000-per-second",
}


def judge(goal: Goal, result: Result) -> Outcome | None:
    """Compares the run with the goal and returns the outcome; None if the run lacks a figure that the goal needs."""
    figures = result.get(goal.workload, {})
    own = figures.get("kafkapy", {}).get(goal.figure)
    peer = figures.get(goal.peer, {}).get(goal.figure) if goal.peer else 1.0
    if own is None or not peer:
        return None
    value = own / peer
    reached = (goal.at_least is None or value >= goal.at_least) and (goal.at_most is None or value <= goal.at_most)
    bound = f">= {goal.at_least:.3g}" if goal.at_least is not None else f"<= {goal.at_most:.3g}"
    return Outcome(f"{goal.workload}: {goal.figure}{f' / {goal.peer}' if goal.peer else ''} {bound}", value, reached)


def judge_tail(workload: str, quiet: str, result: Result) -> Outcome | None:
    figures, ceiling = result.get(workload, {}), result.get(quiet, {}).get("ceiling", {}).get("p999_us")
    own, kafka = (figures.get(server, {}).get("p999_us") for server in ("kafkapy", "kafka"))
    if own is None or kafka is None or ceiling is None:
        return None
    bound = max(kafka / 2, ceiling * 1.5)
    return Outcome(f"{workload}: p999_us / max(kafka / 2, 1.5 ceiling) <= 1", own / bound, own <= bound)


def judge_sweep(result: Result) -> Outcome | None:
    """Judges the curve of the partition sweep; returns None if the run lacks it.

    With 1,000 partitions kafkapy must retain as large a share of its best rate as Kafka.
    """
    figures = result.get("partition-sweep", {})
    if not {"kafkapy", "kafka"} <= figures.keys():
        return None
    worst = float("inf")
    for kind in ("produce", "consume"):
        kept = {}
        for server in ("kafkapy", "kafka"):
            curve = {key: value for key, value in figures[server].items() if key.startswith(f"{kind}_")}
            kept[server] = curve[f"{kind}_1000"] / max(curve.values())
        worst = min(worst, kept["kafkapy"] / kept["kafka"])
    return Outcome(f"partition-sweep: share of the best rate kept at 1,000 / kafka >= {NOISE}", worst, worst >= NOISE)


def outcomes(result: Result) -> list[Outcome]:
    judged = [judge(goal, result) for goal in GOALS]
    judged += [judge_tail(workload, quiet, result) for workload, quiet in TAILS.items()]
    judged.append(judge_sweep(result))
    return [outcome for outcome in judged if outcome is not None]
