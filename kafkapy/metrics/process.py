"""Metrics of this process that the system reports: processor time, memory, open files."""

from __future__ import annotations

import os
import resource

from kafkapy.metrics import table
from kafkapy.metrics.page import Page

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
SYSTEM_STATISTICS = "/proc/stat"
CLOCK_TICKS = os.sysconf("SC_CLK_TCK")
# Fields of /proc/self/stat after the name, which may hold spaces and parentheses.
USER_TIME, SYSTEM_TIME, THREADS, START_TIME, VIRTUAL_BYTES, RESIDENT_PAGES = 11, 12, 17, 19, 20, 21


def boot_time_s() -> float | None:
    """Returns the time at which the machine was started, in seconds since 1970; None if /proc/stat does not show it."""
    with open(SYSTEM_STATISTICS, "rb") as file:
        for line in file:
            if line.startswith(b"btime "):
                return float(line.split()[1])
    return None


class ProcessMetrics:
    """The metrics that describe this process, which are read from /proc at each call. Used by one thread.

    The page does not contain the start of the process if the start of the machine is not known.
    """

    def __init__(self) -> None:
        self._boot_time_s = boot_time_s()

    def write(self, page: Page) -> None:
        with open("/proc/self/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        page.one(table.PROCESS_CPU, (int(fields[USER_TIME]) + int(fields[SYSTEM_TIME])) / CLOCK_TICKS)
        page.one(table.PROCESS_RESIDENT, int(fields[RESIDENT_PAGES]) * PAGE_BYTES)
        page.one(table.PROCESS_VIRTUAL, int(fields[VIRTUAL_BYTES]))
        if self._boot_time_s is not None:
            page.one(table.PROCESS_START, self._boot_time_s + int(fields[START_TIME]) / CLOCK_TICKS)
        page.one(table.PROCESS_THREADS, int(fields[THREADS]))
        page.one(table.PROCESS_OPEN_FILES, len(os.listdir("/proc/self/fd")) - 1)  # not the descriptor of the listing
        page.one(table.PROCESS_MOST_FILES, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
