"""Connections that the reactor opens to other nodes, over real loopback sockets."""

from __future__ import annotations

import errno
import os
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import pytest

from kafkapy._core.reactor.reactor import OutgoingConnection, Request
from kafkapy._core.tls.tls_context import TlsContext
from kafkapy.network.outgoing import OutgoingConnector, open_connecting
from tests.reactor_harness import TIMEOUT, ReactorHarness, frame, receive_exactly, receive_frame

LIMIT = 8 << 20


class Peer:
    """A listening socket that stands for another node, and the reactor's connections to it."""

    def __init__(self, harness: ReactorHarness) -> None:
        self.harness = harness
        self.listening = socket.socket()
        self.listening.settimeout(TIMEOUT)
        self.listening.bind(("127.0.0.1", 0))
        self.listening.listen(5)
        self.responses: list[bytes] = []
        self.closed: list[tuple[int, str]] = []
        self.event = threading.Condition()
        self.on_response: Callable[[Request], None] = lambda response: None
        self.accepted: list[socket.socket] = []
        self._numbers = count()
        self.port: int = self.listening.getsockname()[1]

    def connect(self, port: int | None = None, first: bytes | None = None, limit: int = LIMIT) -> OutgoingConnection:
        """Opens a connection, and sends `first` before it can be established."""

        def adopt() -> OutgoingConnection:
            opened = open_connecting(socket.AF_INET, ("127.0.0.1", port or self.port))
            connection = self.harness.reactor.adopt_outgoing(
                opened.detach(), "127.0.0.1", self.port, f"o{next(self._numbers)}",
                on_response=self._note_response, on_closed=self._note_closed, max_response_bytes=limit,
            )  # fmt: skip
            if first is not None:
                connection.send([first])
            return connection

        connection: OutgoingConnection = self.harness.call(adopt)
        return connection

    def accept(self) -> socket.socket:
        accepted, _ = self.listening.accept()
        accepted.settimeout(TIMEOUT)
        self.accepted.append(accepted)
        return accepted

    def _note_response(self, response: Request) -> None:
        self.on_response(response)
        with self.event:
            self.responses.append(bytes(response.payload))
            self.event.notify_all()

    def _note_closed(self, connection: OutgoingConnection) -> None:
        with self.event:
            self.closed.append((connection.close_errno, connection.describe_close()))
            self.event.notify_all()

    def wait_responses(self, count: int) -> list[bytes]:
        with self.event:
            assert self.event.wait_for(lambda: len(self.responses) >= count, TIMEOUT)
            return self.responses

    def wait_closed(self) -> tuple[int, str]:
        with self.event:
            assert self.event.wait_for(lambda: bool(self.closed), TIMEOUT)
            assert len(self.closed) == 1
            return self.closed[0]

    def close(self) -> None:
        for opened in [self.listening, *self.accepted]:
            opened.close()


@contextmanager
def running(dispatch: Callable[[list[Request]], None] = lambda requests: None, **options: Any) -> Iterator[Peer]:
    harness = ReactorHarness(dispatch, **options)
    peer = Peer(harness)
    try:
        yield peer
    finally:
        harness.close()
        peer.close()


def test_what_is_sent_before_the_connection_is_established_arrives_and_is_answered() -> None:
    with running() as peer:
        connection = peer.connect(first=b"request 1")
        accepted = peer.accept()
        assert receive_frame(accepted) == b"request 1"
        accepted.sendall(frame(b"response 1"))
        assert peer.wait_responses(1) == [b"response 1"]
        peer.harness.call(lambda: connection.send([b"request", b" ", b"2"]))
        assert receive_frame(accepted) == b"request 2"
        assert peer.harness.errors == []


