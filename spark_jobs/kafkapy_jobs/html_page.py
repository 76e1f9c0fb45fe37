"""HTML pages with plots for the results of jobs: one file without scripts or links, which a browser opens from a disk.

The plots are SVG. All texts are escaped. Pure functions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

# Colours that people with colour blindness can tell apart (Okabe and Ito).
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
STYLE = """
body{font:15px/1.5 system-ui,"Noto Sans CJK SC",sans-serif;max-width:62em;margin:2em auto;padding:0 1em;color:#222}
h1{font-size:1.6em;margin-bottom:0} h2{font-size:1.2em;margin-top:2em} p.note{color:#555;margin-top:.3em}
table{border-collapse:collapse} td,th{padding:.25em .8em;border-bottom:1px solid #ddd;text-align:left}
td.number,th.number{text-align:right;font-variant-numeric:tabular-nums} td.number{white-space:nowrap}
code{font-size:.9em}
svg{max-width:100%;height:auto} svg text{font:12px system-ui,"Noto Sans CJK SC",sans-serif;fill:#444}
.legend span{display:inline-block;margin-right:1.2em} .legend i{display:inline-block;width:1em;height:.3em;
margin-right:.4em;vertical-align:middle}
"""
_WIDTH, _HEIGHT = 760, 280
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 12, 34


def page(title: str, sections: Iterable[str], language: str = "en") -> str:
    """Returns a page of sections, which are HTML."""
    return (
        f'<!doctype html><html lang="{escape(language)}"><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{STYLE}</style><h1>{escape(title)}</h1>{''.join(sections)}</html>\n"
    )


def section(title: str, *parts: str, note: str = "") -> str:
    """Returns a section with a heading and, under it, a note; `parts` are HTML."""
    below = f'<p class="note">{escape(note)}</p>' if note else ""
    return f"<h2>{escape(title)}</h2>{below}{''.join(parts)}"


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Returns a table; numbers and percentages are aligned to the right, None is an empty cell."""
    body = [list(row) for row in rows]
    is_number = [bool(body) and all(_is_number(row[index]) for row in body) for index in range(len(columns))]
    kinds = [' class="number"' if each else "" for each in is_number]
    head = "".join(f"<th{kind}>{escape(name)}</th>" for kind, name in zip(kinds, columns, strict=True))
    lines = [
        "<tr>" + "".join(f"<td{kind}>{_cell(value)}</td>" for kind, value in zip(kinds, row, strict=True)) + "</tr>"
        for row in body
    ]
    return f"<table><tr>{head}</tr>{''.join(lines)}</table>"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | None) or value == "" or str(value).endswith(" %")


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, int | float):
        return f"{value:,.4g}" if isinstance(value, float) else f"{value:,}"
    return escape(str(value))


def percent(value: float | None) -> str:
    """Returns a share as text, such as `+1.25 %`."""
    return "" if value is None else f"{100 * value:+.2f} %"


def line_plot(
    lines: Mapping[str, Sequence[float | None]], labels: Sequence[str], *, unit: str = "", title: str = "plot"
) -> str:
    """Returns a plot of lines over the same labels; a None interrupts a line."""
    values = [value for line in lines.values() for value in line if value is not None]
    ticks = nice_ticks(min(values, default=0.0), max(values, default=1.0))
    across = _scale(0, max(1, len(labels) - 1), _LEFT, _WIDTH - _RIGHT)
    up = _scale(ticks[0], ticks[-1], _HEIGHT - _BOTTOM, _TOP)
    parts = [_axis(ticks, up, unit), _labels(labels, [across(index) for index in range(len(labels))])]
    for number, (name, line) in enumerate(lines.items()):
        colour = COLOURS[number % len(COLOURS)]
        for points in _runs(line):
            path = " ".join(f"{across(index):.1f},{up(value):.1f}" for index, value in points)
            shape = f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>'
            dots = "".join(
                f'<circle cx="{across(index):.1f}" cy="{up(value):.1f}" r="2.5" fill="{colour}">'
                f"<title>{escape(f'{name}, {labels[index]}: {value:.4g}{unit}')}</title></circle>"
                for index, value in (points if len(points) <= 60 else ())
            )
            parts.append(shape + dots)
    return _svg(parts, title) + legend(lines)


def bar_plot(values: Sequence[float], labels: Sequence[str], *, unit: str = "", title: str = "plot") -> str:
    """Returns a plot of vertical bars, one for each label."""
    ticks = nice_ticks(min([0.0, *values]), max([0.0, *values]))
    up = _scale(ticks[0], ticks[-1], _HEIGHT - _BOTTOM, _TOP)
    step = (_WIDTH - _LEFT - _RIGHT) / max(1, len(values))
    parts = [_axis(ticks, up, unit), _labels(labels, [_LEFT + (index + 0.5) * step for index in range(len(labels))])]
    for index, value in enumerate(values):
        top, bottom = sorted((up(value), up(0)))
        parts.append(
            f'<rect x="{_LEFT + (index + 0.1) * step:.1f}" y="{top:.1f}" width="{0.8 * step:.1f}" '
            f'height="{max(0.5, bottom - top):.1f}" fill="{COLOURS[0]}">'
            f"<title>{escape(f'{labels[index]}: {value:.6g}{unit}')}</title></rect>"
        )
    return _svg(parts, title)


def row_bars(rows: Sequence[tuple[str, float]], *, title: str = "plot") -> str:
    """Returns horizontal bars with a name before and a number after each, such as a list of the top terms."""
    greatest = max((value for _, value in rows), default=1.0) or 1.0
    height, left = 26, 190
    parts = []
    for index, (name, value) in enumerate(rows):
        y = index * height
        width = max(1.0, (_WIDTH - left - 90) * value / greatest)
        parts.append(
            f'<text x="{left - 8}" y="{y + 17}" text-anchor="end">{escape(shortened(name))}'
            f"<title>{escape(name)}</title></text>"
            f'<rect x="{left}" y="{y + 4}" width="{width:.1f}" height="{height - 8}" fill="{COLOURS[0]}"/>'
            f'<text x="{left + width + 6:.1f}" y="{y + 17}">{value:,.6g}</text>'
        )
    return _svg(parts, title, max(1, len(rows)) * height)


def shortened(name: str, limit: int = 16) -> str:
    """Returns a text of at most `limit` characters, with an ellipsis at the end of a longer one."""
    return name if len(name) <= limit else name[: limit - 1] + "…"


def legend(names: Iterable[str]) -> str:
    """Returns the names of lines with their colours."""
    marks = [
        f'<span><i style="background:{COLOURS[number % len(COLOURS)]}"></i>{escape(name)}</span>'
        for number, name in enumerate(names)
    ]
    return f'<p class="legend">{"".join(marks)}</p>'


def nice_ticks(least: float, greatest: float, wanted: int = 5) -> list[float]:
    """Returns round numbers at equal distances that include both ends; at least two."""
    if not greatest > least:
        greatest = least + (abs(least) or 1.0)
    rough = (greatest - least) / wanted
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(size * factor for factor in (1, 2, 2.5, 5, 10) if size * factor >= rough * 0.999)
    first, last = math.floor(least / step + 1e-9), math.ceil(greatest / step - 1e-9)
    return [round(index * step, 12) for index in range(first, max(last, first + 1) + 1)]


def _scale(start: float, end: float, low: float, high: float) -> Any:
    factor = (high - low) / ((end - start) or 1.0)
    return lambda value: low + (value - start) * factor


def _runs(line: Sequence[float | None]) -> list[list[tuple[int, float]]]:
    """Returns the parts of a line between its gaps (None), each a list of pairs (index, value)."""
    runs: list[list[tuple[int, float]]] = [[]]
    for index, value in enumerate(line):
        if value is None:
            runs.append([])
        else:
            runs[-1].append((index, value))
    return [run for run in runs if run]


def _axis(ticks: Sequence[float], up: Any, unit: str) -> str:
    return "".join(
        f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{up(tick):.1f}" y2="{up(tick):.1f}" '
        f'stroke="{"#888" if tick == 0 else "#e4e4e4"}"/>'
        f'<text x="{_LEFT - 8}" y="{up(tick) + 4:.1f}" text-anchor="end">{tick:,.6g}{escape(unit)}</text>'
        for tick in ticks
    )


def _labels(labels: Sequence[str], places: Sequence[float]) -> str:
    """Returns the labels below a plot, as many as have room."""
    longest = max((len(label) for label in labels), default=1)
    every = max(1, math.ceil(len(labels) * (longest * 7.0 + 16) / (_WIDTH - _LEFT - _RIGHT)))
    edge = _WIDTH - longest * 3.5  # a label in the middle of a place beyond it would be cut off
    return "".join(
        f'<text x="{place:.1f}" y="{_HEIGHT - _BOTTOM + 20}" text-anchor="{"end" if place > edge else "middle"}">'
        f"{escape(label)}</text>"
        for index, (label, place) in enumerate(zip(labels, places, strict=True))
        if index % every == 0
    )


def _svg(parts: Iterable[str], title: str, height: int = _HEIGHT) -> str:
    return (
        f'<svg viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" role="img" '
        f'aria-label="{escape(title)}">{"".join(parts)}</svg>'
    )
