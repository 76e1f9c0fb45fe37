"""Figures, sizes, times and durations as text for people; the filters of the templates."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from urllib.parse import quote, urlencode

_SIZES = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
MINUTE_MS, HOUR_MS, DAY_MS = 60_000, 3_600_000, 86_400_000
UNKNOWN_FIGURE = "–"


def number(value: float | None) -> str:
    """Returns a number with thin spaces between groups of digits; a dash for None."""
    if value is None:
        return UNKNOWN_FIGURE
    if isinstance(value, float) and not value.is_integer():
        return f"{value:,.1f}".replace(",", "\u202f")
    return f"{int(value):,}".replace(",", "\u202f")


def size(value: float | None) -> str:
    """Returns a number of bytes with a binary unit; a dash for None or a negative number, which means unknown."""
    if value is None or value < 0:
        return UNKNOWN_FIGURE
    amount, unit = float(value), 0
    while amount >= 1024 and unit < len(_SIZES) - 1:
        amount /= 1024
        unit += 1
    return f"{amount:.0f} {_SIZES[unit]}" if unit == 0 or amount >= 100 else f"{amount:.1f} {_SIZES[unit]}"


def duration(milliseconds: float | None) -> str:
    """Returns a duration in its two largest units; a dash for None or a negative number."""
    if milliseconds is None or milliseconds < 0:
        return UNKNOWN_FIGURE
    if milliseconds < 1000:
        return f"{milliseconds:.0f} ms"
    if milliseconds < MINUTE_MS:
        return f"{milliseconds / 1000:.1f} s"
    if milliseconds < HOUR_MS:
        return f"{milliseconds // MINUTE_MS:.0f} min {milliseconds % MINUTE_MS // 1000:.0f} s"
    if milliseconds < DAY_MS:
        return f"{milliseconds // HOUR_MS:.0f} h {milliseconds % HOUR_MS // MINUTE_MS:.0f} min"
    return f"{milliseconds // DAY_MS:.0f} d {milliseconds % DAY_MS // HOUR_MS:.0f} h"


def moment(wall_ms: int | None) -> str:
    """Returns a time (ms since 1970) in UTC, to the millisecond; a dash for None, -1 or a time that no date has."""
    if wall_ms is None or wall_ms < 0:
        return UNKNOWN_FIGURE
    try:
        found = datetime.fromtimestamp(wall_ms / 1000, UTC)
    except (OverflowError, OSError, ValueError):
        return f"{wall_ms} ms"
    return f"{found:%Y-%m-%d %H:%M:%S}.{wall_ms % 1000:03d}"


def ago(wall_ms: int | None, now_ms: int | None = None) -> str:
    """Returns how long ago a time was, such as "3.2 s ago"; a dash for None or -1."""
    if wall_ms is None or wall_ms < 0:
        return UNKNOWN_FIGURE
    passed = (int(time.time() * 1000) if now_ms is None else now_ms) - wall_ms
    return f"{duration(passed)} ago" if passed >= 0 else f"in {duration(-passed)}"


def counted(value: int, noun: str, plural: str = "") -> str:
    """Returns a number with its noun: "1 topic", "3 topics". Without `plural`, the plural is the noun with an s."""
    return f"{number(value)} {noun if value == 1 else plural or noun + 's'}"


def segment(text: str) -> str:
    """Returns text encoded as one segment of a URL's path."""
    return quote(text, safe="")


def query(**parameters: object) -> str:
    """Returns parameters as the query of a URL; omits those that are None or empty."""
    return urlencode({name: value for name, value in parameters.items() if value not in (None, "")})


def shortened(text: str, limit: int) -> str:
    """Returns a text unchanged if it has at most `limit` characters.

    Otherwise returns its beginning and an ellipsis, together `limit` characters.
    """
    return text if len(text) <= limit else text[: limit - 1] + "…"


FILTERS: dict[str, Callable[..., str]] = {
    "number": number,
    "size": size,
    "duration": duration,
    "moment": moment,
    "ago": ago,
    "counted": counted,
    "segment": segment,
    "shortened": shortened,
}
