"""The base of the workloads, their rate, their topics, and the histogram of their latencies."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from array import array
from collections.abc import Mapping
from typing import Any

from kafkapy.client.admin import Admin, NewTopic
from kafkapy.errors import ApiError, Error
from kafkapy.tools.option import ToolError
from kafkapy.tools.trogdor.specification import Specification

_NO_LIMIT_MS = 10**15


class Workload(ABC):
    """A workload of Trogdor. `run` blocks until it is finished; any thread, and a signal's handler, may call `stop`."""

    def __init__(self, specification: Specification) -> None:
        self.specification = specification
        self.stopped = threading.Event()
        duration_ms = specification.number("durationMs", _NO_LIMIT_MS)
        self._end_s = time.monotonic() + duration_ms / 1000

    def stop(self) -> None:
        """Makes `run` return soon."""
        self.stopped.set()

    @property
    def is_over(self) -> bool:
        """Returns whether `stop` was called or `durationMs` has passed."""
        return self.stopped.is_set() or time.monotonic() >= self._end_s

    @abstractmethod
    def run(self) -> None:
        """Carries out the workload."""

    @abstractmethod
    def status(self) -> dict[str, Any]:
        """Returns the results so far, by the names of Trogdor's results."""


class Pace:
    """A limit of actions per second for one thread; a rate of 0 or less means no limit."""

    def __init__(self, per_second: float) -> None:
        self._pause_s = 1 / per_second if per_second > 0 else 0.0
        self._next_s = time.monotonic()

    def wait(self, stopped: threading.Event) -> None:
        """Waits until the thread's next action is due at the rate of the limit, or until `stopped` is set."""
        if not self._pause_s:
            return
        now = time.monotonic()
        if self._next_s > now:
            stopped.wait(self._next_s - now)
        self._next_s = max(self._next_s + self._pause_s, now - 1.0)


class Latencies:
    """Latencies in ms. Thread-safe."""

    def __init__(self) -> None:
        self._values = array("q")
        self._lock = threading.Lock()

    def add(self, latency_ms: int) -> None:
        """Adds the latency of one record."""
        with self._lock:
            self._values.append(latency_ms)

    def status(self) -> dict[str, Any]:
        """Returns the average and the percentiles in ms, by the names of Trogdor's results."""
        with self._lock:
            found = sorted(self._values)
        average = sum(found) / len(found) if found else 0.0
        shares = {"p50LatencyMs": 0.5, "p95LatencyMs": 0.95, "p99LatencyMs": 0.99}
        percentiles = {name: found[int(share * (len(found) - 1))] if found else 0 for name, share in shares.items()}
        return {"averageLatencyMs": average, **percentiles}


def create_topics(properties: Mapping[str, Any], topics: Mapping[str, tuple[int, int]]) -> None:
    """Creates topics; `topics` maps each name to the number of partitions and the number of replicas.

    Accepts a topic that exists with this number of partitions, and raises ToolError if it has another number.
    `properties` is the configuration of the admin client.
    """
    with Admin(dict(properties)) as admin:
        for name, (partitions, replicas) in topics.items():
            try:
                admin.create_topics([NewTopic(name, partitions, replicas)]).check()
            except ApiError as error:
                if error.error is not Error.TOPIC_ALREADY_EXISTS:
                    raise
                found = len(admin.describe_topics([name]).check()[name].partitions)
                if found != partitions:
                    raise ToolError(f"the topic {name} has {found} partitions, not {partitions}") from None
