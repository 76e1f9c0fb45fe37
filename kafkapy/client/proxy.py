"""Connections to brokers through a proxy: SOCKS5 (RFC 1928 and 1929), and the method CONNECT of HTTP (RFC 9110)."""

from __future__ import annotations

import ipaddress
import re
import socket
from base64 import b64encode
from collections.abc import Generator
from urllib.parse import unquote, urlsplit

from kafkapy.client.cluster import Node
from kafkapy.errors import ConfigError
from kafkapy.host_names import host_addresses
from kafkapy.named_tuple import NamedTuple

_PORTS = {"socks5": 1080, "socks5h": 1080, "http": 80}
_SOCKS_VERSION, _LOGIN_VERSION = 5, 1
_NO_LOGIN, _LOGIN, _NO_METHOD = 0, 2, 0xFF
_COMMAND_CONNECT = 1
_IPV4, _NAME, _IPV6 = 1, 3, 4
_ADDRESS_BYTES = {_IPV4: 4, _IPV6: 16}
_PORT_BYTES = 2
_VALID_NAME = re.compile(rb"[A-Za-z0-9._-]{1,255}")
_LONGEST_LOGIN_BYTES = 255
_REPLIES = {
    1: "it has failed",
    2: "its rules do not allow the connection",
    3: "the network cannot be reached",
    4: "the host cannot be reached",
    5: "the broker has refused the connection",
    6: "the connection took too long",
    7: "it does not support the command CONNECT",
    8: "it does not support this type of address",
}
_LONGEST_HEAD_BYTES = 16 << 10
_END_OF_HEAD = b"\r\n\r\n"

# Receives as many bytes as it has yielded last.
Conversation = Generator[int, bytes, None]


class Proxy(NamedTuple):
    """The address of a proxy, and the user and password that it asks for ("" for none).

    `scheme` is `socks5`, `socks5h` or `http`. With `socks5` the client looks up the brokers' names; with `socks5h` and
    `http` the proxy does.
    """

    scheme: str
    host: str
    port: int
    user: str = ""
    password: str = ""

    @classmethod
    def from_url(cls, url: str) -> Proxy:
        """Returns the proxy of a URL, such as `socks5://user:password@host:1080`.

        Raises ConfigError if the URL is not one of a proxy.
        """
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise ConfigError(f"the URL of the proxy is invalid: {error}") from None
        if parts.scheme not in _PORTS or not parts.hostname:
            raise ConfigError(
                f"the URL of a proxy has a host and one of the schemes {', '.join(_PORTS)}: {parts.scheme}"
            )
        user, password = unquote(parts.username or ""), unquote(parts.password or "")
        if max(len(user.encode()), len(password.encode())) > _LONGEST_LOGIN_BYTES:
            raise ConfigError(f"the user and the password of a proxy have up to {_LONGEST_LOGIN_BYTES} bytes")
        return cls(parts.scheme, parts.hostname, port or _PORTS[parts.scheme], user, password)

    @property
    def node(self) -> Node:
        """The proxy as the host and port to connect to."""
        return Node(-1, self.host, self.port)

    def handshake(self, broker: Node) -> ProxyHandshake:
        """Returns the conversation that makes the proxy connect to a broker.

        With the scheme `socks5` first looks up the broker's address, which may block. Raises OSError if this lookup
        fails or, with another scheme, the broker's host is neither an IP address nor a valid host name.
        """
        return ProxyHandshake(self, broker)


