"""The records in which the tree of znodes is stored in a compacted internal topic.

    key                        value
    0                          epoch: the upper half of the zxids of all transactions that are written after this record
    1, session id              password, timeout, zxid
    2, path                    the whole node
    3, path                    counters for the children: creates, pzxid

The first number of a key is the type of the record. When a child of a node is created or deleted, only a record of type
3 is written for the node, because a record of type 2 would repeat the node's data, up to a megabyte. All records of a
transaction are in one batch. Values begin with the version of their format.
"""

from __future__ import annotations

from struct import Struct

from kafkapy.coordinator.record import CoordinatorRecord
from kafkapy.zookeeper.acl import OPEN_ACL
from kafkapy.zookeeper.jute import JuteReader, encode_buffer, encode_int, encode_long
from kafkapy.zookeeper.node import Node
from kafkapy.zookeeper.requests import encode_acl, read_acl
from kafkapy.zookeeper.tree import Session, Transaction, Tree

_EPOCH, _SESSION, _NODE, _CHILDREN = (number.to_bytes(2, "big") for number in range(4))
_VERSION = (0).to_bytes(2, "big")
# owner, czxid, mzxid, pzxid, ctime, mtime, version, creates, acl_version, zxid of the transaction
_NODE_FIELDS = Struct(">qqqqqqiqiq")
_CHILDREN_FIELDS = Struct(">qqq")
_ZXIDS_PER_EPOCH = 1 << 32


def epoch_record(epoch: int) -> CoordinatorRecord:
    return CoordinatorRecord(_EPOCH, _VERSION + encode_long(epoch))


def transaction_records(transaction: Transaction) -> list[CoordinatorRecord]:
    """Returns the records of a transaction; applying them to a tree has the same effect as the transaction."""
    records = []
    zxid = transaction.zxid
    for session_id, session in transaction.sessions.items():
        value = None if session is None else _session_value(session)
        records.append(CoordinatorRecord(_SESSION + encode_long(session_id), value))
    for path, node in transaction.changed.items():
        key = path.encode()
        before = transaction.tree.nodes.get(path)
        if node is None:
            if before is not None:
                records.append(CoordinatorRecord(_NODE + key, None))
                if before.creates:
                    records.append(CoordinatorRecord(_CHILDREN + key, None))
        elif path in transaction.children_only:
            value = _VERSION + _CHILDREN_FIELDS.pack(node.creates, node.pzxid, zxid)
            records.append(CoordinatorRecord(_CHILDREN + key, value))
        else:
            records.append(CoordinatorRecord(_NODE + key, _node_value(node, zxid)))
    return records


def _session_value(session: Session) -> bytes:
    return _VERSION + encode_buffer(session.password) + encode_int(session.timeout_ms) + encode_long(session.zxid)


def _node_value(node: Node, zxid: int) -> bytes:
    fields = _NODE_FIELDS.pack(
        node.owner,
        node.czxid,
        node.mzxid,
        node.pzxid,
        node.ctime_ms,
        node.mtime_ms,
        node.version,
        node.creates,
        node.acl_version,
        zxid,
    )
    # The open ACL, which most nodes have, is encoded as no entries.
    acl = encode_int(0) if node.acl is OPEN_ACL else encode_acl(node.acl)
    return _VERSION + fields + acl + encode_buffer(node.data)


def _read_node(reader: JuteReader) -> tuple[Node, int]:
    """Returns the node that a record's value contains, and the zxid of the transaction that wrote the record."""
    owner, czxid, mzxid, pzxid, ctime, mtime, version, creates, acl_version, zxid = _NODE_FIELDS.unpack(
        reader.read_bytes(_NODE_FIELDS.size)
    )
    acl = tuple(read_acl(reader) or ()) or OPEN_ACL
    data = reader.read_buffer()
    return Node(data, acl, owner, czxid, mzxid, pzxid, ctime, mtime, version, creates, acl_version), zxid


class TreeLoader:
    """Applies the records of the log to a tree, from the beginning of the log; `finish` completes the tree at its end.

    The log may be compacted: only the last record of each key is certain to exist, and a node may precede its parent.
    """

    def __init__(self, tree: Tree) -> None:
        self._tree = tree

    def replay(self, key: bytes, value: bytes | None) -> None:
        """Applies one record to the tree. Ignores a record with an unknown key.

        If `value` is None, deletes the node, counters or session that `key` identifies. Raises ProtocolViolation if the
        record cannot be decoded.
        """
        kind, name = key[:2], key[2:]
        reader = None if value is None else JuteReader(value[len(_VERSION) :])
        if kind == _NODE:
            self._replay_node(name.decode(), reader)
        elif kind == _CHILDREN:
            self._replay_children(name.decode(), reader)
        elif kind == _SESSION:
            self._replay_session(int.from_bytes(name, "big", signed=True), reader)
        elif kind == _EPOCH and reader is not None:
            self._advance(reader.read_long() * _ZXIDS_PER_EPOCH)

    def finish(self) -> None:
        self._tree.link()

    def _replay_node(self, path: str, reader: JuteReader | None) -> None:
        if reader is None:
            self._tree.nodes.pop(path, None)
            return
        self._tree.nodes[path], zxid = _read_node(reader)
        self._advance(zxid)

    def _replay_children(self, path: str, reader: JuteReader | None) -> None:
        if reader is None:
            return
        creates, pzxid, zxid = _CHILDREN_FIELDS.unpack(reader.read_bytes(_CHILDREN_FIELDS.size))
        self._advance(zxid)
        node = self._tree.nodes.get(path)
        if node is not None:  # otherwise a newer record of the node follows, with newer counters
            self._tree.nodes[path] = node._replace(creates=creates, pzxid=pzxid)

    def _replay_session(self, session_id: int, reader: JuteReader | None) -> None:
        if reader is None:
            self._tree.sessions.pop(session_id, None)
            return
        session = Session(reader.read_buffer() or b"", reader.read_int(), reader.read_long())
        self._tree.sessions[session_id] = session
        self._advance(session.zxid)

    def _advance(self, zxid: int) -> None:
        self._tree.zxid = max(self._tree.zxid, zxid)


def next_epoch(tree: Tree) -> int:
    """Returns the epoch of a broker that takes over the writing of the tree: one more than the epoch of the last zxid.

    A zxid begins with the epoch of its broker, so that all zxids of the new broker are greater than those in the tree.
    """
    return tree.zxid // _ZXIDS_PER_EPOCH + 1
