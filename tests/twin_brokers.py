"""Two brokers in process, alike but for the data gate, that receive the same bytes in the same wake-ups."""

from __future__ import annotations

import select
import socket
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kafkapy.broker import Broker
from kafkapy.config import BrokerConfig
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.api_versions import ApiVersionsRequest
from kafkapy.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from kafkapy.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from kafkapy.protocol.messages.fetch import FetchResponse
from kafkapy.server.audit.audited_logs import AuditedLogs
from kafkapy.server.audit.broker_audit import BrokerAudit
from kafkapy.types import Clock, TopicPartition
from tests.api_client import ask, request_bytes
from tests.reactor_harness import frame

DATA_FILES = (".log", ".index", ".timeindex", ".snapshot", ".txnindex")
PING = frame(request_bytes(ApiKey.API_VERSIONS, 0, ApiVersionsRequest()))
SESSION_ID_AT = 10  # in an answer to Fetch: correlation id, throttle time, error; a byte of tags in flexible versions
TOPIC_ID_BYTES = 16
LATEST_ANSWER_S = 5
NO_WRITER: Any = None  # of an audit whose thread is not started


def receive(connection: socket.socket) -> bytes:
    """Returns the next answer; b"" if the connection ended instead."""
    try:
        size = int.from_bytes(receive_exactly(connection, 4), "big")
        return receive_exactly(connection, size)
    except ConnectionError:
        return b""


def receive_exactly(connection: socket.socket, size: int) -> bytes:
    received = bytearray()
    while len(received) < size:
        part = connection.recv(size - len(received))
        if not part:
            raise ConnectionError(f"the connection ended after {len(received)} of {size} bytes")
        received += part
    return bytes(received)


TwinRequest = tuple[ApiKey, int, Any]  # API, version, request


class SharedClock:
    """A wall clock that stands still, so that both brokers write the same timestamps. Its monotonic clock runs."""

    def __init__(self) -> None:
        self._wall_ms = time.time_ns() // 1_000_000

    def wall_ms(self) -> int:
        return self._wall_ms

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000


class BrokerTwin:
    """One broker with numbered connections."""

    def __init__(
        self, root: Path, *, gated: bool, properties: dict[str, str] | None = None, clock: Clock | None = None
    ) -> None:
        self.root = root
        defaults = {"log.dirs": str(root), "listeners": "PLAINTEXT://127.0.0.1:0"}
        self.broker = Broker(BrokerConfig(defaults | (properties or {})), gated=gated, clock=clock)
        self.broker.start()
        endpoint = self.broker.socket_server.endpoints[0]
        self.address = (endpoint.host, endpoint.port)
        self.connections: dict[int, socket.socket] = {}
        self.topic_ids: dict[str, bytes] = {}
        self.session_ids: dict[int, int] = {}  # of the fetch session that a connection opened last

    def connection(self, number: int) -> socket.socket:
        """Returns the connection of this number; the reactor has adopted it already."""
        if number not in self.connections:
            connection = self.connections[number] = socket.create_connection(self.address, timeout=20)
            connection.sendall(PING)
            assert receive(connection)
        return self.connections[number]

    def create_topic(self, name: str, partitions: int, configs: dict[str, str]) -> None:
        topic = CreateTopicsRequest.CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=1,
            configs=[CreateTopicsRequest.CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
        )
        request = CreateTopicsRequest(topics=[topic], timeout_ms=10000)
        response = ask(self.connection(0), ApiKey.CREATE_TOPICS, 7, request, CreateTopicsResponse)
        assert response.topics[0].error_code == 0, response
        self.topic_ids[name] = response.topics[0].topic_id

    def delete_topic(self, name: str) -> None:
        request = DeleteTopicsRequest(topic_names=[name], timeout_ms=10000)
        response = ask(self.connection(0), ApiKey.DELETE_TOPICS, 5, request, DeleteTopicsResponse)
        assert response.responses[0].error_code == 0, response

    def wake_up(self, requests: dict[int, list[bytes]]) -> dict[int, list[bytes]]:
        """Sends requests on each connection so that one wake-up of the reactor reads them all. Returns the answers.

        A request with acks 0 has none, so that an ApiVersions request follows it, whose answer (or b"") is returned.
        """
        self.send(requests)
        return {number: [self.answer(number) for _ in sent] for number, sent in requests.items()}

    def send(self, requests: dict[int, list[bytes]]) -> None:
        connections = {number: self.connection(number) for number in requests}
        holding, release = threading.Event(), threading.Event()

        def hold() -> None:
            holding.set()
            release.wait(20)

        self.broker.reactor.post(hold)
        assert holding.wait(20)
        for number, sent in requests.items():
            connections[number].sendall(b"".join(sent))
        release.set()

    def answered(self, numbers: Iterable[int]) -> set[int]:
        """Returns the connections that have received an answer so far."""
        self.wake_up({0: [PING]})
        sockets = {self.connection(number): number for number in numbers}
        poll = select.poll()  # which has no limit for descriptors, unlike select
        for each in sockets:
            poll.register(each, select.POLLIN)
        readable = {descriptor for descriptor, _ in poll.poll(0)}
        return {number for each, number in sockets.items() if each.fileno() in readable}

    def answer(self, number: int) -> bytes:
        """Returns the next answer on a connection."""
        connection = self.connections.get(number)
        answer = b"" if connection is None else receive(connection)
        if connection is not None and not answer:
            self.connections.pop(number).close()
        for name, topic_id in self.topic_ids.items():
            answer = answer.replace(topic_id, name.encode().ljust(TOPIC_ID_BYTES, b"-"))
        host, port = self.address
        return bytes(answer.replace(host.encode() + port.to_bytes(4, "big"), host.encode() + bytes(4)))

    def files(self) -> dict[str, bytes]:
        return {
            str(path.relative_to(self.root)): path.read_bytes()
            for path in sorted(self.root.glob("t*/*"))
            if path.suffix in DATA_FILES
        }

    def stop(self) -> None:
        for connection in self.connections.values():
            connection.close()
        assert self.broker.stop() == 0


