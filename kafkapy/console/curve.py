"""A curve of the history: its points for an SVG image, which needs no script, and the figures that describe the curve
in words.
"""

from __future__ import annotations

import json

from kafkapy.console.history import Points
from kafkapy.named_tuple import NamedTuple

WIDTH, HEIGHT = 600, 90


class Curve(NamedTuple):
    """A curve of one series.

    `lines` are the coordinates of the unbroken parts, in a box of WIDTH by HEIGHT; `data` is the JSON of the times
    (seconds since 1970) and the values. `last` is the newest value, and `highest` is the greatest value; each is None
    if it is unknown.
    """

    label: str
    unit: str
    lines: list[str]
    last: float | None
    highest: float | None
    data: str


def curve_of(label: str, unit: str, points: Points) -> Curve:
    """Returns the curve of the points of a series."""
    known = [value for _, value in points if value is not None]
    highest = max(known, default=None)
    lines: list[str] = []
    if highest is not None:
        first_s, length_s = points[0][0], (points[-1][0] - points[0][0]) or 1.0
        part: list[str] = []
        for wall_s, value in [*points, (0.0, None)]:
            if value is not None:
                x, y = (wall_s - first_s) / length_s * WIDTH, HEIGHT - value / (highest or 1.0) * (HEIGHT - 4) - 2
                part.append(f"{x:.1f},{y:.1f}")
            elif part:
                lines.append(" ".join(part * 2 if len(part) == 1 else part))
                part = []
    data = json.dumps([[round(wall_s, 1) for wall_s, _ in points], [value for _, value in points]])
    return Curve(label, unit, lines, points[-1][1] if points else None, highest, data)