def test_a_frame_is_written_before_the_sender_returns_to_the_reactor() -> None:
    with running() as peer:
        connection = peer.connect(first=b"request 1")
        accepted = peer.accept()
        assert receive_frame(accepted) == b"request 1"

        def send_and_wait() -> bytes:
            connection.send([b"request 2"])
            return receive_frame(accepted)  # while the reactor's thread is here, it writes nothing later

        assert peer.harness.call(send_and_wait) == b"request 2"


def test_gathered_frames_are_written_when_the_sender_returns_to_the_reactor() -> None:
    with running() as peer:
        connection = peer.connect(first=b"request 1")
        accepted = peer.accept()
        assert receive_frame(accepted) == b"request 1"

        def gather() -> int:
            for number in (2, 3):
                connection.send([b"request %d" % number], at_once=False)
            accepted.setblocking(False)
            with pytest.raises(BlockingIOError):
                accepted.recv(1)
            accepted.settimeout(TIMEOUT)
            return connection.unsent_bytes

        assert peer.harness.call(gather) == 2 * len(frame(b"request 2"))
        assert [receive_frame(accepted), receive_frame(accepted)] == [b"request 2", b"request 3"]


def test_many_gathered_bytes_are_written_before_the_sender_returns() -> None:
    with running() as peer:
        connection = peer.connect(first=b"request 1")
        accepted = peer.accept()
        assert receive_frame(accepted) == b"request 1"

        def gather() -> list[int]:
            received = []
            for _ in range(2):
                connection.send([bytes(50_000)], at_once=False)
                received.append(connection.unsent_bytes)
            return received

        assert peer.harness.call(gather) == [50_004, 0]
        assert [len(receive_frame(accepted)), len(receive_frame(accepted))] == [50_000, 50_000]


def test_no_response_of_a_muted_connection_is_taken() -> None:
    with running() as peer:
        muted = peer.connect(first=b"request")
        from_muted = peer.accept()
        receive_frame(from_muted)
        peer.connect()
        from_other = peer.accept()
        peer.harness.call(lambda: muted.mute(3_600_000))
        for number in range(3):
            from_muted.sendall(frame(b"muted %d" % number))
        from_other.sendall(frame(b"other"))
        assert peer.wait_responses(1) == [b"other"]
        peer.harness.call(muted.unmute)
        assert peer.wait_responses(4)[1:] == [b"muted 0", b"muted 1", b"muted 2"]


def test_bytes_that_the_peer_does_not_read_are_counted() -> None:
    with running() as peer:
        connection = peer.connect(first=b"request")
        accepted = peer.accept()
        receive_frame(accepted)
        assert peer.harness.call(lambda: connection.unsent_bytes) == 0
        size = 64 << 20  # more than the sockets hold
        peer.harness.call(lambda: connection.send([bytes(size)]))
        assert 0 < peer.harness.call(lambda: connection.unsent_bytes) <= size + 4
        assert len(receive_frame(accepted)) == size


def test_a_response_may_be_split_at_every_byte() -> None:
    with running() as peer:
        peer.connect()
        accepted = peer.accept()
        stream = frame(b"first") + frame(b"and second")
        for cut in range(1, len(stream)):
            accepted.sendall(stream[:cut])
            peer.harness.call(lambda: None)  # the reactor has a wake-up in between
            accepted.sendall(stream[cut:])
            assert peer.wait_responses(2 * cut)[-2:] == [b"first", b"and second"]


@pytest.mark.parametrize("size", [4, 1000, 16379, 16384, 65532, 65536, 1 << 20, 5_000_001])
def test_responses_of_every_size_arrive_in_order(size: int) -> None:
    with running() as peer:
        peer.connect()
        payload = os.urandom(size)
        peer.accept().sendall(frame(b"before") + frame(payload) + frame(b"after"))
        assert peer.wait_responses(3) == [b"before", payload, b"after"]


