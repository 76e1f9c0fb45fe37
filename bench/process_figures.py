"""The resources that a running process uses, from /proc: processor time, memory, threads, wake-ups."""

from __future__ import annotations

import os
from pathlib import Path

CLOCK_TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """Returns the user and system time of all threads in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / CLOCK_TICKS


def memory_mb(pid: int, peak: bool = False) -> float:
    """Returns the resident memory of a process in MB; with `peak` the largest since `reset_peak_memory`."""
    return status_value(pid, "VmHWM:" if peak else "VmRSS:") / 1024


def reset_peak_memory(pid: int) -> None:
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def thread_ids(pid: int) -> list[int]:
    return [int(each) for each in os.listdir(f"/proc/{pid}/task")]


def wake_ups(pid: int) -> int:
    """Returns how often the threads of the process have waited and were woken."""
    return sum(status_value(pid, "voluntary_ctxt_switches:", thread) for thread in thread_ids(pid))


def status_value(pid: int, key: str, thread: int | None = None) -> int:
    """Returns a number of /proc/PID/status, or of one thread. Raises RuntimeError if there is none."""
    task = pid if thread is None else thread
    for line in Path(f"/proc/{pid}/task/{task}/status").read_text().splitlines():
        if line.startswith(key):
            return int(line.split()[1])
    raise RuntimeError(f"no {key} of process {pid}")