class TwinBrokers:
    """`plain` serves on the Python path, `gated` by the gate. Different answers or files are an error."""

    def __init__(self, root: Path, properties: dict[str, str] | None = None) -> None:
        clock = SharedClock()
        self.plain = BrokerTwin(root / "plain", gated=False, properties=properties, clock=clock)
        self.gated = BrokerTwin(root / "gated", gated=True, properties=properties, clock=clock)

    def create_topic(self, name: str, partitions: int, configs: dict[str, str]) -> None:
        for twin in (self.plain, self.gated):
            twin.create_topic(name, partitions, configs)

    def delete_topic(self, name: str) -> None:
        for twin in (self.plain, self.gated):
            twin.delete_topic(name)

    def wake_up(self, requests: dict[int, TwinRequest]) -> dict[int, bytes]:
        """Sends one request on each connection and returns the answers."""
        answers = self.pipeline({number: [request] for number, request in requests.items()})
        return {number: answer for number, (answer,) in answers.items()}

    def pipeline(self, requests: dict[int, list[TwinRequest]]) -> dict[int, list[bytes]]:
        """Sends the same requests to both brokers, and returns the answers, which must be the same.

        `requests` has the requests of each connection by its number; none waits for the answer to an earlier one. In a
        request, a topic's name stands for its id, and the connection's number for the id of its fetch session. The
        answers have the connection's number too.
        """
        answers = []
        for twin in (self.plain, self.gated):
            frames = {
                number: [self._frame(twin, number, *request) for request in sent] for number, sent in requests.items()
            }
            found = twin.wake_up(frames)
            answers.append(
                {
                    number: [
                        self._without_session_id(twin, number, *request, answer)
                        for request, answer in zip(sent, found[number], strict=True)
                    ]
                    for number, sent in requests.items()
                }
            )
        for number, sent in requests.items():
            for request, expected, answer in zip(sent, answers[0][number], answers[1][number], strict=True):
                assert answer.hex() == expected.hex(), (number, *request[:2])
        return answers[0]

    def send(self, requests: dict[int, TwinRequest]) -> None:
        """Sends one request on each connection; `answer_to` receives the answers."""
        for twin in (self.plain, self.gated):
            twin.send({number: [self._frame(twin, number, *request)] for number, request in requests.items()})

    def answered(self, numbers: Iterable[int]) -> set[int]:
        """Returns the connections that have received an answer, the same on both brokers.

        On a busy machine, the system may deliver an answer later than one that was sent after it on another connection.
        """
        give_up_at = time.monotonic() + LATEST_ANSWER_S
        while True:
            expected, found = self.plain.answered(numbers), self.gated.answered(numbers)
            if found == expected or time.monotonic() > give_up_at:
                assert found == expected
                return found

    def answer_to(self, number: int, request: TwinRequest) -> bytes:
        """Returns the answer to a request that was sent, the same from both brokers."""
        expected, found = [
            self._without_session_id(twin, number, *request, twin.answer(number)) for twin in (self.plain, self.gated)
        ]
        if found != expected and request[0] is ApiKey.FETCH:
            head = 5 if request[1] >= 12 else 4
            print("PLAIN", FetchResponse.decode(expected, request[1], head))
            print("GATED", FetchResponse.decode(found, request[1], head))
        assert found.hex() == expected.hex(), (number, request)
        return expected

    def _frame(self, twin: BrokerTwin, number: int, key: ApiKey, version: int, request) -> bytes:
        if key not in (ApiKey.PRODUCE, ApiKey.FETCH):
            return frame(request_bytes(key, version, request, number, f"client-{number}"))
        topics = request.topic_data if key is ApiKey.PRODUCE else request.topics
        if key is ApiKey.FETCH:
            topics = topics + request.forgotten_topics_data
        for topic in topics:
            topic.topic_id = twin.topic_ids.get(topic.name if key is ApiKey.PRODUCE else topic.topic, bytes(15) + b"\7")
        session = request.session_id if key is ApiKey.FETCH else 0
        if session:
            request.session_id = twin.session_ids.get(session, session)
        encoded = frame(request_bytes(key, version, request, number, f"client-{number}"))
        if session:
            request.session_id = session
        if key is ApiKey.PRODUCE and request.acks == 0:
            encoded += PING
        return encoded

    @staticmethod
    def _without_session_id(twin: BrokerTwin, number: int, key: ApiKey, version: int, request, answer: bytes) -> bytes:
        """Returns a Fetch response in which the connection's number replaces the session id, which differs between the
        brokers.

        Stores the id of a new session; asserts that later responses have the same id. Other responses are returned
        unchanged.
        """
        if key is not ApiKey.FETCH or version < FetchResponse.FIRST_VERSION_WITH_SESSION_ID:
            return answer
        at = SESSION_ID_AT + (version >= FetchResponse.FLEXIBLE_VERSION)
        session_id = int.from_bytes(answer[at : at + 4], "big")
        if not session_id:
            return answer
        if request.session_epoch == 0:
            twin.session_ids[number] = session_id
        assert session_id == twin.session_ids[number]
        return answer[:at] + number.to_bytes(4, "big") + answer[at + 4 :]

    def note_clients(self, topics: str) -> None:
        """Makes both brokers note the clients of all appends to the topics that are created from now on and match the
        pattern `topics`, as their audit does."""
        for twin in (self.plain, self.gated):
            services = twin.broker.parts.services
            logs = AuditedLogs([topics], (), services.clock)
            services.audit = BrokerAudit(logs, NO_WRITER, lambda work: work(), services.clock)

    @staticmethod
    def noted_clients(twin: BrokerTwin) -> dict[TopicPartition, list[tuple[int, str]]]:
        """Returns (first offset, client id) of the runs of each partition whose clients are noted."""
        services = twin.broker.parts.services
        assert services.audit is not None, "the clients are not noted"
        noted = {}
        for topic_partition, partition in services.replica_manager.partitions.items():
            if partition.client_notes is not None:
                runs = partition.client_notes.runs_between(0, partition.log.log_end_offset)
                noted[topic_partition] = [(offset, services.audit.logs.names.name(number)) for offset, number in runs]
        return noted

    def gate_counters(self) -> dict[str, int]:
        return self.gated.broker.parts.gate.counters()

    @staticmethod
    def topic_counters(twin: BrokerTwin) -> dict[str, dict[str, int]]:
        """Returns the counters by the topic's labels; "" is the sum of all topics."""
        listed = twin.broker.parts.replica_manager.topic_counters.listed()
        return {counters.labels.decode(): counters.as_dict() for counters in listed}

    @staticmethod
    def request_counts(twin: BrokerTwin) -> dict[int, tuple[int, int, int]]:
        """Returns (requests, bytes, measured requests) by API key, of all requests that were answered before."""
        twin.wake_up({0: [PING]})  # what one wake-up answered is measured before the next one
        meters = twin.broker.reactor.request_meters()
        return {key: (requests, size, sum(buckets)) for key, requests, size, _, buckets in meters}

    def stop_and_compare(self) -> None:
        self.plain.stop()
        self.gated.stop()
        expected, found = self.plain.files(), self.gated.files()
        assert sorted(found) == sorted(expected)
        for name, content in expected.items():
            assert found[name] == content, name
