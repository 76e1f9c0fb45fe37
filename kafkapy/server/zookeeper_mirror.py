"""Kafka's znodes in a ZooKeeper of the user, for programs that keep its address.

This module needs kazoo, and is imported only with `zookeeper.mirror.connect`.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.retry import KazooRetry

from kafkapy.metadata.delta import MetadataDelta
from kafkapy.metadata.image import MetadataImage
from kafkapy.zookeeper.node import PERSISTENT
from kafkapy.zookeeper.view import ClusterFacts, Nodes, ViewNode, view_parts

logger = logging.getLogger("kafkapy.zookeeper.Mirror")

_SESSION_TIMEOUT_S = 18.0
# The pause before a failed write, or the look at a ZooKeeper that cannot be reached, is repeated.
_RETRY_S = 1.0
_LONGEST_DELAY_S = 10
# The folders of which the mirror alone decides what they contain.
_FOLDERS = ("/brokers/ids", "/brokers/topics", "/config/topics", "/config/brokers")
_CLUSTER_ID_PATH = "/cluster/id"
_USERS = "/config/users/"
_CREDENTIALS_PREFIX = "SCRAM-"


class ZooKeeperMirror:
    """Writes the cluster metadata as Kafka's znodes to a ZooKeeper, on a thread of its own.

    Of the brokers that are not fenced, the one with the lowest id writes; the others wait. The ephemeral nodes of all
    brokers belong to its session. If the session ends, they vanish, and the broker that writes next creates them again.
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
        self._wakes = threading.Event()
        self._is_stopping = False
        self._is_refused = False
        self._session_id = 0
        self._sources: dict[str, tuple[object, ...]] = {}
        self._nodes: dict[str, Nodes] = {}
        self._thread = threading.Thread(target=self._run, name="zookeeper-mirror", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def on_metadata(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Receives a new image on the quorum thread, and wakes the mirror's thread."""
        self._wakes.set()

    def stop(self) -> None:
        """Closes the session, with which the ephemeral nodes vanish."""
        self._is_stopping = True
        self._wakes.set()
        self._thread.join()

    # -- the thread

    def _run(self) -> None:
        self._client.start_async()
        while not self._is_stopping:
            is_shown = self._client.connected and self._try_to_show()
            self._wakes.wait(None if is_shown and self._client.connected else _RETRY_S)
            self._wakes.clear()
        self._client.stop()
        self._client.close()

    def _try_to_show(self) -> bool:
        """Writes the nodes that have changed since the last pass; returns True.

        If ZooKeeper cannot be written to, logs a warning and returns False; the next pass then compares all nodes.
        """
        try:
            self._show(self._image(), self._facts())
        except (KazooException, KazooTimeoutError, OSError) as error:
            logger.warning("Writing to ZooKeeper at %s failed: %s %s", self._connect, type(error).__name__, error)
            self._forget()
            return False
        return True

    def _forget(self) -> None:
        """Makes the next pass compare all nodes with ZooKeeper's."""
        self._sources, self._nodes = {}, {}

    def _show(self, image: MetadataImage, facts: ClusterFacts) -> None:
        client_id = self._client.client_id
        if client_id is not None and client_id[0] != self._session_id:
            self._session_id = client_id[0]
            self._forget()
        if self._node_id != min((each.broker_id for each in image.brokers.values() if not each.fenced), default=-1):
            self._forget()
            return
        is_first = not self._sources
        if is_first and not self._may_write(facts.cluster_id):
            return
        remaining = dict.fromkeys(self._sources)
        for part in view_parts(image, facts):
            remaining.pop(part.name, None)
            before = self._sources.get(part.name)
            if before is not None and _are_equal(before, part.sources):
                continue
            nodes = {path: _without_credentials(path, node) for path, node in part.make().items()}
            self._delete(path for path in self._nodes.get(part.name, ()) if path not in nodes)
            for path, node in nodes.items():
                self._write(path, node)
            self._sources[part.name], self._nodes[part.name] = part.sources, nodes
        for name in remaining:
            del self._sources[name]
            self._delete(iter(self._nodes.pop(name)))
        if is_first:
            self._delete_leftovers()
            logger.info("ZooKeeper at %s shows the cluster", self._connect)

    def _may_write(self, cluster_id: str) -> bool:
        """Returns False, and logs an error, if the nodes belong to another cluster."""
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

    def _write(self, path: str, node: ViewNode) -> None:
        is_ephemeral = node.owner != PERSISTENT
        try:
            data, stat = self._client.get(path)
        except NoNodeError:
            self._client.create(path, node.encode(), ephemeral=is_ephemeral, makepath=True)
            return
        if is_ephemeral and stat.ephemeralOwner != self._session_id:
            self._client.delete(path)  # of an earlier session
            self._client.create(path, node.encode(), ephemeral=True)
        elif node.value is not None and not node.is_shown_by(data):
            self._client.set(path, node.encode())

    def _delete(self, paths: Iterator[str]) -> None:
        for path in reversed(list(paths)):
            if self._client.exists(path) is not None:
                self._client.delete(path, recursive=True)

    def _delete_leftovers(self) -> None:
        """Deletes the nodes of brokers, topics and other objects that no longer exist in the metadata.

        Such nodes may remain from an earlier session, whose writer did not delete them.
        """
        shown = {path for nodes in self._nodes.values() for path in nodes}
        for folder in _FOLDERS:
            names = self._client.get_children(folder) if folder in shown else []
            self._delete(path for name in names if (path := f"{folder}/{name}") not in shown)


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
