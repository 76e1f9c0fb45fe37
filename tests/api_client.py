"""A server with the dispatcher and chosen handlers, and requests sent to it as bytes."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

from kafkapy.config import BrokerConfig
from kafkapy.config.listener import Listener
from kafkapy.metadata.image import EMPTY_IMAGE, MetadataCache, MetadataImage
from kafkapy.network.handler_pool import HandlerPool
from kafkapy.network.socket_server import SocketServer
from kafkapy.protocol.api import ApiKey, request_header_version, response_header_version
from kafkapy.protocol.messages.header import RequestHeader, ResponseHeader
from kafkapy.server.api_registry import ApiRegistry
from kafkapy.server.dispatcher import Dispatcher
from kafkapy.server.forwarding import Forwarding
from kafkapy.server.handlers import HANDLER_MODULES
from kafkapy.server.services import Services
from kafkapy.types import SystemClock
from tests.reactor_harness import ReactorHarness, frame, receive_frame
from tests.unit.server.scripted_handlers import SCRIPTED_VERSIONS

# A part that the handlers under test do not use.
UNUSED: Any = None
# A replica manager whose broker has no gate.
WITHOUT_GATE: Any = SimpleNamespace(context=SimpleNamespace(gate=None))
CONFIG = {
    "node.id": "1",
    "process.roles": "broker,controller",
    "controller.quorum.voters": "1@localhost:9093",
    "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
    "controller.listener.names": "CONTROLLER",
}


class ApiServer:
    """Owns a running reactor with a dispatcher on it; `services` may be filled before the first request.

    `properties` are added to the configuration. `controller` is this node's controller. `make_forwarding(post)` returns
    the object that forwards requests to the active controller; `post` runs a function on the reactor's thread.
    """

    def __init__(
        self,
        modules: Mapping[ApiKey, str] = HANDLER_MODULES,
        image: MetadataImage = EMPTY_IMAGE,
        *,
        properties: Mapping[str, str] | None = None,
        controller: Any = UNUSED,
        make_forwarding: Callable[[Callable[[Callable[[], None]], None]], Forwarding] | None = None,
    ) -> None:
        self.harness = ReactorHarness(lambda requests: self.dispatcher.dispatch(requests))
        reactor = self.harness.reactor
        self.services = Services(
            config=BrokerConfig({**CONFIG, **(properties or {})}),
            clock=SystemClock(),
            reactor=reactor,
            metadata=MetadataCache(image),
            node_id=1,
            cluster_id="cluster",
            handler_pool=HandlerPool(
                2, 100, post=reactor.post, pause=reactor.pause_intake, resume=reactor.resume_intake
            ),
            api_registry=ApiRegistry(modules, versions=SCRIPTED_VERSIONS),
            controller=controller, forwarding=None if make_forwarding is None else make_forwarding(reactor.post),
            log_manager=UNUSED, replica_manager=WITHOUT_GATE, group_coordinator=UNUSED,
            fetch_sessions=UNUSED, producer_ids=UNUSED, transaction_coordinator=UNUSED,
            transaction_verification=UNUSED, local_marker_writer=UNUSED, client_telemetry=UNUSED, alter_log_dirs=UNUSED,
        )  # fmt: skip
        self.dispatcher = Dispatcher(self.services)
        self._socket_server: SocketServer | None = None

    def connect(self) -> socket.socket:
        return self.harness.connect()

    def listen(self, name: str) -> int:
        """Listens on loopback as the listener `name` of the configuration; returns the port."""

        def bind() -> int:
            listener = Listener(name, "PLAINTEXT", "127.0.0.1", 0)
            self._socket_server = SocketServer([listener], self.services.config, self.harness.reactor)
            self._socket_server.start([listener.name])
            return self._socket_server.endpoints[0].port

        port: int = self.harness.call(bind)
        return port

    def close(self) -> None:
        if self._socket_server is not None:
            self.harness.call(self._socket_server.close)
        self.harness.close()
        self.services.handler_pool.stop()


def request_bytes(key: int, version: int, body: Any, correlation_id: int = 7, client_id: str | None = "tests") -> bytes:
    """Returns the frame of a header and a body, which is a message or bytes."""
    header = RequestHeader(
        request_api_key=key, request_api_version=version, correlation_id=correlation_id, client_id=client_id
    )
    encoded = body if isinstance(body, bytes) else body.encode(version)
    return header.encode(request_header_version(ApiKey(key), version)) + encoded


def ask(client: socket.socket, key: ApiKey, version: int, body: Any, response_class: Any) -> Any:
    """Sends one request and returns its decoded response."""
    client.sendall(frame(request_bytes(key, version, body)))
    payload = receive_frame(client)
    header_version = response_header_version(key, version)
    correlation_id = struct.unpack_from(">i", payload)[0]
    assert correlation_id == 7
    header_size = len(ResponseHeader(correlation_id=7).encode(header_version))
    return response_class.decode(payload, version, header_size)
