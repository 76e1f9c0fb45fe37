"""Random operations by several sessions, sent alike to two servers whose replies and watch events are compared.

Values that may differ are translated: zxids by their order of appearance, and session ids by the number of the session.
Times are removed.
"""

from __future__ import annotations

import random
from typing import Any

from kafkapy.zookeeper.acl import AclEntry, Identity
from kafkapy.zookeeper.jute import (
    JuteReader,
    encode_bool,
    encode_buffer,
    encode_int,
    encode_long,
    encode_string,
    encode_strings,
)
from kafkapy.zookeeper.requests import Op, encode_acl, read_acl
from tests.harness.zookeeper import SocketClient, Stat, ZooKeeperReplyError, create_body, read_reply, read_stat

SESSIONS = 3
CREDENTIALS = b"user:password"
NAMES = ("a", "b")
WORLD = encode_acl((AclEntry(31, Identity("world", "anyone")),))
ACLS = (
    WORLD,
    WORLD,
    WORLD,
    encode_acl((AclEntry(31, Identity("world", "anyone")), AclEntry(31, Identity("world", "anyone")))),
    encode_acl((AclEntry(1, Identity("world", "anyone")), AclEntry(31, Identity("auth", "")))),
    encode_acl((AclEntry(31, Identity("digest", "no digest")),)),
    encode_acl((AclEntry(31, Identity("ip", "127.0.0.1")),)),
    encode_acl(()),
)
BAD_PATHS = ("x", "/a//b", "/a/", "/a/../b", "/\x01")


class Request:
    """One request: its operation, its body, and how to read the body of the reply."""

    def __init__(self, op: int, body: bytes, read: Any) -> None:
        self.op = op
        self.body = body
        self.read = read

    def __repr__(self) -> str:
        return f"{Op(self.op).name} {self.body!r}"


class Translation:
    """Translates the values of one server."""

    def __init__(self) -> None:
        self._zxids: dict[int, int] = {}
        self.sessions: dict[int, int] = {}

    def stat(self, reader: JuteReader) -> Any:
        stat = read_stat(reader)
        owner = self.sessions.get(stat.owner, stat.owner)
        zxids = [self.zxid(zxid) for zxid in (stat.czxid, stat.mzxid, stat.pzxid)]
        return (*zxids, *Stat(*stat)[4:7], owner, stat.length, stat.children, stat.ctime <= stat.mtime)

    def zxid(self, zxid: int) -> int:
        return self._zxids.setdefault(zxid, len(self._zxids)) if zxid else -1


def read_data(reader: JuteReader, translation: Translation) -> Any:
    return reader.read_buffer(), translation.stat(reader)


def read_names(reader: JuteReader, translation: Translation) -> Any:
    return sorted(reader.read_texts())


def read_names_and_stat(reader: JuteReader, translation: Translation) -> Any:
    return sorted(reader.read_texts()), translation.stat(reader)


def read_text(reader: JuteReader, translation: Translation) -> Any:
    return reader.read_text()


def read_text_and_stat(reader: JuteReader, translation: Translation) -> Any:
    return reader.read_text(), translation.stat(reader)


def read_only_stat(reader: JuteReader, translation: Translation) -> Any:
    return translation.stat(reader)


def read_acl_and_stat(reader: JuteReader, translation: Translation) -> Any:
    return read_acl(reader), translation.stat(reader)


def read_rest(reader: JuteReader, translation: Translation) -> Any:
    return reader.read_bytes(reader.remaining)


def read_identities(reader: JuteReader, translation: Translation) -> Any:
    return sorted((reader.read_text(), reader.read_text()) for _ in range(reader.read_int()))


def read_multi_results(reader: JuteReader, translation: Translation) -> Any:
    readers = {
        Op.CREATE: read_text,
        Op.CREATE2: read_text_and_stat,
        Op.SET_DATA: read_only_stat,
        Op.GET_DATA: read_data,
        Op.GET_CHILDREN: read_names,
        Op.ERROR: lambda reader, _: reader.read_int(),
    }
    results = []
    while True:
        op, is_end, error = reader.read_int(), reader.read_bool(), reader.read_int()
        if is_end:
            return results
        read = readers.get(Op(op))
        results.append((op, error, read(reader, translation) if read else None))


