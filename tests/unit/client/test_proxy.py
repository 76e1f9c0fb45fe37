"""Tests of the conversation with a proxy, over a pair of sockets."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from kafkapy.client.cluster import Node
from kafkapy.client.proxy import Proxy
from kafkapy.errors import ConfigError

BROKER = Node(1, "broker.test", 9092)
IPV6 = Node(1, "::1", 9092)
GRANTED = b"\5\0\0\1\0\0\0\0\0\0"


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        theirs.settimeout(10)
        yield ours, theirs


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("socks5://host:1", Proxy("socks5", "host", 1)),
        ("socks5h://u%40x:p%3A@host", Proxy("socks5h", "host", 1080, "u@x", "p:")),
        ("http://[::1]:8080", Proxy("http", "::1", 8080)),
        ("http://host", Proxy("http", "host", 80)),
    ],
)
def test_a_url_is_parsed(url, expected):
    assert Proxy.from_url(url) == expected


@pytest.mark.parametrize(
    "url", ["", "host:1", "ftp://host", "socks5://", "socks5://host:x", f"http://{'u' * 256}@host"]
)
def test_a_wrong_url_is_refused(url):
    with pytest.raises(ConfigError, match="proxy"):
        Proxy.from_url(url)


def test_the_conversation_takes_no_byte_of_the_broker(pair):
    ours, theirs = pair
    handshake = Proxy.from_url("socks5h://me:secret@proxy").handshake(BROKER)
    assert not handshake.advance(ours)
    assert theirs.recv(100) == b"\5\1\2"
    for each in (b"\5", b"\2"):
        theirs.sendall(each)
        assert not handshake.advance(ours)
    assert theirs.recv(100) == b"\1\2me\6secret"
    theirs.sendall(b"\1\0")
    assert not handshake.advance(ours)
    assert theirs.recv(100) == b"\5\1\0\3\x0bbroker.test" + (9092).to_bytes(2, "big")
    theirs.sendall(GRANTED + b"broker")
    assert handshake.advance(ours)
    assert not handshake.is_sending
    assert ours.recv(100) == b"broker"


@pytest.mark.parametrize("kind", [b"\4" + bytes(16), b"\3\4name"])
def test_addresses_of_all_types_are_sent_and_read(pair, kind):
    ours, theirs = pair
    handshake = Proxy.from_url("socks5h://proxy").handshake(IPV6)
    handshake.advance(ours)
    theirs.sendall(b"\5\0")
    handshake.advance(ours)
    assert theirs.recv(100)[3:] == b"\5\1\0\4" + socket.inet_pton(socket.AF_INET6, "::1") + (9092).to_bytes(2, "big")
    theirs.sendall(b"\5\0\0" + kind + b"\0\0" + b"broker")
    assert handshake.advance(ours)
    assert ours.recv(100) == b"broker"


def test_http(pair):
    ours, theirs = pair
    handshake = Proxy.from_url("http://me:secret@proxy").handshake(IPV6)
    assert not handshake.advance(ours)
    assert theirs.recv(1000).splitlines() == [
        b"CONNECT [::1]:9092 HTTP/1.1",
        b"Host: [::1]:9092",
        b"Proxy-Authorization: Basic bWU6c2VjcmV0",
        b"",
    ]
    theirs.sendall(b"HTTP/1.0 200 OK\r\nX: y\r\n\r\nbroker")
    assert handshake.advance(ours)
    assert ours.recv(100) == b"broker"


@pytest.mark.parametrize(
    ("scheme", "answer", "text"),
    [
        ("socks5h", b"HT", "does not answer as a SOCKS5 proxy"),
        ("socks5h", b"\5\xff", "asks for a user"),
        ("socks5h", b"\5\7", "method 7"),
        ("socks5h", b"\5\0\5\1\0\1", "it has failed"),
        ("socks5h", b"\5\0\5\x63\0\1", "code 99"),
        ("socks5h", b"", "closed the connection"),
        ("http", b"HTTP/1.1 403 Forbidden\r\n\r\n", "403 Forbidden"),
        ("http", b"\r\n\r\n", "has answered"),
        ("http", b"x" * (17 << 10), "too long"),
    ],
)
def test_a_refusal_names_the_reason(pair, scheme, answer, text):
    ours, theirs = pair
    handshake = Proxy.from_url(f"{scheme}://proxy").handshake(BROKER)
    theirs.sendall(answer)
    theirs.shutdown(socket.SHUT_WR)
    with pytest.raises(OSError, match=text):
        handshake.advance(ours)


@pytest.mark.parametrize("scheme", ["http", "socks5h"])
@pytest.mark.parametrize("host", ["a\r\nX: y", "", "x" * 300, "a b"])
def test_a_wrong_name_of_a_broker_is_not_sent(scheme, host):
    with pytest.raises(OSError, match="is not the name of a host"):
        Proxy.from_url(f"{scheme}://proxy").handshake(Node(1, host, 9092))
