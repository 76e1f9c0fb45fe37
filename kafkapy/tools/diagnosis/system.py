"""The machine as the checks see it: files of /proc and /sys below a root, time, limits. A test brings its own root."""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path
from typing import NamedTuple


class Mount(NamedTuple):
    """A line of /proc/self/mounts."""

    source: str
    point: str
    type: str
    options: tuple[str, ...]


class System:
    """Reads `/proc` and `/sys` below `root`. `now_s`: the time of day; `soft_limit`, `hard_limit`: of open files."""

    def __init__(
        self, root: Path = Path("/"), *, now_s: float | None = None, limits: tuple[int, int] | None = None
    ) -> None:
        self._root = root
        self.now_s = time.time() if now_s is None else now_s
        self.soft_limit, self.hard_limit = limits or resource.getrlimit(resource.RLIMIT_NOFILE)

    def text(self, path: str) -> str | None:
        """The contents of a file without the blanks around them; None if it is not there or not ours to read."""
        try:
            return (self._root / path.lstrip("/")).read_text().strip()
        except OSError:
            return None

    def number(self, path: str) -> int | None:
        """The number that a file holds; None if there is none."""
        text = self.text(path)
        return int(text) if text is not None and text.lstrip("-").isdigit() else None

    def exists(self, path: str) -> bool:
        return (self._root / path.lstrip("/")).exists()

    def memory_kb(self) -> dict[str, int]:
        """/proc/meminfo, in KiB."""
        lines = (self.text("/proc/meminfo") or "").splitlines()
        return {name: int(rest.split()[0]) for name, _, rest in (line.partition(":") for line in lines) if rest}

    def mount_of(self, directory: str) -> Mount | None:
        """The file system that a directory lies on: the mount with the longest path above it, the last of equals."""
        path = os.path.realpath(directory)
        found: Mount | None = None
        for line in (self.text("/proc/self/mounts") or "").splitlines():
            source, point, kind, options, *_ = line.split(" ")
            point = point.replace("\\040", " ")
            is_above = path == point or path.startswith(point.rstrip("/") + "/")
            if is_above and (found is None or len(point) >= len(found.point)):
                found = Mount(source, point, kind, tuple(options.split(",")))
        return found
