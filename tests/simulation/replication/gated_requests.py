"""The connections of a simulated broker on which requests are offered to its gate (`kafkapy._core.gate`).

A request is written into a socket, and the broker's reactor reads it in its next wake-up, which may serve several
requests together, produce requests that one connection sent ahead included. The gate serves the request without Python,
or leaves it to Python, which holds a fetch or serves the request on the Python path. The reactor's clock is that of the
simulation.
"""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from kafkapy._core.gate.data_gate import DataGate
from kafkapy._core.reactor.reactor import CLOSED_BY_ERROR, CLOSED_BY_PEER, Connection, Reactor, Request
from kafkapy.errors import Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.fetch import FetchRequest, FetchResponse
from kafkapy.protocol.messages.produce import ProduceRequest, ProduceResponse
from kafkapy.replica.partition_response import PartitionResponse
from kafkapy.server.failed_produce import failed_produce_answers
from kafkapy.types import TopicPartition
from tests.api_client import request_bytes
from tests.simulation.network import Action

if TYPE_CHECKING:
    from tests.simulation.replication.broker import Broker

LISTENER = SimpleNamespace(name="PLAINTEXT")
PRODUCE_VERSIONS = (8, 9, 11, 13)
CORRELATION_ID = slice(4, 8)  # of a request; an answer begins with it
READ_BYTES = 1 << 20
# How long a request may lie in its socket before a wake-up of the reactor reads it, in ms.
WAKE_UP_AFTER_MS = (0, 0, 1, 4)

Answer = Callable[[bytes], None]


