"""The client's view of the cluster with the interface of kafka-python's `kafka.cluster`, for partitioners."""

from __future__ import annotations

from typing import NamedTuple

from kafkapy.client.cluster import Cluster
from kafkapy.client.network import Network
from kafkapy.compat.kafka.structs import TopicPartition


class BrokerMetadata(NamedTuple):
    """A broker and its address."""

    node_id: int
    host: str
    port: int
    rack: str | None


class ClusterMetadata:
    """The brokers, topics and leaders that a client knows now. Any thread may use it."""

    def __init__(self, network: Network) -> None:
        self._network = network

    @property
    def _cluster(self) -> Cluster:
        return self._network.cluster

    def brokers(self) -> set[BrokerMetadata]:
        """Returns all brokers that are known."""
        return {BrokerMetadata(*node) for node in self._cluster.nodes.values()}

    def broker_metadata(self, broker_id: int) -> BrokerMetadata | None:
        """Returns the broker with this id; None if it is not known."""
        node = self._cluster.nodes.get(broker_id)
        return None if node is None else BrokerMetadata(*node)

    def topics(self, exclude_internal_topics: bool = True) -> set[str]:
        """Returns the names of the topics that are known."""
        topics = self._cluster.topics.items()
        return {name for name, info in topics if not (info.is_internal and exclude_internal_topics)}

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        """Returns the partitions of a topic; None if the topic is not known."""
        info = self._cluster.topics.get(topic)
        return None if info is None else {each.partition for each in info.partitions}

    def available_partitions_for_topic(self, topic: str) -> set[int] | None:
        """Returns the partitions of a topic that have a leader; None if the topic is not known."""
        info = self._cluster.topics.get(topic)
        return None if info is None else {each.partition for each in info.partitions if each.leader >= 0}

    def leader_for_partition(self, partition: TopicPartition) -> int | None:
        """Returns the id of a partition's leader, -1 if it has none; None if the partition is not known."""
        info = self._cluster.topics.get(partition.topic)
        if info is None or partition.partition >= len(info.partitions):
            return None
        return info.partitions[partition.partition].leader

    def partitions_for_broker(self, broker_id: int) -> set[TopicPartition] | None:
        """Returns the partitions whose leader is this broker; None if it leads none."""
        found = {
            TopicPartition(name, each.partition)
            for name, info in self._cluster.topics.items()
            for each in info.partitions
            if each.leader == broker_id
        }
        return found or None

    def __str__(self) -> str:
        cluster = self._cluster
        return f"ClusterMetadata(brokers: {len(cluster.nodes)}, topics: {len(cluster.topics)})"
