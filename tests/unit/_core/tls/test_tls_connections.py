"""TLS connections of the reactor: frames, muted connections, resumption, the end of a connection."""

from __future__ import annotations

import os
import socket
import ssl
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from kafkapy._core.bytes.segment_file import SegmentFile
from kafkapy._core.reactor import reactor as reactor_module
from kafkapy._core.reactor.reactor import Request
from kafkapy.readable import is_readable
from tests.harness.certificates import CertificateAuthority, Identity
from tests.reactor_harness import TIMEOUT, ReactorHarness, frame, receive_exactly, receive_frame
from tests.tls_harness import client_context, echo, running, server_context

VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("size", [8, 1000, 16384, 65531, 262_144, 5_000_001])
def test_frames_of_every_size_come_through(
    authority: CertificateAuthority, broker: Identity, version: ssl.TLSVersion, size: int
) -> None:
    context = client_context(authority)
    context.maximum_version = version
    with running(server_context(broker)) as harness:
        client = harness.connect_tls(context)
        payload = os.urandom(size)
        client.sendall(frame(payload) + frame(b"a small one"))
        assert receive_frame(client) == payload
        assert receive_frame(client) == b"a small one"
        connection, error = harness.wait_handshake()
        assert error is None
        assert connection.is_encrypted
        assert connection.tls_protocol == client.version()
        assert connection.peer_certificate() is None


def test_facts_about_a_plaintext_connection_are_absent() -> None:
    harness = ReactorHarness(echo)
    harness.connect()
    (connection,) = harness.connections
    facts = (connection.is_encrypted, connection.tls_protocol, connection.tls_cipher, connection.peer_certificate())
    harness.close()
    assert facts == (False, None, None, None)


def test_a_connection_names_its_cipher_suite_as_iana_does(authority: CertificateAuthority, broker: Identity) -> None:
    context = client_context(authority)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    suite = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"
    with running(server_context(broker, ciphers=(suite,))) as harness:
        client = harness.connect_tls(context)
        connection, _ = harness.wait_handshake()
        assert connection.tls_cipher == suite
        client.close()


def test_pipelined_requests_of_a_muted_connection_are_served_without_further_bytes(
    authority: CertificateAuthority, broker: Identity
) -> None:
    """Every request is answered later, when all bytes have arrived and none will follow."""
    held: list[Request] = []
    arrived = threading.Semaphore(0)

    def hold(requests: list[Request]) -> None:
        held.extend(requests)
        for _ in requests:
            arrived.release()

    payloads = [b"%04d" % number * 200 for number in range(500)]  # 400 KB
    with running(server_context(broker), hold) as harness:
        client = harness.connect_tls(client_context(authority))
        sender = threading.Thread(target=client.sendall, args=(b"".join(map(frame, payloads)),))
        sender.start()
        for payload in payloads:
            assert arrived.acquire(timeout=TIMEOUT)
            request = held[-1]
            assert bytes(request.payload) == payload
            harness.call(lambda request=request: request.connection.respond(None))
        sender.join()


@pytest.mark.parametrize("receive_buffer", [0, 4096])
def test_answers_from_memory_and_files_arrive_in_order(
    authority: CertificateAuthority, broker: Identity, tmp_path: Path, receive_buffer: int
) -> None:
    content = os.urandom(1_500_000)
    path = tmp_path / "segment"
    path.write_bytes(content)
    file = SegmentFile(str(path))
    large = os.urandom(600_000)

    def answer(requests: list[Request]) -> None:
        for request in requests:
            pieces = [b"head", file.slice(0, 100), b"mid", file.slice(1000, 1_400_000), large, b"tail"]
            request.connection.respond(pieces)

    expected = b"head" + content[:100] + b"mid" + content[1000:1_401_000] + large + b"tail"
    with running(server_context(broker), answer) as harness:
        client = harness.connect_tls(client_context(authority), receive_buffer=receive_buffer)
        for _ in range(3):
            client.sendall(frame(b"a request"))
        for _ in range(3):
            assert receive_frame(client) == expected
        counters = harness.call(harness.reactor.counters)
        assert counters["bytes_sent"] == 3 * (len(expected) + 4)
        assert counters["bytes_received"] == 3 * 13
    file.close()