class SteppedReactor(Reactor):
    """A reactor whose timers are events of the simulation."""

    def __init__(self, schedule: Callable[[int, Callable[[], object]], Any], *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.schedule = schedule  # type: ignore[assignment,method-assign]


class Link:
    """A client's end of one connection, and the requests on it that are not answered."""

    def __init__(self, client: socket.socket) -> None:
        self.client = client
        self.waiting: deque[tuple[bytes, Answer]] = deque()  # correlation id and callback, in the order of sending
        self.received = bytearray()
        self.only_produces = True

    def send(self, payload: bytes, on_answer: Answer) -> None:
        if not self.waiting:
            self.only_produces = True
        self.only_produces &= int.from_bytes(payload[:2], "big") == ApiKey.PRODUCE
        self.waiting.append((payload[CORRELATION_ID], on_answer))
        self.client.sendall(len(payload).to_bytes(4, "big") + payload)

    def receive(self) -> list[tuple[Answer, bytes]]:
        """Returns the answers that have arrived completely, with their callbacks."""
        try:
            data = self.client.recv(READ_BYTES, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return []
        assert data, "the broker has closed a connection that has a request in process"
        self.received += data
        found = []
        while len(self.received) >= 4:
            end = 4 + int.from_bytes(self.received[:4], "big")
            if len(self.received) < end:
                break
            answer = bytes(self.received[4:end])
            del self.received[:end]
            correlation_id, on_answer = self.waiting.popleft()
            assert answer[:4] == correlation_id, "an answer overtook another one of its connection"
            found.append((on_answer, answer))
        return found


class GatedRequests:
    """The reactor and the gate of one process of a broker, and its connections."""

    def __init__(self, broker: Broker, fetch_max_bytes: int, sessions: Any) -> None:
        self._broker = broker
        self._random = broker.world.random
        self._links: list[Link] = []
        self._errors: list[BaseException] = []
        self._sent = 0
        self._opened = 0
        self._is_closed = False
        self._reactor = SteppedReactor(
            broker.schedule,
            self._dispatch,
            connections_max_idle_ms=-1,
            on_close=self._closed,
            on_callback_error=self._errors.append,
        )
        self.gate = DataGate(
            lambda partition: broker.manager.gate_appended(partition),
            self._failed_to_append,
            fetch_max_bytes=fetch_max_bytes,
            sessions=sessions,
        )
        self.gate.on_produce_failed = self._complete_failed
        self.gate.attach(self._reactor)
        self._reactor.step(broker.world.now_ms)

    # -- clients

    def send(self, payload: bytes, on_answer: Answer, *, from_client: bool) -> None:
        """Sends a request with its header, and calls `on_answer` with the answer and its header."""
        self._link(from_client).send(payload, on_answer)
        self._broker.schedule(self._random.choice(WAKE_UP_AFTER_MS), lambda: None)

    def produce(
        self,
        partition: TopicPartition,
        records: bytes,
        acks: int,
        timeout_ms: int,
        on_response: Callable[[PartitionResponse], None],
    ) -> None:
        """Sends one batch."""
        version = self._random.choice(PRODUCE_VERSIONS)
        data = ProduceRequest.PartitionProduceData(index=partition.partition, records=records)
        topic = ProduceRequest.TopicProduceData(name=partition.topic, partition_data=[data])
        topic.topic_id = self._broker.image.topics.by_name[partition.topic].topic_id
        request = ProduceRequest(acks=acks, timeout_ms=timeout_ms, topic_data=[topic])

        def take(answer: bytes) -> None:
            response = ProduceResponse.decode(answer, version, 4 + (version >= ProduceResponse.FLEXIBLE_VERSION))
            found = response.responses[0].partition_responses[0]
            on_response(PartitionResponse(Error(found.error_code), found.base_offset))

        self.send(self._encode(ApiKey.PRODUCE, version, request), take, from_client=True)

    def fetch(self, version: int, request: FetchRequest, on_response: Callable[[FetchResponse], None]) -> None:
        """Sends the fetch of a consumer."""

        def take(answer: bytes) -> None:
            on_response(FetchResponse.decode(answer, version, 4 + (version >= FetchResponse.FLEXIBLE_VERSION)))

        self.send(self._encode(ApiKey.FETCH, version, request), take, from_client=True)

    def _encode(self, key: ApiKey, version: int, request: Any) -> bytes:
        self._sent += 1
        return request_bytes(key, version, request, correlation_id=self._sent)

    def _link(self, from_client: bool) -> Link:
        """Returns a connection: one without requests, or one behind whose produce requests a client's one may wait."""
        busy = [link for link in self._links if link.waiting and link.only_produces]
        if from_client and busy and self._random.random() < 0.4:
            link = self._random.choice(busy)
            if self._random.random() < 0.9:
                return link
            self._links.remove(link)  # its client goes away, and gets no answers
            link.client.close()
        for link in self._links:
            if not link.waiting:
                return link
        client, server = socket.socketpair()
        server.setblocking(False)
        self._opened += 1
        self._reactor.adopt(server.detach(), LISTENER, "localhost", 0, str(self._opened))
        self._links.append(Link(client))
        return self._links[-1]

    # -- the broker

    def run(self, action: Action) -> None:
        """Runs an event of the broker as a callback of its reactor, and passes on the answers.

        The gate serves the requests that lie in the sockets before the event, which may end a leadership.
        """
        self._reactor.post(self._observe)
        self._reactor.post(action)
        is_due = True
        while is_due and not self._is_closed:
            is_due = self._reactor.step(self._broker.world.now_ms)
            if self._errors:
                raise self._errors[0]
            self._observe()
            for link in () if self._is_closed else self._links:
                for on_answer, answer in link.receive() if link.waiting else ():
                    on_answer(answer)
                    is_due = True  # there is room in the socket again

    def _observe(self) -> None:
        self._broker.world.history.observe(self._broker)

    def close(self) -> None:
        """Closes all connections. What the gate has not answered remains without an answer."""
        self._is_closed = True
        self._reactor.close_connections()
        for link in self._links:
            link.client.close()

    def _dispatch(self, requests: list[Request]) -> None:
        for request in requests:
            if request.waits:
                self._broker.manager.hold_fetch(request, self._serve)
            else:
                self._serve(request)

    def _serve(self, request: Request) -> None:
        self._broker.serve_in_python(bytes(request.payload), request.connection.respond, request)

    def _closed(self, connection: Connection, kind: int) -> None:
        if kind not in (CLOSED_BY_PEER, CLOSED_BY_ERROR) and self._broker.is_alive:
            raise AssertionError(f"the broker closed a connection: {connection.describe_close()}")

    def _complete_failed(self, connection: Connection, version: int, answer: bytes, errors: list[int]) -> Any:
        services: Any = self._broker.services
        return failed_produce_answers(services)(connection, version, answer, errors)

    def _failed_to_append(self, partition: Any, error_number: int) -> None:
        raise AssertionError(f"the gate failed to append to {partition.topic_partition}: errno {error_number}")
