"""Hints about the leader of a partition for clients that sent a request to another broker (KIP-951)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkapy.errors import Error
from kafkapy.metadata.topics_image import NO_LEADER
from kafkapy.named_tuple import NamedTuple
from kafkapy.server.request_context import RequestContext
from kafkapy.types import TopicPartition

if TYPE_CHECKING:
    from kafkapy.server.services import Services


class LeaderNode(NamedTuple):
    """A broker's address for the clients of one listener."""

    node_id: int
    host: str
    port: int
    rack: str | None


class LeaderHint(NamedTuple):
    """The leader of a partition according to this broker's metadata.

    `leader_id` is -1 if there is no leader. `node` is None if the leader is not reachable on the client's listener.
    """

    leader_id: int
    leader_epoch: int
    node: LeaderNode | None


def leader_hint(context: RequestContext, topic_partition: TopicPartition) -> LeaderHint:
    """Returns the leader hint for the client that sent the request."""
    return leader_hint_on(context.services, context.listener.name, topic_partition)


def leader_hint_on(services: Services, listener: str, topic_partition: TopicPartition) -> LeaderHint:
    """Returns the leader hint for clients of the listener with this name."""
    image = services.metadata.image
    found = services.replica_manager.find_partition(topic_partition)
    if not isinstance(found, Error):
        leader_id, leader_epoch = found.leader_id, found.leader_epoch
    else:
        partition = image.topics.partition(topic_partition.topic, topic_partition.partition)
        if partition is None:
            return LeaderHint(NO_LEADER, -1, None)
        leader_id, leader_epoch = partition.leader, partition.leader_epoch
    broker = image.brokers.get(leader_id)
    endpoint = None if broker is None or broker.fenced else broker.endpoints.get(listener)
    if broker is None or endpoint is None:
        return LeaderHint(leader_id, leader_epoch, None)
    return LeaderHint(leader_id, leader_epoch, LeaderNode(leader_id, endpoint.host, endpoint.port, broker.rack))
