"""The thread that samples a cluster for its history, and the compacted topic that stores the history."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator
from threading import Event, Thread

from kafkapy._core.bytes.arrow_search import read_row
from kafkapy.client import Producer, RangeReader
from kafkapy.client.admin import LATEST, NewTopic
from kafkapy.console.cluster_view import ClusterView
from kafkapy.console.history import (
    BYTES,
    COARSE_POINTS,
    COARSE_S,
    FINE_S,
    LAG,
    OUT_OF_SYNC,
    RECORDS,
    History,
    group_series,
    topic_series,
)
from kafkapy.console.problem import problem_of
from kafkapy.errors import Error
from kafkapy.types import TopicPartition

log = logging.getLogger("kafkapy.console.history")

# A sample reads the ends of the largest topics with together so many partitions, and the offsets of so many groups.
MOST_SAMPLED_PARTITIONS = 2_000
MOST_SAMPLED_TOPICS = 200
MOST_SAMPLED_GROUPS = 200
# The pause after a sample is at least this many times its processor time: a large cluster is sampled less often.
PAUSE_FACTOR = 100
LONGEST_SAMPLE_PAUSE_S = 120.0
STORE_TIMEOUT_MS = 10_000
_LARGEST_RECORD = 1 << 20


class Sampler:
    """Samples a cluster into the history of its view until `stop`, on a thread of its own.

    If `topic` is not "", the points of the week are written to this topic, and read from it at the start.
    """

    def __init__(self, view: ClusterView, history: History, topic: str = "") -> None:
        self._view = view
        self._history = history
        self._store = HistoryTopic(view, topic) if topic else None
        self._ends: dict[str, tuple[float, int]] = {}
        self._refusal = ""
        self._stopping = Event()
        self._thread = Thread(target=self._run, name=f"history of {view.name}", daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Makes the thread end after the present sample. Does not wait for it."""
        self._stopping.set()

    def join(self, timeout_s: float) -> None:
        """Waits for the end of the thread, at most `timeout_s` seconds."""
        if self._thread.is_alive():
            self._thread.join(timeout_s)

    def _run(self) -> None:
        is_restored = self._store is None
        while not self._stopping.is_set():
            began_s, spent_s = time.monotonic(), time.thread_time()
            try:
                self._view.check_reachable()
                if not is_restored:
                    assert self._store is not None
                    for wall_s, means in self._store.read():
                        self._history.restore(wall_s, means)
                    is_restored = True
                wall_s = time.time()
                means_of_week = self._history.add(wall_s, self._sample(wall_s))
                if means_of_week is not None and self._store is not None:
                    self._store.write(wall_s, means_of_week)
                self._refusal = ""
            except Exception as error:
                self._note(error)
            took_s, spent_s = time.monotonic() - began_s, time.thread_time() - spent_s
            self._stopping.wait(min(max(FINE_S - took_s, PAUSE_FACTOR * spent_s), LONGEST_SAMPLE_PAUSE_S))

    def _note(self, error: Exception) -> None:
        """Writes an error to the log, unless the console is ending. An error for which `problem_of` has a text is not
        repeated: it is not logged if the last one had the same text."""
        if self._stopping.is_set():
            return
        problem = problem_of(error, self._view.name)
        if problem is None:
            log.exception("The history of %s could not be sampled", self._view.name)
        elif problem.text != self._refusal:
            self._refusal = problem.text
            log.warning("The history of %s has a gap: %s", self._view.name, problem.text)

    def _sample(self, wall_s: float) -> dict[str, float]:
        """Returns the values of all series at `wall_s` (seconds since 1970). Blocks.

        Requests the topics with their sizes, the groups with their offsets, and the end offsets of the partitions, with
        one request to each broker.
        """
        topics = self._view.topics()
        largest = sorted(topics.values(), key=lambda each: -(each.bytes or 0))[:MOST_SAMPLED_TOPICS]
        wanted: dict[str, list[TopicPartition]] = {}
        count = 0
        for topic in largest:
            count += len(topic.partitions)
            if wanted and count > MOST_SAMPLED_PARTITIONS:
                break
            wanted[topic.name] = topic.keys()
        groups = [each.group_id for each in self._view.groups() if each.type in ("Classic", "Consumer", "")]
        groups = groups[:MOST_SAMPLED_GROUPS]
        offsets = self._view.admin.list_group_offsets(dict.fromkeys(groups)).values if groups else {}
        keys = {key for each in wanted.values() for key in each}
        keys |= {key for each in offsets.values() for key in each if key.topic in topics}
        found = self._view.admin.list_offsets(dict.fromkeys(keys, LATEST)).values if keys else {}
        values: dict[str, float] = {
            OUT_OF_SYNC: sum(each.under_replicated for each in topics.values()),
            BYTES: sum(each.bytes or 0 for each in topics.values()),
        }
        lags = {
            group: sum(max(found[key].offset - each.offset, 0) for key, each in committed.items() if key in found)
            for group, committed in offsets.items()
            if committed
        }
        values |= {group_series(group): lag for group, lag in lags.items()}
        values[LAG] = sum(lags.values())
        return values | self._rates(wall_s, wanted, {key: each.offset for key, each in found.items()})

    def _rates(
        self, wall_s: float, wanted: dict[str, list[TopicPartition]], ends: dict[TopicPartition, int]
    ) -> dict[str, float]:
        """Returns the records per second of each topic since the last sample, and their sum; {} at the first sample."""
        now = {
            topic: (wall_s, sum(ends[key] for key in keys))
            for topic, keys in wanted.items()
            if all(key in ends for key in keys)
        }
        before, self._ends = self._ends, now
        rates = {
            topic_series(topic): (end - before[topic][1]) / (wall_s - before[topic][0])
            for topic, (_, end) in now.items()
            if topic in before and wall_s > before[topic][0] and end >= before[topic][1]
        }
        return {**rates, RECORDS: sum(rates.values())} if before else {}


