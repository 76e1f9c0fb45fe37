"""Metrics of requests by API (counts, times, errors), and of the threads that serve them."""

from __future__ import annotations

import time

from kafkapy._core.reactor.reactor import FOLLOWER_FETCHES, bucket_bounds
from kafkapy.errors import Error
from kafkapy.metrics import table
from kafkapy.metrics.page import Page
from kafkapy.metrics.quantiles import Window, quantile
from kafkapy.named_tuple import NamedTuple
from kafkapy.network.socket_server import SocketServer
from kafkapy.protocol.api import API_TABLE, ApiKey
from kafkapy.server.services import Services

# Kafka's quantiles, as it writes them.
QUANTILES = ("0.50", "0.75", "0.95", "0.98", "0.99", "0.999")
# Every second power of two from 64 us on, which are also upper ends of the meters' buckets.
HISTOGRAM_ENDS_US = [1 << exponent for exponent in range(6, 26, 2)]
BOUNDS_US = bucket_bounds()
BOUNDS_MS = [bound / 1000 for bound in BOUNDS_US]
# The number of buckets of a meter below each end.
BUCKETS_BELOW = [BOUNDS_US.index(end) + 1 for end in HISTOGRAM_ENDS_US]
ENDS_S = [end / 1e6 for end in HISTOGRAM_ENDS_US]
OTHER_API = "(other)"
FETCH = ApiKey.FETCH.value
# Metric -> attribute of AuthenticationCounts.
AUTHENTICATION_COUNTS = (
    (table.AUTHENTICATIONS, "succeeded"),
    (table.AUTHENTICATIONS_WITHOUT_REAUTHENTICATION, "without_reauthentication"),
    (table.FAILED_AUTHENTICATIONS, "failed"),
    (table.REAUTHENTICATIONS, "succeeded_again"),
    (table.FAILED_REAUTHENTICATIONS, "failed_again"),
    (table.EXPIRED_CONNECTIONS, "expired"),
)


# Attribute of AuthenticationCounts -> whether successful and failed TLS handshakes count.
_COUNTED_HANDSHAKES = {"succeeded": (1, 0), "without_reauthentication": (1, 0), "failed": (0, 1)}


class Meter(NamedTuple):
    """The totals of one API since the start: the number of requests, their bytes, the microseconds to serve them, and
    the number of requests in each interval (bucket) of the histogram of times.
    """

    requests: int
    size: int
    time_us: int
    buckets: list[int]

    def without(self, part: Meter) -> Meter:
        """Returns these totals minus the totals of `part`, but at least 0, because `part` may have been read later."""
        buckets = [max(0, own - other) for own, other in zip(self.buckets, part.buckets, strict=True)]
        return Meter(
            max(0, self.requests - part.requests),
            max(0, self.size - part.size),
            max(0, self.time_us - part.time_us),
            buckets,
        )


def api_name(key: int) -> str:
    """Returns the name in Kafka's metrics of the API with the API key `key`."""
    return API_TABLE[ApiKey(key)].name if key in API_TABLE else OTHER_API


