"""The table of `--print-metrics`, as Apache Kafka's tools lay it out."""

from __future__ import annotations

from collections.abc import Mapping


def print_metrics(metrics: Mapping[str, float]) -> None:
    """`metrics`: `group:name:{tag=value}` -> value."""
    width = max(map(len, metrics), default=0)
    print(f"\n{'Metric Name':<{width}}   Value")
    for name in sorted(metrics):
        print(f"{name:<{width}} : {metrics[name]:.3f}")
