"""The metrics page of a broker and its health pages, which the metrics listener serves.

    /metrics    the page of metrics
    /live       succeeds if the reactor's thread runs
    /ready      succeeds if the broker serves clients

The numbers are read from other threads' objects while these threads run: each number is correct at one moment, but not
all at the same moment. Containers are copied in one step (`dict.copy`, `list(dict.values())`), which no other thread
can interrupt.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from kafkapy import __version__
from kafkapy._core.broker_state.metrics_page import MetricsPage
from kafkapy.metadata.election_counts import ElectionCounts
from kafkapy.metrics import table
from kafkapy.metrics.http_server import Pending, Response
from kafkapy.metrics.page import PAGE_TYPE, Page
from kafkapy.metrics.process import ProcessMetrics
from kafkapy.network.socket_server import SocketServer
from kafkapy.server.exposition.authorization import AuthorizationMetrics
from kafkapy.server.exposition.clients import write_clients
from kafkapy.server.exposition.cluster import ClusterMetrics
from kafkapy.server.exposition.coordinators import write_groups, write_transactions
from kafkapy.server.exposition.quotas import write_quotas
from kafkapy.server.exposition.requests import RequestMetrics
from kafkapy.server.exposition.share_groups import write_share_groups
from kafkapy.server.exposition.storage import write_storage
from kafkapy.server.exposition.topics import TopicMetrics
from kafkapy.server.exposition.zookeeper import write_zookeeper
from kafkapy.server.services import Services
from kafkapy.storage.log_cleaner import LogCleaner

# The shortest time between two pages; a request within this time receives the previous page.
MIN_PAGE_INTERVAL_S = 0.25
# The page /live fails if the reactor has not run a callback within this time.
LIVENESS_TIMEOUT_S = 5.0


class BrokerPage:
    """Builds the metrics page and the health pages; keeps state between requests. Only the metrics listener's thread
    may use it.
    """

    def __init__(
        self, services: Services, log_cleaner: LogCleaner, socket_server: SocketServer, state: Callable[[], int]
    ) -> None:
        """`state` returns the broker's state as Kafka's number; 3 is RUNNING."""
        self._services = services
        self._state = state
        limit = services.config.kafkapy_metrics_series_limit
        self._limit = limit
        self._log_cleaner = log_cleaner
        self._topics = TopicMetrics(services, limit)
        self._cluster = ClusterMetrics(services, state)
        self._requests = RequestMetrics(services, socket_server)
        self._authorization = AuthorizationMetrics(services)
        self._process = ProcessMetrics()
        self._page: MetricsPage | None = None
        self._made_s = 0.0
        self._pages = 0
        self._cpu_s = 0.0

    @property
    def elections(self) -> ElectionCounts:
        """The counts of leader elections, which a listener of the committed metadata maintains."""
        return self._cluster.elections

    def render(self) -> MetricsPage:
        """Returns the metrics page with the present values."""
        began_s = time.thread_time()
        page = Page()
        services = self._services
        page.family(table.BUILD, [((__version__, services.node_id, services.cluster_id), 1)])
        self._topics.write(page)
        self._cluster.write(page)
        self._requests.write(page)
        self._authorization.write(page)
        write_storage(page, services, self._log_cleaner)
        write_groups(page, services, self._limit)
        write_share_groups(page, services, self._limit)
        write_zookeeper(page, services)
        write_transactions(page, services)
        write_quotas(page, services, self._limit)
        page.one(table.MUTED_CONNECTIONS, services.reactor.counters()["connections_muted"])
        write_clients(page, services.client_telemetry, services.clock.monotonic_ms())
        self._process.write(page)
        page.one(table.PAGES, self._pages)
        page.one(table.PAGES_CPU, self._cpu_s)
        self._pages += 1
        self._cpu_s += time.thread_time() - began_s
        return page.native

    def metrics(self) -> Response:
        now_s = time.monotonic()
        if self._page is None or now_s - self._made_s >= MIN_PAGE_INTERVAL_S:
            self._page = self.render()
            self._made_s = now_s
        return Response(memoryview(self._page), content_type=PAGE_TYPE)

    def live(self) -> Pending:
        """Returns a pending page, which succeeds when the reactor's thread runs a callback, and fails if the thread
        does not run the callback in time.
        """
        silence = Response(f"the reactor has not answered for {LIVENESS_TIMEOUT_S:g} seconds\n".encode(), 503)
        pending = Pending(silence, LIVENESS_TIMEOUT_S)
        self._services.reactor.post(lambda: pending.resolve(Response(b"live\n")))
        return pending

    def ready(self) -> Response:
        services = self._services
        registration = services.metadata.image.brokers.get(services.node_id)
        if self._state() != table.RUNNING:
            return Response(b"not ready: starting or stopping\n", 503)
        if registration is None or registration.fenced:
            return Response(b"not ready: the broker is fenced\n", 503)
        return Response(b"ready\n")
