"""The lookups of an admin client: brokers, leaders of partitions, coordinators of groups and transactions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from kafkapy._core.bytes.message import Message
from kafkapy.client.admin.calls import AdminCalls, Found
from kafkapy.client.admin.requests import AdminRequest, error_of, top_level_error
from kafkapy.client.cluster import Node, brokers_of
from kafkapy.client.coordinator import GROUP
from kafkapy.client.errors import RequestTimedOut
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kafkapy.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kafkapy.types import TopicPartition


def as_partitions(partitions: Iterable[tuple[str, int]]) -> list[TopicPartition]:
    """Converts pairs of topic and partition number to TopicPartitions."""
    return [TopicPartition(*each) for each in partitions]


def as_partition_keys(values: Mapping[TopicPartition, Any]) -> dict[TopicPartition, Any]:
    """Returns a copy of a mapping whose keys, which may be (topic, partition) tuples, are all TopicPartitions."""
    return {TopicPartition(*topic_partition): value for topic_partition, value in values.items()}


class AdminLookups(AdminCalls):
    """The lookups of brokers, leaders and coordinators; their results are not cached between operations."""

    def _metadata(self, topics: Sequence[str] | None, deadline_ms: int) -> MetadataResponse:
        """Returns the metadata of topics (None: all topics) and brokers, and stores the brokers in the client's
        `Cluster`.

        The topics are not stored, because each operation looks up the leaders that it needs.
        """
        if self._network.uses_controllers:
            raise ApiError(
                Error.UNSUPPORTED_ENDPOINT_TYPE,
                "This Admin API is not yet supported when communicating directly with the controller quorum.",
            )

        def build(version: int) -> MetadataRequest:
            if topics is None:
                return MetadataRequest(topics=None if version >= 1 else [], allow_auto_topic_creation=version < 4)
            if not topics and version == 0:
                raise ApiError(Error.UNSUPPORTED_VERSION, "The broker cannot list the brokers without topics.")
            named = [MetadataRequest.MetadataRequestTopic(name=name) for name in topics]
            return MetadataRequest(topics=named, allow_auto_topic_creation=version < 4)

        response: MetadataResponse = self._request(
            self._any_broker, ApiKey.METADATA, build, top_level_error, deadline_ms=deadline_ms
        )
        with self._network.lock:
            self._network.cluster = brokers_of(response)
        return response

    def _brokers(self, deadline_ms: int) -> dict[int, Node]:
        """Returns the current brokers of the cluster by id, or its controllers if the client connects to them."""
        if self._network.uses_controllers:
            self._await_controllers(deadline_ms)
        else:
            self._metadata((), deadline_ms)
        return dict(self._network.cluster.nodes)

    def _await_controllers(self, deadline_ms: int) -> None:
        """Blocks until the client knows the controllers. Raises RequestTimedOut."""
        metadata = self._network.metadata
        if not self._network.wait_until(lambda: metadata.updates > 0, self._left_ms(deadline_ms) / 1000):
            raise RequestTimedOut(self._timeout_reason())

    def _find_leaders(self, partitions: Collection[TopicPartition], deadline_ms: int) -> Found:
        """Returns the broker id of each partition's leader, or the error if the leader cannot be found."""
        response = self._metadata(sorted({topic_partition.topic for topic_partition in partitions}), deadline_ms)
        topics = {topic.name: topic for topic in response.topics}
        found = Found({}, {})
        for topic_partition in partitions:
            leader = _leader(topics.get(topic_partition.topic), topic_partition.partition)
            if isinstance(leader, ApiError):
                found.errors[topic_partition] = leader
            else:
                found.nodes[topic_partition] = leader
        return found

    def _find_coordinators(self, key_type: int = GROUP) -> Callable[[Collection[str], int], Found]:
        """Returns a function that looks up the coordinators of groups or of transactional ids.

        `key_type` is GROUP or TRANSACTION. The function's arguments are the groups or ids, and the monotonic time in ms
        until which it may block.
        """

        def find(keys: Collection[str], deadline_ms: int) -> Found:
            try:
                results = self._find_in_one_request(list(keys), key_type, deadline_ms)
            except ApiError as refusal:
                if refusal.error is not Error.UNSUPPORTED_VERSION:
                    raise
                results = self._find_in_single_requests(list(keys), key_type, deadline_ms)
            found = Found({}, {})
            for key, each in results.items():
                error = error_of(each)
                if error is not None:
                    found.errors[key] = error
                else:
                    found.nodes[key] = each.node_id
                    self._add_node(Node(each.node_id, each.host, each.port))
            for key in keys:
                if key not in results:
                    found.errors[key] = ApiError(Error.COORDINATOR_NOT_AVAILABLE)
            return found

        return find

    def _add_node(self, node: Node) -> None:
        """Stores a broker in the client's `Cluster`, unless the broker is there already with the same address."""
        with self._network.lock:
            cluster = self._network.cluster
            known = cluster.nodes.get(node.node_id)
            if known is None or known[:3] != node[:3]:
                self._network.cluster = cluster._replace(nodes={**cluster.nodes, node.node_id: node})

    def _find_in_one_request(self, keys: list[str], key_type: int, deadline_ms: int) -> dict[str, Any]:
        def build(version: int) -> Message:
            if version < 4:
                raise ApiError(Error.UNSUPPORTED_VERSION, "The broker looks up one coordinator at a time.")
            return FindCoordinatorRequest(key_type=key_type, coordinator_keys=keys)

        response: FindCoordinatorResponse = self._request(
            self._any_broker, ApiKey.FIND_COORDINATOR, build, deadline_ms=deadline_ms
        )
        return {each.key: each for each in response.coordinators}

    def _find_in_single_requests(self, keys: list[str], key_type: int, deadline_ms: int) -> dict[str, Any]:
        """Looks up each coordinator with a request of its own, for brokers before Apache Kafka 3.0.

        Returns, for each key, the struct of its response that describes the coordinator.
        """

        def request(key: str) -> AdminRequest:
            def build(version: int) -> Message:
                if version >= 4:
                    return FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
                return FindCoordinatorRequest(key=key, key_type=key_type if version >= 1 else 0)

            return AdminRequest(self._any_broker, ApiKey.FIND_COORDINATOR, build)

        requests = {key: request(key) for key in keys}
        self._send_all(list(requests.values()), deadline_ms)
        responses = {key: each.result() for key, each in requests.items()}
        return {key: each.coordinators[0] if each.coordinators else each for key, each in responses.items()}


def _leader(topic: Any, number: int) -> int | ApiError:
    """Returns the leader of partition `number`, or the error, from one topic of a metadata response.

    `topic` is None if the response does not contain the topic.
    """
    failure = ApiError(Error.UNKNOWN_TOPIC_OR_PARTITION) if topic is None else error_of(topic)
    if failure is not None:
        return failure
    result = next((each for each in topic.partitions if each.partition_index == number), None)
    if result is None:
        return ApiError(Error.UNKNOWN_TOPIC_OR_PARTITION)
    if result.leader_id < 0:
        return error_of(result) or ApiError(Error.LEADER_NOT_AVAILABLE)
    return int(result.leader_id)
