"""The values in the replies of ZooKeeper, and the events of watches."""

from __future__ import annotations

from enum import IntEnum

from kafkapy.named_tuple import NamedTuple
from kafkapy.zookeeper.jute import JuteReader


class Stat(NamedTuple):
    """The metadata of a node, in the order of the protocol."""

    czxid: int
    mzxid: int
    ctime_ms: int
    mtime_ms: int
    version: int
    children_version: int
    acl_version: int
    ephemeral_owner: int
    data_length: int
    children_count: int
    pzxid: int


def read_stat(reader: JuteReader) -> Stat:
    long, integer = reader.read_long, reader.read_int
    return Stat(
        *(long(), long(), long(), long()), *(integer(), integer(), integer()), long(), integer(), integer(), long()
    )


class State(IntEnum):
    """The states of a session in events (`KeeperState`)."""

    DISCONNECTED = 0
    SYNC_CONNECTED = 3
    AUTH_FAILED = 4
    EXPIRED = -112
    CLOSED = 7


class EventKind(IntEnum):
    """The types of events (`EventType`). NONE is a change of the session's state."""

    NONE = -1
    NODE_CREATED = 1
    NODE_DELETED = 2
    NODE_DATA_CHANGED = 3
    NODE_CHILDREN_CHANGED = 4
    DATA_WATCH_REMOVED = 5
    CHILD_WATCH_REMOVED = 6
    PERSISTENT_WATCH_REMOVED = 7


class Event(NamedTuple):
    """A change of a watched node, or of the session's state.

    For a change of the session's state, `kind` is NONE, `path` is None and `zxid` is -1.
    """

    state: State
    kind: EventKind = EventKind.NONE
    path: str | None = None
    zxid: int = -1
