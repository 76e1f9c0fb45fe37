"""The statistics of producer-perf-test: rates, latencies and their percentiles."""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable
from typing import Any

# The largest number of stored latencies; with more records, only every n-th latency is stored.
_MOST_SAMPLES = 500_000
_MEGABYTE = 1024.0 * 1024.0
PERCENTILES = (0.5, 0.95, 0.99, 0.999)


class ProducerStats:
    """Latencies in ms and sizes in bytes of delivered records. Not thread-safe."""

    def __init__(
        self, record_count: int, interval_ms: int, *, is_steady: bool = False, is_silent: bool = False
    ) -> None:
        self._start_ms = self._window_start_ms = time.monotonic_ns() // 1_000_000
        self._interval_ms = interval_ms
        self._is_steady = is_steady
        self.is_silent = is_silent
        self.before_output: Callable[[], None] = lambda: None
        self._sampling = max(record_count // min(record_count, _MOST_SAMPLES), 1)
        self._latencies = array("q")
        self.count = 0
        self.bytes = 0
        self._latency_sum = 0
        self._latency_max = 0
        self._window_count = self._window_bytes = self._window_sum = self._window_max = 0

    def record(self, latency_ms: int, size: int, monotonic_ms: int) -> None:
        """Adds a record of `size` bytes that was delivered at `monotonic_ms`, `latency_ms` after it was sent.

        Prints a line about the interval since the last line if that interval has reached its length.
        """
        if self.count % self._sampling == 0:
            self._latencies.append(latency_ms)
        self.count += 1
        self.bytes += size
        self._latency_sum += latency_ms
        if latency_ms > self._latency_max:
            self._latency_max = latency_ms
        self._window_count += 1
        self._window_bytes += size
        self._window_sum += latency_ms
        if latency_ms > self._window_max:
            self._window_max = latency_ms
        if monotonic_ms - self._window_start_ms >= self._interval_ms:
            self._end_window(monotonic_ms)

    def _end_window(self, monotonic_ms: int) -> None:
        if not self.is_silent:
            self.before_output()
            if self._is_steady and self.count == self._window_count:
                print("In steady state.")
            print(self.window_line(monotonic_ms), flush=True)
        self._window_start_ms = monotonic_ms
        self._window_count = self._window_bytes = self._window_sum = self._window_max = 0

    def window_line(self, monotonic_ms: int) -> str:
        """Returns the line about the records of the current reporting interval, which ends at `monotonic_ms`."""
        elapsed_s = max(monotonic_ms - self._window_start_ms, 1) / 1000
        return (
            f"{self._window_count} records sent, {self._window_count / elapsed_s:.1f} records/sec "
            f"({self._window_bytes / elapsed_s / _MEGABYTE:.2f} MB/sec), "
            f"{self._window_sum / max(self._window_count, 1):.1f} ms avg latency, "
            f"{self._window_max:.1f} ms max latency."
        )

    def totals(self) -> dict[str, Any]:
        """Returns the values that `total_line` shows, by names such as "records", "averageLatencyMs" and "p99Ms"."""
        elapsed_s = max(time.monotonic_ns() // 1_000_000 - self._start_ms, 1) / 1000
        latencies = sorted(self._latencies)
        found = {
            f"p{share * 100:g}Ms": latencies[int(share * len(latencies))] if latencies else 0 for share in PERCENTILES
        }
        return {
            "records": self.count,
            "recordsPerSecond": self.count / elapsed_s,
            "megabytesPerSecond": self.bytes / elapsed_s / _MEGABYTE,
            "averageLatencyMs": self._latency_sum / self.count if self.count else float("nan"),
            "maxLatencyMs": self._latency_max,
            **found,
        }

    def total_line(self) -> str:
        """Returns the summary of the whole run. It has the format of Apache Kafka, because scripts parse it."""
        totals = self.totals()
        steady = " steady state" if self._is_steady else ""
        average = f"{totals['averageLatencyMs']:.2f}" if self.count else "NaN"
        return (
            f"{self.count}{steady} records sent, {totals['recordsPerSecond']:f} records/sec "
            f"({totals['megabytesPerSecond']:.2f} MB/sec), {average} ms avg latency, "
            f"{self._latency_max:.2f} ms max latency, {totals['p50Ms']} ms 50th, {totals['p95Ms']} ms 95th, "
            f"{totals['p99Ms']} ms 99th, {totals['p99.9Ms']} ms 99.9th."
        )
