"""The requests that change no node: reads of the tree, and requests that set or remove watches."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from kafkapy.errors import ProtocolViolation
from kafkapy.zookeeper import reads
from kafkapy.zookeeper.acl import OPEN_ACL
from kafkapy.zookeeper.client import Client, encode_event
from kafkapy.zookeeper.errors import OperationError, ZooKeeperError
from kafkapy.zookeeper.jute import JuteReader, encode_int, encode_string
from kafkapy.zookeeper.outbox import Outbox
from kafkapy.zookeeper.requests import Op, read_multi_read, read_read
from kafkapy.zookeeper.tree import Tree
from kafkapy.zookeeper.watches import EventType, Watches, WatchEvent, WatchKind, WatchMode


class ServedTree(Protocol):
    """The attributes of the server that these requests use."""

    tree: Tree
    watches: Watches[Client]
    outbox: Outbox


# Returns the body of the response. Raises OperationError, or ProtocolViolation for a malformed request.
Read = Callable[[ServedTree, Client, JuteReader], bytes]


def _exists(server: ServedTree, client: Client, reader: JuteReader) -> bytes:
    path, watches = read_read(reader)
    if watches:  # also if the node does not exist: the client is notified of its creation
        server.watches.watch_data(path, client)
    return reads.exists(server.tree, path)


def _get_data(server: ServedTree, client: Client, reader: JuteReader) -> bytes:
    path, watches = read_read(reader)
    body = reads.get_data(server.tree, path, client.identities)
    if watches:
        server.watches.watch_data(path, client)
    return body


def _get_children(server: ServedTree, client: Client, reader: JuteReader) -> bytes:
    path, watches = read_read(reader)
    body = reads.get_children(server.tree, path, client.identities)
    if watches:
        server.watches.watch_children(path, client)
    return body


def _get_children2(server: ServedTree, client: Client, reader: JuteReader) -> bytes:
    path, watches = read_read(reader)
    body = reads.get_children2(server.tree, path, client.identities)
    if watches:
        server.watches.watch_children(path, client)
    return body


def _get_acl(server: ServedTree, client: Client, reader: JuteReader) -> bytes:
    return reads.get_acl(server.tree, reader.read_text(), client.identities)


def _sync(server: ServedTree, client: Client, reader: JuteReader) -> bytes:
    """Returns the response to a sync request: its encoded path. This server always has all committed changes, so that
    there is nothing to wait for.
    """
    return encode_string(reader.read_text())


def _get_ephemerals(server: ServedTree, client: Client, reader: JuteReader) -> bytes:
    return reads.get_ephemerals(server.tree, reader.read_string() or "", client.session_id)


def _get_all_children_number(server: ServedTree, client: Client, reader: JuteReader) -> bytes:
    return reads.get_all_children_number(server.tree, reader.read_text(), client.identities)


def _multi_read(server: ServedTree, client: Client, reader: JuteReader) -> bytes:
    return reads.multi_read(server.tree, read_multi_read(reader), client.identities)


def _who_am_i(server: ServedTree, client: Client, reader: JuteReader) -> bytes:
    """Returns the encoded schemes and ids of the client's identities, without the digests of passwords."""
    infos = [(scheme, id.partition(":")[0] if scheme == "digest" else id) for scheme, id in client.identities]
    return encode_int(len(infos)) + b"".join(encode_string(scheme) + encode_string(user) for scheme, user in infos)


# -- watches

# The modes by their numbers in addWatch, and in the order of setWatches2.
_LASTING_MODES = (WatchMode.PERSISTENT, WatchMode.RECURSIVE)


def _set_watches(server: ServedTree, client: Client, reader: JuteReader) -> bytes:
    """Sets again the watches of a client that has reconnected, and notifies the client of the changes since then.

    The request has the zxid of the last change that the client has seen.
    """
    relative_zxid = reader.read_long()
    data, exist, children = reader.read_texts(), reader.read_texts(), reader.read_texts()
    nodes, watches = server.tree.nodes, server.watches
    events = []
    for path in data:
        node = nodes.get(path)
        if node is None:
            events.append(WatchEvent(EventType.NODE_DELETED, path, OPEN_ACL))
        elif node.mzxid > relative_zxid:
            events.append(WatchEvent(EventType.NODE_DATA_CHANGED, path, node.acl))
        else:
            watches.watch_data(path, client)
    for path in exist:
        node = nodes.get(path)
        if node is not None:
            events.append(WatchEvent(EventType.NODE_CREATED, path, node.acl))
        else:
            watches.watch_data(path, client)
    for path in children:
        node = nodes.get(path)
        if node is None:
            events.append(WatchEvent(EventType.NODE_DELETED, path, OPEN_ACL))
        elif node.pzxid > relative_zxid:
            events.append(WatchEvent(EventType.NODE_CHILDREN_CHANGED, path, node.acl))
        else:
            watches.watch_children(path, client)
    _notify(server, client, events)
    return b""


def _set_watches2(server: ServedTree, client: Client, reader: JuteReader) -> bytes:
    _set_watches(server, client, reader)
    for mode in _LASTING_MODES:
        for path in reader.read_texts():
            server.watches.watch_persistently(path, client, mode)
    return b""


def _notify(server: ServedTree, client: Client, events: Iterable[WatchEvent]) -> None:
    for event in events:
        server.outbox.send(client, encode_event(event, -1))


def _add_watch(server: ServedTree, client: Client, reader: JuteReader) -> bytes:
    path, mode = reader.read_text(), reader.read_int()
    if not 0 <= mode < len(_LASTING_MODES):
        raise ProtocolViolation(f"{mode} is not a mode of watches")
    server.watches.watch_persistently(path, client, _LASTING_MODES[mode])
    return encode_int(ZooKeeperError.OK)


def _check_watches(server: ServedTree, client: Client, reader: JuteReader) -> bytes:
    path, kind = _read_watch(reader)
    if not server.watches.has(path, client, kind):
        raise OperationError(ZooKeeperError.NO_WATCHER)
    return b""


def _remove_watches(server: ServedTree, client: Client, reader: JuteReader) -> bytes:
    path, kind = _read_watch(reader)
    if not server.watches.remove(path, client, kind):
        raise OperationError(ZooKeeperError.NO_WATCHER)
    return b""


def _read_watch(reader: JuteReader) -> tuple[str, WatchKind]:
    path, kind = reader.read_text(), reader.read_int()
    if kind not in tuple(WatchKind):
        raise ProtocolViolation(f"{kind} is not a kind of watches")
    return path, WatchKind(kind)


READS: dict[int, Read] = {
    Op.EXISTS: _exists,
    Op.GET_DATA: _get_data,
    Op.GET_CHILDREN: _get_children,
    Op.GET_CHILDREN2: _get_children2,
    Op.GET_ACL: _get_acl,
    Op.SYNC: _sync,
    Op.GET_EPHEMERALS: _get_ephemerals,
    Op.GET_ALL_CHILDREN_NUMBER: _get_all_children_number,
    Op.MULTI_READ: _multi_read,
    Op.WHO_AM_I: _who_am_i,
    Op.SET_WATCHES: _set_watches,
    Op.SET_WATCHES2: _set_watches2,
    Op.ADD_WATCH: _add_watch,
    Op.CHECK_WATCHES: _check_watches,
    Op.REMOVE_WATCHES: _remove_watches,
}