def test_a_file_that_ends_early_closes_the_connection(
    authority: CertificateAuthority, broker: Identity, tmp_path: Path
) -> None:
    path = tmp_path / "segment"
    path.write_bytes(b"x" * 50_000)
    file = SegmentFile(str(path))

    def answer(requests: list[Request]) -> None:
        ranges = [file.slice(0, 50_000)]
        os.truncate(path, 20_000)
        requests[0].connection.respond(ranges)

    with running(server_context(broker), answer) as harness:
        client = harness.connect_tls(client_context(authority))
        client.sendall(frame(b"a request"))
        assert harness.wait_closed(harness.connections[0])[0] == reactor_module.CLOSED_FOR_SHORT_FILE
    file.close()


@pytest.mark.parametrize("version", VERSIONS)
def test_handshake_and_frames_may_arrive_byte_by_byte(
    authority: CertificateAuthority, broker: Identity, version: ssl.TLSVersion
) -> None:
    context = client_context(authority)
    context.maximum_version = version
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
    with running(server_context(broker)) as harness:
        plain = harness.connect_plain()

        def send_by_single_bytes() -> None:
            for each in outgoing.read():
                plain.sendall(bytes([each]))
                harness.call(lambda: None)  # the reactor has a wake-up in between

        while True:
            try:
                tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                send_by_single_bytes()
                incoming.write(plain.recv(65536))
        tls.write(frame(b"a request by single bytes"))
        send_by_single_bytes()
        received = b""
        while len(received) < 29:
            try:
                received += tls.read()
            except ssl.SSLWantReadError:
                incoming.write(plain.recv(1))
        assert received == frame(b"a request by single bytes")


@pytest.mark.parametrize("version", VERSIONS)
def test_a_session_is_resumed_by_its_ticket(
    authority: CertificateAuthority, broker: Identity, version: ssl.TLSVersion
) -> None:
    context = client_context(authority)
    context.maximum_version = version
    resumed = []
    with running(server_context(broker)) as harness:
        session = None
        for count in (1, 2):
            client = harness.connect_tls(context, session)
            client.sendall(frame(b"a request"))
            receive_frame(client)  # the ticket comes with the first answer
            session = client.session
            connection, _ = harness.wait_handshake(count)
            resumed.append(connection.tls_is_resumed)
        assert resumed == [False, True]
    with running(server_context(broker)) as harness:  # another context has other keys of tickets
        client = harness.connect_tls(context, session)
        assert not harness.wait_handshake()[0].tls_is_resumed
        client.close()


def test_a_close_notify_is_answered(authority: CertificateAuthority, broker: Identity) -> None:
    with running(server_context(broker)) as harness:
        client = harness.connect_tls(client_context(authority))
        client.sendall(frame(b"a request"))
        assert receive_frame(client) == b"a request"
        client.unwrap()  # returns when the peer's close_notify has arrived
        assert harness.wait_closed(harness.connections[0]) == (reactor_module.CLOSED_BY_PEER, "closed by the peer")


def test_answers_precede_the_end_of_a_connection(authority: CertificateAuthority, broker: Identity) -> None:
    """The broker's end is a close_notify: without it `recv` raises an error."""
    payload = os.urandom(3_000_000)

    def answer_and_close(requests: list[Request]) -> None:
        requests[0].connection.respond([payload])
        requests[0].connection.close("enough")

    with running(server_context(broker), answer_and_close) as harness:
        client = harness.connect_tls(client_context(authority))
        client.sendall(frame(b"a request"))
        assert receive_frame(client) == payload
        assert client.recv(1) == b""


def test_the_peer_may_end_its_stream_without_a_close_notify(authority: CertificateAuthority, broker: Identity) -> None:
    with running(server_context(broker)) as harness:
        client = harness.connect_tls(client_context(authority))
        client.sendall(frame(b"a request"))
        receive_frame(client)
        client.shutdown(socket.SHUT_WR)
        assert harness.wait_closed(harness.connections[0])[0] == reactor_module.CLOSED_BY_PEER


def test_a_stop_ends_connections_by_close_notify(authority: CertificateAuthority, broker: Identity) -> None:
    with running(server_context(broker)) as harness:
        client = harness.connect_tls(client_context(authority))
        client.sendall(frame(b"a request"))
        receive_frame(client)
        harness.reactor.stop()
        assert client.recv(1) == b""


