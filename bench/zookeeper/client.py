"""Clients of ZooKeeper's protocol that load a server: sessions on plain sockets, which send many requests at once.

The requests are encoded before the load. Of the replies only the first ones are decoded; of the others the bytes are
counted, so that a load uses little processor time.
"""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Iterator, Sequence
from itertools import cycle
from typing import NamedTuple

from kafkapy.zookeeper.acl import OPEN_ACL
from kafkapy.zookeeper.jute import (
    JuteReader,
    encode_bool,
    encode_buffer,
    encode_int,
    encode_long,
    encode_string,
)
from kafkapy.zookeeper.requests import NOTIFICATION_XID, PING_XID, Op, encode_acl

HOST = "127.0.0.1"
TIMEOUT_MS = 60_000
REQUEST_TIMEOUT_S = 120.0
# How many batches of each session are in flight: the server has work while the load handles the replies of one batch.
BATCHES_IN_FLIGHT = 2
_RECEIVE_BYTES = 1 << 18
_REPLY_HEADER_BYTES = 16  # xid, zxid, error


class Request(NamedTuple):
    """A request without its header."""

    op: int
    body: bytes


def get_data(path: str, watches: bool = False) -> Request:
    return Request(Op.GET_DATA, encode_string(path) + encode_bool(watches))


def exists(path: str) -> Request:
    return Request(Op.EXISTS, encode_string(path) + encode_bool(False))


def get_children(path: str) -> Request:
    return Request(Op.GET_CHILDREN, encode_string(path) + encode_bool(False))


def set_data(path: str, data: bytes) -> Request:
    return Request(Op.SET_DATA, encode_string(path) + encode_buffer(data) + encode_int(-1))


def create(path: str, data: bytes) -> Request:
    """Returns a request that creates a persistent node with the open ACL."""
    return Request(Op.CREATE, encode_string(path) + encode_buffer(data) + encode_acl(OPEN_ACL) + encode_int(0))


def delete(path: str) -> Request:
    return Request(Op.DELETE, encode_string(path) + encode_int(-1))


def check(path: str) -> Request:
    return Request(Op.CHECK, encode_string(path) + encode_int(-1))


def multi(requests: Sequence[Request]) -> Request:
    """Returns the request that makes all changes of `requests` or none."""
    parts = [encode_int(op) + encode_bool(False) + encode_int(-1) + body for op, body in requests]
    return Request(Op.MULTI, b"".join(parts) + encode_int(-1) + encode_bool(True) + encode_int(-1))


PING = Request(Op.PING, b"")


def encode_batch(requests: Sequence[Request]) -> bytes:
    """Returns the frames of the requests, whose xids are 1, 2, and so on; a ping has the xid PING_XID."""
    frames = []
    for xid, (op, body) in enumerate(requests, 1):
        frame = encode_int(PING_XID if op == Op.PING else xid) + encode_int(op) + body
        frames.append(encode_int(len(frame)) + frame)
    return b"".join(frames)


