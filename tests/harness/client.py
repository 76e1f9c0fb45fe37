"""Brokers in memory for clients without a thread, a network or a real clock.

The clients' sockets are real socket pairs, so that connections, frames and versions are tested too. Whenever a client
waits, the brokers respond to the requests that have arrived; if the client has nothing to read then, the clock advances
at once by the time that it would have waited.
"""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Callable
from typing import Any, TypeVar

from kafkapy._core.bytes.message import Message
from kafkapy.client import AsyncConsumer, AsyncProducer, Consumer, Producer, RangeReader, ShareConsumer
from kafkapy.client.admin import Admin
from kafkapy.client.api_versions import SPOKEN
from kafkapy.client.cluster import Node
from kafkapy.client.configuration import ClientConfig
from kafkapy.client.environment import Environment
from kafkapy.client.network import Network
from kafkapy.errors import Error
from kafkapy.protocol.api import API_TABLE, ApiKey, decode_request_header, request_class, response_header_version
from kafkapy.protocol.messages.api_versions import ApiVersionsResponse
from kafkapy.protocol.messages.find_coordinator import FindCoordinatorResponse
from kafkapy.protocol.messages.header import ResponseHeader
from kafkapy.protocol.messages.metadata import MetadataResponse
from tests.mock_clock import MockClock

# Returns the response to a request of some version, or None to send no response.
Responder = Callable[[Any, int], Message | None]
BOOTSTRAP = "memory:1"
Client = TypeVar("Client")


class ReceivedRequest:
    """One request that a broker has received, with the broker's id, the version and the monotonic time."""

    def __init__(self, node_id: int, key: ApiKey, version: int, request: Any, at_ms: int) -> None:
        self.node_id = node_id
        self.key = key
        self.version = version
        self.request = request
        self.at_ms = at_ms


