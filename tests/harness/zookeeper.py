"""The part of a broker that serves ZooKeeper's clients, on a log in memory, with clients that encode and decode
messages."""

from __future__ import annotations

import socket
import struct
from abc import ABC, abstractmethod
from typing import NamedTuple

from kafkapy.coordinator.runtime import CoordinatorRuntime
from kafkapy.metadata.internal_topics import ZOOKEEPER_TREE_TOPIC
from kafkapy.zookeeper.acl import OPEN_ACL, PLAIN_SCHEMES
from kafkapy.zookeeper.client import Client
from kafkapy.zookeeper.jute import (
    JuteReader,
    encode_bool,
    encode_buffer,
    encode_int,
    encode_long,
    encode_string,
    encode_strings,
)
from kafkapy.zookeeper.requests import Op, encode_acl
from kafkapy.zookeeper.server import ZooKeeperServer
from kafkapy.zookeeper.settings import ZooKeeperSettings
from kafkapy.zookeeper.shard import ZooKeeperShard
from tests.memory_coordinator_log import MemoryCoordinatorLog
from tests.mock_scheduler import MockScheduler
from tests.reactor_harness import receive_frame

SETTINGS = ZooKeeperSettings(
    min_session_timeout_ms=4000,
    max_session_timeout_ms=40000,
    max_connections_per_address=60,
    max_request_bytes=1 << 20,
    view_chroot="",
    is_view_writable=True,
    has_acls=True,
    acl_schemes=PLAIN_SCHEMES,
    is_sasl_required=False,
)
OPEN = encode_acl(OPEN_ACL)


class Reply(NamedTuple):
    xid: int
    zxid: int
    error: int
    body: bytes


class Stat(NamedTuple):
    czxid: int
    mzxid: int
    ctime: int
    mtime: int
    version: int
    cversion: int
    aversion: int
    owner: int
    length: int
    children: int
    pzxid: int


def read_stat(reader: JuteReader) -> Stat:
    return Stat._make(struct.unpack(">qqqqiiiqiiq", reader.read_bytes(68)))


class ZooKeeperHarness:
    """The part of one broker that serves the ZooKeeper tree. `restart` loads the tree again from the log."""

    def __init__(self, settings: ZooKeeperSettings = SETTINGS) -> None:
        self.settings = settings
        self.log = MemoryCoordinatorLog()
        self.scheduler = MockScheduler()
        self.epoch = 0
        self.server: ZooKeeperServer | None = None
        self.runtime: CoordinatorRuntime[ZooKeeperShard] = CoordinatorRuntime(
            ZOOKEEPER_TREE_TOPIC,
            log=self.log,
            make_shard=lambda context: ZooKeeperShard(context, self._loaded, self._lost),
            schedule=self.scheduler.schedule,
            clock=self.scheduler.clock,
            load_buffer_bytes=1 << 20,
        )
        self.elect()

    def elect(self) -> None:
        self.runtime.elect(0, self.epoch)
        self.epoch += 1
        self.scheduler.advance(0)

    def restart(self) -> None:
        self.runtime.resign(0)
        self.elect()

    def client(self, timeout_ms: int = 10_000) -> TestClient:
        """Returns a client with a session of its own."""
        client = TestClient(self)
        client.connect(timeout_ms=timeout_ms)
        return client

    def _loaded(self, shard: ZooKeeperShard) -> None:
        self.server = ZooKeeperServer(shard, self.runtime, self.settings, self.scheduler.schedule, self.scheduler.clock)

    def _lost(self) -> None:
        if self.server is not None:
            self.server.stop("lost")
            self.server = None


def connect_body(
    session_id: int = 0, password: bytes = bytes(16), timeout_ms: int = 10_000, last_zxid: int = 0
) -> bytes:
    """Returns the first frame of a connection."""
    numbers = encode_int(0) + encode_long(last_zxid) + encode_int(timeout_ms) + encode_long(session_id)
    return numbers + encode_buffer(password) + encode_bool(False)


