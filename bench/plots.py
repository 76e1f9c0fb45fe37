"""SVG: bars with the single rounds as dots, and curves over the number of partitions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

COLOURS = {"kafkapy": "#2a6fdb", "kafka": "#8a8a8a", "kafka39": "#8a8a8a", "ceiling": "#c9c9c9"}
WIDTH, LEFT, ROW = 420, 90, 26
HEIGHT, TOP = 200, 12

Rounds = Mapping[str, Sequence[float]]  # server -> the figure in each round


def bars(medians: Mapping[str, float], rounds: Rounds) -> str:
    """Returns an SVG plot with a bar for the median of each server, and with a dot for each of its rounds."""
    most = max([*medians.values(), *(value for values in rounds.values() for value in values)], default=0) or 1
    parts = []
    for row, (server, value) in enumerate(medians.items()):
        top, length = row * ROW, WIDTH * value / most
        parts.append(f'<text x="{LEFT - 10}" y="{top + 18}" text-anchor="end">{escape(server)}</text>')
        parts.append(
            f'<rect x="{LEFT}" y="{top + 4}" width="{length:.1f}" height="20" fill="{COLOURS.get(server, "#444")}"/>'
        )
        for each in rounds.get(server, ()):
            parts.append(f'<circle cx="{LEFT + WIDTH * each / most:.1f}" cy="{top + 14}" r="2.5" fill="#d33"/>')
        parts.append(f'<text x="{LEFT + WIDTH + 14}" y="{top + 18}">{value:,.4g}</text>')
    return f"<svg width='{LEFT + WIDTH + 110}' height='{len(medians) * ROW + 6}'>{''.join(parts)}</svg>"


def curves(points: Mapping[str, Mapping[int, float]]) -> str:
    """Returns an SVG plot with one line for each server; `points` has the values by server and by position on the x
    axis.

    The x axis is logarithmic; the y axis begins at 0.
    """
    places = sorted({place for curve in points.values() for place in curve})
    most = max((value for curve in points.values() for value in curve.values()), default=0) or 1
    span = math.log(places[-1] / places[0]) or 1

    def x(place: int) -> float:
        return LEFT + WIDTH * math.log(place / places[0]) / span

    def y(value: float) -> float:
        return TOP + HEIGHT * (1 - value / most)

    parts = [f'<text x="{LEFT - 8}" y="{TOP + 6}" text-anchor="end">{most:,.3g}</text>']
    parts.append(f'<line x1="{LEFT}" y1="{TOP + HEIGHT}" x2="{LEFT + WIDTH}" y2="{TOP + HEIGHT}" stroke="#999"/>')
    parts += [f'<text x="{x(p):.0f}" y="{TOP + HEIGHT + 16}" text-anchor="middle">{p:,}</text>' for p in places]
    for row, (server, curve) in enumerate(points.items()):
        colour = COLOURS.get(server, "#444")
        line = " ".join(f"{x(place):.1f},{y(value):.1f}" for place, value in sorted(curve.items()))
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(f'<text x="{LEFT + WIDTH + 14}" y="{TOP + 16 + row * 18}" fill="{colour}">{escape(server)}</text>')
    return f"<svg width='{LEFT + WIDTH + 110}' height='{TOP + HEIGHT + 24}'>{''.join(parts)}</svg>"
