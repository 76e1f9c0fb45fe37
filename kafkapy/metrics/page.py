"""Renders a page, one family after the other, in slices between which the interpreter lock is released.

The rendering thread holds the lock for less than a fifth of a millisecond at a time. All other threads that run Python
code wait for the lock, and so does the thread that serves requests whenever it runs Python code. Families with a line
for each topic or partition are written by compiled code.
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
    """Releases the interpreter lock between slices of work, so that other threads can run Python. Used by one
    thread."""

    __slots__ = ("_until_ns",)

    def __init__(self) -> None:
        self._until_ns = time.monotonic_ns() + SLICE_NS

    def __call__(self) -> None:
        """Sleeps if SLICE_NS have passed since the last sleep. Call it at least every 100 microseconds of work."""
        if time.monotonic_ns() >= self._until_ns:
            time.sleep(REST_S)
            self._until_ns = time.monotonic_ns() + SLICE_NS


class Page:
    """The text of a page of metrics, as far as it has been written. Used by one thread.

    Every family is begun once, and written completely before the next family begins.
    """

    def __init__(self, pace: Callable[[], None] | None = None) -> None:
        self.native = MetricsPage()
        self.pace = pace or Pace()

    def begin(self, metric: Metric) -> None:
        self.native.text(metric.head())
        self.pace()

    def one(self, metric: Metric, value: float) -> None:
        """Writes a family of one series without labels."""
        self.native.text(metric.head() + f"{metric.name} {format_number(value)}\n".encode())
        self.pace()

    def family(self, metric: Metric, samples: Iterable[tuple[tuple[object, ...], float]]) -> None:
        """Writes a family; each sample is a pair of the labels' values and the number."""
        self.begin(metric)
        for values, number in samples:
            self.sample(metric, values, number)

    def sample(self, metric: Metric, values: tuple[object, ...], number: float, suffix: str = "") -> None:
        """Writes one series of the family that was begun last. `values` are the values of the labels. `suffix` is added
        to the name; it is `_sum` or `_count` for a summary."""
        labels = format_labels(metric.labels, values)
        self.native.text(f"{metric.name}{suffix}{labels} {format_number(number)}\n".encode())
        self.pace()

    def part(self, metric: Metric, values: tuple[object, ...], number: float, name: str, part: object) -> None:
        """Writes one quantile of a summary or one bucket of a histogram, in the family that was begun last.

        `values` are the values of the metric's labels. `name` is the name of the additional label (`quantile` or `le`),
        and `part` is the value of this label.
        """
        suffix = "_bucket" if name == "le" else ""
        labels = format_labels((*metric.labels, name), (*values, part))
        self.native.text(f"{metric.name}{suffix}{labels} {format_number(number)}\n".encode())
        self.pace()

    def histogram(
        self, metric: Metric, values: tuple[object, ...], ends: Sequence[float], counts: Sequence[int], total: float
    ) -> None:
        """Writes one histogram of the family that was begun last. `values` are the values of the metric's labels.

        `counts` is cumulative: `counts[n]` is the number of observed values that are at most `ends[n]`. Its last
        element, for which `ends` has no bound, is the number of all observed values; `total` is their sum.
        """
        for end, count in zip((*map(repr, ends), "+Inf"), counts, strict=True):
            self.part(metric, values, count, "le", end)
        self.sample(metric, values, total, "_sum")
        self.sample(metric, values, counts[-1], "_count")

    def topics(self, metric: Metric, counters: list[TopicCounters], counter: int) -> None:
        """Writes a family with a line for each topic, and a line without labels for the sum of all topics.

        `counter` is the index of the value to write among the numbers of each TopicCounters.
        """
        self.begin(metric)
        self.native.topic_family(metric.name.encode(), counters, counter)
        self.pace()

    def partitions(self, metric: Metric, rows: PartitionRows, column: int) -> None:
        """Writes a family with a line for each partition; `column` is the index of the value to write in each row."""
        self.begin(metric)
        self.native.partition_family(metric.name.encode(), rows, column)
        self.pace()
