"""The listener's socket: the limit of what waits for a client, and accepting without resources."""

from __future__ import annotations

import errno
import os

import pytest

from kafkapy.zookeeper import listener
from kafkapy.zookeeper.listener import Listener
from tests.harness.zookeeper import SETTINGS, ZooKeeperHarness
from tests.mock_scheduler import MockScheduler


class ScriptedConnection:
    """A connection of which the test says how many bytes wait."""

    peer_host = "127.0.0.1"

    def __init__(self):
        self.unsent_bytes = 0
        self.is_closed = False
        self.is_muted = False
        self.sent = []

    def send(self, chunks):
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
