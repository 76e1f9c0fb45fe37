"""The average and the maximum of recent durations, for gauges that Apache Kafka computes from samples."""

from __future__ import annotations

NAN = float("nan")


class DurationWindow:
    """The average and the maximum of the durations that were added in the present and the previous window of time.

    A window lasts `window_ms`, so that the values cover between one and two times this time. Written by one thread.
    """

    __slots__ = ("_began_ms", "_current", "_previous", "_window_ms")

    def __init__(self, monotonic_ms: int, window_ms: int = 30_000) -> None:
        self._window_ms = window_ms
        self._began_ms = monotonic_ms
        self._current: tuple[int, int, int] = (0, 0, 0)  # number, sum, maximum
        self._previous: tuple[int, int, int] = (0, 0, 0)

    def add(self, duration_ms: int, monotonic_ms: int) -> None:
        self._advance(monotonic_ms)
        number, total, maximum = self._current
        self._current = (number + 1, total + duration_ms, max(maximum, duration_ms))

    def average_and_maximum(self, monotonic_ms: int) -> tuple[float, float]:
        """Returns the average and the maximum in milliseconds of the present and the previous window. Any thread may
        call it.

        Both are NaN if these windows have no durations, as Kafka shows it.
        """
        age = (monotonic_ms - self._began_ms) // self._window_ms
        shown = {0: (self._current, self._previous), 1: (self._current,)}.get(age, ())
        number = sum(each[0] for each in shown)
        if not number:
            return NAN, NAN
        return sum(each[1] for each in shown) / number, float(max(each[2] for each in shown))

    def average(self, monotonic_ms: int) -> float:
        """Returns the average in milliseconds of the present and the previous window. Any thread may call it.

        The average is 0 if these windows have no durations.
        """
        average = self.average_and_maximum(monotonic_ms)[0]
        return 0.0 if average != average else average

    def _advance(self, monotonic_ms: int) -> None:
        age = (monotonic_ms - self._began_ms) // self._window_ms
        if age:
            self._previous = self._current if age == 1 else (0, 0, 0)
            self._current = (0, 0, 0)
            self._began_ms += age * self._window_ms
