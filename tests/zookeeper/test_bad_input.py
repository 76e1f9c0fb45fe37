"""Bad input to the listener and to Apache ZooKeeper 3.9 has equal results, and the broker's log has a line about it."""

from __future__ import annotations

import re
import struct
import time
from collections.abc import Callable
from contextlib import suppress

import pytest

from kafkapy.zookeeper.jute import encode_bool, encode_buffer, encode_int, encode_long, encode_string
from kafkapy.zookeeper.requests import PING_XID, Op
from tests.harness.quorum_nodes import wait_until
from tests.harness.zookeeper import OPEN, Reply, SocketClient, connect_body, create_body, read_reply
from tests.zookeeper.listening_broker import ListeningBroker
from tests.zookeeper.real_zookeeper import RealZooKeeper

pytestmark = pytest.mark.peer
LARGEST_FRAME = 1_048_575
TIMEOUT_S = 10
QUIET_S = 1
EPHEMERAL = 1
PING = encode_int(8) + encode_int(PING_XID) + encode_int(Op.PING)

# Returns the id and password of a session that a client sends instead of its own.
Change = Callable[[int, bytes], tuple[int, bytes]]


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    with ListeningBroker(tmp_path_factory.mktemp("served")) as broker:
        yield broker


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    with RealZooKeeper(tmp_path_factory.mktemp("real")) as real:
        yield real


class RawClient(SocketClient):
    """A client with a session that sends any bytes, and reports what comes back."""

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self._socket.settimeout(TIMEOUT_S)

    def send(self, data: bytes) -> None:
        with suppress(ConnectionError):  # the server may refuse a long frame before it is complete; see `outcome`
            self._socket.sendall(data)

    def outcome(self) -> list[object]:
        """Returns the error codes of the replies that arrive, and at last whether the connection ended or stays.

        A ping follows when nothing more arrives, because ZooKeeper may answer one before it closes the connection.
        """
        found: list[object] = []
        self._socket.settimeout(QUIET_S)
        try:
            while (reply := self._reply()).xid != PING_XID:
                found.append(reply.error)
        except (ConnectionError, EOFError):
            return [*found, "closed"]
        return [*found, "open"]

    def _reply(self) -> Reply:
        try:
            self.wait_for_frame()
        except TimeoutError:
            self._socket.settimeout(TIMEOUT_S)
            self.send(PING)
            self.wait_for_frame()
        return read_reply(self.frames.pop(0))


def connected(address: str) -> RawClient:
    deadline = time.monotonic() + 30
    while True:
        try:
            client = RawClient(address)
            client.connect()
            return client
        except OSError:
            assert time.monotonic() < deadline
            time.sleep(0.05)


def request(op: int, body: bytes) -> bytes:
    frame = encode_int(1) + encode_int(op) + body
    return encode_int(len(frame)) + frame


def text_beyond_the_frame(length: int) -> bytes:
    return encode_int(length) + b"/a"


MULTI_END = encode_int(-1) + encode_bool(True) + encode_int(-1)


def multi(op: int, body: bytes) -> bytes:
    return encode_int(op) + encode_bool(False) + encode_int(-1) + body + MULTI_END


