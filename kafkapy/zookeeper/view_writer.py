"""Keeps Kafka's znodes in the tree equal to the cluster metadata.

The changes are ordinary writes of the tree: they have zxids, increase the versions of nodes, and trigger watches.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from kafkapy.errors import Error
from kafkapy.metadata.image import MetadataImage
from kafkapy.zookeeper.acl import OPEN_ACL, Acl
from kafkapy.zookeeper.acl_nodes import TYPE_FOLDERS
from kafkapy.zookeeper.node import Node
from kafkapy.zookeeper.paths import ROOT_PATH, parent_of
from kafkapy.zookeeper.tree import Transaction, Tree
from kafkapy.zookeeper.view import TOPIC_PART_PREFIX, ClusterFacts, Nodes, ViewNode, topic_part_name, view_parts

# The largest number of changed nodes in one transaction.
_MOST_CHANGES = 500
# The folders of which the view alone decides what they contain.
_OWNED_FOLDERS = (
    "/brokers/ids", "/brokers/topics", "/config/topics", "/config/brokers", "/config/ips", *sorted(TYPE_FOLDERS),
)  # fmt: skip
# The folder with nodes that have children of other parts: users with quotas of their own and for client ids.
_SHARED_FOLDER = "/config/users/"

# Writes a transaction to the tree; the function is called with NONE when the log has committed it, or with an error.
Commit = Callable[[Transaction, Callable[[Error], None]], None]


def _ignore() -> None:
    """Does nothing."""


class ViewWriter:
    """Writes Kafka's znodes below `chroot` ("" for the root). Only the reactor's thread may use it.

    `begin` returns a transaction, and `commit` writes it to the tree. `is_awaited(topic)` returns whether a client's
    request for this topic waits for the controller. The topic's node is then not deleted, although the metadata may not
    have the topic yet. `on_refused` is called when the log has refused a transaction: the tree does not show the
    metadata then, until the next call of `follow`, which compares all nodes. `refusals` is the number of calls
    whose transactions the log has refused since it took one.
    """

    def __init__(
        self,
        tree: Tree,
        chroot: str,
        begin: Callable[[], Transaction],
        commit: Commit,
        is_awaited: Callable[[str], bool] = lambda topic: False,
        on_refused: Callable[[], None] = _ignore,
    ) -> None:
        self._tree = tree
        self._chroot = chroot
        self._begin = begin
        self._commit_transaction = commit
        self._is_awaited = is_awaited
        self._on_refused = on_refused
        self.refusals = 0
        self._is_behind = False
        self._sources: dict[str, tuple[object, ...]] = {}
        self._nodes: dict[str, Nodes] = {}
        self._other_parts: set[str] = set()  # the names of the parts that are not topics

    def follow(self, image: MetadataImage, facts: ClusterFacts, topics: Collection[str] | None = None) -> None:
        """Changes the tree so that it shows the metadata image and `facts`.

        `topics` has the topics that have changed since the last call; None if that is not known.
        """
        if self._is_behind:
            self._is_behind = False
            self._sources.clear()
            self._nodes.clear()
            self._other_parts.clear()
        is_first = not self._sources
        if is_first:
            topics = None
        changes = _Changes(self._begin, self._commit)
        if topics is None:
            remaining = dict.fromkeys(self._sources)
        else:
            names = [*self._other_parts, *map(topic_part_name, topics)]
            remaining = {name: None for name in names if name in self._sources}
        for part in view_parts(image, facts, topics):
            remaining.pop(part.name, None)
            before = self._sources.get(part.name)
            if before is not None and _are_same(before, part.sources):
                continue
            nodes = part.make()
            self._remove([path for path in self._nodes.get(part.name, ()) if path not in nodes], changes)
            for path, node in nodes.items():
                self._show(self._chroot + path, node, changes)
            self._sources[part.name], self._nodes[part.name] = part.sources, nodes
            if not part.name.startswith(TOPIC_PART_PREFIX):
                self._other_parts.add(part.name)
        for name in remaining:
            self._remove(list(self._nodes.pop(name)), changes)
            del self._sources[name]
            self._other_parts.discard(name)
        changes.finish()
        if is_first:
            self._remove_leftovers()

    def restore(self, path: str) -> None:
        """Restores the node at `path`, below the chroot, after a client's write was refused: the node gets the content
        that the metadata imply, or is deleted if they imply no such node."""
        changes = _Changes(self._begin, self._commit)
        node = next((nodes[path] for nodes in self._nodes.values() if path in nodes), None)
        if node is not None:
            self._show(self._chroot + path, node, changes)
        else:
            self._remove([path], changes)
        changes.finish()

    def _commit(self, transaction: Transaction) -> None:
        def done(error: Error) -> None:
            if error is Error.NONE:
                self.refusals = 0
            else:
                self.refusals += not self._is_behind
                self._is_behind = True
                self._on_refused()

        self._commit_transaction(transaction, done)

    def _show(self, path: str, node: ViewNode, changes: _Changes) -> None:
        present = changes.get(path)
        if present is None:
            changes.create_with_parents(path, node)
            return
        if present.owner != node.owner:
            # A client may have created the node as an ephemeral one, which must not vanish with the client's session.
            changes.transaction.replace_owner(path, node.owner)
            changes.count()
        if node.value is not None and not node.is_shown_by(present.data):
            version = present.version + 1 if node.version is None else node.version
            changes.transaction.replace_data(path, node.encode(), version)
            changes.count()

    def _remove(self, paths: list[str], changes: _Changes) -> None:
        for path in reversed(paths):
            full_path = self._chroot + path
            if path.startswith(_SHARED_FOLDER) and changes.transaction.child_count(full_path):
                self._empty(full_path, changes)
            else:
                self._remove_below(full_path, changes)

    def _empty(self, path: str, changes: _Changes) -> None:
        """Removes the data of a node that cannot be deleted, because other objects have nodes below it."""
        present = changes.get(path)
        if present is not None and present.data is not None:
            changes.transaction.replace_data(path, None, present.version + 1)
            changes.count()

    def _remove_below(self, path: str, changes: _Changes) -> None:
        """Deletes the node at `path` and its descendants, if it exists."""
        for each in [*reversed(list(self._tree.paths_below(path))), path]:
            if changes.get(each) is not None:
                changes.transaction.delete(each)
                changes.count()

    def _remove_leftovers(self) -> None:
        """Deletes the nodes of topics, brokers and other objects that the metadata does not contain.

        They were written by a broker that served the tree before.
        """
        shown = {self._chroot + path for nodes in self._nodes.values() for path in nodes}
        changes = _Changes(self._begin, self._commit)
        for folder in _OWNED_FOLDERS:
            for name in list(self._tree.children(self._chroot + folder)):
                path = f"{self._chroot}{folder}/{name}"
                if path not in shown and not self._is_awaited(name):
                    self._remove_below(path, changes)
        changes.finish()


def _are_same(before: tuple[object, ...], after: tuple[object, ...]) -> bool:
    """Returns whether the objects from which nodes were made are the same as before.

    Texts and numbers are the same if they are equal. Other objects are the same only if they are identical.
    """
    if len(before) != len(after):
        return False
    pairs = zip(before, after, strict=True)
    return all(one is other or (isinstance(one, (int, str)) and one == other) for one, other in pairs)


class _Changes:
    """Collects changes of nodes in transactions of limited size, each of which is committed when it is full."""

    def __init__(self, begin: Callable[[], Transaction], commit: Callable[[Transaction], None]) -> None:
        self._begin = begin
        self._commit = commit
        self._count = 0
        self.transaction = begin()

    def get(self, path: str) -> Node | None:
        return self.transaction.get(path)

    def create_with_parents(self, path: str, node: ViewNode, acl: Acl = OPEN_ACL) -> None:
        parent = parent_of(path)
        if parent != ROOT_PATH and self.transaction.get(parent) is None:
            self.create_with_parents(parent, ViewNode(), acl)
        self.transaction.create(path, node.encode(), acl, node.owner)
        if node.version:
            created = self.transaction.find(path)
            self.transaction.changed[path] = created._replace(version=node.version)
        self.count()

    def count(self) -> None:
        """Counts a change in the current transaction, and commits the transaction if it has the maximum of changes."""
        self._count += 1
        if self._count >= _MOST_CHANGES:
            self.finish()

    def finish(self) -> None:
        if self._count:
            self._commit(self.transaction)
            self._count = 0
            self.transaction = self._begin()
