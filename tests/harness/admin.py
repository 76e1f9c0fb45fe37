"""The harness of admin handlers on a real controller: requests are encoded and decoded, responses wait for commits."""

from __future__ import annotations

import queue
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from kafkapy._core.bytes.wire import Reader
from kafkapy.controller.policy import Policies
from kafkapy.errors import ApiError, Error
from kafkapy.metadata.image import BROKER_RESOURCE, MetadataCache
from kafkapy.metrics.request_errors import RequestErrors
from kafkapy.protocol.api import request_class, response_class, response_header_version
from kafkapy.protocol.messages.header import RequestHeader
from kafkapy.server.api_registry import DECLARATIONS
from kafkapy.server.client_telemetry import ClientTelemetry
from kafkapy.server.request_context import RequestContext, Session
from tests.api_client import WITHOUT_GATE
from tests.harness.handler import RecordingConnection
from tests.harness.metadata import QuorumHarness


class QueueReactor:
    """A reactor that queues posted callbacks for the test's thread."""

    def __init__(self) -> None:
        self.posted: queue.Queue[Any] = queue.Queue()

    def post(self, callback: Any) -> None:
        self.posted.put(callback)


class QueuePool:
    """A pool that runs work at once and posts the continuation to the reactor."""

    def __init__(self, reactor: QueueReactor) -> None:
        self._reactor = reactor

    def submit(self, work: Any) -> None:
        continuation = work()
        if continuation is not None:
            self._reactor.post(continuation)


class AdminHarness(QuorumHarness):
    """A registered broker with its controller; `send` returns the decoded response."""

    def __init__(self, directory: Path, **properties: str) -> None:
        super().__init__(directory, None, **properties)
        self.start()
        self.loop.follow(self).result()
        self.on_metadata(None, self.loop.image)
        self.reactor = QueueReactor()
        self.services: Any = SimpleNamespace(
            forwarding=None, authorizer=None, tls_listeners=None, requested_topics=set(),
            config=self.config, clock=self.clock, metadata=self.loop.cache, node_id=1, cluster_id="cluster",
            quotas=None, mutation_quotas=None, gate_rights=None, replica_manager=WITHOUT_GATE,
            controller=self.loop, reactor=self.reactor, policies=Policies.from_config(self.config),
            client_telemetry=ClientTelemetry(), request_errors=RequestErrors(), handler_pool=QueuePool(self.reactor),
        )  # fmt: skip

    @property
    def metadata(self) -> MetadataCache:
        return self.loop.cache

    def on_metadata(self, delta: Any, image: Any) -> None:
        self.config.apply_dynamic(image.config(BROKER_RESOURCE, ""), image.config(BROKER_RESOURCE, "1"))

    def send(self, handler: Any, request: Any, version: int, listener: str = "PLAINTEXT") -> Any:
        """Calls the handler with a request, and returns the decoded response, also if the handler responds later."""
        (served,) = getattr(handler, DECLARATIONS)
        assert served.lowest <= version <= served.highest
        decoded = request_class(served.key).decode(memoryview(bytearray(request.encode(version))), version)
        header = RequestHeader(
            request_api_key=served.key, request_api_version=version, correlation_id=7, client_id="test"
        )
        flexible = response_header_version(served.key, version) == 1
        connection: Any = RecordingConnection(listener)
        context = RequestContext(self.services, connection, Session(), header, flexible, 0)
        try:
            response = handler(context, decoded)
        except ApiError as error:
            response = served.on_error(decoded, version, error.error, error.message)
        if response is None:
            self.reactor.posted.get(timeout=30)()
        else:
            context.respond(response)
        assert connection.closed is None
        (answer,) = connection.answers
        reader = Reader(answer)
        assert reader.read_int32() == 7
        if flexible:
            reader.read_unknown_tags()
        return response_class(served.key).read(reader, version)


def error_of(answer: Any) -> tuple[Error, str | None]:
    return Error(answer.error_code), answer.error_message
