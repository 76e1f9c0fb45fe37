"""A session with ZooKeeper. The session has one connection to a server at a time, and opens another one when that
connection is lost."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections import deque
from collections.abc import Callable

from kafkapy.errors import ProtocolViolation
from kafkapy.readable import is_readable
from kafkapy.tools.zookeeper.connect_string import ConnectString
from kafkapy.tools.zookeeper.errors import (
    AUTH_FAILED,
    CONNECTION_LOSS,
    SESSION_EXPIRED,
    ConnectError,
    ZooKeeperRequestError,
)
from kafkapy.tools.zookeeper.replies import Event, EventKind, State
from kafkapy.zookeeper.jute import JuteReader, encode_bool, encode_buffer, encode_int, encode_long
from kafkapy.zookeeper.requests import AUTH_XID, NOTIFICATION_XID, PING_XID, Op

_PAUSE_S = 0.1
_LARGEST_REPLY_BYTES = 64 << 20


class _Call:
    """A request that waits for its reply: its number, and later the body and the error code of the reply."""

    def __init__(self, xid: int) -> None:
        self.xid = xid
        self.body = b""
        self.error = 0
        self.done = threading.Event()


class Connection:
    """Sends requests and waits for their replies; a thread of its own receives, pings and connects again.

    `on_event` is called with each event: by the caller of `open` for the first connection, and then by the thread. When
    the thread has continued the session on a new connection, it calls `frames_after_reconnect(last_zxid)` with the
    number of the last change that was received. The frames that this function returns are sent on the new connection
    before all other requests, and the replies to them are ignored.
    """

    def __init__(
        self,
        connect_string: ConnectString,
        timeout_ms: int,
        on_event: Callable[[Event], None],
        frames_after_reconnect: Callable[[int], list[bytes]],
        *,
        accepts_read_only: bool = False,
    ) -> None:
        self._servers = connect_string.servers
        self._timeout_ms = timeout_ms
        self._on_event = on_event
        self._frames_after_reconnect = frames_after_reconnect
        self._accepts_read_only = accepts_read_only
        self._lock = threading.Lock()
        self._calls: deque[_Call] = deque()
        self._socket: socket.socket | None = None
        self._session_id, self._password = 0, bytes(16)
        self._xid, self._last_zxid = 0, 0
        self._is_alive = False
        self._thread = threading.Thread(target=self._receive_until_the_end, name="zookeeper-client", daemon=True)

    @property
    def is_alive(self) -> bool:
        """True if the session exists, even if it has no connection now."""
        return self._is_alive

    def open(self, patience_s: float) -> None:
        """Opens a session with the first server that accepts one. Raises ConnectError after `patience_s` seconds."""
        deadline = time.monotonic() + patience_s
        while (failures := self._connect()) is not None:
            if time.monotonic() >= deadline:
                raise ConnectError("; ".join(failures))
            time.sleep(_PAUSE_S)
        self._is_alive = True
        self._thread.start()

    def call(self, op: int, body: bytes, path: str | None, xid: int | None = None) -> JuteReader:
        """Sends a request with the operation code `op`, waits for its reply, and returns a reader of the reply's body.

        `xid` is the number of the request; None means the next free number. Raises ZooKeeperRequestError if the server
        refuses the request or the connection is lost; `path` is named in the message.
        """
        with self._lock:
            if not self._is_alive or self._socket is None:
                raise ZooKeeperRequestError(CONNECTION_LOSS, path)
            self._xid += 1
            call = _Call(self._xid if xid is None else xid)
            self._calls.append(call)
            try:
                _send(self._socket, encode_int(call.xid) + encode_int(op) + body)
            except OSError:
                self._calls.remove(call)
                raise ZooKeeperRequestError(CONNECTION_LOSS, path) from None
            if op == Op.CLOSE_SESSION:
                self._is_alive = False  # the server ends the connection after its reply
        call.done.wait()
        if call.error:
            raise ZooKeeperRequestError(call.error, path)
        return JuteReader(call.body)

    def close(self) -> None:
        """Closes the session, and waits for the end of the thread."""
        if self._is_alive:
            with contextlib.suppress(ZooKeeperRequestError):
                self.call(Op.CLOSE_SESSION, b"", None)
        self._is_alive = False
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
        if self._thread.is_alive():
            self._thread.join()

    # -- the thread

    def _receive_until_the_end(self) -> None:
        while self._is_alive:
            try:
                self._receive()
            except (OSError, ProtocolViolation):
                self._lose_connection(CONNECTION_LOSS)
                if self._is_alive:
                    self._on_event(Event(State.DISCONNECTED))
                    self._connect_again()

    def _receive(self) -> None:
        """Handles the frames that arrive until the connection is lost, which raises OSError or ProtocolViolation.

        Pings the server if no frame has arrived for a third of the session's timeout, and raises TimeoutError if no
        frame arrives within another third.
        """
        connection = self._socket
        assert connection is not None
        while True:
            if is_readable(connection, self._timeout_ms / 3000):
                self._handle(_receive_frame(connection))
                continue
            with self._lock:
                _send(connection, encode_int(PING_XID) + encode_int(Op.PING))
            if not is_readable(connection, self._timeout_ms / 3000):
                raise TimeoutError("the server does not answer")

    def _handle(self, frame: bytes) -> None:
        reader = JuteReader(frame)
        xid, zxid, error = reader.read_int(), reader.read_long(), reader.read_int()
        if zxid > 0:
            self._last_zxid = zxid
        if xid == PING_XID:
            return
        if xid == NOTIFICATION_XID:
            kind, state = reader.read_int(), reader.read_int()
            if kind not in tuple(EventKind) or state not in tuple(State):
                raise ProtocolViolation(f"an event of type {kind} in state {state}")
            self._on_event(Event(State(state), EventKind(kind), reader.read_text(), zxid))
            return
        with self._lock:
            call = next((each for each in self._calls if each.xid == xid), None)
            if call is not None:
                self._calls.remove(call)
        if call is None:
            return  # the reply to a frame that restores watches
        call.error, call.body = error, reader.read_bytes(reader.remaining)
        if xid == AUTH_XID and error == AUTH_FAILED:
            self._is_alive = False
        call.done.set()

    def _lose_connection(self, code: int) -> None:
        """Closes the socket; the requests that wait for replies fail with the error code `code` of ZooKeeper."""
        with self._lock:
            if self._socket is not None:
                self._socket.close()
                self._socket = None
            calls, self._calls = self._calls, deque()
        for call in calls:
            call.error = code
            call.done.set()

    def _connect_again(self) -> None:
        while self._is_alive:
            if self._connect() is None:
                if not self._session_id:
                    self._is_alive = False
                    self._on_event(Event(State.EXPIRED))
                    self._lose_connection(SESSION_EXPIRED)
                return
            time.sleep(_PAUSE_S)

    def _connect(self) -> list[str] | None:
        """Connects to the first server that accepts a connection, and opens or continues the session.

        Returns None if a server has answered, otherwise a list with the reason for each server. If the server has
        answered that the session has expired, the session's id is 0 afterwards.
        """
        failures = []
        for host, port in self._servers:
            try:
                connection = socket.create_connection((host, port), self._timeout_ms / 1000)
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._open_session(connection)
            except (OSError, UnicodeError, ProtocolViolation) as error:
                failures.append(f"{host}:{port}: {getattr(error, 'strerror', None) or error}")
                continue
            return None
        return failures

    def _open_session(self, connection: socket.socket) -> None:
        is_first = not self._session_id
        _send(
            connection,
            encode_int(0)
            + encode_long(self._last_zxid)
            + encode_int(self._timeout_ms)
            + encode_long(self._session_id)
            + encode_buffer(self._password)
            + encode_bool(self._accepts_read_only),
        )
        reader = JuteReader(_receive_frame(connection))
        reader.read_int()
        timeout_ms, self._session_id = reader.read_int(), reader.read_long()
        self._password = reader.read_buffer() or bytes(16)
        if not self._session_id:
            connection.close()
            if is_first:
                raise ProtocolViolation("the server opens no session")
            return
        self._timeout_ms = timeout_ms
        if not is_first:
            for frame in self._frames_after_reconnect(self._last_zxid):
                _send(connection, frame)
        with self._lock:
            self._socket = connection
        self._on_event(Event(State.SYNC_CONNECTED))


def _send(connection: socket.socket, frame: bytes) -> None:
    connection.sendall(encode_int(len(frame)) + frame)


def _receive_frame(connection: socket.socket) -> bytes:
    """Returns the next frame. Raises OSError at the end of the connection, and ProtocolViolation for a wrong size."""
    size = JuteReader(_receive_exactly(connection, 4)).read_int()
    if not 0 <= size <= _LARGEST_REPLY_BYTES:
        raise ProtocolViolation(f"a frame of {size} bytes: this is no server of ZooKeeper's protocol")
    return _receive_exactly(connection, size)


def _receive_exactly(connection: socket.socket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        part = connection.recv(min(size - len(parts), 1 << 16))
        if not part:
            raise ConnectionError("the server has closed the connection")
        parts += part
    return bytes(parts)
