"""The events of the verifiable tools: one line of JSON each, with the time and the event's name."""

from __future__ import annotations

import time
from typing import Any

from kafkapy.protocol.message_json import json_text


def wall_ms() -> int:
    """Returns the present time in ms since 1970."""
    return time.time_ns() // 1_000_000


def print_event(name: str, **fields: Any) -> None:
    """Prints an event. May be called by any thread, because the whole line is written in one call."""
    print(f"{json_text({'timestamp': wall_ms(), 'name': name, **fields})}\n", end="", flush=True)