def test_a_refused_connection_is_reported_with_its_errno() -> None:
    with running() as peer:
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            port = unused.getsockname()[1]
        answer: list[OutgoingConnection | OSError] = []
        connector = OutgoingConnector(peer.harness.reactor, lambda work: work())
        peer.harness.call(
            lambda: connector.connect(
                "127.0.0.1", port, attempt=0, max_response_bytes=LIMIT, on_opened=answer.append,
                on_response=peer._note_response, on_closed=peer._note_closed,
            )
        )  # fmt: skip
        # The system refuses at once or later.
        number = answer[0].errno if isinstance(answer[0], OSError) else peer.wait_closed()[0]
        assert number == errno.ECONNREFUSED


def test_a_host_name_is_resolved_in_the_background() -> None:
    with running() as peer:
        background: list[Callable[[], None]] = []
        connector = OutgoingConnector(peer.harness.reactor, background.append)
        answer: list[OutgoingConnection | OSError] = []
        opened = threading.Event()

        def on_opened(found: OutgoingConnection | OSError) -> None:
            answer.append(found)
            opened.set()

        peer.harness.call(
            lambda: connector.connect(
                "localhost", peer.port, attempt=0, max_response_bytes=LIMIT, on_opened=on_opened,
                on_response=peer._note_response, on_closed=peer._note_closed,
            )
        )  # fmt: skip
        assert (len(background), answer) == (1, [])
        background[0]()
        assert opened.wait(TIMEOUT)
        assert isinstance(answer[0], OutgoingConnection)
        peer.accept().sendall(frame(b"hello"))
        assert peer.wait_responses(1) == [b"hello"]


def test_an_unknown_host_is_reported() -> None:
    with running() as peer:
        connector = OutgoingConnector(peer.harness.reactor, lambda work: work())
        answer: list[OutgoingConnection | OSError] = []
        peer.harness.call(
            lambda: connector.connect(
                "host.invalid", 1, attempt=0, max_response_bytes=LIMIT, on_opened=answer.append,
                on_response=peer._note_response, on_closed=peer._note_closed,
            )
        )  # fmt: skip
        peer.harness.call(lambda: None)
        assert isinstance(answer[0], OSError)


def test_a_connection_without_a_usable_context_of_tls_is_reported_and_closed() -> None:
    def context() -> TlsContext:
        raise OSError(errno.EACCES, "the key store cannot be read")

    with running() as peer:
        connector = OutgoingConnector(peer.harness.reactor, lambda work: work(), tls=context)
        answer: list[OutgoingConnection | OSError] = []
        peer.harness.call(
            lambda: connector.connect(
                "127.0.0.1", peer.port, attempt=0, max_response_bytes=LIMIT, on_opened=answer.append,
                on_response=peer._note_response, on_closed=peer._note_closed,
            )
        )  # fmt: skip
        assert [isinstance(each, OSError) and each.errno for each in answer] == [errno.EACCES]


def test_the_responses_before_the_end_of_the_stream_are_delivered() -> None:
    with running() as peer:
        peer.connect(first=b"a request that has to be sent")
        accepted = peer.accept()
        receive_frame(accepted)
        accepted.sendall(frame(b"last words"))
        accepted.close()
        assert peer.wait_closed() == (0, "closed by the peer")
        assert peer.responses == [b"last words"]


def test_a_reset_connection_is_reported_with_its_errno() -> None:
    with running() as peer:
        peer.connect()
        accepted = peer.accept()
        peer.harness.call(lambda: None)
        accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        accepted.close()
        assert peer.wait_closed() == (errno.ECONNRESET, os.strerror(errno.ECONNRESET))


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (-1, "Invalid receive (size = -1)"),
        (3, "Invalid receive (size = 3)"),
        (1001, "Invalid receive (size = 1001 larger than 1000)"),
    ],
)
def test_an_impossible_size_closes_the_connection(size: int, words: str) -> None:
    with running() as peer:
        peer.connect(limit=1000)
        peer.accept().sendall(frame(b"fine") + struct.pack(">i", size) + b"rest")
        assert peer.wait_closed() == (0, words)
        assert peer.responses == [b"fine"]


