"""The HTTP listener: its responses, and its limits on slow and numerous clients."""

import base64
import queue
import socket
import ssl
import struct
import time
from contextlib import suppress

import pytest

from kafkapy.metrics import http_server
from kafkapy.metrics.http_server import Credentials, HttpServer, Pending, Response, parse_address
from kafkapy.security.tls.python_context import client_context, server_context
from kafkapy.security.tls.tls_material import load_material
from tests.certificates import authority, pem_key_store, pem_trust_store, server_certificate, settings

LARGE = b"x" * (8 << 20)


@pytest.fixture
def server():
    calls = []

    def failing():
        raise RuntimeError("no page today")

    def counted():
        calls.append(1)
        return Response(b"page %d\n" % len(calls))

    server = HttpServer("127.0.0.1:0")
    server.calls = calls
    server.start({"/page": counted, "/large": lambda: Response(LARGE), "/failing": failing})
    yield server
    server.close()


def connect(server):
    return socket.create_connection(("127.0.0.1", server.port), timeout=20)


def read_answer(client):
    """Returns (status, headers, body) of one response, None if the connection ends instead."""
    received = b""
    while b"\r\n\r\n" not in received:
        part = client.recv(65536)
        if not part:
            return None
        received += part
    head, _, body = received.partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    fields = dict(line.split(": ", 1) for line in lines[1:])
    while len(body) < int(fields["Content-Length"]):
        body += client.recv(1 << 20)
    return int(lines[0].split()[1]), fields, body


def ask(server, request):
    with connect(server) as client:
        client.sendall(request)
        return read_answer(client)


def test_a_page(server):
    status, fields, body = ask(server, b"GET /page?x=1 HTTP/1.1\r\nHost: x\r\n\r\n")
    assert (status, body) == (200, b"page 1\n")
    assert fields["Content-Type"] == "text/plain; charset=utf-8"


def test_a_connection_is_kept_and_closed_as_the_client_wants(server):
    with connect(server) as client:
        for number in range(1, 4):
            client.sendall(b"GET /page HTTP/1.1\r\nHost: x\r\n\r\n")
            assert read_answer(client)[2] == b"page %d\n" % number
        client.sendall(b"GET /page HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert read_answer(client)[1]["Connection"] == "close"
        assert client.recv(1) == b""
    with connect(server) as client:
        client.sendall(b"GET /page HTTP/1.0\r\n\r\n")
        assert read_answer(client)[0] == 200
        assert client.recv(1) == b""


def test_a_head_in_pieces(server):
    with connect(server) as client:
        for piece in (b"GET /pa", b"ge HTTP/1.1\r\nHos", b"t: x\r\n", b"\r\n"):
            client.sendall(piece)
            time.sleep(0.01)
        assert read_answer(client)[2] == b"page 1\n"


def test_requests_sent_ahead_get_one_answer_and_a_close(server):
    with connect(server) as client:
        client.sendall(b"GET /page HTTP/1.1\r\n\r\n" * 300)
        assert read_answer(client)[1]["Connection"] == "close"
    assert len(server.calls) == 1


def test_a_large_page_to_a_slow_reader_keeps_nobody_waiting(server):
    with connect(server) as slow:
        slow.sendall(b"GET /large HTTP/1.1\r\n\r\n")
        assert ask(server, b"GET /page HTTP/1.1\r\n\r\n")[0] == 200
        assert read_answer(slow)[2] == LARGE


def test_head_answers_without_a_body(server):
    with connect(server) as client:
        client.sendall(b"HEAD /page HTTP/1.1\r\nConnection: close\r\n\r\n")
        received = b""
        while part := client.recv(65536):
            received += part
        assert received.endswith(b"Content-Length: 7\r\nConnection: close\r\n\r\n")


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET /nothing HTTP/1.1\r\n\r\n", 404),
        (b"GET /failing HTTP/1.1\r\n\r\n", 500),
        (b"POST /page HTTP/1.1\r\nContent-Length: 0\r\n\r\n", 405),
        (b"POST /page HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\nx", 400),
        (b"GET /page HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        (b"GET /page\r\n\r\n", 400),
        (b"GET  /page HTTP/1.1\r\n\r\n", 400),
        (b"GET /page SMTP/1.1\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", 400),
        (b"GET /\xff\xfe HTTP/1.1\r\n\r\n", 404),
        (b"\r\n\r\n", 400),
        (b"A" * 9000, 431),
        (b"GET /page HTTP/1.1\r\n" + b"X: y\r\n" * 3000, 431),
    ],
)
def test_bad_requests_are_refused_and_the_server_continues(server, request_, status):
    assert ask(server, request_)[0] == status
    assert ask(server, b"GET /page HTTP/1.1\r\n\r\n")[0] == 200