# name -> the bytes that a client with a session sends
BAD_REQUESTS = {
    "a frame of negative length": struct.pack(">i", -1),
    "a frame of the least length": struct.pack(">i", -(1 << 31)),
    "a frame beyond the limit": struct.pack(">i", LARGEST_FRAME + 1),
    "a frame of two gigabytes": struct.pack(">i", (1 << 31) - 1),
    "an HTTP request": b"GET / HTTP/1.1\r\n\r\n",
    "an empty frame": encode_int(0),
    "a frame without an operation": encode_int(4) + encode_int(1),
    "an unknown operation": request(77, b""),
    "a negative operation": request(-77, b""),
    "a path beyond the frame": request(Op.CREATE, text_beyond_the_frame(1 << 30)),
    "a path of negative length": request(Op.CREATE, text_beyond_the_frame(-2)),
    "a path one byte beyond the frame": request(Op.EXISTS, text_beyond_the_frame(3)),
    "data beyond the frame": request(Op.CREATE, encode_string("/a") + text_beyond_the_frame(1 << 20) + OPEN),
    "data of negative length": request(Op.CREATE, encode_string("/a") + encode_int(-7) + OPEN + encode_int(0)),
    "an ACL of 2 ** 31 - 1 entries": request(
        Op.CREATE, encode_string("/a") + encode_buffer(b"") + encode_int((1 << 31) - 1)
    ),
    "a null path": request(Op.EXISTS, encode_int(-1) + encode_bool(False)),
    "no body": request(Op.SET_DATA, b""),
    "a multi with an operation that it may not have": request(Op.MULTI, multi(Op.EXISTS, encode_string("/"))),
    "a multi without an end": request(Op.MULTI, multi(Op.CREATE, create_body("/b"))[: -len(MULTI_END)]),
    "a multi with an unknown operation": request(Op.MULTI, multi(99, b"")),
    "a multiRead with a write": request(Op.MULTI_READ, multi(Op.DELETE, encode_string("/b") + encode_int(-1))),
    "watches of 2 ** 31 - 1 paths": request(Op.SET_WATCHES, encode_long(0) + encode_int((1 << 31) - 1)),
    "a watch of an unknown mode": request(Op.ADD_WATCH, encode_string("/") + encode_int(9)),
    "an unknown kind of watches to remove": request(Op.REMOVE_WATCHES, encode_string("/") + encode_int(9)),
    "a scheme that does not exist": encode_int(24)
    + encode_int(-4) + encode_int(Op.AUTH) + encode_int(0) + encode_string("none") + encode_buffer(b""),
}  # fmt: skip


def answer(address: str, data: bytes) -> list[object]:
    client = connected(address)
    client.send(data)
    found = client.outcome()
    client.disconnect()
    return found


@pytest.mark.parametrize("name", BAD_REQUESTS)
def test_a_bad_request_ends_as_with_zookeeper(broker, real, name):
    position = len(broker.log())
    ours, theirs = answer(broker.zookeeper, BAD_REQUESTS[name]), answer(real.zookeeper, BAD_REQUESTS[name])
    assert ours == theirs
    wait_until(lambda: " of /127.0.0.1" in broker.log(position) or " /127.0.0.1 " in broker.log(position), "not logged")


# Requests that can be decoded, whose content is refused like that of any other request.
REFUSED_CONTENT = {
    "an ACL of negative length": request(
        Op.CREATE, encode_string("/a") + encode_buffer(b"") + encode_int(-2) + encode_int(0)
    ),
    "a path that is no UTF-8": request(Op.EXISTS, encode_buffer(b"/\xff\xfe") + encode_bool(False)),
    "a new path that is no UTF-8": request(
        Op.CREATE, encode_buffer(b"/\xff\xfe") + encode_buffer(b"") + OPEN + bytes(4)
    ),
    "flags that no mode has": request(Op.CREATE, create_body("/flags", flags=99)),
}


@pytest.mark.parametrize("name", REFUSED_CONTENT)
def test_wrong_content_is_refused_as_by_zookeeper(broker, real, name):
    data = REFUSED_CONTENT[name]
    assert answer(broker.zookeeper, data) == answer(real.zookeeper, data)


FIRST_FRAMES = {
    "an empty frame": encode_int(0),
    "a frame of negative length": encode_int(-1),
    "a frame beyond the limit": encode_int(LARGEST_FRAME + 1),
    "half a request for a session": encode_int(20) + connect_body()[:20],
    "a password beyond the frame": encode_int(32) + connect_body()[:24] + encode_int(1 << 30) + bytes(4),
    "a password of negative length": encode_int(32) + connect_body()[:24] + encode_int(-3) + bytes(4),
    "an HTTP request": b"GET / HTTP/1.1\r\n\r\n",
}


