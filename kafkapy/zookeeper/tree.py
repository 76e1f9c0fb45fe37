"""The tree of znodes with its sessions, and a transaction, which collects the changes of one request.

request -> Transaction (reads the tree, collects changes) -> records and watch events -> Tree.apply
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

from kafkapy.named_tuple import NamedTuple
from kafkapy.zookeeper.acl import PLAIN_SCHEMES, Acl
from kafkapy.zookeeper.errors import OperationError, ZooKeeperError
from kafkapy.zookeeper.node import PERSISTENT, Node, initial_node
from kafkapy.zookeeper.paths import ROOT_PATH, SYSTEM_NODES, child_path, name_of, parent_of
from kafkapy.zookeeper.watches import EventType, WatchEvent

_NO_NAMES: frozenset[str] = frozenset()


def _is_never(path: str) -> bool:
    return False


class Session(NamedTuple):
    """A session: the password that a client needs to continue it, its timeout, and the zxid of its creation.

    The object does not change after its construction.
    """

    password: bytes
    timeout_ms: int
    zxid: int


class Tree:
    """The znodes by path, the names of their children, and the sessions with their ephemeral nodes.

    `expendable` has the paths of the containers and TTL nodes. Only `apply` changes the tree once it is loaded.
    """

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {path: initial_node() for path in SYSTEM_NODES}
        self.sessions: dict[int, Session] = {}
        self.ephemerals: dict[int, set[str]] = {}
        self.expendable: set[str] = set()
        self.zxid = 0
        self._children: dict[str, set[str]] = {}
        self.link()

    def find(self, path: str) -> Node:
        """Returns the node at `path`. Raises OperationError NO_NODE if it does not exist."""
        node = self.nodes.get(path)
        if node is None:
            raise OperationError(ZooKeeperError.NO_NODE)
        return node

    def children(self, path: str) -> Iterable[str]:
        """Returns the names of the children of the node at `path`, in no order; none if the node does not exist."""
        return self._children.get(path, _NO_NAMES)

    def child_count(self, path: str) -> int:
        return len(self._children.get(path, _NO_NAMES))

    def stat(self, path: str) -> bytes:
        """Returns the encoded Stat of an existing node."""
        return self.nodes[path].encode_stat(self.child_count(path))

    def paths_below(self, path: str) -> Iterator[str]:
        """Yields the paths of all descendants of the node at `path`, parents before their children."""
        waiting = [path]
        while waiting:
            parent = waiting.pop()
            for name in self.children(parent):
                child = child_path(parent, name)
                yield child
                waiting.append(child)

    # -- changes

    def apply(self, transaction: Transaction) -> None:
        """Makes the changes of a transaction; the tree must not have changed since the transaction was begun."""
        for path, node in transaction.changed.items():
            before = self.nodes.get(path)
            if node is not None:
                self._put(path, before, node)
            elif before is not None:
                self._remove(path, before)
        for session_id, session in transaction.sessions.items():
            if session is None:
                self.sessions.pop(session_id, None)
            else:
                self.sessions[session_id] = session
        self.zxid = transaction.zxid

    def _put(self, path: str, before: Node | None, node: Node) -> None:
        self.nodes[path] = node
        if before is None:
            self._children.setdefault(parent_of(path), set()).add(name_of(path))
        elif before.owner != node.owner and before.is_ephemeral:
            self._forget_ephemeral(path, before.owner)  # deleted and created again in one transaction
        if node.owner != PERSISTENT:
            self._note_owner(path, node)

    def _note_owner(self, path: str, node: Node) -> None:
        if node.is_ephemeral:
            self.ephemerals.setdefault(node.owner, set()).add(path)
        else:
            self.expendable.add(path)

    def _remove(self, path: str, before: Node) -> None:
        del self.nodes[path]
        parent = parent_of(path)
        siblings = self._children[parent]
        siblings.discard(name_of(path))
        if not siblings:
            del self._children[parent]
        self.expendable.discard(path)
        if before.is_ephemeral:
            self._forget_ephemeral(path, before.owner)

    def _forget_ephemeral(self, path: str, session_id: int) -> None:
        paths = self.ephemerals.get(session_id)
        if paths is not None:
            paths.discard(path)
            if not paths:
                del self.ephemerals[session_id]

    def link(self) -> None:
        """Computes each node's children, each session's ephemeral nodes, and `expendable` from the loaded nodes.

        `expendable` has the paths of the containers and TTL nodes. Must be called after the load, because a compacted
        log may have nodes before their parents.
        """
        self._children = {}
        self.ephemerals = {}
        self.expendable = set()
        for path, node in self.nodes.items():
            if path != ROOT_PATH:
                self._children.setdefault(parent_of(path), set()).add(name_of(path))
            if node.owner != PERSISTENT:
                self._note_owner(path, node)


class Transaction:
    """The changes that one request makes to the tree, all of them or none.

    Operations read and change the nodes through the transaction, so that the later operations of a multi see the
    changes of the earlier ones.

    changed        path -> the new node, or None for a deleted node
    children_only  those paths of `changed` of which only the counters for the children change
    events         the watch events, in the order in which they are sent
    """

    def __init__(self, tree: Tree, wall_ms: int) -> None:
        self.tree = tree
        # Returns whether the requester may not write a path, whatever its ACL.
        self.is_protected: Callable[[str], bool] = _is_never
        self.acl_schemes: Collection[str] = PLAIN_SCHEMES
        self.zxid = tree.zxid + 1
        self.wall_ms = wall_ms
        self.changed: dict[str, Node | None] = {}
        self.children_only: set[str] = set()
        self.sessions: dict[int, Session | None] = {}
        self.events: list[WatchEvent] = []
        self._child_deltas: dict[str, int] = {}

    @property
    def is_empty(self) -> bool:
        return not self.changed and not self.sessions

    def get(self, path: str) -> Node | None:
        if path in self.changed:
            return self.changed[path]
        return self.tree.nodes.get(path)

    def find(self, path: str) -> Node:
        """Returns the node at `path` as this transaction sees it. Raises OperationError NO_NODE if there is none."""
        node = self.get(path)
        if node is None:
            raise OperationError(ZooKeeperError.NO_NODE)
        return node

    def child_count(self, path: str) -> int:
        return self.tree.child_count(path) + self._child_deltas.get(path, 0)

    def stat(self, path: str) -> bytes:
        """Returns the encoded Stat of a node that exists, as this transaction has changed it."""
        return self.find(path).encode_stat(self.child_count(path))

    # -- changes

    def create(self, path: str, data: bytes | None, acl: Acl, owner: int) -> None:
        """Creates a node, whose parent must exist.

        `owner` is the session of an ephemeral node, or PERSISTENT, CONTAINER, or the result of `ttl_owner` for a TTL
        node.
        """
        zxid, wall_ms = self.zxid, self.wall_ms
        self.changed[path] = Node(data, acl, owner, zxid, zxid, zxid, wall_ms, wall_ms)
        self.children_only.discard(path)
        parent = self._change_children(parent_of(path), created=1, delta=1)
        self.events.append(WatchEvent(EventType.NODE_CREATED, path, acl))
        self._children_event(path, parent)

    def delete(self, path: str) -> None:
        """Deletes an existing node."""
        acl = self.find(path).acl
        self.changed[path] = None
        self.children_only.discard(path)
        parent = self._change_children(parent_of(path), created=0, delta=-1)
        self.events.append(WatchEvent(EventType.NODE_DELETED, path, acl))
        self._children_event(path, parent)

    def replace_data(self, path: str, data: bytes | None, version: int) -> None:
        node = self.find(path)
        self._replace(path, node._replace(data=data, version=version, mzxid=self.zxid, mtime_ms=self.wall_ms))
        self.events.append(WatchEvent(EventType.NODE_DATA_CHANGED, path, node.acl))

    def replace_acl(self, path: str, acl: Acl, acl_version: int) -> None:
        self._replace(path, self.find(path)._replace(acl=acl, acl_version=acl_version))

    def replace_owner(self, path: str, owner: int) -> None:
        """Makes a node one of another kind: `owner` is a value of `Node.owner`."""
        self._replace(path, self.find(path)._replace(owner=owner))

    def _replace(self, path: str, node: Node) -> None:
        self.changed[path] = node
        self.children_only.discard(path)

    def _change_children(self, parent: str, created: int, delta: int) -> Node:
        node = self.find(parent)
        node = node._replace(creates=node.creates + created, pzxid=self.zxid)
        if parent not in self.changed:
            self.children_only.add(parent)
        self.changed[parent] = node
        self._child_deltas[parent] = self._child_deltas.get(parent, 0) + delta
        return node

    def _children_event(self, path: str, parent: Node) -> None:
        self.events.append(WatchEvent(EventType.NODE_CHILDREN_CHANGED, parent_of(path), parent.acl))