def test_more_clients_than_it_takes_displace_the_one_that_waits_longest(server):
    silent = [connect(server) for _ in range(http_server.MOST_CONNECTIONS)]
    try:
        for _ in range(3):
            assert ask(server, b"GET /page HTTP/1.1\r\n\r\n")[0] == 200
        assert silent[0].recv(1) == b""
    finally:
        for client in silent:
            client.close()


def test_a_client_that_goes_away_amid_its_answer(server):
    for _ in range(5):
        with connect(server) as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            client.sendall(b"GET /large HTTP/1.1\r\n\r\n")
            client.recv(10)
    assert ask(server, b"GET /page HTTP/1.1\r\n\r\n")[0] == 200


class Asked:
    """Pages that wait until the test resolves them, in the order of their requests."""

    def __init__(self, patience_s):
        self.patience_s = patience_s
        self.pages = queue.Queue()

    def __call__(self):
        page = Pending(Response(b"nobody\n", 503), self.patience_s)
        self.pages.put(page)
        return page


@pytest.fixture
def asked():
    return Asked(60)


@pytest.fixture
def waiting_server(asked):
    server = HttpServer("127.0.0.1:0")
    soon = Asked(0.05)
    answered = Asked(60)

    def at_once():
        page = answered()
        page.resolve(Response(b"already\n"))
        return page

    server.start({"/later": asked, "/soon": soon, "/at-once": at_once, "/page": lambda: Response(b"page\n")})
    yield server
    server.close()


def test_a_page_that_is_waited_for_keeps_nobody_else_waiting(waiting_server, asked):
    with connect(waiting_server) as first, connect(waiting_server) as second:
        first.sendall(b"GET /later HTTP/1.1\r\n\r\n")
        first_page = asked.pages.get(timeout=20)
        second.sendall(b"GET /later HTTP/1.1\r\n\r\n")
        second_page = asked.pages.get(timeout=20)
        assert ask(waiting_server, b"GET /page HTTP/1.1\r\n\r\n")[2] == b"page\n"
        second_page.resolve(Response(b"two\n"))
        assert read_answer(second)[2] == b"two\n"
        first_page.resolve(Response(b"one\n"))
        assert read_answer(first)[2] == b"one\n"
        first.sendall(b"GET /page HTTP/1.1\r\n\r\n")
        assert read_answer(first)[2] == b"page\n"


def test_a_page_that_nobody_tells(waiting_server):
    status, _, body = ask(waiting_server, b"GET /soon HTTP/1.1\r\n\r\n")
    assert (status, body) == (503, b"nobody\n")


def test_a_page_that_is_told_at_once(waiting_server):
    assert ask(waiting_server, b"GET /at-once HTTP/1.1\r\n\r\n")[2] == b"already\n"


def test_a_client_that_goes_away_while_its_page_is_waited_for(waiting_server, asked):
    with connect(waiting_server) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        client.sendall(b"GET /later HTTP/1.1\r\n\r\n")
        page = asked.pages.get(timeout=20)
    assert ask(waiting_server, b"GET /page HTTP/1.1\r\n\r\n")[0] == 200
    page.resolve(Response(b"late\n"))
    assert ask(waiting_server, b"GET /page HTTP/1.1\r\n\r\n")[0] == 200


def test_a_page_that_is_told_after_the_end(asked):
    server = HttpServer("127.0.0.1:0")
    server.start({"/later": asked})
    with connect(server) as client:
        client.sendall(b"GET /later HTTP/1.1\r\n\r\n")
        page = asked.pages.get(timeout=20)
        server.close()
        page.resolve(Response(b"late\n"))
        assert client.recv(1) == b""


def test_a_port_in_use_is_told_before_anything_runs(server):
    with pytest.raises(
        OSError, match=f"the metrics listener cannot be bound to 127.0.0.1:{server.port}: Address already"
    ):
        HttpServer(f"127.0.0.1:{server.port}")


def test_a_listener_that_was_never_started_is_closed():
    server = HttpServer("127.0.0.1:0")
    server.close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", server.port), timeout=5)


@pytest.mark.parametrize(
    ("text", "address"),
    [("localhost:9404", ("localhost", 9404)), ("9404", ("localhost", 9404)), (":9404", ("localhost", 9404)),
     ("0.0.0.0:1", ("0.0.0.0", 1)), ("[::1]:80", ("::1", 80))],
)  # fmt: skip
def test_addresses(text, address):
    assert parse_address(text) == address


@pytest.mark.parametrize("text", ["", "localhost", "localhost:", "localhost:x", "localhost:65536", "[::1:80", "a:-1"])
def test_what_is_no_address(text):
    with pytest.raises(ValueError, match="is not host:port"):
        parse_address(text)


# -- TLS and passwords


def tls_contexts():
    own = load_material(settings(pem_key_store(server_certificate())), is_server=True)
    trusting = load_material(settings(trust_store=pem_trust_store(authority().certificate)), is_server=False)
    return server_context(own), client_context(trusting)


