"""A client's view of the cluster: brokers, topics, and the leaders of their partitions. This module has no state and
does no I/O.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kafkapy.errors import ConfigError, Error
from kafkapy.named_tuple import NamedTuple
from kafkapy.protocol.messages.describe_cluster import DescribeClusterResponse
from kafkapy.protocol.messages.metadata import MetadataResponse
from kafkapy.types import ZERO_UUID, TopicPartition, uuid_to_string

NO_LEADER = -1
# Brokers list all partitions of a topic. A partition number that would leave out more than so many partitions is
# ignored, so that a response with a single partition cannot take up all memory.
MOST_MISSING_PARTITIONS = 10_000
LARGEST_BROKER_ID = 2**31 - 1  # the connections to coordinators have greater ids


def repr_with_text_ids(value: tuple[Any, ...]) -> str:
    """Returns the representation of a named tuple, with ids of 16 bytes in Kafka's text form."""
    fields: dict[str, Any] = value._asdict()  # type: ignore[attr-defined]
    shown = (
        f"{name}={(uuid_to_string(each) if name.endswith('_id') and isinstance(each, bytes) else each)!r}"
        for name, each in fields.items()
    )
    return f"{type(value).__name__}({', '.join(shown)})"


class Node(NamedTuple):
    """A broker. The addresses of bootstrap.servers have negative ids until the first metadata response."""

    node_id: int
    host: str
    port: int
    rack: str | None = None

    @property
    def label(self) -> str:
        """The text that names the node in messages: "broker 1 (localhost:9092)" or "bootstrap server
        localhost:9092"."""
        if self.node_id < 0:
            return f"bootstrap server {self.host}:{self.port}"
        kind = "coordinator" if self.node_id > LARGEST_BROKER_ID else "broker"
        return f"{kind} {self.node_id & LARGEST_BROKER_ID} ({self.host}:{self.port})"


class PartitionInfo(NamedTuple):
    """One partition, with the broker ids of its leader and replicas; `leader` is -1 while the partition has none."""

    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...] = ()
    isr: tuple[int, ...] = ()


class TopicInfo(NamedTuple):
    """One topic; the index in `partitions` is the partition's number."""

    name: str
    topic_id: bytes
    is_internal: bool
    partitions: tuple[PartitionInfo, ...]

    def __repr__(self) -> str:
        return repr_with_text_ids(self)


class Cluster(NamedTuple):
    """An immutable view of the cluster.

    `errors` has the error of each requested topic that does not exist or cannot be used.
    """

    nodes: dict[int, Node]
    topics: dict[str, TopicInfo]
    errors: dict[str, Error]
    controller_id: int = -1
    cluster_id: str | None = None

    def leader(self, topic: str, partition: int) -> int:
        """Returns the broker id of a partition's leader; -1 if the leader is not known."""
        info = self.topics.get(topic)
        if info is None or partition >= len(info.partitions):
            return NO_LEADER
        leader = info.partitions[partition].leader
        return leader if leader in self.nodes else NO_LEADER

    def racks(self, topics: Iterable[str]) -> dict[str, list[frozenset[str]]]:
        """Returns, for each of the topics, a list with the racks of each partition's replicas, in the order of
        partitions.

        Brokers whose rack is not known are left out. Every topic must be in the view.
        """
        rack_of = {node_id: node.rack for node_id, node in self.nodes.items() if node.rack is not None}
        return {
            topic: [
                frozenset(rack_of[replica] for replica in partition.replicas if replica in rack_of)
                for partition in self.topics[topic].partitions
            ]
            for topic in topics
        }

    def topic_of_id(self, topic_id: bytes) -> str | None:
        """Returns the name of the topic with this id; None if the view does not contain the topic."""
        return next((info.name for info in self.topics.values() if info.topic_id == topic_id), None)


def parse_addresses(texts: Iterable[str]) -> list[tuple[str, int]]:
    """Returns host and port of each address of `bootstrap.servers` (IPv6 in brackets).

    Raises ConfigError for an invalid address.
    """
    found = []
    for text in texts:
        host, colon, port = text.rpartition(":")
        if not colon or not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
            hint = "" if colon else " (the port is missing, as in localhost:9092)"
            raise ConfigError(f"Invalid url in bootstrap.servers: {text}{hint}")
        found.append((host.removeprefix("[").removesuffix("]"), int(port)))
    return found


