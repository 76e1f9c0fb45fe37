"""Checks of limits of the process and the kernel: open files, memory maps, memory and swapping."""

from __future__ import annotations

from kafkapy.tools.diagnosis.finding import GOOD, NOTE, PROBLEM, WARNING, Finding, Findings, bytes_text
from kafkapy.tools.diagnosis.system import System

# Files that a broker opens apart from partitions and connections: listeners, locks, libraries, the metadata log.
OTHER_FILES = 100
# Files of a partition in use: its active segment, and at times a segment being read, cleaned or flushed.
FILES_PER_PARTITION = 2
WANTED_FILES = 100_000
# Memory maps of a partition: the two indexes of each segment in use.
MAPS_PER_PARTITION = 4
LARGEST_SWAPPINESS = 10
# Bytes of the broker's own memory, without the page cache.
OWN_MEMORY = 256_000_000


def check_limits(system: System, partitions: int) -> Findings:
    """Yields findings on the limits of open files, memory maps and memory for a number of partitions."""
    yield from _open_files(system, partitions)
    yield from _memory_maps(system, partitions)
    yield from _memory(system)
    yield from _swapping(system)


def _open_files(system: System, partitions: int) -> Findings:
    limit, needed = system.hard_limit, OTHER_FILES + FILES_PER_PARTITION * partitions
    text = f"{limit} files may be open; {partitions} partitions need up to {needed}, and each connection one more"
    advice = "raise LimitNOFILE in the unit, or `ulimit -Hn`; the broker raises its soft limit itself"
    if limit < needed:
        yield Finding(PROBLEM, "open files", text, advice)
    elif limit < WANTED_FILES:
        yield Finding(WARNING, "open files", text, advice)
    else:
        yield Finding(GOOD, "open files", text)


def _memory_maps(system: System, partitions: int) -> Findings:
    limit, needed = system.number("/proc/sys/vm/max_map_count"), MAPS_PER_PARTITION * partitions
    if limit is None:
        return
    text = f"vm.max_map_count is {limit}; {partitions} partitions need up to {needed}"
    if limit < needed:
        yield Finding(WARNING, "memory maps", text, f"sysctl vm.max_map_count={max(262144, 2 * needed)}")
    else:
        yield Finding(GOOD, "memory maps", text)


def _memory(system: System) -> Findings:
    memory = system.memory_kb()
    if "MemTotal" not in memory:
        return
    total, available = 1024 * memory["MemTotal"], 1024 * memory.get("MemAvailable", memory["MemTotal"])
    text = f"{bytes_text(available)} of {bytes_text(total)} are free or page cache, which serves consumers that keep up"
    if available < OWN_MEMORY:
        yield Finding(WARNING, "memory", text, "the broker needs memory of its own and a page cache")
    else:
        yield Finding(GOOD, "memory", text)


def _swapping(system: System) -> Findings:
    swap, swappiness = system.memory_kb().get("SwapTotal", 0), system.number("/proc/sys/vm/swappiness")
    if not swap:
        yield Finding(GOOD, "swapping", "there is no swap")
    elif swappiness is not None and swappiness > LARGEST_SWAPPINESS:
        text = f"vm.swappiness is {swappiness}: the broker may be swapped out in favour of the page cache"
        yield Finding(WARNING, "swapping", text, "sysctl vm.swappiness=1")
    else:
        yield Finding(NOTE, "swapping", f"there is swap, and vm.swappiness is {swappiness}")
