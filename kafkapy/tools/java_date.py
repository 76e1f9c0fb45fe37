"""Dates in the patterns of java.text.SimpleDateFormat, for `--date-format`."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime

from kafkapy.tools.option import ToolError

_TOKEN = re.compile(r"'(?:[^']|'')*'|([A-Za-z])\1*|[^A-Za-z']+")
_FIELDS: dict[str, Callable[[datetime, int], str]] = {
    "y": lambda moment, count: f"{moment.year % 100:02d}" if count == 2 else f"{moment.year:0{count}d}",
    "M": lambda moment, count: (
        moment.strftime({3: "%b"}.get(count, "%B")) if count > 2 else f"{moment.month:0{count}d}"
    ),
    "d": lambda moment, count: f"{moment.day:0{count}d}",
    "D": lambda moment, count: f"{moment.timetuple().tm_yday:0{count}d}",
    "H": lambda moment, count: f"{moment.hour:0{count}d}",
    "h": lambda moment, count: f"{moment.hour % 12 or 12:0{count}d}",
    "m": lambda moment, count: f"{moment.minute:0{count}d}",
    "s": lambda moment, count: f"{moment.second:0{count}d}",
    "S": lambda moment, count: f"{moment.microsecond // 1000:0{count}d}",
    "a": lambda moment, count: "AM" if moment.hour < 12 else "PM",
    "E": lambda moment, count: moment.strftime("%a" if count < 4 else "%A"),
    "Z": lambda moment, count: moment.astimezone().strftime("%z"),
}


class JavaDateFormat:
    """A parsed pattern. Raises ToolError for an unknown pattern letter. The object does not change after its
    construction.
    """

    def __init__(self, pattern: str) -> None:
        self._parts: list[str | tuple[str, int]] = []
        for match in _TOKEN.finditer(pattern):
            token = match[0]
            if match[1] is not None:
                if match[1] not in _FIELDS:
                    raise ToolError(f"Illegal pattern character '{match[1]}'")
                self._parts.append((match[1], len(token)))
            else:
                self._parts.append(token if token[0] != "'" else token[1:-1].replace("''", "'") or "'")

    def format(self, timestamp_ms: int) -> str:
        """Formats milliseconds since 1970 in local time."""
        moment = datetime.fromtimestamp(timestamp_ms // 1000).replace(microsecond=timestamp_ms % 1000 * 1000)
        return "".join(part if isinstance(part, str) else _FIELDS[part[0]](moment, part[1]) for part in self._parts)
