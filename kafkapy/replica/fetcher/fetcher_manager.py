"""Starts and stops the fetching of partitions as their roles change (ReplicaFetcherManager)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence

from kafkapy.config.broker_config import BrokerConfig
from kafkapy.metadata.topics_image import NO_LEADER
from kafkapy.replica.fetcher.assignment import fetcher_index
from kafkapy.replica.fetcher.fetch_connection import FetchConnection, FetchPorts
from kafkapy.replica.fetcher.partition_log import AppendCounters, PartitionLog
from kafkapy.replica.fetcher.settings import FetchSettings
from kafkapy.replica.partition import Partition
from kafkapy.types import TopicPartition

logger = logging.getLogger("kafka.server.ReplicaFetcherManager")


class ReplicaFetcherManager:
    """Owns the fetchers of this broker, by leader and fetcher number. Used only by the thread that owns it.

    Invariants: a partition belongs to at most one fetcher; a fetcher without partitions is closed.
    """

    def __init__(
        self, settings: FetchSettings, ports: FetchPorts, may_follow: Callable[[Partition], bool] = lambda _: True
    ) -> None:
        """Creates a manager without fetchers.

        `may_follow` returns False for a partition that this broker no longer hosts, or no longer fetches because of its
        controlled shutdown.
        """
        self.counters = AppendCounters()
        self._settings = settings
        self._ports = ports
        self._may_follow = may_follow
        self._fetchers: dict[tuple[int, int], FetchConnection] = {}
        self._assigned: dict[TopicPartition, tuple[int, int]] = {}
        self._followed: dict[TopicPartition, Partition] = {}

    @property
    def fetchers(self) -> Sequence[FetchConnection]:
        return tuple(self._fetchers.values())

    @property
    def partitions(self) -> Iterable[TopicPartition]:
        """The partitions that have a fetcher, including those marked as failed."""
        return self._assigned.keys()

    def on_roles(self, led: Iterable[Partition], followed: Iterable[Partition]) -> None:
        """Starts fetching `followed` from their leaders, and stops fetching `led` and the partitions of `followed` that
        have no leader.

        A partition whose leader and leader epoch are unchanged continues where it was.
        """
        touched: dict[tuple[int, int], None] = {}
        for partition in led:
            self._release(partition.topic_partition, touched)
        for partition in followed:
            self._follow(partition, touched)
        self._wake(touched)

    def reconfigure(self, config: BrokerConfig) -> None:
        """Applies a changed configuration by closing all fetchers and assigning their partitions to new ones."""
        settings = FetchSettings.from_config(config)
        if settings == self._settings:
            return
        followed = tuple(self._followed.values())
        self.close()
        self._settings = settings
        self.on_roles((), followed)

    def follow_throttles(self) -> None:
        """Makes each fetcher determine again which of its partitions are throttled, after a change of the topics'
        configuration."""
        for fetcher in self._fetchers.values():
            fetcher.fetcher.follow_throttles()
            fetcher.wake()

    def close(self) -> None:
        """Stops fetching all partitions."""
        for fetcher in self._fetchers.values():
            fetcher.close()
        self._fetchers.clear()
        self._assigned.clear()
        self._followed.clear()

    def _follow(self, partition: Partition, touched: dict[tuple[int, int], None]) -> None:
        topic_partition = partition.topic_partition
        leader_id = partition.leader_id
        if not self._may_follow(partition) or leader_id in (NO_LEADER, self._settings.node_id):
            self._release(topic_partition, touched)
            return
        if self._ports.leader_endpoint(leader_id) is None:
            logger.info("%s is not fetched: the endpoint of its leader %d is not known", topic_partition, leader_id)
            self._release(topic_partition, touched)
            return
        key = leader_id, fetcher_index(topic_partition, self._settings.fetchers)
        if self._assigned.get(topic_partition) != key:
            self._release(topic_partition, touched)
        fetcher = self._fetchers.get(key)
        if fetcher is None:
            fetcher = self._fetchers[key] = FetchConnection(*key, self._settings, self._ports)
        log = PartitionLog(partition, self.counters, self._ports.on_truncated)
        fetcher.fetcher.follow(topic_partition, partition.topic_id, partition.leader_epoch, log)
        self._assigned[topic_partition] = key
        self._followed[topic_partition] = partition
        touched[key] = None

    def _release(self, topic_partition: TopicPartition, touched: dict[tuple[int, int], None]) -> None:
        key = self._assigned.pop(topic_partition, None)
        if key is not None:
            del self._followed[topic_partition]
            self._fetchers[key].fetcher.release(topic_partition)
            touched[key] = None

    def _wake(self, touched: Iterable[tuple[int, int]]) -> None:
        """Wakes the fetchers whose partitions have changed, and closes those that have no partitions left.

        `touched` has the leader's id and the number of each fetcher.
        """
        for key in touched:
            fetcher = self._fetchers[key]
            if fetcher.fetcher.partitions:
                fetcher.wake()
            else:
                fetcher.close()
                del self._fetchers[key]
