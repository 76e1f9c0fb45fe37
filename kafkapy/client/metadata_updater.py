"""Updates a client's view of the cluster: when to request metadata, from which broker, and what to do on failure."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from kafkapy.client.cluster import Node, controllers, merge, with_leader
from kafkapy.client.configuration import ClientConfig
from kafkapy.errors import Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from kafkapy.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kafkapy.types import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from kafkapy.client.broker_connections import BrokerConnections
    from kafkapy.client.cluster import PartitionInfo

log = logging.getLogger("kafkapy.client")

_IDS_FROM_VERSION = 12
CONTROLLER_ENDPOINTS = 2  # DescribeClusterRequest.endpoint_type


class MetadataUpdater:
    """Requests the metadata of the topics that the client uses, and stores the view of the cluster that results from
    them.

    Called while `Network.lock`, the lock of the client's network loop, is held. `updates` counts the responses, so that
    a caller can wait for the next one.
    """

    def __init__(self, connections: BrokerConnections, config: ClientConfig) -> None:
        self._connections = connections
        self._config = config
        self.topics: set[str] = set()
        self._unknown_ids: frozenset[bytes] = frozenset()
        self.wants_all = False
        self.allow_creation = True
        self.updates = 0
        self.updated_ms = connections.clock.monotonic_ms()
        self._is_wanted = True
        # Topics were added after the last request was sent. They are requested without a pause.
        self._has_new_topics = False
        self._has_request = False
        self._attempts = 0
        self._not_before_ms = 0
        self._expires_ms = 0
        self._failing_since_ms: int | None = None
        # Returns the topics that are not used any more, given the monotonic time (ms).
        self.idle_topics: Callable[[int], set[str]] = lambda monotonic_ms: set()

    def request_update(self) -> None:
        """Requests metadata again as soon as the backoff allows it."""
        self._is_wanted = True

    def ensure_update(self) -> None:
        """Requests metadata again as soon as the backoff allows it, unless a response is awaited already."""
        if not self._has_request:
            self._is_wanted = True

    def add_topic(self, topic: str) -> None:
        """Adds a topic to the topics for which metadata is requested."""
        if topic not in self.topics:
            self.topics.add(topic)
            if topic not in self._connections.cluster.topics:
                self._want_new_topics()

    def set_topics(self, topics: Iterable[str], *, wants_all: bool = False) -> None:
        """Sets the topics to request metadata for; `wants_all` requests all topics of the cluster instead."""
        self.topics = set(topics)
        if wants_all != self.wants_all or not self.topics <= set(self._connections.cluster.topics):
            self._want_new_topics()
        self.wants_all = wants_all

    def want_ids(self, topic_ids: Iterable[bytes]) -> None:
        """Sets the topics that are known by their id only; they are requested until their names are known.

        A request may have either ids or names, so these topics have requests of their own.
        """
        ids = frozenset(topic_ids)
        if ids - self._unknown_ids:
            self._want_new_topics()
        self._unknown_ids = ids

    def _want_new_topics(self) -> None:
        self._is_wanted = True
        self._has_new_topics = True
        self._not_before_ms = 0

    def update_leader(self, topic_partition: TopicPartition, leader: int, epoch: int, nodes: Iterable[Node]) -> None:
        """Stores a partition's leader and its leader epoch, which a broker has named in an error response (KIP-951).

        `nodes` are the brokers that the response describes.
        """
        self._connections.cluster = with_leader(self._connections.cluster, topic_partition, leader, epoch, nodes)

    def run(self, monotonic_ms: int) -> int:
        """Sends a metadata request if one is due; returns the monotonic time (ms) at which to run again."""
        if self._has_request:
            return 1 << 62
        if not self._is_wanted and monotonic_ms < self._expires_ms:
            return self._expires_ms
        if monotonic_ms < self._not_before_ms:
            return self._not_before_ms
        node_id = self._connections.least_loaded()
        if node_id is None:
            return self._recover(monotonic_ms)
        self._forget_idle_topics(monotonic_ms)
        self._has_request = True
        self._is_wanted = False
        self._has_new_topics = False
        if self._connections.uses_controllers:
            request = DescribeClusterRequest(endpoint_type=CONTROLLER_ENDPOINTS)
            self._connections.submit(
                node_id,
                ApiKey.DESCRIBE_CLUSTER,
                lambda version: request,
                lambda response, version, error: self._on_controllers(response, error),
            )
            return monotonic_ms if not self._has_request else 1 << 62
        ids = self._unknown_ids if not self.wants_all else frozenset()
        self._connections.submit(
            node_id,
            ApiKey.METADATA,
            lambda version: self._request(version, ids),
            lambda response, version, error: self._on_response(response, ids, error),
        )
        return monotonic_ms if not self._has_request else 1 << 62

    def _forget_idle_topics(self, monotonic_ms: int) -> None:
        """Removes topics that are not used any more. A request for a deleted topic could create it again."""
        idle = self.idle_topics(monotonic_ms)
        if idle:
            self.topics -= idle
            cluster = self._connections.cluster
            topics = {name: info for name, info in cluster.topics.items() if name not in idle}
            self._connections.cluster = cluster._replace(topics=topics)

    def _recover(self, monotonic_ms: int) -> int:
        """Is called when no broker can be reached; returns the monotonic time (ms) at which to run again.

        Starts again from bootstrap.servers if `metadata.recovery.strategy` is rebootstrap, and the attempts to connect
        to all brokers of the last metadata have failed. Otherwise returns the time of the next attempt to connect.
        """
        if self._failing_since_ms is None:
            self._failing_since_ms = monotonic_ms
        known = self._connections.cluster.nodes
        if (
            self._config["metadata.recovery.strategy"].lower() == "rebootstrap"
            and self._connections.all_failed()
            and any(node_id >= 0 for node_id in known)
        ):
            self._connections.rebootstrap()
            return monotonic_ms
        return max(self._connections.reachable_from_ms(), monotonic_ms + 1)

    def _request(self, version: int, ids: frozenset[bytes]) -> MetadataRequest:
        if ids and version >= _IDS_FROM_VERSION:
            topics: list[MetadataRequest.MetadataRequestTopic] | None = [
                MetadataRequest.MetadataRequestTopic(topic_id=each, name=None) for each in sorted(ids)
            ]
        elif self.wants_all:
            topics = None if version >= 1 else []
        else:
            topics = [MetadataRequest.MetadataRequestTopic(name=name) for name in sorted(self.topics)]
        allow = self.allow_creation or version < 4
        return MetadataRequest(topics=topics, allow_auto_topic_creation=allow)

    def _on_controllers(self, response: DescribeClusterResponse | None, error: Exception | None) -> None:
        self._has_request = False
        now = self._connections.clock.monotonic_ms()
        if response is None or response.error_code or not response.brokers:
            self._fail(error, now)
            return
        self._connections.cluster = controllers(response)
        self._count_update(now)
        self._attempts = 0
        self._not_before_ms = now + self._connections.retry_backoff.pause_ms(0)

    def _count_update(self, now: int) -> None:
        self.updates += 1
        self.updated_ms = self._connections.clock.monotonic_ms()
        self._failing_since_ms = None
        self._expires_ms = now + self._config["metadata.max.age.ms"]

    def _on_response(self, response: MetadataResponse | None, ids: frozenset[bytes], error: Exception | None) -> None:
        self._has_request = False
        now = self._connections.clock.monotonic_ms()
        if response is not None and response.error_code == Error.REBOOTSTRAP_REQUIRED:
            self._connections.rebootstrap()
            response = None
        if response is None or not response.brokers:
            self._fail(error, now)
            return
        self._connections.cluster = merge(self._connections.cluster, response, self.wants_all and not ids)
        if ids:
            named = {topic.topic_id: topic.name for topic in response.topics if topic.name and not topic.error_code}
            self.topics.update(named.values())
            self._unknown_ids -= named.keys()
        self._count_update(now)
        missing = [
            topic
            for topic in self.topics
            if Error.of(self._connections.cluster.errors.get(topic, Error.NONE)).retriable
            or any(each.leader < 0 for each in self._partitions(topic))
        ]
        is_lacking = bool(missing or self._unknown_ids)
        self._attempts = self._attempts + 1 if is_lacking else 0
        self._is_wanted = self._is_wanted or is_lacking or bool(ids)
        if not self._has_new_topics:
            self._not_before_ms = now + self._connections.retry_backoff.pause_ms(max(self._attempts - 1, 0))

    def _partitions(self, topic: str) -> Iterable[PartitionInfo]:
        info = self._connections.cluster.topics.get(topic)
        return () if info is None else info.partitions

    def _fail(self, error: Exception | None, now: int) -> None:
        self._is_wanted = True
        if self._failing_since_ms is None:
            self._failing_since_ms = now
        self._not_before_ms = now + self._connections.retry_backoff.pause_ms(self._attempts)
        self._attempts += 1
        trigger_ms = self._config["metadata.recovery.rebootstrap.trigger.ms"]
        if now - self._failing_since_ms > trigger_ms and (
            self._config["metadata.recovery.strategy"].lower() == "rebootstrap"
        ):
            self._failing_since_ms = None
            self._connections.rebootstrap()
        log.debug("The metadata request failed: %s", error)
