"""The clock: whether it is kept right, what it is read from, and whether records come from the future."""

from __future__ import annotations

import ctypes

from kafkapy.tools.diagnosis.finding import GOOD, NOTE, WARNING, Finding, Findings
from kafkapy.tools.diagnosis.system import System

SUBJECT = "clock"
QUICK_SOURCES = ("tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter", "xen")
SOURCE = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
# What adjtimex(2) answers when nobody keeps the clock right.
TIME_ERROR = 5
TIMEX_BYTES = 1024
FUTURE_S = 300


def is_synchronized() -> bool | None:
    """Whether the kernel believes the clock to be right; None if it does not say."""
    library = ctypes.CDLL(None)
    if not hasattr(library, "adjtimex"):
        return None
    asked = ctypes.create_string_buffer(TIMEX_BYTES)  # struct timex with modes 0: asks, sets nothing
    state = library.adjtimex(asked)
    return None if state < 0 else state != TIME_ERROR


def check_clock(system: System, newest_change_s: float, *, synchronized: bool | None) -> Findings:
    """`newest_change_s`: when a segment was last written to, or 0."""
    if synchronized is False:
        text = "nobody keeps the clock right: retention and timestamps follow it"
        yield Finding(WARNING, SUBJECT, text, "run chrony or systemd-timesyncd; in a container, on its host")
    elif synchronized:
        yield Finding(GOOD, SUBJECT, "the clock is kept right")
    source = system.text(SOURCE)
    if source is not None and source not in QUICK_SOURCES:
        text = f"the time is read from {source}, which is slow to ask"
        yield Finding(NOTE, SUBJECT, text, "the kernel has set aside a better one, often for a reason: see its log")
    if newest_change_s > system.now_s + FUTURE_S:
        hours = (newest_change_s - system.now_s) / 3600
        text = f"a segment was written to {hours:.1f} hours in the future"
        yield Finding(WARNING, SUBJECT, text, "the clock was set back: retention waits until it has caught up")
