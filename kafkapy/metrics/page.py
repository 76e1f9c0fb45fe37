"""A page being rendered: families one after the other, in slices between which the interpreter lock is let go.

Whoever renders holds the lock for less than a fifth of a millisecond: other threads that want to run Python would wait
for that long, and a request of the reactor's Python way behind them. Many lines of one kind are written natively.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

from kafkapy._core.broker_state.metrics_page import MetricsPage, PartitionRows
from kafkapy._core.broker_state.topic_counters import TopicCounters
from kafkapy.metrics.metric import Metric, format_labels, format_number

PAGE_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SLICE_NS = 150_000
REST_S = 0.0001


class Pace:
    """Rests when the caller has run for a slice. One thread."""

    __slots__ = ("_until_ns",)

    def __init__(self) -> None:
        self._until_ns = time.monotonic_ns() + SLICE_NS

    def __call__(self) -> None:
        """To be called at least every 100 microseconds or so of work."""
        if time.monotonic_ns() >= self._until_ns:
            time.sleep(REST_S)
            self._until_ns = time.monotonic_ns() + SLICE_NS


class Page:
    """Owns the text so far; one thread. Every family is begun once and written whole before the next one."""

    def __init__(self, pace: Callable[[], None] | None = None) -> None:
        self.native = MetricsPage()
        self.pace = pace or Pace()

    def begin(self, metric: Metric) -> None:
        self.native.text(metric.head())
        self.pace()

    def one(self, metric: Metric, value: float) -> None:
        """A whole family of one series without labels."""
        self.native.text(metric.head() + f"{metric.name} {format_number(value)}\n".encode())
        self.pace()

    def family(self, metric: Metric, samples: Iterable[tuple[tuple[object, ...], float]]) -> None:
        """A whole family: (values of the labels, number)."""
        self.begin(metric)
        for values, number in samples:
            self.sample(metric, values, number)

    def sample(self, metric: Metric, values: tuple[object, ...], number: float, suffix: str = "") -> None:
        """One series of the family that was begun; `suffix` is `_sum` or `_count` of a summary."""
        labels = format_labels(metric.labels, values)
        self.native.text(f"{metric.name}{suffix}{labels} {format_number(number)}\n".encode())
        self.pace()

    def part(self, metric: Metric, values: tuple[object, ...], number: float, name: str, part: object) -> None:
        """One quantile of a summary, or one bucket of a histogram: `name` is the label that tells them apart."""
        suffix = "_bucket" if name == "le" else ""
        labels = format_labels((*metric.labels, name), (*values, part))
        self.native.text(f"{metric.name}{suffix}{labels} {format_number(number)}\n".encode())
        self.pace()

    def histogram(
        self, metric: Metric, values: tuple[object, ...], ends: Sequence[float], counts: Sequence[int], total: float
    ) -> None:
        """One histogram of the family that was begun: `counts[n]` are not above `ends[n]`, the last of them are all;
        `total` is the sum of what was counted."""
        for end, count in zip((*map(repr, ends), "+Inf"), counts, strict=True):
            self.part(metric, values, count, "le", end)
        self.sample(metric, values, total, "_sum")
        self.sample(metric, values, counts[-1], "_count")

    def topics(self, metric: Metric, counters: list[TopicCounters], counter: int) -> None:
        """A family with a line for each topic, in which those who have no labels stand for all."""
        self.begin(metric)
        self.native.topic_family(metric.name.encode(), counters, counter)
        self.pace()

    def partitions(self, metric: Metric, rows: PartitionRows, column: int) -> None:
        """A family with a line for each partition."""
        self.begin(metric)
        self.native.partition_family(metric.name.encode(), rows, column)
        self.pace()
