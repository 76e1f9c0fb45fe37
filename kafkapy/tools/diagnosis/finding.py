"""What a check has found: how bad it is, about what, and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

GOOD, NOTE, WARNING, PROBLEM = "good", "note", "warning", "problem"


class Finding(NamedTuple):
    """`level`: good; note (worth knowing); warning (works, until it does not); problem (keeps the broker from working).

    `text` is one sentence without its full stop, `advice` what to do about it, or empty.
    """

    level: str
    subject: str
    text: str
    advice: str = ""


Findings = Iterator[Finding]


def bytes_text(count: float) -> str:
    """A number of bytes for people: `1.5 GB`."""
    for unit in ("bytes", "KB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"
