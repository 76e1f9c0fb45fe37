"""Clients that harm a broker: slow or absent readers, one-byte batches, thousands of connections."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Any, Self

from kafkapy._core.bytes.record_batch import RecordBatchBuilder

CONNECTIONS = 20
FETCH_BYTES = 1_048_576


def frame(api: int, version: int, body: bytes) -> bytes:
    """Returns a request without a client id, preceded by its size."""
    header = struct.pack(">hhih", api, version, 1, -1)
    return struct.pack(">i", len(header) + len(body)) + header + body


def fetch_request(topic: str, offset: int = 0, max_bytes: int = FETCH_BYTES) -> bytes:
    """Returns the frame of a Fetch request, version 4, for partition 0 of a topic."""
    name = topic.encode()
    body = struct.pack(">iiiibi", -1, 500, 1, max_bytes, 0, 1) + struct.pack(">h", len(name)) + name
    return frame(1, 4, body + struct.pack(">iiqi", 1, 0, offset, max_bytes))


def produce_request(topic: str, value: bytes, acks: int = 1, records: int = 1) -> bytes:
    """Returns the frame of a Produce request, version 7, to partition 0 with one batch of `records` equal records."""
    batch = RecordBatchBuilder()
    for _ in range(records):
        batch.append(int(time.time() * 1000), None, value)
    data, name = batch.build(), topic.encode()
    body = struct.pack(">hhii", -1, acks, 30_000, 1) + struct.pack(">h", len(name)) + name
    return frame(0, 7, body + struct.pack(">iii", 1, 0, len(data)) + data)


def read_answer(client: socket.socket) -> bytes:
    """Reads one response and returns it without its size."""
    return read_exactly(client, int.from_bytes(read_exactly(client, 4)))


def read_exactly(client: socket.socket, size: int) -> bytes:
    """Reads `size` bytes; raises ConnectionError if the broker closes the connection earlier."""
    data = bytearray()
    while len(data) < size:
        part = client.recv(size - len(data))
        if not part:
            raise ConnectionError("closed by the broker")
        data += part
    return bytes(data)


class HostileClient(ABC):
    """A client that does harm in a thread of its own while its `with` block runs. `topic` holds some megabytes."""

    def __init__(self, port: int, topic: str) -> None:
        self.port = port
        self.topic = topic
        self.done = 0  # the number of rounds, so that a client that hangs is not mistaken for a harmless one
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        self._thread.join(30)

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), 10)

    @abstractmethod
    def harm(self) -> None:
        """Does one round of harm; raises OSError when the broker closes the connection."""

    def _run(self) -> None:
        while not self._stopping.is_set():
            with contextlib.suppress(OSError):
                self.harm()


class Readers(HostileClient):
    """Connections that have requested more than they read."""

    def __init__(self, port: int, topic: str) -> None:
        super().__init__(port, topic)
        self.clients: list[socket.socket] = []

    def _run(self) -> None:
        for _ in range(CONNECTIONS):
            client = self.connect()
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.setblocking(False)
            self.clients.append(client)
        super()._run()
        for client in self.clients:
            client.close()


class SlowReader(Readers):
    """Fetches megabytes and reads a hundred thousand bytes per second."""

    def harm(self) -> None:
        for client in self.clients:
            with contextlib.suppress(BlockingIOError):
                client.send(fetch_request(self.topic))
            with contextlib.suppress(BlockingIOError):
                self.done += len(client.recv(1000)) > 0
        self._stopping.wait(0.01)


class SilentReader(Readers):
    """Sends fetch requests as long as the socket accepts them, and never reads a response."""

    def harm(self) -> None:
        for client in self.clients:
            with contextlib.suppress(BlockingIOError):
                self.done += client.send(fetch_request(self.topic) * 100) > 0
        self._stopping.wait(0.01)


class OneByteBatches(HostileClient):
    """Sends batches of one record of one byte, with a hundred requests in flight."""

    def harm(self) -> None:
        request = produce_request(self.topic, b"x") * 100
        with self.connect() as client:
            while not self._stopping.is_set():
                client.sendall(request)
                for _ in range(100):
                    read_answer(client)
                self.done += 100


class Connector(HostileClient):
    """Opens a thousand connections per second and closes them, every second one within a request."""

    def harm(self) -> None:
        begin = time.monotonic()
        for number in range(10):
            with self.connect() as client:
                if number % 2:
                    client.sendall(fetch_request(self.topic)[:10])
            self.done += 1
        self._stopping.wait(max(0.0, begin + 0.01 - time.monotonic()))


HOSTILE_CLIENTS: dict[str, type[Any]] = {
    "slow-reader": SlowReader,
    "silent-reader": SilentReader,
    "one-byte-batches": OneByteBatches,
    "connector": Connector,
}
