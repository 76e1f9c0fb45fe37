"""The listener's socket: the limit of what waits for a client, and accepting without resources."""

from __future__ import annotations

import errno
import os
import socket

import pytest

from kafkapy.zookeeper import listener
from kafkapy.zookeeper.listener import Listener
from tests.harness.zookeeper import SETTINGS, ZooKeeperHarness, connect_body
from tests.mock_scheduler import MockScheduler


class ScriptedConnection:
    """A connection of which the test says how many bytes wait."""

    peer_host = "127.0.0.1"

    def __init__(self):
        self.unsent_bytes = 0
        self.is_closed = False
        self.is_muted = False
        self.sent = []
        self.certificate = None

    def peer_certificate(self):
        return self.certificate

    def describe_close(self):
        return "TLS failed: a reason"

    def send(self, chunks, at_once):
        self.sent += chunks

    def mute(self, delay_ms):
        self.is_muted = True

    def unmute(self):
        self.is_muted = False

    def close(self, reason):
        self.is_closed = True


@pytest.fixture
def scheduler():
    return MockScheduler()


@pytest.fixture
def connection():
    return ScriptedConnection()


@pytest.fixture
def frames(connection, scheduler):
    return listener._Frames(connection, scheduler.schedule)


def test_no_request_is_read_while_much_waits(connection, frames, scheduler):
    connection.unsent_bytes = listener._PAUSE_BYTES
    frames.send(b"a")
    assert not connection.is_muted
    connection.unsent_bytes += 1
    frames.send(b"b")
    frames.send(b"c")
    scheduler.advance(100)
    assert connection.is_muted
    assert scheduler.pending() == 1
    connection.unsent_bytes = 0
    scheduler.advance(100)
    assert not connection.is_muted
    assert scheduler.pending() == 0
    assert connection.sent == [b"a", b"b", b"c"]
    connection.unsent_bytes = listener._PAUSE_BYTES + 1
    frames.send(b"d")
    assert connection.is_muted


def test_no_request_is_read_while_many_replies_wait_for_earlier_operations(connection, frames, scheduler):
    frames.hold(listener._PAUSE_BYTES)
    assert not connection.is_muted
    frames.hold(1)
    assert connection.is_muted
    scheduler.advance(100)
    assert connection.is_muted
    frames.hold(-1 - listener._PAUSE_BYTES)
    scheduler.advance(100)
    assert not connection.is_muted
    assert scheduler.pending() == 0


def test_a_client_that_reads_no_events_is_disconnected(connection, frames, scheduler, caplog):
    connection.unsent_bytes = listener._MOST_UNSENT_BYTES
    frames.send(b"a")
    assert not connection.is_closed
    connection.unsent_bytes += 1
    frames.send(b"b")
    assert connection.is_closed
    assert "/127.0.0.1, which does not read" in caplog.text
    scheduler.advance(100)
    assert scheduler.pending() == 0
    assert not connection.is_muted


class ScriptedWatch:
    def __init__(self):
        self.is_paused = False

    def pause(self):
        self.is_paused = True

    def resume(self):
        self.is_paused = False

    def close(self):
        self.is_paused = True


class ScriptedReactor(MockScheduler):
    """A reactor that stores the connections that it adopts, and the callbacks of each."""

    def __init__(self):
        super().__init__()
        self.adopted = []

    def adopt_outgoing(self, descriptor, host, port, name, **options):
        os.close(descriptor)
        connection = ScriptedConnection()
        self.adopted.append((connection, options))
        return connection

    def watch(self, descriptor, callback):
        self.on_ready = callback
        self.watched = ScriptedWatch()
        return self.watched


class FailingSocket:
    def __init__(self, code):
        self.code = code
        self.attempts = 0

    def accept(self):
        self.attempts += 1
        raise OSError(self.code, os.strerror(self.code))

    def close(self):
        pass


@pytest.fixture
def reactor():
    return ScriptedReactor()


class ScriptedTls:
    context = object()


@pytest.fixture
def encrypted(reactor):
    """Yields a listener with TLS to which one client has connected."""
    listening = Listener("127.0.0.1:0", reactor, SETTINGS, ScriptedTls())
    listening.serve(ZooKeeperHarness().server)
    with socket.create_connection(("127.0.0.1", listening.port)):
        while not reactor.adopted:
            reactor.on_ready()
        yield listening
    listening.close()


def test_a_client_whose_handshake_stalls_is_disconnected(encrypted, reactor):
    connection, options = reactor.adopted[0]
    assert options["tls"] is ScriptedTls.context
    reactor.advance(9_999)
    assert not connection.is_closed
    reactor.advance(1)
    assert connection.is_closed


def test_a_client_that_has_sent_a_request_stays_connected(encrypted, reactor):
    connection, options = reactor.adopted[0]
    options["on_response"](connect_body())
    reactor.advance(10_000)
    assert not connection.is_closed


def test_a_certificate_without_a_subject_gives_no_identity(encrypted, reactor, caplog):
    connection, options = reactor.adopted[0]
    connection.certificate = b"no DER"
    options["on_response"](connect_body())
    assert "gives it no identity" in caplog.text
    assert not connection.is_closed


def test_the_end_of_a_client_without_request_is_logged(encrypted, reactor, caplog):
    caplog.set_level("INFO")
    connection, options = reactor.adopted[0]
    options["on_closed"](connection)
    assert "ended without a request: TLS failed" in caplog.text
    reactor.advance(10_000)
    assert not connection.is_closed


@pytest.fixture
def listening(reactor):
    listening = Listener("127.0.0.1:0", reactor, SETTINGS)
    listening.serve(ZooKeeperHarness().server)
    yield listening
    listening.close()


def fail(listening, code):
    listening._socket.close()
    listening._socket = FailingSocket(code)


@pytest.mark.parametrize("code", [errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM])
def test_accepting_pauses_without_resources(listening, reactor, caplog, code):
    fail(listening, code)
    reactor.on_ready()
    assert reactor.watched.is_paused
    assert os.strerror(code) in caplog.text
    reactor.advance(10_000)
    assert not reactor.watched.is_paused


@pytest.mark.parametrize("code", [errno.EAGAIN, errno.ECONNABORTED])
def test_accepting_goes_on_when_a_client_has_gone(listening, reactor, code):
    fail(listening, code)
    reactor.on_ready()
    assert not reactor.watched.is_paused


def test_a_closed_listener_is_not_resumed(listening, reactor):
    fail(listening, errno.EMFILE)
    reactor.on_ready()
    listening.close()
    assert reactor.pending() == 0
