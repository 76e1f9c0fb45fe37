"""The table of `--print-metrics`, in the layout of Apache Kafka's tools."""

from __future__ import annotations

from collections.abc import Mapping


def print_metrics(metrics: Mapping[str, float]) -> None:
    """Prints metrics, which are given as `group:name:{tag=value}` -> value."""
    width = max(map(len, metrics), default=0)
    print(f"\n{'Metric Name':<{width}}   Value")
    for name in sorted(metrics):
        print(f"{name:<{width}} : {metrics[name]:.3f}")