class ProxyHandshake:
    """The exchange of messages with a proxy on a non-blocking socket, until the proxy has connected to the broker.

    It reads no byte beyond the proxy's answers. The next byte that is read from the socket is then the broker's first
    one.
    """

    def __init__(self, proxy: Proxy, broker: Node) -> None:
        self._proxy = proxy
        self._broker = broker
        self._output = b""
        self._input = b""
        self._steps = self._by_http() if proxy.scheme == "http" else self._by_socks()
        self._wanted = next(self._steps)

    @property
    def is_sending(self) -> bool:
        """Returns whether bytes for the proxy wait until the socket accepts them."""
        return bool(self._output)

    def advance(self, opened: socket.socket) -> bool:
        """Continues the conversation as far as the socket allows, and returns whether the proxy has connected to the
        broker.

        Raises OSError if the proxy refuses, answers wrongly or closes the connection.
        """
        try:
            while True:
                while self._output:
                    self._output = self._output[opened.send(self._output) :]
                received = opened.recv(self._wanted - len(self._input))
                if not received:
                    raise self._failure("it has closed the connection")
                self._input += received
                if len(self._input) == self._wanted:
                    data, self._input = self._input, b""
                    self._wanted = self._steps.send(data)
        except BlockingIOError:
            return False
        except StopIteration:
            return True

    def _failure(self, reason: str) -> OSError:
        return OSError(f"the proxy {self._proxy.host}:{self._proxy.port} has not connected to the broker: {reason}")

    def _target(self) -> bytes:
        """Returns the broker's IP address or name as SOCKS5 represents it: a type, and then the address."""
        host = self._broker.host
        if self._proxy.scheme == "socks5":
            found = host_addresses(host, self._broker.port)
            host = str(found[0][4][0])
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            name = self._name()
            return bytes((_NAME, len(name))) + name
        return bytes((_IPV4 if address.version == 4 else _IPV6,)) + address.packed

    def _name(self) -> bytes:
        """Returns the broker's name in ASCII. Raises OSError if it is not a host name: a broker's metadata may hold any
        text.
        """
        try:
            name = self._broker.host.encode("idna")
        except UnicodeError:
            name = b""
        if not _VALID_NAME.fullmatch(name):
            raise self._failure(f"{self._broker.host!r} is not the name of a host")
        return name

    def _by_socks(self) -> Conversation:
        target = self._target()
        user, password = self._proxy.user.encode(), self._proxy.password.encode()
        method = _LOGIN if user else _NO_LOGIN
        self._output = bytes((_SOCKS_VERSION, 1, method))
        version, chosen = yield 2
        if version != _SOCKS_VERSION:
            raise self._failure("it does not answer as a SOCKS5 proxy")
        if chosen == _NO_METHOD:
            raise self._failure("it refuses the password" if user else "it asks for a user and a password")
        if chosen != method:
            raise self._failure(f"it has chosen the method {chosen} instead of {method}")
        if user:
            self._output = bytes((_LOGIN_VERSION, len(user))) + user + bytes((len(password),)) + password
            _, status = yield 2
            if status:
                raise self._failure("it does not know the user and the password")
        self._output = (
            bytes((_SOCKS_VERSION, _COMMAND_CONNECT, 0)) + target + self._broker.port.to_bytes(_PORT_BYTES, "big")
        )
        version, reply, _, kind = yield 4
        if version != _SOCKS_VERSION or reply:
            raise self._failure(_REPLIES.get(reply, f"it has answered with the code {reply}"))
        length = (yield 1)[0] if kind == _NAME else _ADDRESS_BYTES.get(kind, 0)
        yield length + _PORT_BYTES

    def _by_http(self) -> Conversation:
        try:
            address = ipaddress.ip_address(self._broker.host)
            host = f"[{address}]" if address.version == 6 else str(address)
        except ValueError:
            host = self._name().decode()
        head = f"CONNECT {host}:{self._broker.port} HTTP/1.1\r\nHost: {host}:{self._broker.port}\r\n"
        if self._proxy.user:
            token = b64encode(f"{self._proxy.user}:{self._proxy.password}".encode()).decode()
            head += f"Proxy-Authorization: Basic {token}\r\n"
        self._output = f"{head}\r\n".encode("ascii")
        answer = bytearray()
        while not answer.endswith(_END_OF_HEAD):
            if len(answer) >= _LONGEST_HEAD_BYTES:
                raise self._failure("its answer is too long")
            answer += yield 1  # a longer read could take bytes of the broker
        status = bytes(answer.split(b"\r\n", 1)[0]).split()
        if len(status) < 2 or not status[0].startswith(b"HTTP/") or status[1][:1] != b"2":
            raise self._failure(f"it has answered {b' '.join(status).decode('latin-1')}")
