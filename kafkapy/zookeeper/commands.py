"""Turns what old tools write below Kafka's znodes into requests to the controller.

A write is stored like any other, and answered; then the controller gets the request. The nodes of a request vanish when
it is complete or refused, as with Apache Kafka's controller, and a refusal is logged.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from math import isfinite
from typing import Any, Protocol

from kafkapy.config.row import INT_MAX
from kafkapy.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE, MetadataImage, QuotaEntity
from kafkapy.named_tuple import NamedTuple
from kafkapy.protocol.scram_mechanism import MECHANISMS_BY_NAME
from kafkapy.security.access_control_entry import AccessControlEntry
from kafkapy.types import TopicPartition
from kafkapy.zookeeper.acl_nodes import CHANGE_FOLDERS, EMPTY_FOLDERS, TYPE_FOLDERS, entries_of, is_acl_node
from kafkapy.zookeeper.node import Node
from kafkapy.zookeeper.scram_nodes import CredentialChanges, credential_changes, without_keys
from kafkapy.zookeeper.tree import Transaction, Tree
from kafkapy.zookeeper.view import UNNAMED_ENTITY, decode_json, encode_json, entity_of, public_config, user_of

logger = logging.getLogger("kafkapy.zookeeper.Commands")

# Receives None when the change is committed, or the reason why it was refused. Called on the reactor's thread.
OnDone = Callable[["str | None"], None]
Assignment = Mapping[int, Sequence[int]]

_TOPICS, _TOPIC_CONFIGS, _BROKER_CONFIGS = "/brokers/topics/", "/config/topics/", "/config/brokers/"
_CONFIGS, _USERS, _ACLS = "/config/", "/config/users/", "/kafka-acl"
_DELETIONS = "/admin/delete_topics/"
_ELECTION, _REASSIGNMENT = "/admin/preferred_replica_election", "/admin/reassign_partitions"
# Tools notify brokers by new nodes in these folders; Kafka's brokers deleted them after the same time.
_NOTIFICATION_FOLDERS = ("/config/changes", *CHANGE_FOLDERS)
_NOTIFICATION_MS = 15 * 60_000
# Nodes that only the view may write.
_PROTECTED = frozenset(("/controller", "/controller_epoch", "/cluster/id"))
_PROTECTED_PREFIXES = ("/brokers/ids/",)
# What the data of a node that cannot be understood raise.
_NOT_UNDERSTOOD = (ValueError, KeyError, TypeError, AttributeError, OverflowError)
# Nodes that become requests.
_REQUEST_PREFIXES = ("/brokers/topics", "/config", "/admin", "/kafka-acl")


class ClusterRequests(Protocol):
    """The interface through which this module sends requests to the active controller. Only the reactor's thread may
    use it.

    Each method calls `on_done` after it has returned: with None, or with the reason if the controller refuses the
    request.
    """

    def create_topic(self, name: str, assignment: Assignment, configs: Mapping[str, str], on_done: OnDone) -> None: ...

    def add_partitions(self, name: str, total: int, assignment: Sequence[Sequence[int]], on_done: OnDone) -> None: ...

    def delete_topic(self, name: str, on_done: OnDone) -> None: ...

    def replace_config(self, resource_type: int, name: str, config: Mapping[str, str], on_done: OnDone) -> None: ...

    def replace_quotas(self, entity: QuotaEntity, quotas: Mapping[str, float], on_done: OnDone) -> None: ...

    def alter_credentials(self, changes: CredentialChanges, on_done: OnDone) -> None: ...

    def alter_acls(
        self, created: Collection[AccessControlEntry], deleted: Collection[AccessControlEntry], on_done: OnDone
    ) -> None: ...

    def elect_preferred(self, partitions: Sequence[TopicPartition], on_done: OnDone) -> None: ...

    def reassign(self, replicas: Mapping[TopicPartition, Sequence[int]], on_done: OnDone) -> None: ...


class NodeWrite(NamedTuple):
    """A client's write of a node: the path below the chroot, and the node before and after the write.

    None stands for a node that did not exist before, or was deleted.
    """

    path: str
    before: Node | None
    after: Node | None


class Commands:
    """Sends the controller the requests that clients make by writing nodes below `chroot`. Only the reactor's thread
    may use it."""

    def __init__(
        self,
        tree: Tree,
        chroot: str,
        requests: ClusterRequests,
        image: Callable[[], MetadataImage],
        delete: Callable[[str], None],
        restore: Callable[[str], None],
        *,
        is_writable: bool = True,
        has_acls: bool = True,
    ) -> None:
        """Creates the object; `requests` sends the requests to the controller.

        `image` returns the newest metadata image. `delete` deletes the node at a path, with its descendants, if it
        exists. `restore` writes what the metadata say to the node at a path below the chroot. If `is_writable` is
        False, clients may not write the nodes that become requests. If `has_acls` is False, they may not write nodes of
        ACLs, which would have no effect.
        """
        self._tree = tree
        self._chroot = chroot
        self._requests = requests
        self._image = image
        self._delete = delete
        self._restore = restore
        self._is_writable = is_writable
        self._has_acls = has_acls
        self._requested_topics: set[str] = set()
        self._moving: frozenset[TopicPartition] = frozenset()

    def is_protected(self, path: str) -> bool:
        """Returns whether clients are forbidden to write the node at `path`."""
        if not path.startswith(self._chroot):
            return False
        below = path[len(self._chroot) :]
        if below.startswith(_PROTECTED_PREFIXES) or below in _PROTECTED:
            return True
        if below in TYPE_FOLDERS:
            return False  # tools create these folders whenever they start
        if below in EMPTY_FOLDERS or (below.startswith(_ACLS) and not self._has_acls):
            return True
        if not self._is_writable and below.startswith(_REQUEST_PREFIXES):
            return True
        return below.startswith(_TOPICS) and below.count("/") > _TOPICS.count("/")

    def is_requested(self, topic: str) -> bool:
        """Returns whether a request to create, extend or delete the topic is waiting for the controller's response."""
        return topic in self._requested_topics

    def prepare(self, transaction: Transaction) -> list[NodeWrite]:
        """Returns the writes of nodes in a client's transaction that may become requests; the caller passes them to
        `committed`.

        Must be called before the transaction is applied. Removes the salts and keys of SCRAM credentials from the nodes
        that the transaction writes.
        """
        writes = []
        for path, node in transaction.changed.items():
            if path in transaction.children_only or not path.startswith(self._chroot):
                continue
            below = path[len(self._chroot) :]
            if below.startswith(_REQUEST_PREFIXES):
                writes.append(NodeWrite(below, self._tree.nodes.get(path), node))
        for path, _, node in writes:
            if node is not None and path.startswith(_USERS):
                transaction.changed[self._chroot + path] = _without_keys(node)
        return writes

    def committed(self, writes: Sequence[NodeWrite]) -> None:
        """Sends the controller the requests that a client has made by writing nodes; `writes` is the result of
        `prepare`.

        Must be called after the log has committed the client's transaction. If the data of a node cannot be understood,
        a warning is logged, and no request is sent.
        """
        for write in writes:
            try:
                self._handle(*write)
            except _NOT_UNDERSTOOD as error:
                logger.warning("%s cannot be understood, and nothing is done: %r", write.path, error)
                self._restore_if_shown(write.path)

    def _restore_if_shown(self, path: str) -> None:
        """Undoes a client's write of the node at `path`, which could not be understood.

        A node whose content comes from the metadata gets this content again. A node that requests an election or a
        reassignment is deleted. The node of a topic that does not exist stays unchanged: a later write of the node may
        create the topic.
        """
        name = path.removeprefix(_TOPICS)
        if name == path or name in self._image().topics.by_name:
            self._restore(path)

    def resume(self) -> None:
        """Sends the requests for elections, reassignments and deletions whose nodes exist when this broker takes over.

        The broker that served the tree before may not have sent them, and no longer waits for their outcome.
        """
        paths = [_ELECTION, _REASSIGNMENT]
        paths += [_DELETIONS + name for name in self._tree.children(self._chroot + _DELETIONS.rstrip("/"))]
        nodes = {path: self._tree.nodes.get(self._chroot + path) for path in paths}
        self.committed([NodeWrite(path, None, node) for path, node in nodes.items() if node is not None])

    def old_notifications(self, wall_ms: int) -> list[str]:
        """Returns the paths of the nodes by which tools have notified brokers, if they are older than 15 minutes.

        Kafka's brokers deleted such nodes after the same time.
        """
        paths = []
        for folder in _NOTIFICATION_FOLDERS:
            for name in self._tree.children(self._chroot + folder):
                path = f"{self._chroot}{folder}/{name}"
                if self._tree.nodes[path].mtime_ms + _NOTIFICATION_MS < wall_ms:
                    paths.append(path)
        return paths

    def follow(self, image: MetadataImage) -> None:
        """Deletes the node /admin/reassign_partitions if all reassignments in it are complete in `image`."""
        if self._moving and not any(_is_moving(image, partition) for partition in self._moving):
            self._moving = frozenset()
            self._delete(self._chroot + _REASSIGNMENT)

    def _handle(self, path: str, before: Node | None, node: Node | None) -> None:
        if is_acl_node(path):
            self._acls_written(path, before, node)
            return
        if node is None:
            return
        folder, _, name = path.rpartition("/")
        folder += "/"
        entity = entity_of(path)
        if folder == _TOPICS:
            self._topic_written(name, _parse(node))
        elif folder == _TOPIC_CONFIGS:
            if name in self._image().topics.by_name:
                self._replace_config(path, TOPIC_RESOURCE, name, _config(node))
        elif folder == _BROKER_CONFIGS:
            self._replace_broker_config(path, name.removeprefix(UNNAMED_ENTITY), _config(node))
        elif entity is not None and node.data:
            present = {} if before is None or not before.data else _parse(before)["config"]
            self._entity_written(path, entity, present, _parse(node)["config"])
        elif folder == _DELETIONS:
            self._delete_topic(name)
        elif path == _ELECTION:
            self._elect(_partitions(_parse(node)))
        elif path == _REASSIGNMENT:
            self._reassign(_parse(node))

    # -- topics

    def _topic_written(self, name: str, value: dict[str, Any]) -> None:
        assignment = {_number(number): list(map(_number, each)) for number, each in value["partitions"].items()}
        existing = self._image().topics.by_name.get(name)
        if existing is None:
            if name not in self._requested_topics:
                self._create_topic(name, assignment)
            return
        added = [assignment[number] for number in sorted(assignment) if number not in existing.partitions]
        path = f"{_TOPICS}{name}"
        if added:
            self._requests.add_partitions(name, len(assignment), added, self._restored(path))
        elif assignment != {number: list(each.replicas) for number, each in existing.partitions.items()}:
            self._restored(path)("the node of a topic can only add partitions; use /admin/reassign_partitions")

    def _create_topic(self, name: str, assignment: Assignment) -> None:
        node = self._tree.nodes.get(f"{self._chroot}{_TOPIC_CONFIGS}{name}")
        configs = {} if node is None or not node.data else _config(node)
        self._requested_topics.add(name)

        def done(error: str | None) -> None:
            self._requested_topics.discard(name)
            if error is not None:
                logger.warning("The topic %s was not created: %s", name, error)
                self._delete(f"{self._chroot}{_TOPICS}{name}")
                self._delete(f"{self._chroot}{_TOPIC_CONFIGS}{name}")

        self._requests.create_topic(name, assignment, configs, done)

    def _delete_topic(self, name: str) -> None:
        def done(error: str | None) -> None:
            if error is not None:
                logger.warning("The topic %s was not deleted: %s", name, error)
            self._delete(f"{self._chroot}{_DELETIONS}{name}")

        self._requests.delete_topic(name, done)

    # -- configurations, quotas, credentials and ACLs

    def _replace_config(self, path: str, resource_type: int, name: str, config: Mapping[str, str]) -> None:
        self._requests.replace_config(resource_type, name, config, self._restored(path))

    def _replace_broker_config(self, path: str, name: str, config: Mapping[str, str]) -> None:
        """Requests that `config` replaces the configuration of the broker `name`, "" for the defaults of all brokers.

        Values that the nodes of the tree do not show, such as passwords, are not changed. If the controller refuses,
        the node at `path` is restored.
        """
        present = self._image().config(BROKER_RESOURCE, name)
        shown = public_config(present)
        hidden = {key: value for key, value in present.items() if key not in shown}
        self._replace_config(path, BROKER_RESOURCE, name, {**hidden, **config})

    def _entity_written(
        self, path: str, entity: QuotaEntity, before: Mapping[str, str], config: Mapping[str, str]
    ) -> None:
        """Requests the quotas and SCRAM credentials that a client has written to the node of an entity, such as a user.

        `before` and `config` are the configuration in the node before and after the write. If the controller refuses,
        the node at `path` is restored.
        """
        quotas = {key: float(value) for key, value in config.items() if key not in MECHANISMS_BY_NAME}
        if not all(map(isfinite, quotas.values())):
            raise ValueError("a quota is not a finite number")
        changes = credential_changes(user_of(entity), before, config)
        if changes is not None:
            self._requests.alter_credentials(changes, self._restored(path))
        if quotas or before.keys() - MECHANISMS_BY_NAME.keys():
            self._requests.replace_quotas(entity, quotas, self._restored(path))

    def _acls_written(self, path: str, before: Node | None, node: Node | None) -> None:
        """Requests the creation and the deletion of the ACLs in which the node at `path` has changed.

        `before` and `node` are the node before and after the write; None if there was, or is, no node.
        """
        present = set() if before is None else entries_of(path, _parse(before))
        wanted = set() if node is None else entries_of(path, _parse(node))
        created, deleted = sorted(wanted - present), sorted(present - wanted)
        if created or deleted:
            self._requests.alter_acls(created, deleted, self._restored(path))

    def _restored(self, path: str) -> OnDone:
        """Returns a callback that handles a request's refusal: it logs the reason and restores the node at `path`."""

        def done(error: str | None) -> None:
            if error is not None:
                logger.warning("What was written to %s was refused: %s", path, error)
                self._restore(path)

        return done

    # -- partitions

    def _elect(self, partitions: Sequence[TopicPartition]) -> None:
        def done(error: str | None) -> None:
            if error is not None:
                logger.warning("The election of preferred leaders failed: %s", error)
            self._delete(self._chroot + _ELECTION)

        self._requests.elect_preferred(partitions, done)

    def _reassign(self, value: dict[str, Any]) -> None:
        wanted = {_partition(each): list(map(_number, each["replicas"])) for each in value["partitions"]}

        def done(error: str | None) -> None:
            if error is not None:
                logger.warning("The reassignment of partitions failed: %s", error)
                self._delete(self._chroot + _REASSIGNMENT)
                return
            self._moving |= wanted.keys()
            self.follow(self._image())

        self._requests.reassign(wanted, done)


