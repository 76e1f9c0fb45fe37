"""A client of ZooKeeper's protocol for tools: blocking requests, with watches that survive a lost connection."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from kafkapy.tools.zookeeper.connect_string import parse_connect_string
from kafkapy.tools.zookeeper.connection import Connection
from kafkapy.tools.zookeeper.errors import AUTH_FAILED, NO_NODE, ZooKeeperRequestError
from kafkapy.tools.zookeeper.replies import Event, EventKind, Stat, State, read_stat
from kafkapy.zookeeper.acl import OPEN_ACL, AclEntry, Identity
from kafkapy.zookeeper.jute import (
    JuteReader,
    encode_bool,
    encode_buffer,
    encode_int,
    encode_long,
    encode_string,
    encode_strings,
)
from kafkapy.zookeeper.requests import AUTH_XID, SET_WATCHES_XID, Op, encode_acl, read_acl

ZOOKEEPER_SESSION_TIMEOUT_MS = 30_000
# The time in which a server must accept a session: a broker's listener may be loading its tree.
PATIENCE_S = 10.0
CONFIG_PATH = "/zookeeper/config"
# The flags of create (`CreateMode`).
EPHEMERAL, SEQUENTIAL, CONTAINER, TTL, TTL_SEQUENTIAL = 1, 2, 4, 5, 6
# The modes of addWatch.
PERSISTENT, PERSISTENT_RECURSIVE = 0, 1
# The kinds of watches of removeWatches.
CHILD_WATCHES, DATA_WATCHES, ANY_WATCHES = 1, 2, 3

_EVENTS_OF_CHILDREN = (EventKind.NODE_CHILDREN_CHANGED, EventKind.NODE_DELETED)


def _ignore(event: Event) -> None:
    """Does nothing; the default for `on_event`."""


class ZooKeeperClient:
    """A session with a ZooKeeper server, below the chroot of its connect string. The object is a context manager.

    All methods that send a request raise ZooKeeperRequestError if the request fails. `on_event` is called with each
    event: by a thread of the client, or by the thread that calls the method that causes the event, such as `connect`,
    `close` or `remove_watches`. The constructor raises ValueError for an invalid connect string; `connect` raises
    ConnectError.
    """

    def __init__(
        self,
        connect_string: str,
        *,
        timeout_ms: int = ZOOKEEPER_SESSION_TIMEOUT_MS,
        on_event: Callable[[Event], None] = _ignore,
        accepts_read_only: bool = False,
    ) -> None:
        parsed = parse_connect_string(connect_string)
        self._chroot = parsed.chroot
        self._on_event = on_event
        self._credentials: list[tuple[str, bytes]] = []
        self._data_watches: set[str] = set()
        self._exist_watches: set[str] = set()
        self._child_watches: set[str] = set()
        self._lasting_watches: tuple[set[str], set[str]] = (set(), set())
        self._connection = Connection(
            parsed, timeout_ms, self._notify, self._restoring_frames, accepts_read_only=accepts_read_only
        )

    def connect(self, patience_s: float = PATIENCE_S) -> None:
        """Opens the session. Raises ConnectError if no server accepts it within `patience_s` seconds."""
        self._connection.open(patience_s)

    def __enter__(self) -> Self:
        self.connect()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the session. If the session was open, also calls `on_event` with an event of the state CLOSED."""
        was_alive = self.is_alive
        self._connection.close()
        if was_alive:
            self._on_event(Event(State.CLOSED))

    @property
    def is_alive(self) -> bool:
        return self._connection.is_alive

    # -- nodes

    def create(
        self, path: str, data: bytes | None = b"", acl: Sequence[AclEntry] = OPEN_ACL, flags: int = 0, ttl_ms: int = 0
    ) -> str:
        """Creates a node and returns its path.

        `flags` is a CreateMode of ZooKeeper: with a sequential mode the server appends a number to the path. `ttl_ms`
        is used with the modes that have a time to live.
        """
        body = self._encode(path) + encode_buffer(data) + encode_acl(tuple(acl)) + encode_int(flags)
        if flags in (TTL, TTL_SEQUENTIAL):
            op, body = Op.CREATE_TTL, body + encode_long(ttl_ms)
        else:
            op = Op.CREATE_CONTAINER if flags == CONTAINER else Op.CREATE2
        return self._relative(self._connection.call(op, body, path).read_text())

    def ensure(self, path: str, data: bytes | None = None) -> None:
        """Creates the node `path` with `data` unless it exists. Missing parents are created without data."""
        parts = path.split("/")[1:]
        for count in range(1, len(parts) + 1):
            each = "/" + "/".join(parts[:count])
            if self.exists(each) is None:
                self.create(each, data if count == len(parts) else None)

    def delete(self, path: str, version: int = -1) -> None:
        self._connection.call(Op.DELETE, self._encode(path) + encode_int(version), path)

    def delete_all(self, path: str) -> bool:
        """Deletes a node and its descendants, deepest first; returns False if one of them could not be deleted."""
        paths = self.walk(path)
        try:
            for each in reversed(paths):
                self.delete(each)
        except ZooKeeperRequestError:
            return False
        return True

    def walk(self, path: str) -> list[str]:
        """Returns the node and its descendants, level by level, with the children of each node in alphabetical order.

        Nodes that are deleted during the walk are left out. Raises ZooKeeperRequestError if `path` does not exist.
        """
        found = [path]
        for each in found:  # grows during the loop
            try:
                names, _ = self.children(each)
            except ZooKeeperRequestError as error:
                if error.code != NO_NODE or each == path:
                    raise
                continue
            found += [f"{each.rstrip('/')}/{name}" for name in sorted(names)]
        return found

    def exists(self, path: str, watches: bool = False) -> Stat | None:
        """Returns the metadata of a node, or None if it does not exist.

        If `watches` is set, the next change of the node, or its creation, is reported once as an event.
        """
        try:
            stat = read_stat(self._connection.call(Op.EXISTS, self._encode(path) + encode_bool(watches), path))
        except ZooKeeperRequestError as error:
            if error.code != NO_NODE:
                raise
            if watches:
                self._exist_watches.add(path)
            return None
        if watches:
            self._data_watches.add(path)
        return stat

    def get(self, path: str, watches: bool = False) -> tuple[bytes | None, Stat]:
        reader = self._connection.call(Op.GET_DATA, self._encode(path) + encode_bool(watches), path)
        if watches:
            self._data_watches.add(path)
        return reader.read_buffer(), read_stat(reader)

    def get_config(self, watches: bool = False) -> tuple[bytes | None, Stat]:
        """Returns the data and the metadata of the node with the configuration of the ensemble.

        The node is outside of the chroot. If `watches` is set, the next change of the node is reported once as an
        event.
        """
        body = encode_string(CONFIG_PATH) + encode_bool(watches)
        reader = self._connection.call(Op.GET_DATA, body, CONFIG_PATH)
        return reader.read_buffer(), read_stat(reader)

    def set(self, path: str, data: bytes | None, version: int = -1) -> Stat:
        body = self._encode(path) + encode_buffer(data) + encode_int(version)
        return read_stat(self._connection.call(Op.SET_DATA, body, path))

    def children(self, path: str, watches: bool = False) -> tuple[list[str], Stat]:
        reader = self._connection.call(Op.GET_CHILDREN2, self._encode(path) + encode_bool(watches), path)
        if watches:
            self._child_watches.add(path)
        return reader.read_texts(), read_stat(reader)

    def get_acl(self, path: str) -> tuple[list[AclEntry], Stat]:
        reader = self._connection.call(Op.GET_ACL, self._encode(path), path)
        return read_acl(reader) or [], read_stat(reader)

    def set_acl(self, path: str, acl: Sequence[AclEntry], version: int = -1) -> Stat:
        body = self._encode(path) + encode_acl(tuple(acl)) + encode_int(version)
        return read_stat(self._connection.call(Op.SET_ACL, body, path))

    def sync(self, path: str) -> None:
        self._connection.call(Op.SYNC, self._encode(path), path)

    def ephemerals(self, prefix: str) -> list[str]:
        """Returns the session's ephemeral nodes whose paths begin with `prefix`."""
        reader = self._connection.call(Op.GET_EPHEMERALS, self._encode(prefix), None)
        return [self._relative(path) for path in reader.read_texts()]

    def all_children_number(self, path: str) -> int:
        """Returns the number of descendants of a node."""
        return self._connection.call(Op.GET_ALL_CHILDREN_NUMBER, self._encode(path), path).read_int()

    # -- the session

    def authenticate(self, scheme: str, credentials: bytes) -> None:
        """Adds an identity to the session. If the server refuses the credentials, the session is lost."""
        body = encode_int(0) + encode_string(scheme) + encode_buffer(credentials)
        try:
            self._connection.call(Op.AUTH, body, None, AUTH_XID)
        except ZooKeeperRequestError as error:
            if error.code == AUTH_FAILED:
                self._on_event(Event(State.AUTH_FAILED))
            raise
        self._credentials.append((scheme, credentials))

    def who_am_i(self) -> list[Identity]:
        reader = self._connection.call(Op.WHO_AM_I, b"", None)
        return reader.read_vector(lambda: Identity(reader.read_text(), reader.read_text())) or []

    def reconfigure(
        self, joining: str | None, leaving: str | None, members: str | None, config_version: int
    ) -> tuple[bytes | None, Stat]:
        """Changes the servers of the ensemble; returns data and metadata of the node with the new configuration.

        `joining` and `leaving` list servers to add and to remove; `members` is the new list of all servers. The texts
        have the form of the arguments of the command `reconfig` in ZooKeeper's shell. Unless `config_version` is -1, it
        must be the version of the present configuration.
        """
        strings = encode_string(joining) + encode_string(leaving) + encode_string(members)
        reader: JuteReader = self._connection.call(Op.RECONFIG, strings + encode_long(config_version), None)
        return reader.read_buffer(), read_stat(reader)

    # -- watches

    def add_watch(self, path: str, mode: int) -> None:
        """Adds a watch that remains after an event.

        `mode` is PERSISTENT for the node and its children, or PERSISTENT_RECURSIVE for the node and all its
        descendants.
        """
        self._connection.call(Op.ADD_WATCH, self._encode(path) + encode_int(mode), path)
        self._lasting_watches[mode].add(path)

    def remove_watches(self, path: str, kind: int) -> None:
        """Removes the client's watches of a node; calls `on_event` with an event for each kind of watch that is
        removed.

        `kind` is CHILD_WATCHES, DATA_WATCHES or ANY_WATCHES.
        """
        self._connection.call(Op.REMOVE_WATCHES, self._encode(path) + encode_int(kind), path)
        if kind != CHILD_WATCHES:
            if path in self._data_watches | self._exist_watches:
                self._on_event(Event(State.SYNC_CONNECTED, EventKind.DATA_WATCH_REMOVED, path))
            self._data_watches.discard(path)
            self._exist_watches.discard(path)
        if kind != DATA_WATCHES:
            if path in self._child_watches:
                self._on_event(Event(State.SYNC_CONNECTED, EventKind.CHILD_WATCH_REMOVED, path))
            self._child_watches.discard(path)
        if kind == ANY_WATCHES:
            for paths in self._lasting_watches:
                if path in paths:
                    self._on_event(Event(State.SYNC_CONNECTED, EventKind.PERSISTENT_WATCH_REMOVED, path))
                paths.discard(path)

    def _notify(self, event: Event) -> None:
        """Reports an event, and removes the one-shot watches that the event has used up from the client's list."""
        if event.path is not None:
            event = event._replace(path=self._relative(event.path))
            path = event.path
            assert path is not None
            if event.kind in _EVENTS_OF_CHILDREN:
                self._child_watches.discard(path)
            if event.kind != EventKind.NODE_CHILDREN_CHANGED:
                self._data_watches.discard(path)
                self._exist_watches.discard(path)
        self._on_event(event)

    def _restoring_frames(self, last_zxid: int) -> list[bytes]:
        """Returns the requests that restore the session's identities and watches on a new connection.

        `last_zxid` is the last change that the client has seen; the server reports later changes to the watches.
        """
        frames = [
            encode_int(AUTH_XID) + encode_int(Op.AUTH) + encode_int(0) + encode_string(scheme) + encode_buffer(secret)
            for scheme, secret in self._credentials
        ]
        kinds = (self._data_watches, self._exist_watches, self._child_watches, *self._lasting_watches)
        if any(kinds):
            lists = [encode_strings([self._absolute(path) for path in sorted(paths)]) for paths in kinds]
            op, shown = (Op.SET_WATCHES2, lists) if any(self._lasting_watches) else (Op.SET_WATCHES, lists[:3])
            frames.append(encode_int(SET_WATCHES_XID) + encode_int(op) + encode_long(last_zxid) + b"".join(shown))
        return frames

    # -- the chroot

    def _absolute(self, path: str) -> str:
        return self._chroot if self._chroot and path == "/" else self._chroot + path

    def _encode(self, path: str) -> bytes:
        return encode_string(self._absolute(path))

    def _relative(self, path: str) -> str:
        return path.removeprefix(self._chroot) or "/"
