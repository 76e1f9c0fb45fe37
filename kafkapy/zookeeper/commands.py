"""Turns what old tools write below Kafka's znodes into requests to the controller.

A write is stored like any other, and answered; then the controller gets the request. The nodes of a request vanish when
it is complete or refused, as with Apache Kafka's controller, and a refusal is logged.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from kafkapy.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE, MetadataImage, QuotaEntity
from kafkapy.types import TopicPartition
from kafkapy.zookeeper.node import Node
from kafkapy.zookeeper.tree import Transaction, Tree
from kafkapy.zookeeper.view import UNNAMED_ENTITY, entity_of, public_config

logger = logging.getLogger("kafkapy.zookeeper.Commands")

# Receives None when the change is committed, or the reason why it was refused. Called on the owner thread.
OnDone = Callable[["str | None"], None]
Assignment = Mapping[int, Sequence[int]]

_TOPICS, _TOPIC_CONFIGS, _BROKER_CONFIGS = "/brokers/topics/", "/config/topics/", "/config/brokers/"
_DELETIONS = "/admin/delete_topics/"
_ELECTION, _REASSIGNMENT = "/admin/preferred_replica_election", "/admin/reassign_partitions"
# Nodes that only the view may write.
_PROTECTED = frozenset(("/controller", "/controller_epoch", "/cluster/id"))
# ACLs in the tree would have no effect, and are refused for that reason.
_PROTECTED_PREFIXES = ("/brokers/ids/", "/kafka-acl")
# Nodes that become requests.
_REQUEST_PREFIXES = ("/brokers/topics", "/config", "/admin")


class ClusterRequests(Protocol):
    """The port to the active controller. Owner thread; `on_done` is called later."""

    def create_topic(self, name: str, assignment: Assignment, configs: Mapping[str, str], on_done: OnDone) -> None: ...

    def add_partitions(self, name: str, total: int, assignment: Sequence[Sequence[int]], on_done: OnDone) -> None: ...

    def delete_topic(self, name: str, on_done: OnDone) -> None: ...

    def replace_config(self, resource_type: int, name: str, config: Mapping[str, str], on_done: OnDone) -> None: ...

    def replace_quotas(self, entity: QuotaEntity, quotas: Mapping[str, float], on_done: OnDone) -> None: ...

    def elect_preferred(self, partitions: Sequence[TopicPartition], on_done: OnDone) -> None: ...

    def reassign(self, replicas: Mapping[TopicPartition, Sequence[int]], on_done: OnDone) -> None: ...


class Commands:
    """The requests that clients make by writing nodes below `chroot`. Owner thread only."""

    def __init__(
        self,
        tree: Tree,
        chroot: str,
        requests: ClusterRequests,
        image: Callable[[], MetadataImage],
        delete: Callable[[str], None],
        *,
        is_writable: bool = True,
    ) -> None:
        """`delete` deletes a node with its descendants, if it exists. If not `is_writable`, clients may not write the
        nodes that become requests."""
        self._tree = tree
        self._chroot = chroot
        self._requests = requests
        self._image = image
        self._delete = delete
        self._is_writable = is_writable
        self._requested_topics: set[str] = set()
        self._moving: frozenset[TopicPartition] = frozenset()

    def is_protected(self, path: str) -> bool:
        """Returns whether clients may not write the node."""
        if not path.startswith(self._chroot):
            return False
        below = path[len(self._chroot) :]
        if below.startswith(_PROTECTED_PREFIXES) or below in _PROTECTED:
            return True
        if not self._is_writable and below.startswith(_REQUEST_PREFIXES):
            return True
        return below.startswith(_TOPICS) and below.count("/") > _TOPICS.count("/")

    def is_requested(self, topic: str) -> bool:
        """Returns whether the controller has been asked for the topic and has not answered yet."""
        return topic in self._requested_topics

    def committed(self, transaction: Transaction) -> None:
        """Makes the requests of a client's transaction."""
        for path, node in transaction.changed.items():
            if node is not None and path not in transaction.children_only and path.startswith(self._chroot):
                self._handle(path[len(self._chroot) :], node)

    def follow(self, image: MetadataImage) -> None:
        """Deletes the node of a reassignment that is complete."""
        if self._moving and not any(_is_moving(image, partition) for partition in self._moving):
            self._moving = frozenset()
            self._delete(self._chroot + _REASSIGNMENT)

    def _handle(self, path: str, node: Node) -> None:
        folder, _, name = path.rpartition("/")
        folder += "/"
        entity = entity_of(path)
        try:
            if folder == _TOPICS:
                self._topic_written(name, _parse(node))
            elif folder == _TOPIC_CONFIGS:
                if name in self._image().topics.by_name:
                    self._replace_config(TOPIC_RESOURCE, name, _parse(node)["config"])
            elif folder == _BROKER_CONFIGS:
                self._replace_broker_config(name.removeprefix(UNNAMED_ENTITY), _parse(node)["config"])
            elif entity is not None and node.data:
                self._replace_quotas(entity, _parse(node)["config"])
            elif folder == _DELETIONS:
                self._delete_topic(name)
            elif path == _ELECTION:
                self._elect(_partitions(_parse(node)))
            elif path == _REASSIGNMENT:
                self._reassign(_parse(node))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            logger.warning("%s cannot be understood, and nothing is done: %r", path, error)

    # -- topics

    def _topic_written(self, name: str, value: dict[str, Any]) -> None:
        assignment = {int(number): list(map(int, replicas)) for number, replicas in value["partitions"].items()}
        existing = self._image().topics.by_name.get(name)
        if existing is None:
            if name not in self._requested_topics:
                self._create_topic(name, assignment)
            return
        added = [assignment[number] for number in sorted(assignment) if number not in existing.partitions]
        if added:
            self._requests.add_partitions(name, len(assignment), added, _logged(f"partitions of {name}"))

    def _create_topic(self, name: str, assignment: Assignment) -> None:
        node = self._tree.nodes.get(f"{self._chroot}{_TOPIC_CONFIGS}{name}")
        configs = {} if node is None or not node.data else _parse(node)["config"]
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

    def _replace_config(self, resource_type: int, name: str, config: Mapping[str, str]) -> None:
        self._requests.replace_config(resource_type, name, config, _logged(f"configuration of {name or 'brokers'}"))

    def _replace_broker_config(self, name: str, config: Mapping[str, str]) -> None:
        """Replaces the values of a broker, except for those that the view does not show."""
        present = self._image().config(BROKER_RESOURCE, name)
        shown = public_config(present)
        hidden = {key: value for key, value in present.items() if key not in shown}
        self._replace_config(BROKER_RESOURCE, name, {**hidden, **config})

    def _replace_quotas(self, entity: QuotaEntity, config: Mapping[str, str]) -> None:
        """Replaces the quotas of an entity. Credentials in the same node are refused, because the controller needs the
        password."""
        credentials = [key for key in config if key.startswith("SCRAM-")]
        if credentials:
            logger.warning("%s of %s cannot be set by a znode", " and ".join(credentials), dict(entity))
        quotas = {key: float(value) for key, value in config.items() if key not in credentials}
        self._requests.replace_quotas(entity, quotas, _logged(f"quotas of {dict(entity)}"))

    # -- partitions

    def _elect(self, partitions: Sequence[TopicPartition]) -> None:
        def done(error: str | None) -> None:
            if error is not None:
                logger.warning("The election of preferred leaders failed: %s", error)
            self._delete(self._chroot + _ELECTION)

        self._requests.elect_preferred(partitions, done)

    def _reassign(self, value: dict[str, Any]) -> None:
        wanted = {
            TopicPartition(each["topic"], int(each["partition"])): list(map(int, each["replicas"]))
            for each in value["partitions"]
        }

        def done(error: str | None) -> None:
            if error is not None:
                logger.warning("The reassignment of partitions failed: %s", error)
                self._delete(self._chroot + _REASSIGNMENT)
                return
            self._moving = frozenset(wanted)
            self.follow(self._image())

        self._requests.reassign(wanted, done)


def _parse(node: Node) -> dict[str, Any]:
    value = json.loads(node.data or b"{}")
    if not isinstance(value, dict):
        raise ValueError("the data is not a JSON object")
    return value


def _partitions(value: dict[str, Any]) -> list[TopicPartition]:
    return [TopicPartition(each["topic"], int(each["partition"])) for each in value["partitions"]]


def _is_moving(image: MetadataImage, topic_partition: TopicPartition) -> bool:
    partition = image.topics.partition(*topic_partition)
    return partition is not None and bool(partition.adding_replicas or partition.removing_replicas)


def _logged(what: str) -> OnDone:
    """Returns a callback that logs a refusal."""

    def done(error: str | None) -> None:
        if error is not None:
            logger.warning("The %s was not changed: %s", what, error)

    return done