class MemoryBrokers:
    """Brokers in memory, which all respond by `answers`: a function for each API, with those for metadata and
    coordinators set.

    `topics`: name -> (topic id, leader and leader epoch of each partition). `down`: ids of unreachable brokers.
    `breaks`: API keys; the connection is closed once when such a request arrives. Not thread-safe.
    """

    def __init__(self, *, node_ids: tuple[int, ...] = (1,)) -> None:
        # Starts at the machine's time, because record timestamps are of the machine's clock.
        self.clock = MockClock(monotonic_ms=time.monotonic_ns() // 1_000_000)
        self.node_ids = node_ids
        self.topics: dict[str, tuple[bytes, list[tuple[int, int]]]] = {}
        self.errors: dict[str, Error] = {}
        self.features: dict[str, int] = {}
        self.versions: dict[ApiKey, tuple[int, int]] = {}
        self.down: set[int] = set()
        self.breaks: list[ApiKey] = []
        self.asked: list[ReceivedRequest] = []
        self.attempts: list[int] = []  # monotonic times of attempts to connect
        self.answers: dict[ApiKey, Responder] = {
            ApiKey.API_VERSIONS: self._api_versions,
            ApiKey.METADATA: self._metadata,
            ApiKey.FIND_COORDINATOR: self._find_coordinator,
        }
        self._ends: dict[socket.socket, tuple[int, bytearray]] = {}

    @property
    def environment(self) -> Environment:
        """The environment of clients that connect to these brokers."""
        return Environment(self.clock, self._connect, lambda: _SimulatingSelector(self), has_thread=False)

    def network(self, config: ClientConfig, **changes: Any) -> Network:
        """Returns a network of these brokers; `changes` replace parts of the environment."""
        return Network(config, in_flight_limit=5, environment=self.environment._replace(**changes))

    def producer(self, **settings: Any) -> Producer:
        """Returns a producer of these brokers."""
        return self._client(Producer, settings)

    def consumer(self, **settings: Any) -> Consumer:
        """Returns a consumer of these brokers."""
        return self._client(Consumer, settings)

    def share_consumer(self, **settings: Any) -> ShareConsumer:
        """Returns a share consumer of these brokers."""
        return self._client(ShareConsumer, settings)

    def range_reader(self, **settings: Any) -> RangeReader:
        """Returns a reader of offset ranges of these brokers."""
        return self._client(RangeReader, settings)

    def admin(self, **settings: Any) -> Admin:
        """Returns an admin client of these brokers."""
        return self._client(Admin, settings)

    def async_producer(self, **settings: Any) -> AsyncProducer:
        """Returns a producer for asyncio; must be called within the event loop."""
        kind = type("AsyncProducer", (AsyncProducer,), {"_producer_class": self._bound(Producer)})
        made: AsyncProducer = kind(client_settings(**settings))
        return made

    def async_consumer(self, **settings: Any) -> AsyncConsumer:
        """Returns a consumer for asyncio."""
        kind = type("AsyncConsumer", (AsyncConsumer,), {"_consumer_class": self._bound(Consumer)})
        made: AsyncConsumer = kind(client_settings(**settings))
        return made

    def _client(self, kind: type[Client], settings: dict[str, Any]) -> Client:
        return self._bound(kind)(client_settings(**settings))

    def _bound(self, kind: type[Client]) -> Any:
        """Returns a subclass whose instances use the environment of these brokers."""
        return type(kind.__name__, (kind,), {"_environment": self.environment})

    def add_topic(self, name: str, leaders: list[tuple[int, int]], topic_id: bytes | None = None) -> bytes:
        """Adds or replaces a topic; returns its id."""
        made = topic_id or name.encode().ljust(16, b"-")[:16]
        self.topics[name] = made, leaders
        return made

    def of(self, key: ApiKey) -> list[Any]:
        """Returns the received requests of one API, in order."""
        return [each.request for each in self.asked if each.key == key]

    def close(self) -> None:
        """Closes all connections."""
        for end in list(self._ends):
            self._drop(end)

    # Connections

    def _connect(self, node: Node, buffers: tuple[int, int]) -> socket.socket:
        self.attempts.append(self.clock.monotonic_ms())
        node_id = self.node_ids[0] if node.node_id < 0 else node.node_id & 0xFFFFFFFF
        if node_id in self.down:
            raise OSError("down")
        ours, theirs = socket.socketpair()
        for each in (ours, theirs):
            each.setblocking(False)
        self._ends[ours] = node_id, bytearray()
        return theirs

    def serve(self) -> None:
        """Responds to all requests that have arrived."""
        for end in list(self._ends):
            node_id, received = self._ends[end]
            if node_id in self.down or not self._receive(end, received):
                self._drop(end)
                continue
            while len(received) >= 4 and len(received) >= 4 + int.from_bytes(received[:4], "big"):
                size = int.from_bytes(received[:4], "big")
                frame = bytes(received[4 : 4 + size])
                del received[: 4 + size]
                if not self._answer(end, node_id, frame):
                    self._drop(end)
                    break

    @staticmethod
    def _receive(end: socket.socket, received: bytearray) -> bool:
        while True:
            try:
                data = end.recv(1 << 20)
            except BlockingIOError:
                return True
            if not data:
                return False
            received += data

    def _answer(self, end: socket.socket, node_id: int, frame: bytes) -> bool:
        header, pos = decode_request_header(frame)
        key, version = ApiKey(header.request_api_key), header.request_api_version
        request = request_class(key).decode(frame, version, pos)
        self.asked.append(ReceivedRequest(node_id, key, version, request, self.clock.monotonic_ms()))
        if key in self.breaks:
            self.breaks.remove(key)
            return False
        response = self.answers[key](request, version)
        if response is not None:
            prefix = ResponseHeader(correlation_id=header.correlation_id).encode(response_header_version(key, version))
            body = prefix + response.encode(version)
            end.setblocking(True)
            end.sendall(len(body).to_bytes(4, "big") + body)
            end.setblocking(False)
        return True

    def _drop(self, end: socket.socket) -> None:
        del self._ends[end]
        end.close()

    # Predefined responses

    def _api_versions(self, request: Any, version: int) -> Message:
        served: dict[ApiKey, tuple[int, int]] = {
            key: SPOKEN.get(key, (api.lowest, api.highest))
            for key, api in API_TABLE.items()
            if key not in (ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY)  # as without a receiver
        }
        served |= {ApiKey.API_VERSIONS: (0, 4), **self.versions}
        response = ApiVersionsResponse(
            api_keys=[
                ApiVersionsResponse.ApiVersion(api_key=key, min_version=low, max_version=high)
                for key, (low, high) in served.items()
            ]
        )
        if version >= 3:
            response.finalized_features = [
                ApiVersionsResponse.FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
                for name, level in self.features.items()
            ]
        return response

    def _metadata(self, request: Any, version: int) -> Message:
        names = {topic_id: name for name, (topic_id, _) in self.topics.items()}
        if request.topics is None:
            wanted = list(self.topics)
        else:
            wanted = [each.name or names.get(each.topic_id, "") for each in request.topics]
        return MetadataResponse(
            brokers=[
                MetadataResponse.MetadataResponseBroker(node_id=each, host="memory", port=each)
                for each in self.node_ids
            ],
            cluster_id="memory",
            controller_id=self.node_ids[0],
            topics=[self._topic(name) for name in wanted],
        )

    def _topic(self, name: str) -> Any:
        if name not in self.topics:
            error = self.errors.get(name, Error.UNKNOWN_TOPIC_OR_PARTITION)
            return MetadataResponse.MetadataResponseTopic(error_code=int(error), name=name or None)
        topic_id, leaders = self.topics[name]
        partitions = [
            MetadataResponse.MetadataResponsePartition(
                partition_index=number, leader_id=leader, leader_epoch=epoch, replica_nodes=[leader], isr_nodes=[leader]
            )
            for number, (leader, epoch) in enumerate(leaders)
        ]
        return MetadataResponse.MetadataResponseTopic(name=name, topic_id=topic_id, partitions=partitions)

    def _find_coordinator(self, request: Any, version: int) -> Message:
        node_id = self.node_ids[0]
        if version < 4:
            return FindCoordinatorResponse(node_id=node_id, host="memory", port=node_id)
        found = [
            FindCoordinatorResponse.Coordinator(key=key, node_id=node_id, host="memory", port=node_id)
            for key in request.coordinator_keys
        ]
        return FindCoordinatorResponse(coordinators=found)


class _SimulatingSelector(selectors.DefaultSelector):
    """Lets the brokers respond; without events the clock advances by the time-out."""

    def __init__(self, brokers: MemoryBrokers) -> None:
        super().__init__()
        self._brokers = brokers

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self._brokers.serve()
        events = super().select(0)
        if not events:
            self._brokers.clock.advance(max(int((timeout or 0) * 1000), 1))
        return events


def client_settings(**more: Any) -> dict[str, Any]:
    """Returns the configuration of a client of the brokers in memory."""
    return {"bootstrap.servers": BOOTSTRAP, **{key.replace("_", "."): value for key, value in more.items()}}
