"""The machine that the checks examine: files of /proc and /sys below a root directory, time, limits."""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path

from kafkapy.named_tuple import NamedTuple


class Mount(NamedTuple):
    """A line of /proc/self/mounts."""

    source: str
    point: str
    type: str
    options: tuple[str, ...]


class System:
    """A machine whose `/proc` and `/sys` are below `root`, which is another directory in tests.

    wall_s: the present time in seconds since 1970. soft_limit, hard_limit: this process's limits of open files.
    """

    def __init__(
        self, root: Path = Path("/"), *, wall_s: float | None = None, limits: tuple[int, int] | None = None
    ) -> None:
        self._root = root
        self.wall_s = time.time() if wall_s is None else wall_s
        self.soft_limit, self.hard_limit = limits or resource.getrlimit(resource.RLIMIT_NOFILE)

    def text(self, path: str) -> str | None:
        """Returns the stripped content of a file; None if it does not exist or cannot be read."""
        try:
            return (self._root / path.lstrip("/")).read_text().strip()
        except OSError:
            return None

    def number(self, path: str) -> int | None:
        """Returns the number in a file; None if the file does not contain a number."""
        text = self.text(path)
        return int(text) if text is not None and text.lstrip("-").isdigit() else None

    def exists(self, path: str) -> bool:
        return (self._root / path.lstrip("/")).exists()

    def memory_kb(self) -> dict[str, int]:
        """Returns the fields of /proc/meminfo in KiB."""
        lines = (self.text("/proc/meminfo") or "").splitlines()
        return {name: int(rest.split()[0]) for name, _, rest in (line.partition(":") for line in lines) if rest}

    def mount_of(self, directory: str) -> Mount | None:
        """Returns the mount that contains a directory, or None if there is none.

        It is the mount with the longest path that is the directory or is above it; of several mounts with this path,
        the last.
        """
        path = os.path.realpath(directory)
        found: Mount | None = None
        for line in (self.text("/proc/self/mounts") or "").splitlines():
            source, point, kind, options, *_ = line.split(" ")
            point = point.replace("\\040", " ")
            is_above = path == point or path.startswith(point.rstrip("/") + "/")
            if is_above and (found is None or len(point) >= len(found.point)):
                found = Mount(source, point, kind, tuple(options.split(",")))
        return found
