"""Checks of the clock: its synchronization, its source, and records from the future."""

from __future__ import annotations

import ctypes

from kafkapy.tools.diagnosis.finding import GOOD, NOTE, WARNING, Finding, Findings
from kafkapy.tools.diagnosis.system import System

SUBJECT = "clock"
QUICK_SOURCES = ("tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter", "xen")
SOURCE = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
# The return value of adjtimex(2) if the clock is not synchronized.
TIME_ERROR = 5
TIMEX_BYTES = 1024
FUTURE_S = 300


def is_synchronized() -> bool | None:
    """Returns whether the kernel considers the clock synchronized; None if the kernel cannot be asked."""
    library = ctypes.CDLL(None)
    if not hasattr(library, "adjtimex"):
        return None
    timex = ctypes.create_string_buffer(TIMEX_BYTES)  # struct timex with modes 0, which only reads the state
    state = library.adjtimex(timex)
    return None if state < 0 else state != TIME_ERROR


def check_clock(system: System, newest_change_s: float, *, synchronized: bool | None) -> Findings:
    """Yields findings on the clock; `synchronized` is the result of `is_synchronized`.

    `newest_change_s` is the time (seconds since 1970) of the latest write to a topic, or 0 if there is none.
    """
    if synchronized is False:
        text = "the clock is not synchronized: retention and timestamps depend on it"
        yield Finding(WARNING, SUBJECT, text, "run chrony or systemd-timesyncd; in a container, on its host")
    elif synchronized:
        yield Finding(GOOD, SUBJECT, "the clock is synchronized")
    source = system.text(SOURCE)
    if source is not None and source not in QUICK_SOURCES:
        text = f"the time is read from {source}, which is slow"
        yield Finding(NOTE, SUBJECT, text, "the kernel has rejected a faster source, often with a reason: see its log")
    if newest_change_s > system.wall_s + FUTURE_S:
        hours = (newest_change_s - system.wall_s) / 3600
        text = f"a segment was written to {hours:.1f} hours in the future"
        yield Finding(WARNING, SUBJECT, text, "the clock was set back: retention waits until it has caught up")
