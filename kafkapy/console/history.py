"""The history of a cluster's figures in a bounded ring: a point each ten seconds for an hour, and each five minutes for
a week."""

from __future__ import annotations

import math
import time
from array import array
from collections.abc import Mapping
from threading import Lock

# The figures of the whole cluster, by their names in the history, with their labels and units.
RECORDS, LAG, BYTES, OUT_OF_SYNC = "records", "lag", "bytes", "out-of-sync"
FIGURES = {
    RECORDS: ("Records written", "per second"),
    LAG: ("Lag of all groups", "records"),
    BYTES: ("Size of all replicas", "bytes"),
    OUT_OF_SYNC: ("Partitions out of sync", "partitions"),
}
FINE_S, FINE_POINTS = 10.0, 360
COARSE_S, COARSE_POINTS = 300.0, 2016
MOST_CURVES = 600

Points = list[tuple[float, float | None]]


def topic_series(topic: str) -> str:
    """Returns the name of the series of the records per second that are written to a topic."""
    return f"topic {topic}"


def group_series(group: str) -> str:
    """Returns the name of the series of a group's lag."""
    return f"group {group}"


class Ring:
    """The last `length` points of at most MOST_CURVES series, which share the times of the points. Not thread-safe.

    The memory is 8 bytes for a point of a series.
    """

    def __init__(self, length: int) -> None:
        self._length = length
        self._times = array("d", [math.nan]) * length
        self._series: dict[str, array[float]] = {}
        self._next = 0

    def add(self, wall_s: float, values: Mapping[str, float]) -> None:
        """Adds a point at `wall_s` (seconds since 1970), which replaces the oldest point of a full ring.

        A series without a value in `values` has a gap. New series are left out while the ring has MOST_CURVES series.
        """
        at = self._next
        self._times[at] = wall_s
        for name, found in self._series.items():
            found[at] = values.get(name, math.nan)
        for name in values.keys() - self._series.keys():
            if len(self._series) < MOST_CURVES:
                self._series[name] = array("d", [math.nan]) * self._length
                self._series[name][at] = values[name]
        self._next = (at + 1) % self._length
        if self._next == 0:
            self._series = {name: each for name, each in self._series.items() if not all(map(math.isnan, each))}

    def names(self) -> list[str]:
        """Returns the names of the series, sorted."""
        return sorted(self._series)

    def points(self, name: str) -> Points:
        """Returns the points of a series as (seconds since 1970, value or None), the oldest first."""
        found = self._series.get(name)
        if found is None:
            return []
        order = [*range(self._next, self._length), *range(self._next)]
        return [
            (self._times[at], None if math.isnan(found[at]) else found[at])
            for at in order
            if not math.isnan(self._times[at])
        ]


class History:
    """The figures of a cluster over the last hour and the last week. Thread-safe."""

    def __init__(self) -> None:
        self._fine, self._coarse = Ring(FINE_POINTS), Ring(COARSE_POINTS)
        self._sums: dict[str, tuple[float, int]] = {}
        self._sums_began_s: float | None = None
        self._lock = Lock()

    def add(self, wall_s: float, values: Mapping[str, float]) -> dict[str, float] | None:
        """Adds the values of the series at `wall_s` (seconds since 1970) to the last hour.

        If five minutes have passed since the last point of the week, adds the mean values of this time to the week, and
        returns them; otherwise returns None.
        """
        with self._lock:
            self._fine.add(wall_s, values)
            if self._sums_began_s is None or wall_s < self._sums_began_s:
                self._sums_began_s, self._sums = wall_s, {}
            for name, value in values.items():
                total, count = self._sums.get(name, (0.0, 0))
                self._sums[name] = (total + value, count + 1)
            if wall_s - self._sums_began_s < COARSE_S:
                return None
            means = {name: total / count for name, (total, count) in self._sums.items()}
            self._coarse.add(wall_s, means)
            self._sums_began_s, self._sums = wall_s, {}
            return means

    def restore(self, wall_s: float, means: Mapping[str, float]) -> None:
        """Adds a point of the week that was stored by an earlier console."""
        with self._lock:
            self._coarse.add(wall_s, means)

    def names(self) -> list[str]:
        """Returns the names of all series."""
        with self._lock:
            return sorted({*self._fine.names(), *self._coarse.names()})

    def points(self, name: str, *, is_week: bool = False, now_s: float | None = None) -> Points:
        """Returns the points of a series in the last hour or week, the oldest first."""
        length_s = COARSE_S * COARSE_POINTS if is_week else FINE_S * FINE_POINTS
        first_s = (time.time() if now_s is None else now_s) - length_s
        with self._lock:
            found = (self._coarse if is_week else self._fine).points(name)
        return [each for each in found if each[0] >= first_s]
