"""Writes Kafka's znodes to a ZooKeeper of the user, for old programs that connect to this ZooKeeper.

This module needs kazoo, and is imported only with `zookeeper.mirror.connect`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.retry import KazooRetry

from kafkapy.metadata.delta import MetadataDelta
from kafkapy.metadata.image import MetadataImage
from kafkapy.server.zookeeper_claim import Claim, NotTheWriter, Operation
from kafkapy.zookeeper.node import PERSISTENT
from kafkapy.zookeeper.view import ClusterFacts, Nodes, ViewNode, view_parts

logger = logging.getLogger("kafkapy.zookeeper.Mirror")

_SESSION_TIMEOUT_S = 18.0
# The pause before a failed write is repeated, and the interval at which the mirror looks for another session or another
# controller, of which the metadata do not notify it.
_RETRY_S = 1.0
# How long a broker that stops waits for the next writer, and the interval at which it looks.
_HANDOVER_S = 2.0
_HANDOVER_INTERVAL_S = 0.02
_LONGEST_DELAY_S = 10
_BROKERS = "/brokers/ids"
# The folders of which the mirror alone decides what they contain.
_FOLDERS = (_BROKERS, "/brokers/topics", "/config/topics", "/config/brokers")
_CONTROLLER_NODE = "/controller"
_CLUSTER_ID_PATH = "/cluster/id"
_USERS = "/config/users/"
_CREDENTIALS_PREFIX = "SCRAM-"


class ZooKeeperMirror:
    """Writes the cluster metadata as Kafka's znodes to a ZooKeeper, on a thread of its own.

    Only one broker, the writer, writes. It is the broker with the lowest id among the brokers that are neither fenced
    nor stopping. If there is no such broker, it is the broker with the lowest id among the brokers that are not fenced.
    The ephemeral nodes of all brokers belong to the writer's session. The next writer replaces them by nodes of its own
    session, and a writer that stops waits for this. `Claim` makes the writes of all other brokers fail.
    """

    def __init__(
        self, connect: str, node_id: int, image: Callable[[], MetadataImage], facts: Callable[[], ClusterFacts]
    ) -> None:
        """Creates a mirror that is not started. Raises ValueError for a wrong connect string.

        `facts` returns what the znodes show in addition to the metadata `image`.
        """
        self._connect = connect
        self._node_id = node_id
        self._image = image
        self._facts = facts
        retry = KazooRetry(max_tries=-1, max_delay=_LONGEST_DELAY_S)
        self._client = KazooClient(connect, timeout=_SESSION_TIMEOUT_S, connection_retry=retry)
        self._claim = Claim(self._client, node_id)
        self._wakes = threading.Event()
        self._is_stopping = False
        self._is_refused = False
        self._is_waiting = False
        self._session_id = 0
        self._shown: tuple[object, ...] = ()
        self._sources: dict[str, tuple[object, ...]] = {}
        self._nodes: dict[str, Nodes] = {}
        self._thread = threading.Thread(target=self._run, name="zookeeper-mirror", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def on_metadata(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Wakes the mirror's thread after a change of the metadata. Called on the quorum thread, which replays the
        metadata.
        """
        self._wakes.set()

    def stop(self) -> None:
        """Ends the thread and closes its session. ZooKeeper then deletes the session's ephemeral nodes, except the
        nodes that the next writer has replaced by its own.

        If another broker runs, waits at most 2 seconds for this replacement.
        """
        self._is_stopping = True
        self._wakes.set()
        self._thread.join()

    # -- the thread

    def _run(self) -> None:
        self._client.start_async()
        while not self._is_stopping:
            if self._client.connected:
                self._try_to_show()
            self._wakes.wait(_RETRY_S)
            self._wakes.clear()
        if self._client.connected and self._session_id:
            self._await_next_writer()
        self._client.stop()
        self._client.close()

    def _try_to_show(self) -> None:
        """Writes the nodes that have changed since the last pass.

        If ZooKeeper cannot be written to, logs a warning; the next pass then compares all nodes.
        """
        try:
            self._show(self._image(), self._facts())
            self._is_waiting = False
        except NotTheWriter as reason:
            if not self._is_waiting:
                logger.info("ZooKeeper at %s is written by %s", self._connect, reason)
            self._is_waiting = True
            self._forget()
        except (KazooException, KazooTimeoutError, OSError) as error:
            logger.warning("Writing to ZooKeeper at %s failed: %s %s", self._connect, type(error).__name__, error)
            self._forget()

    def _await_next_writer(self) -> None:
        """Waits until the next writer owns all ephemeral nodes, if another broker runs that could be the next writer.

        Without this wait, the registrations of the other brokers would vanish for a moment when this session ends.
        """
        deadline = time.monotonic() + _HANDOVER_S
        try:
            while time.monotonic() < deadline and self._has_successor() and self._owns_nodes():
                time.sleep(_HANDOVER_INTERVAL_S)
        except (KazooException, KazooTimeoutError, OSError) as error:
            logger.warning("ZooKeeper at %s has failed at the end: %s", self._connect, type(error).__name__)

    def _has_successor(self) -> bool:
        """Returns whether another broker runs and is not stopping.

        The image may not show yet that this broker is stopping.
        """
        brokers = self._image().brokers.values()
        return any(each.broker_id != self._node_id and each.is_active for each in brokers)

    def _owns_nodes(self) -> bool:
        """Returns whether an ephemeral node belongs to this broker's session."""
        try:
            paths = [_CONTROLLER_NODE, *(f"{_BROKERS}/{name}" for name in self._client.get_children(_BROKERS))]
        except NoNodeError:
            return False
        stats = [self._client.exists(path) for path in paths]
        return any(stat is not None and stat.ephemeralOwner == self._session_id for stat in stats)

    @staticmethod
    def _writer(image: MetadataImage) -> int:
        """Returns the id of the broker that writes; -1 if all brokers are fenced."""
        ranks = [(each.in_controlled_shutdown, each.broker_id) for each in image.brokers.values() if not each.fenced]
        return min(ranks, default=(False, -1))[1]

    def _forget(self) -> None:
        """Makes the next pass compare all nodes with ZooKeeper's, if this broker is still the writer then."""
        self._sources, self._nodes, self._shown = {}, {}, ()

    def _show(self, image: MetadataImage, facts: ClusterFacts) -> None:
        client_id = self._client.client_id
        if client_id is not None and client_id[0] != self._session_id:
            self._session_id = client_id[0]
            self._forget()
        if self._node_id != self._writer(image):
            self._forget()
            return
        shown = (facts.controller_id, *image[1:])  # without the offset, which also records without effect increase
        if self._shown and _are_equal(self._shown, shown):
            return
        is_first = not self._sources
        if is_first:
            if not self._may_write(facts.cluster_id):
                return
            self._claim.take(image.offset)
        remaining = dict.fromkeys(self._sources)
        for part in view_parts(image, facts):
            remaining.pop(part.name, None)
            before = self._sources.get(part.name)
            if before is not None and _are_equal(before, part.sources):
                continue
            nodes = {path: _without_credentials(path, node) for path, node in part.make().items()}
            old = [path for path in self._nodes.get(part.name, ()) if path not in nodes]
            self._claim.commit([*self._deletions(old), *self._writes(nodes)])
            self._sources[part.name], self._nodes[part.name] = part.sources, nodes
        for name in remaining:
            del self._sources[name]
            self._claim.commit(self._deletions(self._nodes.pop(name)))
        if is_first:
            self._delete_leftovers()
            logger.info("ZooKeeper at %s shows the cluster", self._connect)
        self._shown = shown

    def _may_write(self, cluster_id: str) -> bool:
        """Returns whether this cluster may write the nodes; logs an error if they belong to another cluster."""
        try:
            data, _ = self._client.get(_CLUSTER_ID_PATH)
        except NoNodeError:
            return True
        was_refused = self._is_refused
        self._is_refused = not ViewNode({"version": "1", "id": cluster_id}).is_shown_by(data)
        if self._is_refused and not was_refused:
            logger.error(
                "ZooKeeper at %s has the nodes of another cluster, %s: nothing is written; use another chroot in "
                "zookeeper.mirror.connect, or delete them",
                self._connect, (data or b"").decode(errors="replace"),
            )  # fmt: skip
        return not self._is_refused

    def _writes(self, nodes: Nodes) -> list[Operation]:
        """Returns the operations after which ZooKeeper has these nodes, with the parents that are missing."""
        operations: list[Operation] = []
        present: set[str] = set()
        for path, node in nodes.items():
            is_ephemeral = node.owner != PERSISTENT
            try:
                data, stat = self._client.get(path)
            except NoNodeError:
                for parent in _ancestors(path):
                    if parent not in present and self._client.exists(parent) is None:
                        operations.append(self._claim.create(parent, b"", is_ephemeral=False))
                    present.add(parent)
                operations.append(self._claim.create(path, node.encode(), is_ephemeral=is_ephemeral))
                present.add(path)
                continue
            present.add(path)
            if is_ephemeral and stat.ephemeralOwner != self._session_id:  # of an earlier session or writer
                operations.append(self._claim.delete(path))
                operations.append(self._claim.create(path, node.encode(), is_ephemeral=True))
            elif node.value is not None and not node.is_shown_by(data):
                operations.append(self._claim.set(path, node.encode()))
        return operations

    def _deletions(self, paths: Iterable[str]) -> list[Operation]:
        """Returns the operations that delete the nodes at `paths` that exist, and all nodes below them."""
        found: dict[str, None] = {}
        for path in paths:
            self._find(path, found)
        # Descendants sort after their ancestors.
        return [self._claim.delete(path) for path in sorted(found, reverse=True)]

    def _find(self, path: str, found: dict[str, None]) -> None:
        """Adds `path` and the paths of all descendants of its node to `found`, if the node exists."""
        if path in found:
            return
        try:
            names = self._client.get_children(path)
        except NoNodeError:
            return
        found[path] = None
        for name in names:
            self._find(f"{path}/{name}", found)

    def _delete_leftovers(self) -> None:
        """Deletes the nodes of brokers, topics and other objects that no longer exist in the metadata.

        Such nodes may remain from an earlier session, whose writer did not delete them.
        """
        shown = {path for nodes in self._nodes.values() for path in nodes}
        for folder in _FOLDERS:
            names = self._client.get_children(folder) if folder in shown else []
            left = [path for name in names if (path := f"{folder}/{name}") not in shown]
            self._claim.commit(self._deletions(left))


def _ancestors(path: str) -> list[str]:
    """Returns the paths of the nodes above `path`, without the root, the highest first."""
    words = path.split("/")
    return ["/".join(words[:count]) for count in range(2, len(words))]


def _are_equal(before: tuple[object, ...], after: tuple[object, ...]) -> bool:
    """Returns whether both tuples have the same objects, or equal texts or numbers, at the same positions."""
    return len(before) == len(after) and all(
        one is other or (isinstance(one, (int, str)) and one == other) for one, other in zip(before, after, strict=True)
    )


def _without_credentials(path: str, node: ViewNode) -> ViewNode:
    """Returns `node`, without SCRAM credentials if `path` is that of a user: anybody can read the mirror."""
    if not path.startswith(_USERS) or not isinstance(node.value, dict):
        return node
    config: dict[str, Any] = node.value.get("config", {})
    public = {key: value for key, value in config.items() if not key.startswith(_CREDENTIALS_PREFIX)}
    return node._replace(value={**node.value, "config": public})