def _parse(node: Node) -> dict[str, Any]:
    value = decode_json(node.data or b"{}")
    if not isinstance(value, dict):
        raise ValueError("the data is not a JSON object")
    return value


def _without_keys(node: Node) -> Node:
    """Returns the node of a user without the salts and keys of the user's credentials.

    If the data of `node` cannot be understood, the result has an object without a configuration, which is refused.
    """
    if not node.data:
        return node
    try:
        value = _parse(node)
        return node._replace(data=encode_json({**value, "config": without_keys(value["config"])}))
    except _NOT_UNDERSTOOD:
        return node._replace(data=b"{}")


def _partitions(value: dict[str, Any]) -> list[TopicPartition]:
    return [_partition(each) for each in value["partitions"]]


def _partition(value: dict[str, Any]) -> TopicPartition:
    topic = value["topic"]
    if not isinstance(topic, str):
        raise ValueError(f"{topic!r} is not the name of a topic")
    return TopicPartition(topic, _number(value["partition"]))


def _number(value: Any) -> int:
    """Returns the number of a broker or a partition. Raises ValueError for one that a request cannot carry."""
    number = int(value)
    if not 0 <= number <= INT_MAX:
        raise ValueError(f"{number} is not the number of a broker or a partition")
    return number


def _config(node: Node) -> dict[str, str]:
    """Returns the configuration in a node. Raises ValueError if a value is not a text."""
    config = _parse(node)["config"]
    if not all(isinstance(value, str) for value in config.values()):
        raise ValueError("a value of the configuration is not a text")
    return dict(config)


def _is_moving(image: MetadataImage, topic_partition: TopicPartition) -> bool:
    partition = image.topics.partition(*topic_partition)
    return partition is not None and bool(partition.adding_replicas or partition.removing_replicas)
