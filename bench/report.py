"""The benchmark's report: a table for the terminal, and a page with one SVG bar chart per workload."""

from __future__ import annotations

from html import escape
from pathlib import Path

from bench.measure import Figures
from bench.workloads import WORKLOADS

Result = dict[str, dict[str, Figures]]
COLOURS = {"kafkapy": "#2a6fdb", "kafka": "#8a8a8a", "ceiling": "#c9c9c9"}
SECONDARY = ("cpu_s_per_gb", "cpu_us_per_request", "p50_us", "p99_us", "p999_us", "memory_mb", "cpu_percent", "threads")


def ratio(figures: dict[str, Figures], key: str, peer: str) -> str:
    """What kafkapy has of the peer's figure, as a factor."""
    if "kafkapy" not in figures or peer not in figures or not figures[peer].get(key):
        return "-"
    return f"{figures['kafkapy'].get(key, 0) / figures[peer][key]:.2f}"


def table(result: Result) -> str:
    servers = list(dict.fromkeys(server for figures in result.values() for server in figures))
    lines = [
        "| workload | figure | " + " | ".join(servers) + " | / kafka | / ceiling |",
        "|---" * (len(servers) + 4) + "|",
    ]
    for name, figures in result.items():
        key = WORKLOADS[name].key
        present = {each for values in figures.values() for each in values}
        for figure in (key, *(each for each in SECONDARY if each != key and each in present)):
            values = " | ".join(f"{figures[server].get(figure, 0):,.2f}" for server in servers)
            ratios = " | ".join(ratio(figures, figure, peer) for peer in ("kafka", "ceiling"))
            lines.append(f"| {name} | {figure} | {values} | {ratios} |")
    return "\n".join(lines)


def chart(name: str, figures: dict[str, Figures]) -> str:
    key = WORKLOADS[name].key
    most = max((values[key] for values in figures.values()), default=1) or 1
    better = "more is better" if WORKLOADS[name].higher_is_better else "less is better"
    bars = []
    for row, (server, values) in enumerate(figures.items()):
        width = 420 * values[key] / most
        bars.append(
            f'<text x="80" y="{row * 26 + 18}" text-anchor="end">{escape(server)}</text>'
            f'<rect x="90" y="{row * 26 + 4}" width="{width:.1f}" height="20" fill="{COLOURS.get(server, "#444")}"/>'
            f'<text x="{96 + width:.1f}" y="{row * 26 + 18}">{values[key]:,.1f}</text>'
        )
    height = len(figures) * 26 + 6
    return f"<h2>{escape(name)}: {escape(key)} ({better})</h2><svg width='640' height='{height}'>{''.join(bars)}</svg>"


def write_html(path: Path, result: Result, machine: dict[str, str]) -> None:
    about = ", ".join(f"{key} {value}" for key, value in machine.items())
    style = "body{font:14px sans-serif;margin:2em} svg text{font:12px sans-serif} h2{font-size:15px}"
    charts = "".join(chart(name, figures) for name, figures in result.items())
    head = f"<!doctype html><meta charset='utf-8'><title>kafkapy bench</title><style>{style}</style>"
    path.write_text(f"{head}<p>{escape(about)}</p>{charts}")
