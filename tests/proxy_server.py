"""A proxy for tests: SOCKS5 with and without a password, and the method CONNECT of HTTP."""

from __future__ import annotations

import base64
import socket
import socketserver
import threading
from contextlib import suppress
from types import TracebackType
from typing import Self

_BUFFER_BYTES = 1 << 16
_REFUSED = 5


class ProxyServer(socketserver.ThreadingTCPServer):
    """A proxy on a free port. `targets` has the addresses that clients have asked for, as they have written them.

    `user` is the name and password that it asks for, or "". The names in `names` are those of this machine.
    """

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, user: str = "", names: tuple[str, ...] = ()) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.user = user
        self.names = names
        self.targets: list[tuple[str, int]] = []
        self.address = f"127.0.0.1:{self.server_address[1]}"
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05})

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.shutdown()
        self._thread.join()
        self.server_close()

    def open(self, host: str, port: int) -> socket.socket:
        """Returns a connection to a target. Raises OSError."""
        self.targets.append((host, port))
        return socket.create_connection(("127.0.0.1" if host in self.names else host, port), timeout=30)


class _Handler(socketserver.StreamRequestHandler):
    server: ProxyServer

    def handle(self) -> None:
        first = self.rfile.read(1)
        with suppress(OSError):
            target = self._socks() if first == b"\5" else self._http(first)
            if target is not None:
                self._relay(target)

    def _socks(self) -> socket.socket | None:
        offered = self.rfile.read(self.rfile.read(1)[0])
        wanted = 2 if self.server.user else 0
        if wanted not in offered:
            self.wfile.write(b"\5\xff")
            return None
        self.wfile.write(bytes((5, wanted)))
        if wanted:
            self.rfile.read(1)
            given = b":".join(self.rfile.read(self.rfile.read(1)[0]) for _ in range(2)).decode()
            self.wfile.write(bytes((1, given != self.server.user)))
            if given != self.server.user:
                return None
        kind = self.rfile.read(4)[3]
        if kind == 3:
            host = self.rfile.read(self.rfile.read(1)[0]).decode()
        else:
            family, length = (socket.AF_INET, 4) if kind == 1 else (socket.AF_INET6, 16)
            host = socket.inet_ntop(family, self.rfile.read(length))
        port = int.from_bytes(self.rfile.read(2), "big")
        try:
            target = self.server.open(host, port)
        except OSError:
            self.wfile.write(bytes((5, _REFUSED, 0, 1)) + bytes(6))
            return None
        self.wfile.write(b"\5\0\0\1" + bytes(6))
        return target

    def _http(self, first: bytes) -> socket.socket | None:
        head = first
        while not head.endswith(b"\r\n\r\n"):
            head += self.rfile.readline()
        token = base64.b64encode(self.server.user.encode()).decode()
        if self.server.user and f"Proxy-Authorization: Basic {token}\r\n" not in head.decode():
            self.wfile.write(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
            return None
        host, _, port = head.split()[1].decode().rpartition(":")
        try:
            target = self.server.open(host, int(port))
        except OSError:
            self.wfile.write(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
            return None
        self.wfile.write(b"HTTP/1.1 200 Connection established\r\nServer: test\r\n\r\n")
        return target

    def _relay(self, target: socket.socket) -> None:
        with target:
            target.settimeout(None)
            answers = threading.Thread(target=_copy, args=(target, self.connection), daemon=True)
            answers.start()
            _copy(self.connection, target)
            answers.join()


def _copy(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(_BUFFER_BYTES):
            sink.sendall(data)
    with suppress(OSError):
        sink.shutdown(socket.SHUT_RDWR)