@pytest.fixture
def tls_server():
    context, _ = tls_contexts()
    server = HttpServer("127.0.0.1:0", tls=context)
    server.start({"/page": lambda: Response(b"page"), "/large": lambda: Response(LARGE)})
    yield server
    server.close()


def connect_encrypted(server):
    return tls_contexts()[1].wrap_socket(connect(server), server_hostname="localhost")


def test_a_page_over_tls(tls_server):
    with connect_encrypted(tls_server) as client:
        for _ in range(2):
            client.sendall(b"GET /page HTTP/1.1\r\nHost: x\r\n\r\n")
            assert read_answer(client)[2] == b"page"
        client.sendall(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
        assert read_answer(client)[2] == LARGE


def test_a_head_in_many_small_records_over_tls(tls_server):
    with connect_encrypted(tls_server) as client:
        for byte in b"GET /page HTTP/1.1\r\nA: " + b"x" * 500 + b"\r\n\r\n":
            client.sendall(bytes((byte,)))
        assert read_answer(client)[0] == 200


def test_a_client_without_tls_is_disconnected(tls_server):
    with connect(tls_server) as client:
        client.sendall(b"GET /page HTTP/1.1\r\nHost: x\r\n\r\n")
        with suppress(ConnectionResetError):  # the server closes before it has read all
            while part := client.recv(100):
                assert not part.startswith(b"HTTP")  # an alert of TLS
    with connect_encrypted(tls_server) as client:  # and the server continues
        client.sendall(b"GET /page HTTP/1.1\r\nHost: x\r\n\r\n")
        assert read_answer(client)[0] == 200


def test_a_handshake_that_fails_ends_its_connection_only(tls_server):
    strict = ssl.create_default_context()
    with pytest.raises(ssl.SSLError), connect(tls_server) as client:
        strict.wrap_socket(client, server_hostname="localhost")
    with connect_encrypted(tls_server) as client:
        client.sendall(b"GET /page HTTP/1.1\r\nHost: x\r\n\r\n")
        assert read_answer(client)[0] == 200


def basic(user, password):
    return b"Authorization: Basic " + base64.b64encode(f"{user}:{password}".encode()) + b"\r\n"


def test_protected_pages_need_the_password():
    server = HttpServer("127.0.0.1:0", credentials=Credentials("reader", "Sécret"))
    server.start({"/page": lambda: Response(b"page"), "/live": lambda: Response(b"live")}, frozenset({"/page"}))
    try:
        for header in (b"", basic("reader", "wrong"), basic("other", "Sécret"), b"Authorization: Bearer x\r\n"):
            status, fields, body = ask(server, b"GET /page HTTP/1.1\r\n" + header + b"\r\n")
            assert (status, fields["WWW-Authenticate"]) == (401, 'Basic realm="kafkapy", charset="UTF-8"')
            assert b"page" not in body
        assert ask(server, b"GET /page HTTP/1.1\r\n" + basic("reader", "Sécret") + b"\r\n")[2] == b"page"
        assert ask(server, b"GET /live HTTP/1.1\r\n\r\n")[2] == b"live"
    finally:
        server.close()
    assert "cret" not in repr(Credentials("reader", "Sécret"))


def test_a_tree_makes_the_pages_below_its_prefix():
    asked = []

    def tree(path, query):
        asked.append((path, query))
        return Response(b"found\n")

    server = HttpServer("127.0.0.1:0", credentials=Credentials("me", "secret"))
    server.start({"/page": lambda: Response(b"page\n")}, trees={"/v1/": tree})
    key = b"Authorization: Basic " + base64.b64encode(b"me:secret") + b"\r\n"
    try:
        assert ask(server, b"GET /v1/a/b?c=d&e HTTP/1.1\r\n" + key + b"\r\n")[0] == 200
        assert ask(server, b"GET /v1/a HTTP/1.1\r\n\r\n")[0] == 401
        assert ask(server, b"GET /page HTTP/1.1\r\n\r\n")[0] == 200
        status, _, body = ask(server, b"GET /v1 HTTP/1.1\r\n" + key + b"\r\n")
        assert (status, body) == (404, b"There is no page at this path; the pages are: /page /v1/\n")
    finally:
        server.close()
    assert asked == [("a/b", "c=d&e")]


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\n"])
def test_a_connection_that_is_reset_before_it_is_accepted_ends_nothing_else(sent):
    server = HttpServer("127.0.0.1:0", tls=tls_contexts()[0])
    with connect(server) as client:  # the operating system accepts it; the server's thread has not begun
        client.sendall(sent)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    server.start({"/page": lambda: Response(b"a page")})
    try:
        with connect_encrypted(server) as client:
            client.sendall(b"GET /page HTTP/1.1\r\n\r\n")
            assert read_answer(client)[2] == b"a page"
    finally:
        server.close()
