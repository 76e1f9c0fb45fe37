"""The results of `list_topics` and `list_groups`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kafkapy.compat.confluent_kafka._errors import KafkaError, kafka_error

if TYPE_CHECKING:
    from kafkapy.client.admin import Admin, TopicDescription


class ClusterMetadata:
    """The id, brokers (by id) and topics (by name) of a cluster."""

    def __init__(self) -> None:
        self.cluster_id: str | None = None
        self.controller_id = -1
        self.brokers: dict[int, BrokerMetadata] = {}
        self.topics: dict[str, TopicMetadata] = {}
        self.orig_broker_id = -1
        self.orig_broker_name: str | None = None

    def __repr__(self) -> str:
        return f"ClusterMetadata({self.cluster_id})"

    def __str__(self) -> str:
        return str(self.cluster_id)


class BrokerMetadata:
    """A broker: its id and address."""

    def __init__(self) -> None:
        self.id = -1
        self.host: str | None = None
        self.port = -1

    def __repr__(self) -> str:
        return f"BrokerMetadata({self.id}, {self.host}:{self.port})"

    def __str__(self) -> str:
        return f"{self.host}:{self.port}/{self.id}"


class TopicMetadata:
    """A topic: its partitions by number, or its error."""

    def __init__(self) -> None:
        self.topic: str | None = None
        self.partitions: dict[int, PartitionMetadata] = {}
        self.error: KafkaError | None = None

    def __repr__(self) -> str:
        error = "" if self.error is None else f", {self.error}"
        return f"TopicMetadata({self.topic}, {len(self.partitions)} partitions{error})"

    def __str__(self) -> str:
        return str(self.topic)


class PartitionMetadata:
    """A partition: the ids of its leader (-1: none), replicas and in-sync replicas."""

    def __init__(self) -> None:
        self.id = -1
        self.leader = -1
        self.replicas: list[int] = []
        self.isrs: list[int] = []
        self.error: KafkaError | None = None

    def __repr__(self) -> str:
        error = "" if self.error is None else f", {self.error}"
        return f"PartitionMetadata({self.id}{error})"

    def __str__(self) -> str:
        return str(self.id)


class GroupMember:
    """A member of a group; `metadata` and `assignment` are bytes in the form of its group's protocol type."""

    def __init__(self) -> None:
        self.id: str | None = None
        self.client_id: str | None = None
        self.client_host: str | None = None
        self.metadata: bytes | None = None
        self.assignment: bytes | None = None


class GroupMetadata:
    """A group and its members."""

    def __init__(self) -> None:
        self.broker: BrokerMetadata | None = None
        self.id: str | None = None
        self.error: KafkaError | None = None
        self.state: str | None = None
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.members: list[GroupMember] = []

    def __repr__(self) -> str:
        error = "" if self.error is None else f", {self.error}"
        return f"GroupMetadata({self.id}{error})"

    def __str__(self) -> str:
        return str(self.id)


def broker_metadata(node: Any) -> BrokerMetadata:
    """Returns the BrokerMetadata of a node of kafkapy."""
    found = BrokerMetadata()
    found.id, found.host, found.port = node.node_id, node.host, node.port
    return found


def _topic_metadata(name: str, description: TopicDescription | None, error: KafkaError | None) -> TopicMetadata:
    found = TopicMetadata()
    found.topic, found.error = name, error
    for each in () if description is None else description.partitions:
        partition = PartitionMetadata()
        partition.id, partition.leader = each.partition, each.leader
        partition.replicas, partition.isrs = list(each.replicas), list(each.isr)
        found.partitions[each.partition] = partition
    return found


def cluster_metadata(admin: Admin, topic: str | None, left_s: Callable[[], float]) -> ClusterMetadata:
    """Returns the metadata of a cluster and of its topics, or only of `topic`. Blocks. Raises KafkapyError.

    `left_s()` returns the seconds that are left for the next request.
    """
    cluster = admin.describe_cluster(timeout=left_s())
    topics = admin.describe_topics(None if topic is None else [topic], timeout=left_s())
    found = ClusterMetadata()
    found.cluster_id = cluster.cluster_id
    found.controller_id = -1 if cluster.controller is None else cluster.controller.node_id
    found.brokers = {each.node_id: broker_metadata(each) for each in cluster.brokers}
    if cluster.brokers:
        first = cluster.brokers[0]
        found.orig_broker_id = first.node_id
        found.orig_broker_name = f"{first.host}:{first.port}/{first.node_id}"
    for name, description in topics.values.items():
        found.topics[name] = _topic_metadata(name, description, None)
    for name, error in topics.errors.items():
        found.topics[name] = _topic_metadata(name, None, kafka_error(error))
    return found
