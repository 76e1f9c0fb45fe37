"""What a client knows of the cluster: brokers, topics and who leads their partitions.  Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kafkapy.errors import ConfigError, Error
from kafkapy.protocol.messages.metadata import MetadataResponse
from kafkapy.types import ZERO_UUID, TopicPartition

NO_LEADER = -1


class Node(NamedTuple):
    """A broker. Addresses of bootstrap.servers have negative ids until the cluster has told the real ones."""

    node_id: int
    host: str
    port: int
    rack: str | None = None


class PartitionInfo(NamedTuple):
    """One partition: `leader` is -1 while it has none."""

    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...] = ()
    isr: tuple[int, ...] = ()


class TopicInfo(NamedTuple):
    """One topic, its partitions by number."""

    name: str
    topic_id: bytes
    is_internal: bool
    partitions: tuple[PartitionInfo, ...]


class Cluster(NamedTuple):
    """An immutable picture. `errors` are of topics that were asked for and are not there."""

    nodes: dict[int, Node]
    topics: dict[str, TopicInfo]
    errors: dict[str, Error]
    controller_id: int = -1
    cluster_id: str | None = None

    def leader(self, topic: str, partition: int) -> int:
        """The leader's id; -1 if it is not known."""
        info = self.topics.get(topic)
        if info is None or partition >= len(info.partitions):
            return NO_LEADER
        leader = info.partitions[partition].leader
        return leader if leader in self.nodes else NO_LEADER

    def topic_of_id(self, topic_id: bytes) -> str | None:
        """The name behind a topic id."""
        return next((info.name for info in self.topics.values() if info.topic_id == topic_id), None)


def parse_addresses(texts: Iterable[str]) -> list[tuple[str, int]]:
    """Host and port of each of `bootstrap.servers` (IPv6 in brackets); ConfigError for one that is no address."""
    found = []
    for text in texts:
        host, colon, port = text.rpartition(":")
        if not colon or not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
            raise ConfigError(f"Invalid url in bootstrap.servers: {text}")
        found.append((host.removeprefix("[").removesuffix("]"), int(port)))
    return found


def bootstrap_cluster(addresses: Iterable[tuple[str, int]]) -> Cluster:
    """What is known before a broker was asked."""
    return Cluster({-1 - at: Node(-1 - at, host, port) for at, (host, port) in enumerate(addresses)}, {}, {})


def merge(known: Cluster, response: MetadataResponse, asked_for_all: bool) -> Cluster:
    """The picture after a metadata response: topics that it does not speak of stay, unless all were asked for.

    A leader with an older epoch than the known one is not believed, unless the topic was made anew.
    """
    nodes = {broker.node_id: Node(broker.node_id, broker.host, broker.port, broker.rack) for broker in response.brokers}
    topics: dict[str, TopicInfo] = {} if asked_for_all else dict(known.topics)
    errors: dict[str, Error] = {} if asked_for_all else dict(known.errors)
    for topic in response.topics:
        name = topic.name
        if not name:
            continue  # asked for by an id that nobody has
        errors.pop(name, None)
        if topic.error_code:
            errors[name] = Error.of(topic.error_code)
            if topic.error_code == Error.UNKNOWN_TOPIC_OR_PARTITION:
                topics.pop(name, None)
            continue
        before = known.topics.get(name)
        if before is not None and before.topic_id != topic.topic_id:
            before = None
        found = {each.partition_index: _partition(each, before) for each in topic.partitions}
        ordered = tuple(
            found.get(number, PartitionInfo(number, NO_LEADER, -1)) for number in range(max(found, default=-1) + 1)
        )
        topics[name] = TopicInfo(name, topic.topic_id, topic.is_internal, ordered)
    return Cluster(nodes, topics, errors, response.controller_id, response.cluster_id)


def _partition(told: MetadataResponse.MetadataResponsePartition, before: TopicInfo | None) -> PartitionInfo:
    number = told.partition_index
    if before is not None and number < len(before.partitions):
        known = before.partitions[number]
        if 0 <= told.leader_epoch < known.leader_epoch:
            return known
    return PartitionInfo(number, told.leader_id, told.leader_epoch, tuple(told.replica_nodes), tuple(told.isr_nodes))


def with_leader(known: Cluster, where: TopicPartition, leader: int, epoch: int, nodes: Iterable[Node]) -> Cluster:
    """The picture after a broker has said who leads a partition (KIP-951); the same one if that is nothing new."""
    info = known.topics.get(where.topic)
    if leader < 0 or info is None or where.partition >= len(info.partitions):
        return known
    old = info.partitions[where.partition]
    if epoch <= old.leader_epoch:
        return known
    partitions = list(info.partitions)
    partitions[where.partition] = old._replace(leader=leader, leader_epoch=epoch)
    more = {node.node_id: node for node in nodes}
    topics = {**known.topics, where.topic: info._replace(partitions=tuple(partitions))}
    return known._replace(nodes={**known.nodes, **more}, topics=topics)


__all__ = ["NO_LEADER", "ZERO_UUID", "Cluster", "Node", "PartitionInfo", "TopicInfo"]
