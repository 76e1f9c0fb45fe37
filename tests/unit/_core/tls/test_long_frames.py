"""Long frames that arrive in pieces, with and without TLS: the reactor lets the socket gather bytes, and loses none."""

from __future__ import annotations

import os
import socket
import time

import pytest

from kafkapy._core.reactor import reactor as reactor_module
from tests.harness.certificates import CertificateAuthority, Identity
from tests.reactor_harness import frame, receive_frame
from tests.tls_harness import TlsHarness, client_context, running, server_context

PIECE_BYTES = 8192


def connected(harness: TlsHarness, authority: CertificateAuthority, has_tls: bool) -> socket.socket:
    return harness.connect_tls(client_context(authority)) if has_tls else harness.connect()


def send_in_pieces(client: socket.socket, data: bytes) -> None:
    for at in range(0, len(data), PIECE_BYTES):
        client.sendall(data[at : at + PIECE_BYTES])
        time.sleep(0.0005)  # the reactor has time to wake up for each piece


@pytest.mark.parametrize("has_tls", [False, True])
def test_a_long_frame_does_not_wake_the_reactor_for_each_piece(
    authority: CertificateAuthority, broker: Identity, has_tls: bool
) -> None:
    with running(server_context(broker)) as harness:
        client = connected(harness, authority, has_tls)
        payload = os.urandom(1 << 20)
        before = harness.reactor.counters()["wakeups"]
        send_in_pieces(client, frame(payload))
        assert receive_frame(client) == payload
        assert harness.reactor.counters()["wakeups"] - before < len(payload) / PIECE_BYTES / 2


# The sizes from which the reactor waits for several pieces, and which a TLS session may hold back, lie in this range.
@pytest.mark.parametrize("size", [65_536, 65_600, 131_100, 131_200, 131_300, 262_144, 327_800, 400_000])
@pytest.mark.parametrize("has_tls", [False, True])
def test_short_frames_follow_long_ones(
    authority: CertificateAuthority, broker: Identity, has_tls: bool, size: int
) -> None:
    with running(server_context(broker)) as harness:
        client = connected(harness, authority, has_tls)
        for _ in range(2):
            payload = os.urandom(size)
            send_in_pieces(client, frame(payload))
            assert receive_frame(client) == payload
            client.sendall(frame(b"a short one"))
            assert receive_frame(client) == b"a short one"


@pytest.mark.parametrize("has_tls", [False, True])
def test_a_stream_that_ends_within_a_long_frame_closes_the_connection_at_once(
    authority: CertificateAuthority, broker: Identity, has_tls: bool
) -> None:
    with running(server_context(broker)) as harness:
        client = connected(harness, authority, has_tls)
        send_in_pieces(client, frame(bytes(1 << 20))[: 1 << 19])
        client.shutdown(socket.SHUT_WR)
        assert harness.wait_closed(harness.connections[0])[0] == reactor_module.CLOSED_BY_PEER