class Session:
    """A session on one connection. Not thread-safe."""

    def __init__(self, port: int, timeout_ms: int = TIMEOUT_MS) -> None:
        """Opens the session. Raises OSError if the server at `port` does not accept it."""
        self.socket = socket.create_connection((HOST, port), REQUEST_TIMEOUT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = b""
        connect = encode_int(0) + encode_long(0) + encode_int(timeout_ms) + encode_long(0) + encode_buffer(bytes(16))
        self.socket.sendall(encode_buffer(connect + encode_bool(False)))
        reader = JuteReader(self._frame())
        reader.read_int()
        self.timeout_ms, self.id = reader.read_int(), reader.read_long()

    def ask(self, request: Request) -> bytes:
        """Sends a request and returns the body of its reply. Raises RuntimeError if the reply has an error."""
        self.socket.sendall(encode_batch([request]))
        return self.reply()

    def reply(self) -> bytes:
        """Returns the body of the next reply. Raises RuntimeError if the reply has an error."""
        frame = self._frame()
        reader = JuteReader(frame)
        xid, _, error = reader.read_int(), reader.read_long(), reader.read_int()
        if error:
            raise RuntimeError(f"request {xid} was answered with error {error}")
        return frame[_REPLY_HEADER_BYTES:]

    def ask_all(self, requests: Sequence[Request]) -> int:
        """Sends a batch, waits for all replies, and returns their size in bytes.

        Raises RuntimeError if a reply has an error.
        """
        self.socket.sendall(encode_batch(requests))
        size = 0
        for request in requests:
            body = self.reply()
            if request.op == Op.MULTI and body.startswith(encode_int(Op.ERROR)):
                raise RuntimeError("a multi has failed")
            size += len(body) + _REPLY_HEADER_BYTES + 4
        return size

    def event(self) -> None:
        """Waits for a watch event. Raises RuntimeError if something else arrives."""
        if JuteReader(self._frame()).read_int() != NOTIFICATION_XID:
            raise RuntimeError("a reply arrived instead of a watch event")

    def close(self) -> None:
        """Closes the session at the server, and the connection."""
        try:
            self.ask(Request(Op.CLOSE_SESSION, b""))
        finally:
            self.socket.close()

    def _frame(self) -> bytes:
        size = int.from_bytes(self._exactly(4), "big")
        return self._exactly(size)

    def _exactly(self, size: int) -> bytes:
        while len(self._buffer) < size:
            received = self.socket.recv(_RECEIVE_BYTES)
            if not received:
                raise ConnectionError("the server has closed the connection")
            self._buffer += received
        found, self._buffer = self._buffer[:size], self._buffer[size:]
        return found


class Stream:
    """A session with its batches of requests, of which some are always in flight.

    All batches must have the same number of requests, and replies of the same size in total.
    """

    def __init__(self, session: Session, batches: Sequence[Sequence[Request]], *, repeat: bool) -> None:
        """Sends the first batch and checks each of its replies; with `repeat` the batches are sent again and again."""
        self.session = session
        self.requests = len(batches[0])
        self._reply_bytes = session.ask_all(batches[0])
        self._received = 0
        encoded = [encode_batch(batch) for batch in batches]
        self._batches: Iterator[bytes] = cycle(encoded) if repeat else iter(encoded[1:])
        self.in_flight = 0

    def send(self) -> None:
        """Sends the next batch, if there is one."""
        batch = next(self._batches, None)
        if batch is not None:
            self.session.socket.sendall(batch)
            self.in_flight += 1

    def receive(self, buffer: bytearray) -> int:
        """Reads the bytes that have arrived; returns the number of batches that are answered by them."""
        count = self.session.socket.recv_into(buffer)
        if not count:
            raise ConnectionError("the server has closed the connection")
        batches, self._received = divmod(self._received + count, self._reply_bytes)
        self.in_flight -= batches
        return batches


class Rate(NamedTuple):
    """The result of a load: the number of answered requests, its duration, and the processor time of the load."""

    requests: int
    seconds: float
    load_cpu_seconds: float


def drive(streams: Sequence[Stream], seconds: float = float("inf")) -> Rate:
    """Sends the batches of all streams for `seconds`, or each one once; waits for all replies.

    Raises TimeoutError if the server does not reply, and ConnectionError if it closes a connection.
    """
    by_descriptor = {stream.session.socket.fileno(): stream for stream in streams}
    buffer = bytearray(_RECEIVE_BYTES)
    requests = 0
    used_s, began_s = time.process_time(), time.monotonic()
    with select.epoll() as poll:
        for descriptor, stream in by_descriptor.items():
            poll.register(descriptor, select.EPOLLIN)
            for _ in range(BATCHES_IN_FLIGHT):
                stream.send()
        waiting = sum(stream.in_flight > 0 for stream in streams)
        while waiting:
            ready = poll.poll(REQUEST_TIMEOUT_S)
            if not ready:
                raise TimeoutError(f"no reply within {REQUEST_TIMEOUT_S} s")
            is_over = time.monotonic() - began_s > seconds
            for descriptor, _ in ready:
                stream = by_descriptor[descriptor]
                answered = stream.receive(buffer)
                requests += answered * stream.requests
                for _ in range(0 if is_over else answered):
                    stream.send()
                waiting -= answered > 0 and stream.in_flight == 0
    return Rate(requests, time.monotonic() - began_s, time.process_time() - used_s)


def await_events(sessions: Sequence[Session]) -> None:
    """Waits until each session has received a watch event, in any order. Raises TimeoutError if one does not."""
    by_descriptor = {session.socket.fileno(): session for session in sessions}
    with select.epoll() as poll:
        for descriptor in by_descriptor:
            poll.register(descriptor, select.EPOLLIN | select.EPOLLONESHOT)
        waiting = len(sessions)
        while waiting:
            ready = poll.poll(REQUEST_TIMEOUT_S)
            if not ready:
                raise TimeoutError(f"{waiting} sessions have received no event within {REQUEST_TIMEOUT_S} s")
            for descriptor, _ in ready:
                by_descriptor[descriptor].event()
            waiting -= len(ready)
