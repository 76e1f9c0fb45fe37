"""A machine for the doctor's checks: a directory with /proc and /sys as a test fills them."""

from __future__ import annotations

from pathlib import Path

from kafkapy.tools.diagnosis.finding import Finding, Findings
from kafkapy.tools.diagnosis.system import System

NOW_S = 1_790_000_000.0
GOOD_MACHINE = {
    "proc/meminfo": "MemTotal:  8000000 kB\nMemAvailable:  6000000 kB\nSwapTotal:  0 kB\n",
    "proc/sys/vm/swappiness": "60\n",
    "proc/sys/vm/max_map_count": "1048576\n",
    "proc/self/mounts": "/dev/vda / ext4 rw,relatime 0 0\n",
    "sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
}


def machine(root: Path, limit: int = 1_000_000, **files: str) -> System:
    """Returns a machine without problems, except for these files; `__` in a name stands for `/`."""
    for name, text in {**GOOD_MACHINE, **{name.replace("__", "/"): text for name, text in files.items()}}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return System(root, wall_s=NOW_S, limits=(limit, limit))


def complaints(findings: Findings) -> list[tuple[str, str]]:
    """Returns level and text of all findings that are not good."""
    return [(finding.level, finding.text) for finding in findings if finding.level != "good"]


def only(findings: Findings) -> Finding:
    """Returns the only finding that is not good."""
    (found,) = (finding for finding in findings if finding.level != "good")
    return found
