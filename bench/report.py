"""The benchmark's report: JSON for machines, a table for the terminal, a page with plots for people."""

from __future__ import annotations

import json
from html import escape
from pathlib import Path

from bench import plots
from bench.goals import Outcome, Result, outcomes
from bench.measure import Rounds, machine, medians
from bench.run import Figures
from bench.table import WORKLOADS

AllRounds = dict[str, Rounds]
STYLE = (
    "body{font:14px sans-serif;margin:2em} svg text{font:12px sans-serif} h2{font-size:15px;margin-bottom:4px} "
    "table{border-collapse:collapse} td,th{padding:2px 8px;border-bottom:1px solid #ddd;text-align:right} "
    "td:first-child,th:first-child{text-align:left} .missed{color:#b00}"
)
# Figures that describe the run and not the result.
NOT_SHOWN = ("messages", "answered", "failed", "seconds", "tries", "cpu_seconds", "max_us", "hostile_acts")


def median_result(rounds: AllRounds) -> Result:
    return {
        name: {server: medians(each) for server, each in of.items() if each}
        for name, of in rounds.items()
        if any(of.values())
    }


def ratio(figures: dict[str, Figures], key: str, peer: str) -> str:
    """Returns kafkapy's figure divided by the peer's figure, as text."""
    if "kafkapy" not in figures or peer not in figures or not figures[peer].get(key):
        return "-"
    return f"{figures['kafkapy'].get(key, 0) / figures[peer][key]:.2f}"


def figure_names(name: str, figures: dict[str, Figures]) -> list[str]:
    key = WORKLOADS[name].key
    present = dict.fromkeys(each for values in figures.values() for each in values)
    return [key, *(each for each in present if each != key and each not in NOT_SHOWN)]


def rows(result: Result) -> list[list[str]]:
    """Returns the table's rows: a heading, and a row for each figure of each workload."""
    servers = list(dict.fromkeys(server for figures in result.values() for server in figures))
    lines = [["workload", "figure", *servers, "/ kafka", "/ ceiling"]]
    for name, figures in result.items():
        for figure in figure_names(name, figures):
            values = [
                f"{figures[server][figure]:,.4g}" if figure in figures.get(server, {}) else "-" for server in servers
            ]
            peers = [ratio(figures, figure, peer) for peer in ("kafka", "ceiling")]
            lines.append([name, figure, *values, *peers])
    return lines


def table(result: Result) -> str:
    heading, *body = rows(result)
    lines = [heading, ["---"] * len(heading), *body]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def goal_table(judged: list[Outcome]) -> str:
    lines = [f"| {each.goal} | {each.value:,.3g} | {'reached' if each.reached else 'MISSED'} |" for each in judged]
    return "\n".join(["| goal | value | |", "|---|---|---|", *lines])


def html_table(lines: list[list[str]], marked: str = "MISSED") -> str:
    text = ""
    for number, line in enumerate(lines):
        cell = "td" if number else "th"
        style = " class='missed'" if marked in line else ""
        text += f"<tr{style}>" + "".join(f"<{cell}>{escape(each)}</{cell}>" for each in line) + "</tr>"
    return f"<table>{text}</table>"


def sweep_plots(figures: dict[str, Figures]) -> str:
    text = ""
    for kind in ("produce", "consume"):
        points = {
            server: {int(key.partition("_")[2]): value for key, value in values.items() if key.startswith(f"{kind}_")}
            for server, values in figures.items()
        }
        text += f"<h2>{kind}: messages/s over the number of partitions</h2>{plots.curves(points)}"
    return text


def plot(name: str, figures: dict[str, Figures], rounds: Rounds) -> str:
    workload = WORKLOADS[name]
    if name == "partition-sweep":
        return sweep_plots(figures)
    better = "more is better" if workload.higher_is_better else "less is better"
    text = f"<h2>{escape(name)}: {escape(workload.key)} ({better})</h2>"
    shown = [workload.key, *(key for key in ("cpu_s_per_gb", "cpu_us_per_request", "p999_us") if key != workload.key)]
    for key in shown:
        values = {server: each[key] for server, each in figures.items() if key in each}
        if not values:
            continue
        caption = "" if key == workload.key else f"<div>{escape(key)} (less is better)</div>"
        text += caption + plots.bars(values, {server: [each[key] for each in rounds[server]] for server in values})
    return text


def write(path: Path, rounds: AllRounds) -> Result:
    """Writes the JSON file to `path` and the page next to it; returns the medians."""
    result, about = median_result(rounds), machine()
    judged = outcomes(result)
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {
        "machine": about,
        "goals": [each._asdict() for each in judged],
        "medians": result,
        "rounds": rounds,
    }
    path.write_text(json.dumps(content, indent=1))
    goals = html_table(
        [["goal", "value", ""], *([g.goal, f"{g.value:,.3g}", "reached" if g.reached else "MISSED"] for g in judged)]
    )
    page = (
        f"<!doctype html><meta charset='utf-8'><title>kafkapy bench</title><style>{STYLE}</style><h1>kafkapy bench</h1>"
    )
    page += (
        f"<p>{escape(', '.join(f'{key} {value}' for key, value in about.items()))}. Bars are medians, dots rounds.</p>"
    )
    page += f"<h2>Goals</h2>{goals}" if judged else ""
    page += "".join(plot(name, figures, rounds[name]) for name, figures in result.items())
    path.with_suffix(".html").write_text(f"{page}<h2>All figures</h2>{html_table(rows(result))}")
    return result