def bootstrap_cluster(addresses: Iterable[tuple[str, int]]) -> Cluster:
    """Returns the view before the first metadata response: each address as a broker with a negative id."""
    return Cluster({-1 - at: Node(-1 - at, host, port) for at, (host, port) in enumerate(addresses)}, {}, {})


def controllers(response: DescribeClusterResponse) -> Cluster:
    """Returns the view of a client that is connected to controllers: its nodes are the controllers, and it has no
    topics.
    """
    nodes = {each.broker_id: Node(each.broker_id, each.host, each.port, each.rack) for each in response.brokers}
    return Cluster(nodes, {}, {}, response.controller_id, response.cluster_id)


def brokers_of(response: MetadataResponse) -> Cluster:
    """Returns the view with the brokers of a metadata response, and without topics."""
    nodes = {each.node_id: Node(each.node_id, each.host, each.port, each.rack) for each in response.brokers}
    return Cluster(nodes, {}, {}, response.controller_id, response.cluster_id)


def merge(known: Cluster, response: MetadataResponse, all_requested: bool) -> Cluster:
    """Returns the view after a metadata response.

    Topics that the response lacks stay, unless all topics were requested.

    A leader whose leader epoch is older than the known one is ignored, unless the topic was deleted and created again.
    """
    brokers = brokers_of(response)
    topics: dict[str, TopicInfo] = {} if all_requested else dict(known.topics)
    errors: dict[str, Error] = {} if all_requested else dict(known.errors)
    for topic in response.topics:
        name = topic.name
        if not name:
            continue  # requested by an id that no topic has
        errors.pop(name, None)
        if topic.error_code:
            errors[name] = Error.of(topic.error_code)
            if topic.error_code == Error.UNKNOWN_TOPIC_OR_PARTITION:
                topics.pop(name, None)
            continue
        previous = known.topics.get(name)
        if previous is not None and previous.topic_id != topic.topic_id:
            previous = None
        end = len(topic.partitions) + MOST_MISSING_PARTITIONS
        found = {
            each.partition_index: _partition(each, previous)
            for each in topic.partitions
            if 0 <= each.partition_index < end
        }
        ordered = tuple(
            found.get(number, PartitionInfo(number, NO_LEADER, -1)) for number in range(max(found, default=-1) + 1)
        )
        topics[name] = TopicInfo(name, topic.topic_id, topic.is_internal, ordered)
    return brokers._replace(topics=topics, errors=errors)


def _partition(received: MetadataResponse.MetadataResponsePartition, previous: TopicInfo | None) -> PartitionInfo:
    number = received.partition_index
    if previous is not None and number < len(previous.partitions):
        known = previous.partitions[number]
        if 0 <= received.leader_epoch < known.leader_epoch:
            return known
    return PartitionInfo(
        number,
        received.leader_id,
        received.leader_epoch,
        tuple(received.replica_nodes),
        tuple(received.isr_nodes),
    )


def with_leader(
    known: Cluster, topic_partition: TopicPartition, leader: int, epoch: int, nodes: Iterable[Node]
) -> Cluster:
    """Returns the view with the leader that a broker named in an error response (KIP-951).

    Returns `known` unchanged if it lacks the partition, or has the same or a later leader epoch for it.
    """
    info = known.topics.get(topic_partition.topic)
    if leader < 0 or info is None or topic_partition.partition >= len(info.partitions):
        return known
    old = info.partitions[topic_partition.partition]
    if epoch <= old.leader_epoch:
        return known
    partitions = list(info.partitions)
    partitions[topic_partition.partition] = old._replace(leader=leader, leader_epoch=epoch)
    topics = {**known.topics, topic_partition.topic: info._replace(partitions=tuple(partitions))}
    return known._replace(nodes={**known.nodes, **{node.node_id: node for node in nodes}}, topics=topics)


__all__ = ["NO_LEADER", "ZERO_UUID", "Cluster", "Node", "PartitionInfo", "TopicInfo"]