class Choices:
    """Random requests of one run."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def path(self) -> str:
        if self.random.random() < 0.03:
            return self.random.choice(BAD_PATHS)
        return "/twin" + "".join(f"/{self.random.choice(NAMES)}" for _ in range(self.random.randint(1, 3)))

    def data(self) -> bytes | None:
        return self.random.choice([None, b"", self.random.randbytes(3)])

    def version(self) -> int:
        return self.random.choice([-1, -1, 0, 1, 2])

    def create(self) -> Request:
        flags = self.random.choice([0, 0, 0, 1, 2, 3])
        body = create_body(self.path(), self.data(), flags, self.random.choice(ACLS))
        if self.random.random() < 0.3:
            return Request(Op.CREATE2, body, read_text_and_stat)
        return Request(Op.CREATE, body, read_text)

    def create_special(self) -> Request:
        if self.random.random() < 0.5:
            return Request(Op.CREATE_CONTAINER, create_body(self.path(), self.data(), 4), read_text_and_stat)
        ttl_ms = self.random.choice([0, -1, 10**9])
        body = create_body(self.path(), self.data(), self.random.choice([5, 6])) + encode_long(ttl_ms)
        return Request(Op.CREATE_TTL, body, read_text_and_stat)

    def delete(self) -> Request:
        return Request(Op.DELETE, encode_string(self.path()) + encode_int(self.version()), read_rest)

    def set_data(self) -> Request:
        body = encode_string(self.path()) + encode_buffer(self.data()) + encode_int(self.version())
        return Request(Op.SET_DATA, body, read_only_stat)

    def set_acl(self) -> Request:
        body = encode_string(self.path()) + self.random.choice(ACLS) + encode_int(self.version())
        return Request(Op.SET_ACL, body, read_only_stat)

    def check(self) -> Request:
        return Request(Op.CHECK, encode_string(self.path()) + encode_int(self.version()), None)

    def multi(self) -> Request:
        kinds = [self.create, self.delete, self.set_data, self.check]
        requests = [self.random.choice(kinds)() for _ in range(self.random.randint(1, 3))]
        return Request(Op.MULTI, multi_body(requests), read_multi_results)

    def multi_read(self) -> Request:
        requests = [self.random.choice([self.get_data, self.get_children])() for _ in range(3)]
        return Request(Op.MULTI_READ, multi_body(requests), read_multi_results)

    def watched(self) -> bytes:
        return encode_string(self.path()) + encode_bool(self.random.random() < 0.5)

    def get_data(self) -> Request:
        return Request(Op.GET_DATA, self.watched(), read_data)

    def get_children(self) -> Request:
        return Request(Op.GET_CHILDREN, self.watched(), read_names)

    def read(self) -> Request:
        path = encode_string(self.path())
        return self.random.choice(
            [
                self.get_data(),
                self.get_children(),
                Request(Op.GET_CHILDREN2, self.watched(), read_names_and_stat),
                Request(Op.EXISTS, self.watched(), read_only_stat),
                Request(Op.EXISTS, self.watched(), read_only_stat),
                Request(Op.GET_ACL, path, read_acl_and_stat),
                Request(Op.SYNC, path, read_text),
                Request(Op.GET_ALL_CHILDREN_NUMBER, path, read_rest),
                Request(Op.GET_EPHEMERALS, encode_string("/twin"), read_names),
                Request(Op.WHO_AM_I, b"", read_identities),
            ]
        )

    def watch(self) -> Request:
        path, kind = encode_string(self.path()), encode_int(self.random.choice([1, 2, 3, 4, 5]))
        return self.random.choice(
            [
                Request(Op.ADD_WATCH, path + encode_int(self.random.choice([0, 1])), read_rest),
                Request(Op.CHECK_WATCHES, path + kind, read_rest),
                Request(Op.REMOVE_WATCHES, path + kind, read_rest),
            ]
        )

    def request(self) -> Request:
        kinds = [self.create, self.delete, self.set_data, self.set_acl, self.multi, self.multi_read, self.read]
        kinds += [self.watch, self.create_special]
        return self.random.choices(kinds, weights=[8, 5, 5, 1, 5, 1, 12, 2, 1])[0]()


def multi_body(requests: list[Request]) -> bytes:
    parts = [encode_int(each.op) + encode_bool(False) + encode_int(-1) + each.body for each in requests]
    return b"".join(parts) + encode_int(-1) + encode_bool(True) + encode_int(-1)


class Side:
    """One of the two servers, with its sessions."""

    def __init__(self, address: str) -> None:
        self._address = address
        self.translation = Translation()
        self._opened = 0
        self.clients = [self._open() for _ in range(SESSIONS)]
        self.clients[0].create("/twin")

    def _open(self) -> SocketClient:
        client = SocketClient(self._address)
        client.connect(timeout_ms=30_000)
        self._opened += 1
        self.translation.sessions[client.session_id] = self._opened
        return client

    def request(self, index: int, request: Request) -> Any:
        """Returns the translated reply, or the error, and the events of all sessions until then."""
        try:
            reader = self.clients[index].call(request.op, request.body)
            result = request.read(reader, self.translation)
            assert not reader.remaining
        except ZooKeeperReplyError as error:
            result = error.args[0]
        return result, self.events()

    def events(self) -> list[list[tuple[int, str]]]:
        for client in self.clients:
            client.call(Op.PING, xid=-2)
        return [client.events() for client in self.clients]

    def authenticate(self, index: int) -> Any:
        self.clients[index].authenticate(CREDENTIALS)
        return self.events()

    def replace(self, index: int) -> Any:
        """Closes a session and opens another. ZooKeeper deletes the ephemeral nodes of a session in any order."""
        self.clients[index].close_session()
        self.clients[index].disconnect()
        self.clients[index] = self._open()
        return [sorted(events) for events in self.events()]

    def reconnect(self, index: int, data: list[str], exist: list[str], children: list[str]) -> Any:
        """Continues a session on a new connection, and sets watches again."""
        before = self.clients[index]
        before.call(Op.PING, xid=-2)
        before.transmit(encode_int(-2) + encode_int(Op.PING))
        while (reply := read_reply(before.frames.pop(0) if before.frames else _next(before))).xid != -2:
            pass
        before.disconnect()
        client = SocketClient(self._address)
        client.connect(before.session_id, before.password, timeout_ms=30_000)
        assert client.session_id == before.session_id
        body = encode_long(reply.zxid) + encode_strings(data) + encode_strings(exist) + encode_strings(children)
        client.call(Op.SET_WATCHES, body, xid=-8)
        self.clients[index] = client
        return self.events()

    def dump(self) -> dict[str, Any]:
        """Returns all nodes below /twin with what a client sees of them."""
        found = {}
        waiting = ["/twin"]
        while waiting:
            path = waiting.pop()
            results = []
            for op, read in ((Op.GET_DATA, read_data), (Op.GET_CHILDREN, read_names)):
                body = encode_string(path) + encode_bool(False)
                results.append(self.request(0, Request(op, body, read))[0])
            found[path] = results
            if isinstance(results[1], list):
                waiting += [f"{path}/{name}" for name in results[1]]
        return found


def _next(client: SocketClient) -> bytes:
    client.wait_for_frame()
    return client.frames.pop(0)


def compare(addresses: tuple[str, str], seed: int, steps: int) -> None:
    """Runs the same random requests on both servers. Raises AssertionError at the first difference."""
    try:
        _compare(addresses, seed, steps)
    finally:
        for address in addresses:
            _clean(address)


def _clean(address: str) -> None:
    """Deletes the nodes of a run."""
    client = SocketClient(address)
    client.connect()
    client.authenticate(CREDENTIALS)
    client.delete_all("/twin")
    client.close_session()
    client.disconnect()


def _compare(addresses: tuple[str, str], seed: int, steps: int) -> None:
    choices = Choices(seed)
    sides = [Side(address) for address in addresses]
    history = []
    for _ in range(steps):
        index, kind = choices.random.randrange(SESSIONS), choices.random.random()
        if kind < 0.02:
            step, act = f"{index} authenticates", lambda side, index=index: side.authenticate(index)
        elif kind < 0.03:
            step, act = f"{index} closes its session", lambda side, index=index: side.replace(index)
        elif kind < 0.05:
            paths = [[choices.path() for _ in range(2)] for _ in range(3)]
            step, act = f"{index} connects again", lambda side, index=index, paths=paths: side.reconnect(index, *paths)
        else:
            request = choices.request()
            step = f"{index} {request!r}"
            act = lambda side, index=index, request=request: side.request(index, request)  # noqa: E731
        history.append(step)
        first, second = (act(side) for side in sides)
        assert first == second, f"seed {seed}:\n" + "\n".join(history[-12:]) + f"\n{first}\n{second}"
    assert sides[0].dump() == sides[1].dump(), f"seed {seed}"
