"""Another commit of kafkapy, built in a folder of its own and served as a broker next to this tree's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from bench.goals import Result
from bench.run import Figures
from bench.servers import Kafkapy, Server
from bench.table import WORKLOADS

ROOT = Path(__file__).parents[1]
# A figure of this tree may be worse than the other commit's by this share.
TOLERANCE = 0.10
# Figures of cost that are compared in addition to a workload's own; less is better.
COSTS = ("cpu_s_per_gb", "cpu_us_per_request")


class Comparison(NamedTuple):
    """One figure of both commits.

    `change` is the difference as a share of the other commit's figure; it is positive if this tree is worse.
    """

    workload: str
    figure: str
    ours: float
    theirs: float
    change: float

    @property
    def is_worse(self) -> bool:
        return self.change > TOLERANCE


def build_commit(commit: str, target: Path) -> None:
    """Extracts the tree of a commit into `target` and compiles it there."""
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x", "-C", target], input=archive, check=True)
    subprocess.run([sys.executable, "setup.py", "-q", "build_ext", "--inplace"], cwd=target, check=True)


def server_of(tree: Path) -> type[Server]:
    """Returns a server class with the name `before`, which runs the kafkapy of `tree`, the work tree of another
    commit."""

    class Before(Kafkapy):
        name = "before"

        def environment(self) -> dict[str, str]:
            return {**super().environment(), "PYTHONPATH": str(tree), "PYTHONPYCACHEPREFIX": str(tree / "bytecode")}

    return Before


def compare(result: Result) -> list[Comparison]:
    """Returns the main figure and the costs of each workload that both commits ran."""
    comparisons = []
    for name, figures in result.items():
        ours, theirs = figures.get("kafkapy", {}), figures.get("before", {})
        workload = WORKLOADS[name]
        for figure in dict.fromkeys((workload.key, *COSTS)):
            if ours.get(figure) and theirs.get(figure):
                higher_is_better = workload.higher_is_better and figure == workload.key
                comparisons.append(_compared(name, figure, ours, theirs, higher_is_better))
    return comparisons


def _compared(name: str, figure: str, ours: Figures, theirs: Figures, higher_is_better: bool) -> Comparison:
    growth = ours[figure] / theirs[figure] - 1
    return Comparison(name, figure, ours[figure], theirs[figure], -growth if higher_is_better else growth)


def comparison_table(comparisons: list[Comparison]) -> str:
    lines = ["| workload | figure | this tree | before | change | |", "|---|---|---|---|---|---|"]
    for each in comparisons:
        verdict = "WORSE" if each.is_worse else ""
        better = f"{-each.change:+.1%}"
        lines.append(
            f"| {each.workload} | {each.figure} | {each.ours:,.4g} | {each.theirs:,.4g} | {better} | {verdict} |"
        )
    return "\n".join(lines)


def other_environment(tree: Path) -> dict[str, str]:
    """Returns an environment in which Python imports the kafkapy of `tree`."""
    return {**os.environ, "PYTHONPATH": str(tree)}
