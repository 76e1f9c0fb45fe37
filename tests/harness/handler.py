"""A harness that calls handlers as the dispatcher does: requests and responses are encoded and decoded."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from kafkapy.controller.policy import NO_POLICIES
from kafkapy.coordinator.producer_id_manager import ProducerIdManager
from kafkapy.errors import ApiError
from kafkapy.metrics.request_errors import RequestErrors
from kafkapy.protocol.api import request_class, response_class
from kafkapy.protocol.messages.header import RequestHeader
from kafkapy.server.api_registry import DECLARATIONS
from kafkapy.server.fetch_session import FetchSessions
from kafkapy.server.large_fetches import LargeFetches
from kafkapy.server.request_context import RequestContext, Session
from tests.harness.replica import NODE_ID, ReplicaHarness


class RecordingConnection:
    """Stores each response of a handler as one bytes object; None stands for no response."""

    def __init__(self, listener_name="PLAINTEXT"):
        self.id = "test"
        self.listener = SimpleNamespace(name=listener_name)
        self.peer_host = "127.0.0.1"
        self.peer_port = 50000
        self.answers = []
        self.closed = None

    def respond(self, chunks):
        if chunks is None:
            self.answers.append(None)
            return
        self.answers.append(b"".join(bytes(chunk.read() if hasattr(chunk, "read") else chunk) for chunk in chunks))

    def mute(self, throttle_ms):
        """Does nothing: the test sends no requests while a connection is muted."""

    def note_follower_fetch(self):
        """Does nothing: the meters of a request belong to real connections."""

    def close(self, reason):
        self.closed = reason


class InlinePool:
    """A handler pool that works on the caller's thread."""

    def submit(self, work):
        continuation = work()
        if continuation is not None:
            continuation()


class HandlerHarness(ReplicaHarness):
    """A ReplicaHarness with services for handlers; `blocks` collects the requests for blocks of producer ids."""

    def __init__(self, root, **keywords):
        super().__init__(root, **keywords)
        self.blocks: list[Any] = []
        self.services: Any = SimpleNamespace(
            config=self.config,
            clock=self.clock,
            metadata=self.metadata,
            node_id=NODE_ID,
            requested_topics=set(),
            replica_manager=self.manager,
            log_manager=self.log_manager,
            fetch_sessions=FetchSessions(self.clock, self.config["max.incremental.fetch.session.cache.slots"]),
            large_fetches=LargeFetches(),
            producer_ids=ProducerIdManager(self.blocks.append),
            handler_pool=InlinePool(),
            policies=NO_POLICIES,
            quotas=None,
            mutation_quotas=None,
            gate_rights=None,
            request_errors=RequestErrors(),
            forwarding=None,
            authorizer=None,
            tls_listeners=None,
            audit=None,
        )

    def send(self, handler, request, version, *, client_id="test", correlation_id=7, cost=None):
        """Calls the handler and returns an Answer, which may still be pending. `cost` measures the request."""
        (served,) = getattr(handler, DECLARATIONS)
        assert served.lowest <= version <= served.highest
        encoded = bytearray(request.encode(version))
        decoded = request_class(served.key).decode(memoryview(encoded), version)
        header = RequestHeader(
            request_api_key=served.key, request_api_version=version, correlation_id=correlation_id, client_id=client_id
        )
        connection: Any = RecordingConnection()
        context = RequestContext(self.services, connection, Session(), header, False, 0)
        context.cost = cost
        try:
            response = handler(context, decoded)
        except ApiError as error:
            response = served.on_error(decoded, version, error.error, error.message)
        if response is not None:
            context.respond(response)
        return Answer(connection, response_class(served.key), version)


class Answer:
    def __init__(self, connection, response_type, version):
        self.connection = connection
        self._response_type = response_type
        self._version = version

    @property
    def is_answered(self):
        return bool(self.connection.answers)

    @property
    def response(self):
        (data,) = self.connection.answers
        return self._response_type.decode(memoryview(data), self._version, 4)
