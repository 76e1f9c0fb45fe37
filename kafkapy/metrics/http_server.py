"""A small HTTP server for pages that programs read: GET and HEAD, one thread, limits on connections, sizes and times.

    accept (at most 32 connections) -> head (at most 8 KB, within 10 s) -> page -> sent (within 30 s) -> the next head

The server evaluates the request line, `Connection` and the headers that announce a body; a request with a body is
refused and its connection closed. The 33rd client replaces the client whose time limit ends first. Pages are made on
this thread, which sleeps without any timer while no client is connected; a page that waits for another thread
(`Pending`) does not delay others.
"""

from __future__ import annotations

import base64
import hmac
import logging
import os
import select
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from kafkapy.decimal_text import is_number
from kafkapy.host_names import host_addresses

if TYPE_CHECKING:
    from ssl import SSLContext

logger = logging.getLogger("kafkapy.metrics.HttpServer")

MOST_CONNECTIONS = 32
LARGEST_HEAD = 8192
HEAD_S = 10.0
SEND_S = 30.0
IDLE_S = 300.0
BACKLOG = 32
REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 405: "Method Not Allowed",
           431: "Headers Too Large", 500: "Internal Server Error", 503: "Service Unavailable"}  # fmt: skip
METHODS = (b"GET", b"HEAD")
_CHALLENGE = 'WWW-Authenticate: Basic realm="kafkapy", charset="UTF-8"\r\n'
TEXT = "text/plain; charset=utf-8"


class Response:
    """The HTTP response for a page. `body` may be any bytes-like object; it is sent unchanged."""

    __slots__ = ("body", "content_type", "status")

    def __init__(self, body: bytes | memoryview, status: int = 200, content_type: str = TEXT) -> None:
        self.body = body
        self.status = status
        self.content_type = content_type


class Pending:
    """A response that another thread produces and passes to `resolve`.

    If `resolve` is not called within `patience_s` seconds, the server sends `otherwise` instead. The server cannot miss
    the response, because it sets `wake` and then reads `response`, while `resolve` sets `response` and then reads
    `wake`. The thread that sets its attribute last therefore sees the value that the other thread has set.
    """

    __slots__ = ("otherwise", "patience_s", "response", "wake")

    def __init__(self, otherwise: Response, patience_s: float) -> None:
        self.otherwise = otherwise
        self.patience_s = patience_s
        self.response: Response | None = None
        self.wake: Callable[[], None] | None = None

    def resolve(self, response: Response) -> None:
        """Sets the response. Called once, by any thread; a call after `patience_s` seconds has no effect."""
        self.response = response
        if self.wake is not None:
            self.wake()


Route = Callable[[], Response | Pending]
# The pages below a prefix: called with the rest of the path, and with the query of the URL.
Tree = Callable[[str, str], Response | Pending]


class Credentials:
    """The user name and password that clients must send for protected pages (RFC 7617). The object's `repr` does not
    show them.

    Without TLS the password is readable on the network.
    """

    __slots__ = ("_expected",)

    def __init__(self, user: str, password: str) -> None:
        self._expected = base64.b64encode(f"{user}:{password}".encode())

    def accepts(self, authorization: bytes) -> bool:
        """Returns True if a request has these credentials; `authorization` is the value of its Authorization header."""
        scheme, _, given = authorization.partition(b" ")
        return scheme.lower() == b"basic" and hmac.compare_digest(given.strip(), self._expected)


class _Client:
    """One connection: it receives the head of a request, waits for a page, or sends a response. Used by the server's
    thread only."""

    __slots__ = ("deadline_s", "has_body", "keeps_open", "outgoing", "pending", "received", "socket")

    def __init__(self, client: socket.socket, now_s: float) -> None:
        self.socket = client
        self.received = bytearray()
        self.outgoing: list[memoryview] = []
        self.pending: Pending | None = None
        self.has_body = True
        self.keeps_open = False
        self.deadline_s = now_s + HEAD_S


