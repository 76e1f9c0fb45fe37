"""The measurements of one client, on which `metrics()`, the statistics and the pushes to the broker are built.

The values are counted per request, response, batch and poll, never per record. Rates, averages and maxima cover the
last `metrics.num.samples` windows of `metrics.sample.window.ms`, as in Java's clients.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sized
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from kafkapy.named_tuple import NamedTuple
from kafkapy.protocol.api import ApiKey

if TYPE_CHECKING:
    from kafkapy.client.configuration import ClientConfig


class MetricName(NamedTuple):
    """The name, the group and the tags of a metric; the tags are pairs of name and value, in the order of Java's
    clients.
    """

    name: str
    group: str
    tags: tuple[tuple[str, str], ...] = ()


Metrics = dict[MetricName, float]


class Clock(Protocol):
    """The part of a clock that the measurements need."""

    def monotonic_ms(self) -> int:
        """Returns a time that never goes back, in ms."""
        ...


class Samples:
    """The values of one quantity: `count` and `total` of all values, and the recent values in a few windows of time.

    The recent values are those of the last `metrics.num.samples` windows of `metrics.sample.window.ms` each. Values are
    added while `Network.lock`, the lock of the client's network loop, is held; any thread may read.
    """

    __slots__ = ("_clock", "_number", "_peak", "_taken", "_window_ms", "_windows", "count", "total")

    def __init__(self, clock: Clock, window_ms: int, number: int) -> None:
        self._clock, self._window_ms, self._number = clock, max(window_ms, 1), number
        self.count = 0
        self.total = 0.0
        self._peak = 0.0  # the greatest value since the last call of `take`
        self._taken = (0, 0.0)  # number and sum of the values before that call
        self._windows: list[list[float]] = []  # start (ms), number, sum, maximum, minimum; the latest last

    def add(self, value: float) -> None:
        """Adds a value at the present time."""
        now_ms = self._clock.monotonic_ms()
        self.count += 1
        self.total += value
        if value > self._peak:
            self._peak = value
        windows = self._windows
        if windows and now_ms - windows[-1][0] < self._window_ms:
            window = windows[-1]
            window[1] += 1
            window[2] += value
            if value > window[3]:
                window[3] = value
            if value < window[4]:
                window[4] = value
        else:
            if len(windows) == self._number:
                del windows[0]
            windows.append([now_ms, 1, value, value, value])

    def take(self) -> tuple[int, float, float]:
        """Returns number, sum and maximum of the values since the previous call of this method; zeros if there is none.

        Values are not negative. The caller must hold `Network.lock`.
        """
        count, total = self._taken
        found = (self.count - count, self.total - total, self._peak)
        self._taken, self._peak = (self.count, self.total), 0.0
        return found

    def _recent(self) -> list[list[float]]:
        oldest_ms = self._clock.monotonic_ms() - self._window_ms * self._number
        return [each for each in self._windows if each[0] > oldest_ms]

    def _elapsed_s(self, recent: list[list[float]]) -> float:
        """Returns the seconds that the windows `recent` cover: from the start of the first window until now.

        The result is at least the length of one window times (metrics.num.samples - 1), as in Java's clients. A window
        is [start in ms, number of values, sum, maximum, minimum].
        """
        least_ms = self._window_ms * (self._number - 1)
        covered_ms = self._clock.monotonic_ms() - recent[0][0] if recent else 0
        return max(covered_ms, least_ms, 1) / 1000

    @property
    def rate(self) -> float:
        """The sum of the recent values per second."""
        recent = self._recent()
        return sum(each[2] for each in recent) / self._elapsed_s(recent)

    @property
    def count_rate(self) -> float:
        """The number of recent values per second."""
        recent = self._recent()
        return sum(each[1] for each in recent) / self._elapsed_s(recent)

    @property
    def recent_count(self) -> int:
        """The number of the recent values."""
        return int(sum(each[1] for each in self._recent()))

    @property
    def average(self) -> float:
        """The average of the recent values; NaN if there is none, as in Java."""
        recent = self._recent()
        count = sum(each[1] for each in recent)
        return sum(each[2] for each in recent) / count if count else float("nan")

    @property
    def maximum(self) -> float:
        """The greatest of the recent values; NaN if there is none, as in Java."""
        return max((each[3] for each in self._recent()), default=float("nan"))

    @property
    def minimum(self) -> float:
        """The smallest of the recent values; NaN if there is none, as in Java."""
        return min((each[4] for each in self._recent()), default=float("nan"))


class NodeMetrics:
    """The requests to one broker and its responses: sizes in bytes, latencies in ms, throttle times above 0 in ms."""

    __slots__ = ("latency", "received", "sent", "throttle_time", "time_outs")

    def __init__(self, make: ClientMetrics) -> None:
        self.sent = make.samples()
        self.received = make.samples()
        self.latency = make.samples()
        self.throttle_time = make.samples()
        self.time_outs = 0


class TopicMetrics:
    """The measurements of one topic: records and bytes that a producer has sent or a consumer has fetched.

    For a producer also the numbers of its retries and of its failed records, and its compression ratios.
    """

    __slots__ = ("compression", "errors", "records", "retries", "size")

    def __init__(self, make: ClientMetrics) -> None:
        self.records = make.samples()
        self.size = make.samples()  # bytes: one value per batch of a producer, or per response to a consumer
        self.compression = make.samples()
        self.retries = make.samples()
        self.errors = make.samples()


class PartitionMetrics:
    """The recent values of a consumer's lag and lead in one partition, in offsets.

    The lag is the distance from the position to the end of the log, the lead that from the start of the log.
    """

    __slots__ = ("lag", "lead")

    def __init__(self, make: ClientMetrics) -> None:
        self.lag = make.samples()
        self.lead = make.samples()


class TimeTotals:
    """The total time in ns that the application has spent in each of a client's blocking methods. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._totals: dict[str, int] = {}

    @contextmanager
    def spent_in(self, name: str) -> Iterator[None]:
        """Returns a context whose duration is added to the total of `name`."""
        began_ns = time.monotonic_ns()
        try:
            yield
        finally:
            spent_ns = time.monotonic_ns() - began_ns
            with self._lock:
                self._totals[name] = self._totals.get(name, 0) + spent_ns

    def __getitem__(self, name: str) -> int:
        return self._totals.get(name, 0)