class ProtocolClient(ABC):
    """A client that encodes requests and decodes replies. Each request returns the body of its reply, or raises
    `ZooKeeperReplyError`; watch events stay in `frames` until `events` takes them."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []
        self.session_id = 0
        self.password = bytes(16)
        self.timeout_ms = 0
        self._xid = 0

    @abstractmethod
    def transmit(self, frame: bytes) -> None:
        """Sends one frame to the server."""

    def wait_for_frame(self) -> None:
        """Waits until another frame is in `frames`. Raises AssertionError if none can come."""
        raise AssertionError("the server has not replied")

    # -- requests

    def connect(
        self, session_id: int = 0, password: bytes = bytes(16), timeout_ms: int = 10_000, last_zxid: int = 0
    ) -> None:
        self.transmit(connect_body(session_id, password, timeout_ms, last_zxid))
        self.take_session()

    def take_session(self) -> None:
        """Reads the response to the request for a session, and stores the session's time-out, id and password."""
        if not self.frames:
            self.wait_for_frame()
        reader = JuteReader(self.frames.pop(0))
        reader.read_int()
        self.timeout_ms, self.session_id = reader.read_int(), reader.read_long()
        self.password = reader.read_buffer() or b""

    def submit(self, op: int, body: bytes = b"", xid: int | None = None) -> int:
        """Sends a request, and returns its xid."""
        self._xid += 1
        number = self._xid if xid is None else xid
        self.transmit(encode_int(number) + encode_int(op) + body)
        return number

    def call(self, op: int, body: bytes = b"", xid: int | None = None) -> JuteReader:
        """Sends a request, and returns a reader of its reply's body; events before the reply stay in `frames`."""
        number = self.submit(op, body, xid)
        index = 0
        while True:
            while index == len(self.frames):
                self.wait_for_frame()
            reply = read_reply(self.frames[index])
            if reply.xid == number:
                del self.frames[index]
                if reply.error:
                    raise ZooKeeperReplyError(reply.error)
                return JuteReader(reply.body)
            index += 1

    def events(self) -> list[tuple[int, str]]:
        """Returns, and forgets, the watch events that have arrived, as (type, path)."""
        found = []
        for frame in list(self.frames):
            reply = read_reply(frame)
            if reply.xid == -1:
                self.frames.remove(frame)
                reader = JuteReader(reply.body)
                kind, state = reader.read_int(), reader.read_int()
                assert state == 3
                found.append((kind, reader.read_text()))
        return found

    def create(self, path: str, data: bytes = b"", flags: int = 0, acl: bytes = OPEN) -> str:
        return self.call(Op.CREATE, create_body(path, data, flags, acl)).read_text()

    def delete(self, path: str, version: int = -1) -> None:
        self.call(Op.DELETE, encode_string(path) + encode_int(version))

    def set(self, path: str, data: bytes, version: int = -1) -> Stat:
        body = encode_string(path) + encode_buffer(data) + encode_int(version)
        return read_stat(self.call(Op.SET_DATA, body))

    def get(self, path: str, watch: bool = False) -> tuple[bytes | None, Stat]:
        reader = self.call(Op.GET_DATA, encode_string(path) + encode_bool(watch))
        return reader.read_buffer(), read_stat(reader)

    def exists(self, path: str, watch: bool = False) -> Stat:
        return read_stat(self.call(Op.EXISTS, encode_string(path) + encode_bool(watch)))

    def children(self, path: str, watch: bool = False) -> list[str]:
        return self.call(Op.GET_CHILDREN, encode_string(path) + encode_bool(watch)).read_texts()

    def authenticate(self, credentials: bytes) -> None:
        body = encode_int(0) + encode_string("digest") + encode_buffer(credentials)
        self.call(Op.AUTH, body, xid=-4)

    def close_session(self) -> None:
        self.call(Op.CLOSE_SESSION)

    def delete_all(self, path: str) -> None:
        """Deletes a node with all its descendants."""
        for name in self.children(path):
            self.delete_all(f"{path}/{name}")
        self.delete(path)

    def set_watches(self, zxid: int, data: list[str], exist: list[str], children: list[str]) -> None:
        body = encode_long(zxid) + encode_strings(data) + encode_strings(exist) + encode_strings(children)
        self.call(Op.SET_WATCHES, body, xid=-8)


class TestClient(ProtocolClient):
    """A client of the harness."""

    __test__ = False

    def __init__(self, harness: ZooKeeperHarness, address: str = "127.0.0.1") -> None:
        super().__init__()
        self.peer_host = address
        self.is_closed = False
        self.held = 0  # bytes of frames that wait in the outbox
        assert harness.server is not None
        self.server = harness.server
        self.connection = Client(self)
        self.server.connected(self.connection)

    def transmit(self, frame: bytes) -> None:
        self.server.receive(self.connection, frame)

    def take_session(self) -> None:
        """Reads the response as the base class does, unless the server has refused the connection."""
        if self.frames:
            super().take_session()

    # -- the port of the server

    def send(self, frame: bytes) -> None:
        assert not self.is_closed
        self.frames.append(frame)

    def hold(self, size: int) -> None:
        self.held += size

    def close(self, reason: str) -> None:
        self.is_closed = True


class SocketClient(ProtocolClient):
    """A client of a running server at `address`, host:port."""

    def __init__(self, address: str) -> None:
        super().__init__()
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=30)

    def transmit(self, frame: bytes) -> None:
        self._socket.sendall(encode_int(len(frame)) + frame)

    def wait_for_frame(self) -> None:
        self.frames.append(receive_frame(self._socket))

    def disconnect(self) -> None:
        """Closes the connection, but not the session."""
        self._socket.close()


class ZooKeeperReplyError(Exception):
    """A reply with an error; its code is the only argument."""


def create_body(path: str, data: bytes | None = b"", flags: int = 0, acl: bytes = OPEN) -> bytes:
    return encode_string(path) + encode_buffer(data) + acl + encode_int(flags)


def read_reply(frame: bytes) -> Reply:
    reader = JuteReader(frame)
    return Reply(reader.read_int(), reader.read_long(), reader.read_int(), reader.read_bytes(reader.remaining))