def parse_address(text: str) -> tuple[str, int]:
    """Returns host and port of `host:port` or `[host]:port`; `port` alone means localhost. Raises ValueError for
    anything else."""
    host, _, port = text.strip().rpartition(":")
    if not is_number(port) or int(port) > 65535:
        raise ValueError(f"{text!r} is not host:port")
    if host.startswith("[") != host.endswith("]"):
        raise ValueError(f"{text!r} is not host:port")
    return host.strip("[]") or "localhost", int(port)


def bind(address: str) -> socket.socket:
    """Returns a socket that listens at `address`, which is `host:port`. Raises OSError with a message for the user if
    that is not possible."""
    host, port = parse_address(address)
    try:
        found = host_addresses(host, port)
        family, target = min(((entry[0], entry[4]) for entry in found), key=lambda entry: entry[0])
        bound = socket.socket(family, socket.SOCK_STREAM)
    except OSError as error:
        raise OSError(error.errno, f"the metrics listener cannot be bound to {address}: {error.strerror}") from error
    try:
        bound.setblocking(False)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(target)
        bound.listen(BACKLOG)
    except OSError as error:
        bound.close()
        raise OSError(error.errno, f"the metrics listener cannot be bound to {address}: {error.strerror}") from error
    return bound


class HttpServer:
    """An HTTP server. Each page is the result of a function without arguments (`Route`), which is called for each
    request.

    Owns the listening socket from `__init__` on, its thread from `start` to `close`, and all connections.
    """

    def __init__(self, address: str, *, tls: SSLContext | None = None, credentials: Credentials | None = None) -> None:
        """Binds the address. The operating system queues the connections of clients until `start` is called. Raises
        OSError if the address cannot be bound.

        If `tls` is set, all connections are encrypted. If `credentials` are set, a client must send them for protected
        pages.
        """
        self._tls = tls
        self._credentials = credentials
        self._protected: frozenset[str] = frozenset()
        # Errors of an encrypted socket that has to wait until it is readable, or writable.
        self._wants_read: tuple[type[OSError], ...] = ()
        self._wants_write: tuple[type[OSError], ...] = ()
        if tls is not None:
            from ssl import SSLWantReadError, SSLWantWriteError

            self._wants_read, self._wants_write = (SSLWantReadError,), (SSLWantWriteError,)
        self._listener = bind(address)
        self.port: int = self._listener.getsockname()[1]
        self._routes: Mapping[str, Route] = {}
        self._trees: Mapping[str, Tree] = {}
        self._clients: dict[int, _Client] = {}
        self._poll = select.poll()
        self._wake_read, self._wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._wake_lock = threading.Lock()  # prevents a write to the closed pipe
        self._is_closing = False
        self._thread = threading.Thread(target=self._run, name="kafkapy-metrics", daemon=True)

    def start(
        self,
        routes: Mapping[str, Route],
        protected: frozenset[str] = frozenset(),
        trees: Mapping[str, Tree] | None = None,
    ) -> None:
        """Starts the thread, which responds to a GET or HEAD of each path in `routes` with the result of its function.

        `trees` maps a prefix of paths to the function for all paths that begin with it; the function receives the rest
        of the path and the query. If the server has credentials, a client must send them for the paths in `trees` and
        in `protected`.
        """
        self._routes = routes
        self._trees = trees or {}
        self._protected = protected
        self._thread.start()

    def close(self) -> None:
        """Ends the thread, if it runs, and closes all connections. May be called only once."""
        with self._wake_lock:
            self._is_closing = True
            os.write(self._wake_write, b"\0")
        if self._thread.is_alive():
            self._thread.join()
        for client in list(self._clients.values()):
            self._drop(client)
        self._listener.close()
        os.close(self._wake_read)
        os.close(self._wake_write)

    def _wake(self) -> None:
        """Makes the server's thread check which pending responses are ready. May be called by any thread."""
        with self._wake_lock:
            if not self._is_closing:
                with suppress(BlockingIOError):  # the pipe is full, so the thread wakes up in any case
                    os.write(self._wake_write, b"\0")

    # -- the thread

    def _run(self) -> None:
        self._poll.register(self._listener, select.POLLIN)
        self._poll.register(self._wake_read, select.POLLIN)
        while True:
            for descriptor, _ in self._poll.poll(self._timeout_ms()):
                if descriptor == self._wake_read:
                    if self._is_closing:
                        return
                    os.read(self._wake_read, LARGEST_HEAD)
                    self._answer_pending()
                    continue
                if descriptor == self._listener.fileno():
                    self._accept()
                    continue
                client = self._clients.get(descriptor)
                if client is not None:
                    self._advance(client)
            self._expire()

    def _timeout_ms(self) -> int | None:
        if not self._clients:
            return None
        nearest_s = min(client.deadline_s for client in self._clients.values())
        return max(0, int((nearest_s - time.monotonic()) * 1000) + 1)

    def _accept(self) -> None:
        try:
            accepted, _ = self._listener.accept()
        except BlockingIOError:
            return
        except OSError as error:  # the client aborted, or no descriptor is left
            logger.warning("A connection for metrics could not be accepted: %s", error.strerror)
            time.sleep(0.1)
            return
        try:
            accepted.setblocking(False)
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._tls is not None:  # the first `recv` performs the handshake
                accepted = self._tls.wrap_socket(accepted, server_side=True, do_handshake_on_connect=False)
        except OSError:  # the client has reset the connection while it waited to be accepted
            accepted.close()
            return
        if len(self._clients) >= MOST_CONNECTIONS:
            self._drop(min(self._clients.values(), key=lambda client: client.deadline_s))
        self._clients[accepted.fileno()] = _Client(accepted, time.monotonic())
        self._poll.register(accepted, select.POLLIN)

    def _expire(self) -> None:
        now_s = time.monotonic()
        for client in [each for each in self._clients.values() if each.deadline_s <= now_s]:
            if client.pending is not None:
                self._send_answer(client, client.pending.otherwise)
            else:
                self._drop(client)

    def _answer_pending(self) -> None:
        for client in list(self._clients.values()):
            if client.pending is not None and client.pending.response is not None:
                self._send_answer(client, client.pending.response)

    def _drop(self, client: _Client) -> None:
        descriptor = client.socket.fileno()
        del self._clients[descriptor]
        self._poll.unregister(descriptor)
        client.outgoing.clear()
        client.socket.close()

    # -- one connection

    def _advance(self, client: _Client) -> None:
        """Sends as much of the response as is possible without waiting, or reads from the connection. Closes the
        connection if the client hangs up while it waits for a page."""
        try:
            if client.outgoing:
                self._send(client)
            elif client.pending is not None:
                self._drop(client)  # only a hang-up is polled for while a page is pending
            else:
                self._receive(client)
        except (BlockingIOError, InterruptedError):
            return
        except self._wants_read:
            self._poll.modify(client.socket, select.POLLIN)
        except self._wants_write:
            self._poll.modify(client.socket, select.POLLOUT)
        except OSError:
            self._drop(client)

    def _receive(self, client: _Client) -> None:
        while True:
            received = client.socket.recv(LARGEST_HEAD)
            if not received:
                self._drop(client)
                return
            if not client.received:
                client.deadline_s = time.monotonic() + HEAD_S
            client.received += received
            end = client.received.find(b"\r\n\r\n")
            if end >= 0:
                self._answer(client, bytes(client.received[:end]), is_alone=end + 4 == len(client.received))
                return
            if len(client.received) > LARGEST_HEAD:
                self._refuse(client, 431)
                return
            if self._tls is None:
                return
            # The TLS socket may have decrypted bytes, which `poll` does not report: read until it has none.

    def _answer(self, client: _Client, head: bytes, *, is_alone: bool) -> None:
        """Responds to the request whose head is `head`: with a page, or with an error status.

        `is_alone` is False if more bytes have arrived after the head; the connection is then closed after the response.
        """
        client.received.clear()
        lines = head.split(b"\r\n")
        words = lines[0].split(b" ")
        pairs = [line.partition(b":") for line in lines[1:]]
        exact = {name.strip().lower(): value.strip() for name, _, value in pairs}
        fields = {name: value.lower() for name, value in exact.items()}
        if len(words) != 3 or not words[2].startswith(b"HTTP/1."):
            self._refuse(client, 400)
            return
        method, target, version = words
        if b"transfer-encoding" in fields or fields.get(b"content-length", b"0") != b"0":
            self._refuse(client, 400)
            return
        connection = fields.get(b"connection", b"")
        wants_open = connection != b"close" if version == b"HTTP/1.1" else connection == b"keep-alive"
        client.keeps_open = wants_open and is_alone
        client.has_body = method != b"HEAD"
        if method not in METHODS:
            self._refuse(client, 405)
            return
        path, _, query = target.decode("ascii", "replace").partition("?")
        route = self._routes.get(path) or self._in_tree(path, query)
        if route is None:
            known = " ".join((*self._routes, *self._trees))
            self._begin(client, Response(f"There is no page at this path; the pages are: {known}\n".encode(), 404))
            return
        is_protected = path in self._protected or path not in self._routes
        if is_protected and not self._is_authorized(exact.get(b"authorization", b"")):
            self._begin(client, Response(b"User name and password are needed.\n", 401))
            return
        made = self._call(path, route)
        if isinstance(made, Pending):
            self._wait(client, made)
        else:
            self._begin(client, made)

    def _in_tree(self, path: str, query: str) -> Route | None:
        """Returns the function that makes the page at a path below a prefix in `trees`; None if there is no such
        prefix."""
        for prefix, tree in self._trees.items():
            if path.startswith(prefix):
                return lambda: tree(path.removeprefix(prefix), query)
        return None

    def _is_authorized(self, authorization: bytes) -> bool:
        return self._credentials is None or self._credentials.accepts(authorization)

    def _wait(self, client: _Client, pending: Pending) -> None:
        pending.wake = self._wake
        if pending.response is not None:
            self._begin(client, pending.response)
            return
        client.pending = pending
        client.deadline_s = time.monotonic() + pending.patience_s
        self._poll.modify(client.socket, 0)

    def _call(self, path: str, route: Route) -> Response | Pending:
        try:
            return route()
        except Exception:
            logger.exception("The page %s could not be made", path)
            return Response(b"The page could not be made; the log has the reason.\n", 500)

    def _refuse(self, client: _Client, status: int) -> None:
        """Responds with the error `status`, and closes the connection, because the following bytes cannot be parsed."""
        client.keeps_open = False
        client.has_body = True
        self._begin(client, Response(f"{REASONS[status]}\n".encode(), status))

    def _begin(self, client: _Client, response: Response) -> None:
        body = memoryview(response.body)
        head = (
            f"HTTP/1.1 {response.status} {REASONS[response.status]}\r\nContent-Type: {response.content_type}\r\n"
            f"{_CHALLENGE if response.status == 401 else ''}"
            f"Content-Length: {len(body)}\r\nConnection: {'keep-alive' if client.keeps_open else 'close'}\r\n\r\n"
        )
        client.outgoing = [memoryview(head.encode())]
        if client.has_body and len(body):
            client.outgoing.append(body)
        client.deadline_s = time.monotonic() + SEND_S
        self._poll.modify(client.socket, select.POLLOUT)
        self._send(client)

    def _send_answer(self, client: _Client, response: Response) -> None:
        """Sends `response` to a client that has waited for a Pending response. It is the response that another thread
        has passed to `resolve` or, if that took longer than `patience_s`, the response `otherwise`."""
        client.pending = None
        try:
            self._begin(client, response)
        except BlockingIOError:
            return
        except OSError as error:
            if isinstance(error, (*self._wants_read, *self._wants_write)):
                return
            self._drop(client)

    def _send(self, client: _Client) -> None:
        while client.outgoing:
            sent = client.socket.send(client.outgoing[0])
            if sent == len(client.outgoing[0]):
                client.outgoing.pop(0)
            else:
                client.outgoing[0] = client.outgoing[0][sent:]
        if not client.keeps_open:
            self._drop(client)
            return
        client.deadline_s = time.monotonic() + IDLE_S
        self._poll.modify(client.socket, select.POLLIN)