class HistoryTopic:
    """The points of the week in a compacted topic, one record each.

    A week consists of COARSE_POINTS intervals of five minutes. The key of a record is the number of its interval in the
    week. The point of the same interval in the next week has the same key, and compaction removes the older point.
    """

    def __init__(self, view: ClusterView, topic: str) -> None:
        self._view = view
        self._topic = topic

    def write(self, wall_s: float, means: dict[str, float]) -> None:
        """Writes a point of the week. Blocks. Raises ApiError or TimeoutError."""
        self._create()
        content = json.dumps({"time": wall_s, "values": {name: round(value, 3) for name, value in means.items()}})
        settings = {**self._view.properties, "acks": "all", "delivery.timeout.ms": STORE_TIMEOUT_MS}
        settings |= {"request.timeout.ms": STORE_TIMEOUT_MS // 2}
        settings.pop("default.api.timeout.ms", None)
        key = b"%d" % (int(wall_s // COARSE_S) % COARSE_POINTS)
        with Producer(settings) as producer:
            future = producer.send(self._topic, content.encode(), key=key, partition=0)
            producer.flush()
            future.result(STORE_TIMEOUT_MS / 1000)

    def read(self) -> list[tuple[float, dict[str, float]]]:
        """Returns the points of the last week, the oldest first. Blocks. Raises ApiError or TimeoutError.

        Records that are no points are left out.
        """
        self._create()
        partition = TopicPartition(self._topic, 0)
        ends = self._view.ends([partition])[partition]
        if not ends.length or ends.first is None or ends.end is None:
            return []
        found = [point for value in self._values(partition, ends.first, ends.end) if (point := _point(value))]
        first_s = time.time() - COARSE_S * COARSE_POINTS
        return sorted((point for point in found if point[0] >= first_s), key=lambda point: point[0])[-COARSE_POINTS:]

    def _values(self, partition: TopicPartition, start: int, end: int) -> Iterator[bytes]:
        with RangeReader(self._view.properties) as reader:
            for batch in reader.read(partition, start, end, columns=("value",), timeout=STORE_TIMEOUT_MS / 1000):
                for row in range(len(batch)):
                    value = read_row(batch, row)["value"]
                    if value is not None and len(value) <= _LARGEST_RECORD:
                        yield value

    def _create(self) -> None:
        topic = NewTopic(self._topic, 1, configs={"cleanup.policy": "compact"})
        error = self._view.admin.create_topics([topic]).errors.get(self._topic)
        if error is not None and error.error is not Error.TOPIC_ALREADY_EXISTS:
            raise error


def _point(value: bytes) -> tuple[float, dict[str, float]] | None:
    """Returns the time and the values of a stored point; None if the bytes are no point."""
    try:
        stored = json.loads(value)
        return float(stored["time"]), {str(name): float(each) for name, each in stored["values"].items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