def test_responses_are_read_while_requests_are_held_back() -> None:
    """Neither a paused intake nor the bound on queued requests delays a response."""
    held: list[Request] = []
    with running(held.extend, queued_max_request_bytes=10) as peer:
        client = peer.harness.connect()
        client.sendall(frame(b"a request that fills the bound"))
        peer.connect()
        accepted = peer.accept()
        peer.harness.call(peer.harness.reactor.pause_intake)
        payload = os.urandom(300_000)
        accepted.sendall(frame(b"first") + frame(payload))
        assert peer.wait_responses(2) == [b"first", payload]
        peer.harness.call(peer.harness.reactor.resume_intake)


def test_responses_are_read_while_the_peer_reads_nothing() -> None:
    with running() as peer:
        connection = peer.connect()
        accepted = peer.accept()
        large = bytes(LIMIT)
        peer.harness.call(lambda: connection.send([large]))
        peer.harness.call(lambda: connection.send([large]))
        accepted.sendall(frame(b"meanwhile"))
        assert peer.wait_responses(1) == [b"meanwhile"]
        assert receive_exactly(accepted, 2 * (LIMIT + 4))[4:8] == bytes(4)


def test_outgoing_connections_are_not_counted_as_clients() -> None:
    with running() as peer:
        peer.connect()
        peer.accept().sendall(frame(b"response"))
        peer.wait_responses(1)
        reactor = peer.harness.reactor
        counters = reactor.counters()
        assert (counters["connections"], counters["requests_received"], counters["responses_received"]) == (0, 0, 1)
        assert (counters["requests_in_process"], counters["request_bytes"]) == (0, 0)
        assert peer.harness.call(reactor.idle_order) == []
        assert reactor.request_meters() == []


def test_a_response_that_cannot_be_handled_closes_only_its_connection() -> None:
    with running() as peer:
        client = peer.harness.connect()
        peer.connect()

        def fail(response: Request) -> None:
            raise ValueError("not understood")

        peer.on_response = fail
        peer.accept().sendall(frame(b"response"))
        assert peer.wait_closed() == (0, "its response could not be handled")
        assert [str(error) for error in peer.harness.errors] == ["not understood"]
        assert peer.harness.connections[0].is_closed is False
        client.close()


def test_a_response_may_close_its_connection() -> None:
    with running() as peer:
        connection = peer.connect()
        peer.on_response = lambda response: connection.close("enough")
        peer.accept().sendall(frame(b"response") + frame(b"another"))
        assert peer.wait_closed() == (0, "enough")
        assert peer.responses == [b"response"]


def test_the_bytes_of_a_response_outlive_it() -> None:
    kept: list[memoryview] = []
    with running() as peer:
        peer.connect()
        peer.on_response = lambda response: kept.append(response.payload)
        accepted = peer.accept()
        for number in range(50):
            accepted.sendall(frame(b"%05d" % number * 3000))
        peer.wait_responses(50)
        assert [bytes(view) for view in kept] == [b"%05d" % number * 3000 for number in range(50)]
        kept.clear()


def test_a_stop_closes_outgoing_connections_at_once() -> None:
    with running() as peer:
        connection = peer.connect()
        peer.accept()
        peer.harness.call(lambda: connection.send([bytes(LIMIT)]))  # the peer does not read it
        peer.harness.close()
        assert peer.closed == [(0, "shutting down")]
        assert peer.harness.closed == {}


def test_only_the_reactors_thread_may_send() -> None:
    with running() as peer:
        connection = peer.connect()
        peer.accept()
        with pytest.raises(RuntimeError, match="only the reactor's thread may send"):
            connection.send([b"data"])
        connection.close("any thread may close")
        assert peer.wait_closed() == (0, "any thread may close")
        peer.harness.call(lambda: connection.send([b"does nothing"]))
