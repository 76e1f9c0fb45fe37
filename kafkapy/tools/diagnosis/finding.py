"""The findings of checks: severity, subject, text and advice."""

from __future__ import annotations

from collections.abc import Iterator

from kafkapy.named_tuple import NamedTuple

GOOD, NOTE, WARNING, PROBLEM = "good", "note", "warning", "problem"


class Finding(NamedTuple):
    """The result of one check.

    level: "good", "note" (worth knowing), "warning" (a risk) or "problem" (prevents the broker from working). text: a
    sentence without its full stop. advice: what to do about the finding, or "".
    """

    level: str
    subject: str
    text: str
    advice: str = ""


Findings = Iterator[Finding]


def bytes_text(count: float) -> str:
    """Returns a number of bytes as text, such as `1.5 GB`."""
    for unit in ("bytes", "KB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"