@pytest.mark.parametrize("name", FIRST_FRAMES)
def test_a_bad_first_frame_ends_the_connection_as_with_zookeeper(broker, real, name):
    connected(broker.zookeeper).close_session()  # the tree is served
    position = len(broker.log())
    found = []
    for each in (broker, real):
        client = RawClient(each.zookeeper)
        client.send(FIRST_FRAMES[name])
        found.append(client.outcome())
        client.disconnect()
    assert found[0] == found[1] == ["closed"]
    wait_until(lambda: " of /127.0.0.1" in broker.log(position), "not logged")


class Reconnection:
    """A session, and a second connection that asks to continue it.

    The second connection sends the session's id and password after `change` has changed them.
    """

    def __init__(self, address: str, change: Change) -> None:
        self.first = connected(address)
        self.path = f"/session-{time.monotonic_ns()}"
        self.first.create(self.path, flags=EPHEMERAL)
        self.second = RawClient(address)
        self.second.connect(*change(self.first.session_id, self.first.password))
        self.is_continued = self.second.session_id == self.first.session_id
        self.is_refused = (self.second.session_id, self.second.timeout_ms) == (0, 0)
        self.outcome = self.second.outcome()

    def write(self) -> list[object]:
        """Writes by the first connection, and returns what comes back."""
        try:
            self.first.send(request(Op.SET_DATA, encode_string(self.path) + encode_buffer(b"x") + encode_int(-1)))
            return self.first.outcome()
        except OSError:
            return ["closed"]

    def close(self) -> None:
        self.first.disconnect()
        self.second.disconnect()


WRONG_SESSIONS: dict[str, Change] = {
    "a wrong password": lambda session_id, password: (session_id, b"x" * 16),
    "an empty password": lambda session_id, password: (session_id, b""),
    "a longer password": lambda session_id, password: (session_id, password + b"x"),
    "an unknown session": lambda session_id, password: (session_id + 12345, password),
    "a negative session": lambda session_id, password: (-1, password),
}


@pytest.mark.parametrize("name", WRONG_SESSIONS)
def test_a_reconnection_without_the_password_is_refused_as_by_zookeeper(broker, real, name):
    position = len(broker.log())
    ours = Reconnection(broker.zookeeper, WRONG_SESSIONS[name])
    theirs = Reconnection(real.zookeeper, WRONG_SESSIONS[name])
    assert (ours.is_refused, ours.outcome) == (theirs.is_refused, theirs.outcome) == (True, ["closed"])
    assert re.search(r"WARNING Refusing /127.0.0.1: its session 0x-?\w+ (does not exist|has another password)",
                     broker.log(position))  # fmt: skip
    # ZooKeeper disconnects the session's own client too, which anybody who can read the session's id could exploit.
    assert ours.write() == [0, "open"]
    ours.close()
    theirs.close()


def test_a_session_that_has_moved_is_served_on_its_new_connection_only(broker, real):
    position = len(broker.log())
    both = [Reconnection(each.zookeeper, lambda *known: known) for each in (broker, real)]
    for each in both:
        assert (each.is_continued, each.outcome) == (True, ["open"])
        assert each.write() == ["closed"]
        assert each.second.exists(each.path).version == 0
        each.close()
    assert f"the session 0x{both[0].first.session_id:x} has moved" in broker.log(position)


@pytest.mark.parametrize(("excess", "expected"), [(0, [0, "open"]), (1, ["closed"])])
def test_a_node_of_a_megabyte_is_stored_as_by_zookeeper_and_no_larger_one(broker, real, excess, expected):
    for each in (broker, real):
        client = connected(each.zookeeper)
        size = LARGEST_FRAME + excess - len(request(Op.CREATE, create_body("/large"))) + 4
        client.send(request(Op.CREATE, create_body("/large", bytes(size))))
        assert client.outcome() == expected
        other = connected(each.zookeeper)
        if excess:
            assert "large" not in other.children("/")
            continue
        assert len(other.get("/large")[0]) == size
        other.delete("/large")
