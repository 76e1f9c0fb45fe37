"""The definition of a workload, whichever servers run it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from bench.run import Figures
from bench.security import PLAIN, Security

ALL = ("kafkapy", "kafka", "ceiling")
BROKERS = ("kafkapy", "kafka")
QUICK, MUST, CLUSTER, SECURITY, FULL = "quick", "must-show", "cluster", "security", "full"
SETS = (QUICK, MUST, CLUSTER, SECURITY, FULL)


class Workload(NamedTuple):
    """A workload, whose main figure is `key`.

    `run` gets a Run, or a ClusterTurn if the workload needs three `nodes`. `sets` are the sets that include the
    workload; the set `full` includes all workloads of one node.
    """

    name: str
    key: str
    higher_is_better: bool
    run: Callable[[Any], Figures]
    servers: tuple[str, ...] = ALL
    sets: tuple[str, ...] = (FULL,)
    properties: Mapping[str, str] = {}
    security: Security = PLAIN
    nodes: int = 1
