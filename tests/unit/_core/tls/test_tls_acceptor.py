"""The thread that accepts the clients of a listener with TLS, without handshakes: who is passed on, who is refused."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest

from kafkapy._core.tls.tls_acceptor import PLAINTEXT_REASON
from tests.reactor_harness import TIMEOUT
from tests.unit._core.tls.running_acceptor import RunningAcceptor, addresses_of, has_ended

HELLO = b"\x16\x03\x01\x00\x05hello"
GARBAGE = b"\x00\x00\x00\x10 a request"
ALERT = b"\x15\x03\x03\x00\x02\x02\x50"
READY_LIMIT = 256


@pytest.fixture
def acceptor() -> Iterator[RunningAcceptor]:
    opened = RunningAcceptor()
    yield opened
    opened.close()


def test_a_client_that_begins_a_handshake_is_passed_on_with_all_its_bytes(acceptor: RunningAcceptor) -> None:
    client = acceptor.connect(HELLO)
    fd, *addresses, session = acceptor.take()
    assert tuple(addresses) == addresses_of(client)
    assert session is None
    assert not os.get_blocking(fd)
    assert not os.get_inheritable(fd)
    assert os.read(fd, 100) == HELLO


def test_a_client_that_does_not_speak_tls_gets_an_alert_and_is_closed(acceptor: RunningAcceptor) -> None:
    client = acceptor.connect(GARBAGE)
    assert client.recv(100) == ALERT
    assert client.recv(1) == b""
    assert acceptor.refused(1) == (1, [(PLAINTEXT_REASON, *addresses_of(client))])


def test_the_connection_of_a_refused_client_stays_open_for_the_delay() -> None:
    acceptor = RunningAcceptor(refusal_delay_ms=600_000)
    client = acceptor.connect(GARBAGE)
    assert client.recv(100) == ALERT
    client.settimeout(0.1)
    with pytest.raises(TimeoutError):
        client.recv(1)
    client.settimeout(TIMEOUT)
    acceptor.close()
    assert client.fileno() == -1


def test_a_flood_is_counted_and_only_its_first_clients_are_named(acceptor: RunningAcceptor) -> None:
    for _ in range(600):
        acceptor.connect(GARBAGE)
    count, named = acceptor.refused(600)
    assert count == 600
    assert 0 < len(named) < count
    assert all(client.recv(100) == ALERT for client in acceptor.clients)


def test_a_client_that_sends_nothing_is_passed_on_after_a_time(acceptor: RunningAcceptor) -> None:
    silent = acceptor.connect()
    fd, *addresses, session = acceptor.take()
    assert tuple(addresses) == addresses_of(silent)
    assert session is None
    with pytest.raises(BlockingIOError):
        os.read(fd, 1)


def test_silent_clients_delay_no_other_one(acceptor: RunningAcceptor) -> None:
    for _ in range(2 * READY_LIMIT - 1):
        acceptor.connect()
    last = acceptor.connect(HELLO)
    expected = {addresses_of(client) for client in acceptor.clients}
    found = {tuple(acceptor.take()[1:5]) for _ in acceptor.clients}
    assert found == expected
    assert addresses_of(last) in found


def test_a_client_that_leaves_before_it_sends_anything_is_forgotten(acceptor: RunningAcceptor) -> None:
    for _ in range(50):
        acceptor.connect().close()
    client = acceptor.connect(HELLO)
    assert tuple(acceptor.take()[1:5]) == addresses_of(client)
    assert acceptor.acceptor.take() is None
    assert acceptor.acceptor.take_report() == ((0, []), (0, []), 0)


def test_clients_that_nobody_takes_wait_in_the_systems_queue(acceptor: RunningAcceptor) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(READY_LIMIT + 100):
        acceptor.connect(HELLO)
    accepted = 0
    deadline = time.monotonic() + TIMEOUT
    while accepted < READY_LIMIT and time.monotonic() < deadline:
        accepted = len(os.listdir("/proc/self/fd")) - before - len(acceptor.clients)
    assert accepted == READY_LIMIT
    descriptors = [acceptor.take()[0] for _ in acceptor.clients]
    assert len(set(descriptors)) == READY_LIMIT + 100


def test_stopping_closes_the_connections_that_were_not_taken(acceptor: RunningAcceptor) -> None:
    waiting = [acceptor.connect(HELLO), acceptor.connect()]
    acceptor.wait_readable()
    acceptor.acceptor.stop()
    assert all(has_ended(client) for client in waiting)


def test_addresses_of_ipv6_are_reported() -> None:
    acceptor = RunningAcceptor("::1")
    client = acceptor.connect(HELLO)
    assert tuple(acceptor.take()[1:5]) == addresses_of(client)
    acceptor.close()
