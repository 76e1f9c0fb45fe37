"""Keeps a client's picture of the cluster true: when to ask, whom, and what to do when nobody answers."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from kafkapy.client.cluster import Node, merge, with_leader
from kafkapy.client.configuration import ClientConfig
from kafkapy.errors import Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kafkapy.types import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kafkapy.client.cluster import PartitionInfo
    from kafkapy.client.network import Network

log = logging.getLogger("kafkapy.client")

_IDS_FROM_VERSION = 12


class MetadataUpdater:
    """Owns the topics that are of interest and the state of asking.  Touched with the network's seat held.

    `updates` counts the answers, so that somebody may wait for the next one.
    """

    def __init__(self, network: Network, config: ClientConfig) -> None:
        self._network = network
        self._config = config
        self.topics: set[str] = set()
        self._unknown_ids: frozenset[bytes] = frozenset()
        self.wants_all = False
        self.allow_creation = True
        self.updates = 0
        self._is_wanted = True
        self._is_asking = False
        self._attempts = 0
        self._not_before_ms = 0
        self._expires_ms = 0
        self._failing_since_ms: int | None = None

    def request_update(self) -> None:
        """Ask again as soon as the backoff allows it."""
        self._is_wanted = True

    def add_topic(self, topic: str) -> None:
        """From now on the topic is asked for."""
        if topic not in self.topics:
            self.topics.add(topic)
            if topic not in self._network.cluster.topics:
                self._is_wanted = True
                self._not_before_ms = 0

    def set_topics(self, topics: Iterable[str], *, wants_all: bool = False) -> None:
        """From now on these are asked for, or all."""
        self.topics = set(topics)
        if wants_all != self.wants_all or not self.topics <= set(self._network.cluster.topics):
            self._is_wanted = True
            self._not_before_ms = 0
        self.wants_all = wants_all

    def want_ids(self, topic_ids: Iterable[bytes]) -> None:
        """Topics that are known by their id only: they are asked for until they have a name, which from then on is of
        interest. Brokers take either ids or names in one request, so they have a request of their own."""
        wanted = frozenset(topic_ids)
        if wanted - self._unknown_ids:
            self._is_wanted = True
            self._not_before_ms = 0
        self._unknown_ids = wanted

    def heed_leader(self, where: TopicPartition, leader: int, epoch: int, nodes: Iterable[Node]) -> None:
        """Takes over what a broker says about who leads a partition."""
        self._network.cluster = with_leader(self._network.cluster, where, leader, epoch, nodes)

    def run(self, now_ms: int) -> int:
        """Ask if it is time; returns when it will be."""
        if self._is_asking:
            return 1 << 62
        if not self._is_wanted and now_ms < self._expires_ms:
            return self._expires_ms
        if now_ms < self._not_before_ms:
            return self._not_before_ms
        node_id = self._network.least_loaded()
        if node_id is None:
            return self._recover(now_ms)
        self._is_asking = True
        self._is_wanted = False
        ids = self._unknown_ids if not self.wants_all else frozenset()
        self._network.submit(
            node_id,
            ApiKey.METADATA,
            lambda version: self._request(version, ids),
            lambda response, version, error: self._answered(response, ids, error),
        )
        return now_ms if not self._is_asking else 1 << 62

    def _recover(self, now_ms: int) -> int:
        """Nobody to ask: begin again at the bootstrap addresses, or wait for a backoff to pass."""
        if self._failing_since_ms is None:
            self._failing_since_ms = now_ms
        known = self._network.cluster.nodes
        if (
            self._config["metadata.recovery.strategy"].lower() == "rebootstrap"
            and self._network.all_failed()
            and any(node_id >= 0 for node_id in known)
        ):
            self._network.rebootstrap()
            return now_ms
        return max(self._network.reachable_from_ms(), now_ms + 1)

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

    def _answered(self, response: MetadataResponse | None, ids: frozenset[bytes], error: Exception | None) -> None:
        self._is_asking = False
        now = self._network.clock.monotonic_ms()
        if response is not None and response.error_code == Error.REBOOTSTRAP_REQUIRED:
            self._network.rebootstrap()
            response = None
        if response is None or not response.brokers:
            self._fail(error, now)
            return
        self._network.cluster = merge(self._network.cluster, response, self.wants_all and not ids)
        if ids:
            named = {topic.topic_id: topic.name for topic in response.topics if topic.name and not topic.error_code}
            self.topics.update(named.values())
            self._unknown_ids -= named.keys()
        self.updates += 1
        self._failing_since_ms = None
        self._expires_ms = now + self._config["metadata.max.age.ms"]
        missing = [
            topic
            for topic in self.topics
            if Error.of(self._network.cluster.errors.get(topic, Error.NONE)).retriable
            or any(each.leader < 0 for each in self._partitions(topic))
        ]
        is_lacking = bool(missing or self._unknown_ids)
        self._attempts = self._attempts + 1 if is_lacking else 0
        self._is_wanted = self._is_wanted or is_lacking or bool(ids)
        self._not_before_ms = now + self._network.retry_backoff.pause_ms(max(self._attempts - 1, 0))

    def _partitions(self, topic: str) -> Iterable[PartitionInfo]:
        info = self._network.cluster.topics.get(topic)
        return () if info is None else info.partitions

    def _fail(self, error: Exception | None, now: int) -> None:
        self._is_wanted = True
        if self._failing_since_ms is None:
            self._failing_since_ms = now
        self._not_before_ms = now + self._network.retry_backoff.pause_ms(self._attempts)
        self._attempts += 1
        trigger_ms = self._config["metadata.recovery.rebootstrap.trigger.ms"]
        if now - self._failing_since_ms > trigger_ms and (
            self._config["metadata.recovery.strategy"].lower() == "rebootstrap"
        ):
            self._failing_since_ms = None
            self._network.rebootstrap()
        log.debug("Metadata could not be had: %s", error)
