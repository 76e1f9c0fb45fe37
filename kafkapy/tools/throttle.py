"""Limits the number of records that a sender sends per second. The limit is kept approximately."""

from __future__ import annotations

import time

# Shorter pauses are added up until their sum reaches this time, because a sleep lasts longer than requested.
_SHORTEST_SLEEP_S = 0.002


class Throttle:
    """A limit of `target` records per second for one sender.

    A negative `target` means no limit; 0 blocks for ever after the first record, as in Apache Kafka's tools.
    """

    def __init__(self, target: float) -> None:
        self._target = target
        self._start_ms = time.monotonic_ns() // 1_000_000
        self._pause_s = 1 / target if target > 0 else 0.0
        self._owed_s = 0.0

    def after(self, count: int, monotonic_ms: int) -> None:
        """Sleeps if more records were sent than the limit permits.

        On average, a call sleeps for the time that one record takes at the limit. Times below 2 ms are added up, and
        slept when their sum reaches 2 ms. `count` is the number of records sent since the Throttle was created, and
        `monotonic_ms` the present time.
        """
        if self._target < 0:
            return
        elapsed_s = (monotonic_ms - self._start_ms) / 1000
        if elapsed_s <= 0 or count / elapsed_s <= self._target:
            return
        while self._target == 0:
            time.sleep(3600)
        self._owed_s += self._pause_s
        if self._owed_s >= _SHORTEST_SLEEP_S:
            start = time.monotonic()
            time.sleep(self._owed_s)
            self._owed_s -= time.monotonic() - start
