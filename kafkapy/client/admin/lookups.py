"""Whom an admin client asks: brokers, leaders of partitions, coordinators of groups and transactions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from kafkapy._core.bytes.message import Message
from kafkapy.client.admin.calls import AdminCalls, Found
from kafkapy.client.admin.requests import AdminRequest, error_of, top_level_fault
from kafkapy.client.cluster import Node, merge
from kafkapy.client.coordinator import GROUP
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kafkapy.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kafkapy.types import TopicPartition


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Numbers of partitions by topic, in the order given."""
    topics: dict[str, list[int]] = {}
    for topic, number in partitions:
        topics.setdefault(topic, []).append(number)
    return topics


def as_partitions(partitions: Iterable[tuple[str, int]]) -> list[TopicPartition]:
    """Pairs of topic and number as partitions."""
    return [TopicPartition(*each) for each in partitions]


def as_partition_keys(values: Mapping[TopicPartition, Any]) -> dict[TopicPartition, Any]:
    """The same mapping, also if its keys were plain pairs."""
    return {TopicPartition(*where): value for where, value in values.items()}


class AdminLookups(AdminCalls):
    """The lookups; each returns what it was told just now, nothing is kept between operations."""

    def _metadata(self, topics: Sequence[str] | None, deadline_ms: int) -> MetadataResponse:
        """What any broker says of these topics and of the brokers; None: all topics."""

        def build(version: int) -> MetadataRequest:
            if topics is None:
                return MetadataRequest(topics=None if version >= 1 else [], allow_auto_topic_creation=version < 4)
            if not topics and version == 0:
                raise ApiError(Error.UNSUPPORTED_VERSION, "The broker cannot be asked for brokers alone.")
            named = [MetadataRequest.MetadataRequestTopic(name=name) for name in topics]
            return MetadataRequest(topics=named, allow_auto_topic_creation=version < 4)

        response: MetadataResponse = self._ask(
            self._any_broker, ApiKey.METADATA, build, top_level_fault, deadline_ms=deadline_ms
        )
        with self._network.seat:
            self._network.cluster = merge(self._network.cluster, response, asked_for_all=False)
        return response

    def _brokers(self, deadline_ms: int) -> dict[int, Node]:
        """The brokers that the cluster has now."""
        self._metadata((), deadline_ms)
        return dict(self._network.cluster.nodes)

    def _find_leaders(self, partitions: Collection[TopicPartition], deadline_ms: int) -> Found:
        """Who leads each partition."""
        response = self._metadata(sorted({where.topic for where in partitions}), deadline_ms)
        topics = {topic.name: topic for topic in response.topics}
        found = Found({}, {})
        for where in partitions:
            leader = _leader(topics.get(where.topic), where.partition)
            if isinstance(leader, ApiError):
                found.errors[where] = leader
            else:
                found.nodes[where] = leader
        return found

    def _find_coordinators(self, key_type: int = GROUP) -> Callable[[Collection[str], int], Found]:
        """A lookup of coordinators of groups (GROUP) or transactional ids (TRANSACTION)."""

        def find(keys: Collection[str], deadline_ms: int) -> Found:
            try:
                told = self._coordinators_at_once(list(keys), key_type, deadline_ms)
            except ApiError as refusal:
                if refusal.error is not Error.UNSUPPORTED_VERSION:
                    raise
                told = self._coordinators_one_by_one(list(keys), key_type, deadline_ms)
            found = Found({}, {})
            for key, each in told.items():
                error = error_of(each)
                if error is not None:
                    found.errors[key] = error
                else:
                    found.nodes[key] = each.node_id
                    self._learn(Node(each.node_id, each.host, each.port))
            for key in keys:
                if key not in told:
                    found.errors[key] = ApiError(Error.COORDINATOR_NOT_AVAILABLE)
            return found

        return find

    def _learn(self, node: Node) -> None:
        """Takes over the address of a broker that the metadata did not speak of yet."""
        with self._network.seat:
            cluster = self._network.cluster
            known = cluster.nodes.get(node.node_id)
            if known is None or known[:3] != node[:3]:
                self._network.cluster = cluster._replace(nodes={**cluster.nodes, node.node_id: node})

    def _coordinators_at_once(self, keys: list[str], key_type: int, deadline_ms: int) -> dict[str, Any]:
        def build(version: int) -> Message:
            if version < 4:
                raise ApiError(Error.UNSUPPORTED_VERSION, "The broker looks for one coordinator at a time.")
            return FindCoordinatorRequest(key_type=key_type, coordinator_keys=keys)

        response: FindCoordinatorResponse = self._ask(
            self._any_broker, ApiKey.FIND_COORDINATOR, build, deadline_ms=deadline_ms
        )
        return {each.key: each for each in response.coordinators}

    def _coordinators_one_by_one(self, keys: list[str], key_type: int, deadline_ms: int) -> dict[str, Any]:
        """Before Apache Kafka 3.0."""

        def request(key: str) -> AdminRequest:
            def build(version: int) -> Message:
                if version >= 4:
                    return FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
                return FindCoordinatorRequest(key=key, key_type=key_type if version >= 1 else 0)

            return AdminRequest(self._any_broker, ApiKey.FIND_COORDINATOR, build)

        requests = {key: request(key) for key in keys}
        self._ask_all(list(requests.values()), deadline_ms)
        answers = {key: each.result() for key, each in requests.items()}
        return {key: each.coordinators[0] if each.coordinators else each for key, each in answers.items()}


def _leader(topic: Any, number: int) -> int | ApiError:
    """Who leads a partition by the topic's part of a metadata response (None: it is not there)."""
    failure = ApiError(Error.UNKNOWN_TOPIC_OR_PARTITION) if topic is None else error_of(topic)
    if failure is not None:
        return failure
    told = next((each for each in topic.partitions if each.partition_index == number), None)
    if told is None:
        return ApiError(Error.UNKNOWN_TOPIC_OR_PARTITION)
    if told.leader_id < 0:
        return error_of(told) or ApiError(Error.LEADER_NOT_AVAILABLE)
    return int(told.leader_id)
