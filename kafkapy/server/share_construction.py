"""Constructs the parts of a broker that serve share groups (KIP-932), and connects them with the rest of the broker."""

from __future__ import annotations

from collections.abc import Callable

from kafkapy.coordinator.group.share_offsets import ShareOffsets
from kafkapy.coordinator.group.share_requests import ShareGroups
from kafkapy.coordinator.group.share_settings import ShareGroupSettings
from kafkapy.coordinator.share.share_coordinator import ShareCoordinator
from kafkapy.metadata.internal_topics import SHARE_GROUP_STATE_TOPIC
from kafkapy.replica.share.share_partition import SharePorts
from kafkapy.replica.share.share_partitions import SharePartitions
from kafkapy.server.broker_requests import BrokerRequests
from kafkapy.server.coordinator_log import ReplicatedCoordinatorLog
from kafkapy.server.end_offsets import ClusterEndOffsets
from kafkapy.server.internal_topics import create_internal_topic
from kafkapy.server.remote_share_states import RemoteShareStates
from kafkapy.server.services import Services
from kafkapy.server.share_persister import ClusterPersister
from kafkapy.server.share_services import ShareServices


def build_shares(services: Services, make_requests: Callable[[str], BrokerRequests]) -> ShareServices:
    """Constructs the parts that serve share groups, and connects them with the other parts of the broker.

    `make_requests(purpose)` constructs an object that sends requests to other brokers; the purpose, such as
    share-state, becomes a part of its client id.
    """
    config, clock, metadata = services.config, services.clock, services.metadata
    manager, schedule = services.replica_manager, services.reactor.schedule
    settings = ShareGroupSettings(config, lambda: metadata.image)
    coordinator = ShareCoordinator(
        config,
        log=ReplicatedCoordinatorLog(manager, int(config.share_coordinator_write_timeout_ms)),
        prune=lambda partition, offset: manager.get_partition(partition).delete_records_on_leader(offset),
        schedule=schedule,
        clock=clock,
        image=lambda: metadata.image,
    )

    persister = ClusterPersister(
        coordinator,
        services.node_id,
        lambda: metadata.image,
        schedule,
        lambda: RemoteShareStates(make_requests("share-state")),
    )
    persister.create_topic = lambda: create_internal_topic(services, SHARE_GROUP_STATE_TOPIC)
    partitions = SharePartitions(manager, SharePorts(persister, settings, schedule, clock))
    groups = ShareGroups(services.group_coordinator, settings, persister, clock)
    end_offsets = ClusterEndOffsets(
        manager, services.node_id, lambda: metadata.image, lambda: make_requests("share-end-offsets")
    )
    return ShareServices(groups, ShareOffsets(groups, end_offsets), coordinator, persister, partitions)