class RequestMetrics:
    """Writes the metrics of requests, and stores the readings of the last minute, for quantiles and the idle ratio of
    the reactor.

    Used by one thread.
    """

    def __init__(self, services: Services, socket_server: SocketServer) -> None:
        self._services = services
        self._socket_server = socket_server
        now_s = time.monotonic()
        self._meters: Window[dict[str, Meter]] = Window({}, now_s)
        self._idle: Window[int] = Window(services.reactor.idle_us(), now_s)

    def write(self, page: Page) -> None:
        meters = self._read_meters()
        page.family(table.REQUESTS, [((name,), meter.requests) for name, meter in meters.items()])
        page.family(table.REQUEST_BYTES, [((name,), meter.size) for name, meter in meters.items()])
        page.family(table.REQUEST_ERRORS, self._errors())
        self._write_times(page, meters)
        self._write_histograms(page, meters)
        self._write_threads(page)
        self._write_connections(page)
        self._write_authentication(page)
        self._write_waiting(page)

    def _read_meters(self) -> dict[str, Meter]:
        """Returns the totals of each API by its name.

        As in Kafka, each fetch is counted twice: as Fetch, and as FetchConsumer or FetchFollower.
        """
        meters = {
            key: Meter(requests, size, time_us, buckets)
            for key, requests, size, time_us, buckets in self._services.reactor.request_meters()
        }
        of_followers = meters.pop(FOLLOWER_FETCHES, None)
        found = {api_name(key): meter for key, meter in meters.items()}
        if FETCH in meters:
            fetches = meters[FETCH]
            found["FetchConsumer"] = fetches if of_followers is None else fetches.without(of_followers)
        if of_followers is not None:
            found["FetchFollower"] = of_followers
        return found

    def _errors(self) -> list[tuple[tuple[object, ...], float]]:
        counts = self._services.request_errors.counts()
        return [((api_name(key), Error(error).name), count) for (key, error), count in sorted(counts.items())]

    def _write_times(self, page: Page, meters: dict[str, Meter]) -> None:
        now_s = time.monotonic()
        _, before = self._meters.before(now_s)
        metric = table.REQUEST_TIME_MS
        page.begin(metric)
        for name, meter in meters.items():
            old = before.get(name)
            recent = meter.buckets
            if old is not None and old.requests < meter.requests:
                recent = [new - known for new, known in zip(meter.buckets, old.buckets, strict=True)]
            for text in QUANTILES:
                page.part(metric, (name,), quantile(float(text), recent, BOUNDS_MS), "quantile", text)
            page.sample(metric, (name,), meter.time_us / 1000, "_sum")
            page.sample(metric, (name,), meter.requests, "_count")
        self._meters.keep(now_s, meters)

    def _write_histograms(self, page: Page, meters: dict[str, Meter]) -> None:
        metric = table.REQUEST_SECONDS
        page.begin(metric)
        for name, meter in meters.items():
            counts = [sum(meter.buckets[:below]) for below in (*BUCKETS_BELOW, None)]
            page.histogram(metric, (name,), ENDS_S, counts, meter.time_us / 1e6)

    def _write_threads(self, page: Page) -> None:
        services, reactor = self._services, self._services.reactor
        now_s, idle_us = time.monotonic(), reactor.idle_us()
        since_s, since_idle_us = self._idle.before(now_s)
        self._idle.keep(now_s, idle_us)
        share = (idle_us - since_idle_us) / 1e6 / (now_s - since_s) if now_s > since_s else 1.0
        counters = reactor.counters()
        pool = services.handler_pool
        page.one(table.PROCESSOR_IDLE, min(1.0, max(0.0, share)))
        page.one(table.HANDLER_IDLE, pool.idle_share)
        page.one(table.REQUEST_QUEUE, pool.queued)
        page.one(table.REQUESTS_IN_PROCESS, counters["requests_in_process"])
        page.one(table.REQUESTS_GATED, counters["requests_gated"])
        page.one(table.REACTOR_IDLE, idle_us / 1e6)
        page.one(table.REACTOR_WAKEUPS, counters["wakeups"])
        page.one(table.REACTOR_PYTHON_PHASES, counters["python_phases"])
        page.one(table.BYTES_RECEIVED, counters["bytes_received"])
        page.one(table.BYTES_SENT, counters["bytes_sent"])
        page.one(table.CONNECTIONS_CREATED, counters["connections"] + counters["connections_closed"])
        page.one(table.CONNECTIONS_CLOSED, counters["connections_closed"])

    def _write_connections(self, page: Page) -> None:
        counts = self._socket_server.connections_by_listener()
        page.family(table.CONNECTIONS, [((listener, "0"), count) for listener, count in counts.items()])
        delays = self._socket_server.quotas.average_delays(self._services.clock.monotonic_ms())
        page.family(table.ACCEPT_THROTTLE_TIME, [((listener,), each[0]) for listener, each in delays.items()])
        page.family(table.ADDRESS_ACCEPT_THROTTLE_TIME, [((listener,), each[1]) for listener, each in delays.items()])

    def _write_authentication(self, page: Page) -> None:
        """Writes how often clients have authenticated, or have failed to, by SASL and by TLS.

        As in Kafka, each TLS handshake on an SSL listener counts as an authentication, even if the client has no
        certificate.
        """
        listeners = self._services.authentication or {}
        handshakes = self._socket_server.handshakes_by_listener()
        if not listeners and not handshakes:
            return
        now_ms = self._services.clock.monotonic_ms()
        counts = {(name, "0"): each.counts for name, each in listeners.items()}
        for metric, attribute in AUTHENTICATION_COUNTS:
            values = {labels: getattr(each, attribute) for labels, each in counts.items()}
            for name, (succeeded, failed) in handshakes.items():
                by_tls = _COUNTED_HANDSHAKES.get(attribute, (0, 0))
                values[name, "0"] = values.get((name, "0"), 0) + by_tls[0] * succeeded + by_tls[1] * failed
            page.family(metric, list(values.items()))
        latencies = {labels: each.latency.average_and_maximum(now_ms) for labels, each in counts.items()}
        page.family(table.REAUTHENTICATION_LATENCY_AVERAGE, [(labels, both[0]) for labels, both in latencies.items()])
        page.family(table.REAUTHENTICATION_LATENCY_MAXIMUM, [(labels, both[1]) for labels, both in latencies.items()])

    def _write_waiting(self, page: Page) -> None:
        manager = self._services.replica_manager
        waiting = manager.delayed_operations
        purgatories = (waiting.produce, waiting.fetch, waiting.delete_records)
        # Requests that wait in the gate (compiled code) count in the purgatory in which Python would make them wait.
        gated = {waiting.produce: manager.gated_produces()}
        page.family(
            table.DELAYED_OPERATIONS,
            [((each.name,), each.delayed_count + gated.get(each, (0, 0))[0]) for each in purgatories],
        )
        page.family(table.PURGATORY_SIZE, [((each.name,), each.watched_count()) for each in purgatories])
        page.family(
            table.EXPIRED_OPERATIONS,
            [((each.name,), each.expired_count + gated.get(each, (0, 0))[1]) for each in purgatories],
        )
        page.one(table.FETCH_SESSIONS, len(self._services.fetch_sessions.cache))