class ClientMetrics:
    """The measurements of one client.

    Methods that change them are called while `Network.lock`, the lock of the client's network loop, is held; any thread
    may read.
    """

    def __init__(self, kind: str, client_id: str, clock: Clock, *, window_ms: int, number: int) -> None:
        self.kind = kind  # producer, consumer or admin-client
        self.client_id = client_id
        self._clock, self._window_ms, self._number = clock, window_ms, number
        self._created_ms = clock.monotonic_ms()
        self.created_connections = self.samples()
        self.closed_connections = self.samples()
        self.authentications = self.samples()
        self.failed_authentications = self.samples()
        self.reauthentications = self.samples()  # the latencies in ms
        self.failed_reauthentications = self.samples()
        self.waits = self.samples()  # ns, of the threads that wait for sockets
        self.steps = self.samples()  # ns, of the steps of the network's loop
        self.time_totals = TimeTotals()
        self.nodes: dict[int, NodeMetrics] = {}
        self.apis: dict[ApiKey, Samples] = {}  # the latencies in ms of the responses
        self.last_sent_ms: dict[ApiKey, int] = {}  # monotonic, of the requests with a response
        self.topics: dict[str, TopicMetrics] = {}
        self.batch_size = self.samples()
        self.batch_records = self.samples()
        self.largest_record = self.samples()  # bytes, of each batch
        self.compression = self.samples()  # compressed size / uncompressed size of each batch
        self.batch_splits = self.samples()
        self.memory_waits = self.samples()  # ns, of the callers that waited for memory
        self.memory_failures = self.samples()
        self.queue_time = self.samples()  # ms from the creation of a batch until it is sent
        self.records_per_request = self.samples()
        self.throttle_time = self.samples()  # ms, of produce or fetch responses
        self.fetch_size = self.samples()  # bytes, of the fetch responses with records
        self.time_between_polls = self.samples()  # ms
        self.last_poll_ms = 0  # monotonic; 0 before the first poll
        self.poll_idle_ratio = self.samples()  # the time of a poll, as a part of that time and the time between polls
        self._between_polls_ms = 0
        self.rebalances = self.samples()  # ms
        self.last_rebalance_ms = 0  # monotonic; 0 before the first rebalance
        self.listener_calls: dict[str, Samples] = {}  # ms, by the name of the rebalance listener's method

    def samples(self) -> Samples:
        """Returns new Samples without values, which use the client's clock and windows."""
        return Samples(self._clock, self._window_ms, self._number)

    def age_ms(self) -> int:
        """Returns the time since the creation of the client, in ms."""
        return self._clock.monotonic_ms() - self._created_ms

    def node(self, node_id: int) -> NodeMetrics:
        """Returns the measurements of a broker."""
        found = self.nodes.get(node_id)
        if found is None:
            found = self.nodes[node_id] = NodeMetrics(self)
        return found

    def topic(self, topic: str) -> TopicMetrics:
        """Returns the measurements of a topic."""
        found = self.topics.get(topic)
        if found is None:
            found = self.topics[topic] = TopicMetrics(self)
        return found

    def sent(self, node_id: int, chunks: Iterable[Sized]) -> int:
        """Counts a request to a broker; returns the present monotonic time in ms.

        `chunks` are the parts of the request's bytes, of which only the lengths are used.
        """
        self.node(node_id).sent.add(sum(map(len, chunks)))
        return self._clock.monotonic_ms()

    def received(self, node_id: int, key: ApiKey, size: int, sent_ms: int, throttle_ms: int) -> None:
        """Counts a response of `size` bytes to a request that was sent at `sent_ms` (monotonic).

        `throttle_ms`, the response's throttle time, is counted for Produce and Fetch only.
        """
        node = self.node(node_id)
        latency_ms = self._clock.monotonic_ms() - sent_ms
        node.received.add(size)
        node.latency.add(latency_ms)
        latencies = self.apis.get(key)
        if latencies is None:
            latencies = self.apis[key] = self.samples()
        latencies.add(latency_ms)
        self.last_sent_ms[key] = sent_ms
        if key in (ApiKey.PRODUCE, ApiKey.FETCH):
            self.throttle_time.add(throttle_ms)
            if throttle_ms > 0:
                node.throttle_time.add(throttle_ms)

    def api(self, *keys: ApiKey) -> Samples:
        """Returns the latencies in ms of the first of these APIs that the client has used; Samples without values if it
        used none.
        """
        return next((self.apis[key] for key in keys if key in self.apis), None) or self.samples()

    def batch_sent(self, topic: str, records: int, size: int, largest_record: int, queued_ms: int) -> None:
        """Counts a producer's batch of `size` bytes that is sent for the first time, `queued_ms` after its creation.

        `largest_record` is the size of its largest record in bytes.
        """
        self.batch_size.add(size)
        self.batch_records.add(records)
        self.largest_record.add(largest_record)
        self.queue_time.add(queued_ms)
        found = self.topic(topic)
        found.records.add(records)
        found.size.add(size)

    def batch_compressed(self, topic: str, ratio: float) -> None:
        """Counts the compression of a producer's batch: its compressed size divided by its uncompressed size."""
        self.compression.add(ratio)
        self.topic(topic).compression.add(ratio)

    def fetched(self, sizes: Mapping[str, int]) -> None:
        """Counts a fetch response with records; `sizes` has the bytes of the records of each topic."""
        self.fetch_size.add(sum(sizes.values()))
        for topic, size in sizes.items():
            self.topic(topic).size.add(size)

    def authenticated(self, began_ms: int | None) -> None:
        """Counts a connection that became ready after TLS or SASL.

        `began_ms` is the monotonic time at which it began to authenticate again; None for the first time.
        """
        if began_ms is None:
            self.authentications.add(1)
        else:
            self.reauthentications.add(self._clock.monotonic_ms() - began_ms)

    def rebalanced(self, began_ms: int) -> None:
        """Counts a rebalance that began at `began_ms` (monotonic) and is complete now."""
        self.last_rebalance_ms = self._clock.monotonic_ms()
        self.rebalances.add(self.last_rebalance_ms - began_ms)

    def listener_called(self, name: str, began_ms: int) -> None:
        """Counts a call of the rebalance listener's method `name`. The call began at `began_ms` (monotonic) and has
        ended.
        """
        calls = self.listener_calls.get(name)
        if calls is None:
            calls = self.listener_calls[name] = self.samples()
        calls.add(self._clock.monotonic_ms() - began_ms)

    def polled(self) -> None:
        """Counts a poll of a consumer. Called when the poll begins."""
        now_ms = self._clock.monotonic_ms()
        if self.last_poll_ms:
            self._between_polls_ms = now_ms - self.last_poll_ms
            self.time_between_polls.add(self._between_polls_ms)
        self.last_poll_ms = now_ms

    def poll_ended(self) -> None:
        """Counts the time of the poll that began last, as KafkaConsumerMetrics of Java's client does."""
        poll_ms = self._clock.monotonic_ms() - self.last_poll_ms
        if poll_ms + self._between_polls_ms:
            self.poll_idle_ratio.add(poll_ms / (poll_ms + self._between_polls_ms))


def make_metrics(config: ClientConfig, clock: Clock) -> ClientMetrics:
    """Returns the measurements of a client with this configuration."""
    kind = "producer" if config.has("linger.ms") else "consumer" if config.has("group.id") else "admin-client"
    window_ms, number = config["metrics.sample.window.ms"], config["metrics.num.samples"]
    return ClientMetrics(kind, config["client.id"], clock, window_ms=window_ms, number=number)
