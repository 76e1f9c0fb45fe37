"""Hostile clients of a TLS listener: damaged handshakes and records, floods, ends at every point.

Every connection is closed, nothing remains of it, and other clients are served.
"""

from __future__ import annotations

import random
import socket
import ssl
import threading

import pytest

from kafkapy._core.reactor import reactor as reactor_module
from tests.harness.certificates import CertificateAuthority, Identity
from tests.openssl_client import OpenSslClient
from tests.reactor_harness import TIMEOUT, frame, receive_frame
from tests.seeds import drawn_seed
from tests.tls_harness import TlsHarness, client_context, running, server_context

DAMAGED_HANDSHAKES = 300
ALERT = 0x15


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    return CertificateAuthority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def broker(authority: CertificateAuthority) -> Identity:
    return authority.issue("broker")


def first_flight(version: ssl.TLSVersion) -> bytes:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = context.maximum_version = version
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    outgoing = ssl.MemoryBIO()
    with pytest.raises(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost").do_handshake()
    return outgoing.read()


def damaged(data: bytes, source: random.Random) -> bytes:
    """Returns the bytes with one random damage: changed, removed, inserted or repeated bytes, or an early end."""
    changed = bytearray(data)
    kind = source.randrange(5)
    at = source.randrange(len(changed))
    if kind == 0:
        for _ in range(source.randrange(1, 9)):
            changed[source.randrange(len(changed))] = source.randrange(256)
    elif kind == 1:
        del changed[at : at + source.randrange(1, 20)]
    elif kind == 2:
        changed[at:at] = source.randbytes(source.randrange(1, 20))
    elif kind == 3:
        changed += changed[: source.randrange(1, len(changed))]
    else:
        del changed[at:]
    return bytes(changed)


def read_to_the_end(client: socket.socket, *, ends: bool = True) -> bytes:
    """Returns what the server has sent until it closed the connection; before, `ends` ends the client's stream.

    A server that reads the end of the stream while a handshake is in progress closes the connection without an alert.
    """
    received = b""
    try:
        if ends:
            client.shutdown(socket.SHUT_WR)
        while part := client.recv(65536):
            received += part
    except OSError:  # the server has reset the connection
        pass
    return received


def is_served(harness: TlsHarness, authority: CertificateAuthority) -> bool:
    client = harness.connect_tls(client_context(authority))
    client.sendall(frame(b"a request"))
    answer = receive_frame(client)
    client.unwrap()
    return answer == b"a request"


def wait_until_empty(harness: TlsHarness) -> None:
    for connection in harness.connections:
        harness.wait_closed(connection)
    counters = harness.call(harness.reactor.counters)
    assert counters["connections"] == 0
    assert counters["request_bytes"] == 0


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_damaged_client_hellos_end_their_connections(
    authority: CertificateAuthority, broker: Identity, version: ssl.TLSVersion
) -> None:
    source = random.Random(drawn_seed())
    hello = first_flight(version)
    with running(server_context(broker)) as harness:
        for number in range(DAMAGED_HANDSHAKES):
            client = harness.connect_plain()
            client.sendall(damaged(hello, source))
            read_to_the_end(client)
            client.close()
            if number % 100 == 0:
                assert is_served(harness, authority)
        assert is_served(harness, authority)
        wait_until_empty(harness)


def test_damaged_bytes_at_every_stage_end_their_connections(authority: CertificateAuthority, broker: Identity) -> None:
    """A client that handshakes and sends requests, of whose stream one part is damaged."""
    source = random.Random(drawn_seed())
    context = client_context(authority)
    with running(server_context(broker)) as harness:
        for _ in range(DAMAGED_HANDSHAKES):
            client = harness.connect_plain()
            incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
            tls = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
            spoilt_flight = source.randrange(4)
            try:
                for flight in range(8):
                    try:
                        if tls.version() is None or flight < 2:
                            tls.do_handshake()
                        tls.write(frame(b"a request of some length" * source.randrange(1, 1000)))
                        tls.read(65536)
                    except ssl.SSLWantReadError:
                        pass
                    data = outgoing.read()
                    client.sendall(damaged(data, source) if flight == spoilt_flight and data else data)
                    if flight >= spoilt_flight:
                        break
                    incoming.write(client.recv(65536))
            except (ssl.SSLError, ConnectionError):
                pass
            read_to_the_end(client)
            client.close()
        assert is_served(harness, authority)
        wait_until_empty(harness)


def test_garbage_ends_connections_with_an_alert(authority: CertificateAuthority, broker: Identity) -> None:
    source = random.Random(drawn_seed())
    with running(server_context(broker)) as harness:
        for size in (1, 2, 5, 6, 100, 5000, 70_000):
            client = harness.connect_plain()
            client.sendall(b"\x80" + source.randbytes(size - 1))
            assert read_to_the_end(client)[:1] in (b"\x15", b"")
            client.close()
        assert is_served(harness, authority)
        wait_until_empty(harness)


def test_an_older_protocol_is_refused_with_its_alert(authority: CertificateAuthority, broker: Identity) -> None:
    """The hello of a client of TLS 1.1, which current libraries do not send."""
    hello = bytearray(first_flight(ssl.TLSVersion.TLSv1_2))
    assert hello[9:11] == b"\x03\x03"
    hello[9:11] = b"\x03\x02"
    with running(server_context(broker)) as harness:
        client = harness.connect_plain()
        client.sendall(hello)
        answer = read_to_the_end(client, ends=False)
        assert (answer[0], answer[5:]) == (ALERT, bytes([2, 70]))  # fatal, protocol_version
        _, error = harness.wait_handshake()
        assert error == "unsupported protocol: the peer offers no protocol of ssl.enabled.protocols"


def test_damaged_records_end_an_open_connection(authority: CertificateAuthority, broker: Identity) -> None:
    with running(server_context(broker)) as harness:
        client = harness.connect_tls(client_context(authority))
        client.sendall(frame(b"a request"))
        assert receive_frame(client) == b"a request"
        plain = socket.socket(fileno=client.detach())
        plain.sendall(b"\x17\x03\x03\x00\x20" + bytes(32))
        kind, reason = harness.wait_closed(harness.connections[0])
        assert (kind, reason) == (reactor_module.CLOSED_BY_TLS, "TLS failed: decryption failed or bad record mac")
        assert plain.recv(1) == b"\x17"  # the ticket or the alert, encrypted
        plain.close()


def test_an_endless_handshake_is_refused(authority: CertificateAuthority, broker: Identity) -> None:
    """A handshake message of the largest size, of which the client sends one fragment after the other."""
    with running(server_context(broker)) as harness:
        client = harness.connect_plain()
        start = b"\x01\x00\xff\xff"
        try:
            client.sendall(b"\x16\x03\x01" + len(start).to_bytes(2, "big") + start)
            for _ in range(200):
                client.sendall(b"\x16\x03\x01\x40\x00" + bytes(0x4000))
        except ConnectionError:
            pass
        _, error = harness.wait_handshake()
        assert error is not None
        client.close()
        assert is_served(harness, authority)
        wait_until_empty(harness)


def test_a_flood_of_key_updates_delays_nobody(authority: CertificateAuthority, broker: Identity) -> None:
    """A client that only updates its keys, and asks for updates without reading the answers."""
    with running(server_context(broker)) as harness:
        plain = harness.connect_plain(send_buffer=8192)
        flooding = OpenSslClient(plain)
        stop = threading.Event()

        def flood() -> None:
            while not stop.is_set() and flooding.update_keys():
                pass

        thread = threading.Thread(target=flood)
        thread.start()
        try:
            for _ in range(20):
                assert is_served(harness, authority)
        finally:
            stop.set()
            plain.shutdown(socket.SHUT_RDWR)
            thread.join(TIMEOUT)
            flooding.close()
            plain.close()
        wait_until_empty(harness)


def test_clients_that_leave_during_the_handshake_leave_nothing(
    authority: CertificateAuthority, broker: Identity
) -> None:
    hello = first_flight(ssl.TLSVersion.TLSv1_3)
    with running(server_context(broker)) as harness:
        for number in range(200):
            client = harness.connect_plain()
            client.sendall(hello)
            if number % 2:  # a reset instead of an end
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            client.close()
        assert is_served(harness, authority)
        wait_until_empty(harness)
