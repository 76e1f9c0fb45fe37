"""Hints about the leader of a partition for clients that sent a request to another broker (KIP-951)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from kafkapy.errors import Error
from kafkapy.metadata.topics_image import NO_LEADER
from kafkapy.named_tuple import NamedTuple
from kafkapy.types import TopicPartition

if TYPE_CHECKING:
    from kafkapy.server.services import Services

Entry = TypeVar("Entry", covariant=True)


class EndpointType(Protocol[Entry]):
    """The class of the entries of `node_endpoints` in a response, which is called to construct an entry."""

    def __call__(self, *, node_id: int, host: str, port: int, rack: str | None) -> Entry: ...


class LeaderHint(NamedTuple):
    """The leader of a partition according to this broker's metadata; `leader_id` is -1 if there is no leader."""

    leader_id: int
    leader_epoch: int


class LeaderHints:
    """Looks up the leaders of partitions for one response, and collects the addresses of these leaders.

    `listener` is the name of the client's listener; a leader that is not reachable there has no address.
    """

    def __init__(self, services: Services, listener: str) -> None:
        self._services = services
        self._listener = listener
        self._leaders: dict[int, None] = {}

    def find(self, topic_partition: TopicPartition) -> LeaderHint:
        """Returns the leader of a partition, and stores it for `endpoints`. The leader's id is -1 if there is none."""
        found = self._services.replica_manager.find_partition(topic_partition)
        if not isinstance(found, Error):
            hint = LeaderHint(found.leader_id, found.leader_epoch)
        else:
            topics = self._services.metadata.image.topics
            partition = topics.partition(topic_partition.topic, topic_partition.partition)
            hint = LeaderHint(NO_LEADER, -1)
            if partition is not None:
                hint = LeaderHint(partition.leader, partition.leader_epoch)
        self._leaders[hint.leader_id] = None
        return hint

    def endpoints(self, entry_type: EndpointType[Entry]) -> list[Entry]:
        """Returns an entry with id and address of each leader that `find` has returned, for `node_endpoints`."""
        brokers = self._services.metadata.image.brokers
        entries = []
        for leader_id in self._leaders:
            broker = brokers.get(leader_id)
            endpoint = None if broker is None or broker.fenced else broker.endpoints.get(self._listener)
            if broker is not None and endpoint is not None:
                entries.append(entry_type(node_id=leader_id, host=endpoint.host, port=endpoint.port, rack=broker.rack))
        return entries
