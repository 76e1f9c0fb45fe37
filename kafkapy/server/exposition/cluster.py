"""Metrics of the cluster, counted again only when the metadata has changed."""

from __future__ import annotations

from collections.abc import Callable

from kafkapy.metadata.election_counts import ElectionCounts
from kafkapy.metadata.topics_image import NO_LEADER, TopicsImage
from kafkapy.metrics import table
from kafkapy.metrics.page import Page
from kafkapy.named_tuple import NamedTuple
from kafkapy.server.services import Services


class _Counts(NamedTuple):
    partitions: int
    offline: int
    imbalanced: int
    reassigning: int


class ClusterMetrics:
    """The cluster's metrics. Partitions are counted again only if the topics have changed since the last page. Used by
    one thread."""

    def __init__(self, services: Services, state: Callable[[], int]) -> None:
        self._services = services
        self._state = state
        self._topics: TopicsImage | None = None
        self._counts = _Counts(0, 0, 0, 0)
        self.elections = ElectionCounts()

    def write(self, page: Page) -> None:
        image = self._services.metadata.image
        if image.topics is not self._topics:
            self._counts = self._count(page, image.topics)
            self._topics = image.topics
        counts = self._counts
        fenced = sum(registration.fenced for registration in image.brokers.values())
        page.one(table.BROKER_STATE, self._state())
        page.one(table.ACTIVE_CONTROLLERS, int(self._services.controller.is_active))
        page.one(table.GLOBAL_TOPICS, len(image.topics.by_name))
        page.one(table.GLOBAL_PARTITIONS, counts.partitions)
        page.one(table.OFFLINE_PARTITIONS, counts.offline)
        page.one(table.PREFERRED_IMBALANCE, counts.imbalanced)
        page.one(table.REASSIGNING, counts.reassigning)
        page.one(table.ACTIVE_BROKERS, len(image.brokers) - fenced)
        page.one(table.FENCED_BROKERS, fenced)
        page.one(table.METADATA_OFFSET, image.offset - 1)
        self._write_quorum(page)

    def _write_quorum(self, page: Page) -> None:
        """Writes the state of the quorum. The quorum thread may change it between two reads, so that the values may not
        agree."""
        machine = self._services.quorum.quorum.machine
        page.family(table.RAFT_STATE, [((machine.state_name,), 1)])
        page.one(table.RAFT_LEADER, machine.leader_id)
        page.one(table.RAFT_EPOCH, machine.epoch)
        page.one(table.RAFT_HIGH_WATERMARK, machine.high_watermark)
        page.one(table.RAFT_LOG_END_OFFSET, machine.log.end_offset)
        page.one(table.RAFT_VOTERS, len(machine.voters))
        latency = self._services.quorum.quorum.election_latency
        page.one(table.RAFT_ELECTION_AVG, latency.sum_ms / latency.count if latency.count else 0)
        page.one(table.RAFT_ELECTION_MAX, latency.longest_ms)
        page.one(table.UNCLEAN_ELECTIONS, self.elections.unclean)
        page.one(table.ELIGIBLE_ELECTIONS, self.elections.from_eligible)

    def _count(self, page: Page, topics: TopicsImage) -> _Counts:
        node_id = self._services.node_id
        partitions = offline = imbalanced = reassigning = 0
        for topic in topics.by_name.values():
            page.pace()
            partitions += len(topic.partitions)
            for partition in topic.partitions.values():
                if partition.leader == NO_LEADER:
                    offline += 1
                elif partition.leader != partition.preferred_replica:
                    imbalanced += 1
                if partition.leader == node_id and (partition.adding_replicas or partition.removing_replicas):
                    reassigning += 1
        return _Counts(partitions, offline, imbalanced, reassigning)