def test_a_stop_does_not_wait_for_handshakes(broker: Identity) -> None:
    with running(server_context(broker)) as harness:
        plain = [harness.connect_plain() for _ in range(5)]
        for each in plain[1:]:
            each.sendall(b"\x16\x03\x01\x02\x00\x01")
        harness.call(lambda: None)


def test_connections_are_served_while_handshakes_wait_for_their_clients(
    authority: CertificateAuthority, broker: Identity
) -> None:
    with running(server_context(broker)) as harness:
        for size in range(1, 40):
            harness.connect_plain().sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[:size])
        client = harness.connect_tls(client_context(authority))
        client.sendall(frame(b"a request"))
        assert receive_frame(client) == b"a request"
        assert harness.call(harness.reactor.counters)["connections"] == 40


def test_a_connection_in_its_handshake_expires(broker: Identity) -> None:
    with running(server_context(broker), connections_max_idle_ms=200) as harness:
        plain = harness.connect_plain()
        for each in b"\x16\x03\x01":
            plain.sendall(bytes([each]))
        assert harness.wait_closed(harness.connections[0])[0] == reactor_module.CLOSED_WHEN_IDLE


def test_a_handshake_of_too_many_bytes_is_refused(broker: Identity) -> None:
    """The client sends a message of OpenSSL's largest size, in fragments of one byte, each in a record of six bytes."""
    message = b"\x01\x01\xff\xff".ljust(100_000, b"\0")
    with running(server_context(broker)) as harness:
        client = harness.connect_plain()
        with suppress(ConnectionError):
            client.sendall(b"".join(b"\x16\x03\x01\x00\x01%c" % each for each in message))
        assert harness.wait_handshake()[1] == "the handshake has too many bytes"


def test_a_request_may_come_with_the_last_flight_of_the_handshake(
    authority: CertificateAuthority, broker: Identity
) -> None:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = client_context(authority).wrap_bio(incoming, outgoing, server_hostname="localhost")
    with running(server_context(broker)) as harness:
        plain = harness.connect_plain()
        while True:
            try:
                tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                plain.sendall(outgoing.read())
                incoming.write(plain.recv(65536))
        payloads = [b"%06d" % number * 500 for number in range(40)]
        tls.write(b"".join(map(frame, payloads)))
        plain.sendall(outgoing.read())
        received = bytearray()
        while len(received) < 40 * 3004:
            try:
                received += tls.read(65536)
            except ssl.SSLWantReadError:
                incoming.write(plain.recv(65536))
        assert bytes(received) == b"".join(map(frame, payloads))


def read_until(stream: int, wanted: bytes) -> bytes:
    """Reads a descriptor until its output contains `wanted`."""
    found = b""
    end = time.monotonic() + TIMEOUT
    while wanted not in found:
        assert is_readable(stream, max(0, end - time.monotonic())), found
        part = os.read(stream, 65536)
        assert part, found
        found += part
    return found


def test_a_renegotiation_is_refused(broker: Identity) -> None:
    with running(server_context(broker)) as harness, harness.s_client("-tls1_2") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        harness.wait_handshake()
        process.stdin.write(b"R\n")
        assert b"no renegotiation" in read_until(process.stdout.fileno(), b"no renegotiation")


def test_keys_may_be_updated(broker: Identity) -> None:
    with running(server_context(broker)) as harness, harness.s_client("-tls1_3") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        harness.wait_handshake()
        for command in (b"k\n", b"K\n"):  # the client's keys, and both sides' keys
            process.stdin.write(command)
            read_until(process.stdout.fileno(), b"KEYUPDATE")
            process.stdin.write(frame(b"a frame with a line end\n"))
            read_until(process.stdout.fileno(), frame(b"a frame with a line end\n"))


def test_the_reactor_copes_with_many_handshakes_at_once(authority: CertificateAuthority, broker: Identity) -> None:
    context = client_context(authority)

    def use(plain: list[socket.socket]) -> None:
        for each in plain:
            client = context.wrap_socket(each, server_hostname="localhost")
            client.sendall(frame(b"a request"))
            assert receive_exactly(client, 13) == frame(b"a request")

    with running(server_context(broker)) as harness:
        plain = [harness.connect_plain() for _ in range(40)]
        threads = [threading.Thread(target=use, args=(plain[first::4],)) for first in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [error for _, error in harness.handshakes] == [None] * 40
