"""The ports of a broker to the active controller of its cluster: direct calls if this node is the only voter, otherwise
requests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import NamedTuple, Protocol

from kafkapy.config import BrokerConfig
from kafkapy.config.listener import Listener
from kafkapy.controller.partitions import assign_directories
from kafkapy.controller.settings import ControllerSettings
from kafkapy.coordinator.producer_id_manager import AllocateBlock, blocks_from_controller
from kafkapy.purgatory.purgatory import Schedule
from kafkapy.quorum.broker_lifecycle import BrokerLifecycle
from kafkapy.quorum.controller_loop import ControllerLoop
from kafkapy.replica.alter_partition import AlterPartitionPort
from kafkapy.server.controller_ports import LocalAlterPartition
from kafkapy.server.forwarding_port import ForwardingPort
from kafkapy.server.other_nodes import OtherNodes, controller_finder

Post = Callable[[Callable[[], None]], None]


class Lifecycle(Protocol):
    """The registration of this broker, from its start to its stop; see BrokerLifecycle and BrokerHeartbeats."""

    broker_epoch: int

    def register(
        self, directory_ids: Sequence[bytes], clean_broker_epoch: int, advertised: Sequence[Listener] | None = None
    ) -> int: ...
    def unfence(self) -> None: ...
    def report_offline(self, directory_id: bytes) -> None: ...
    def give_up_leaderships(self) -> None: ...
    def fence(self) -> None: ...


class ControllerLink(NamedTuple):
    """The ports of a broker to the active controller. Immutable. `forwarding` is None if this is the only voter."""

    lifecycle: Lifecycle
    alter_partition: AlterPartitionPort
    assign_directories: Callable[[Mapping[tuple[bytes, int], bytes]], Future[None]]
    allocate_producer_ids: AllocateBlock
    forwarding: ForwardingPort | None


def local_link(config: BrokerConfig, controller: ControllerLoop, post: Post) -> ControllerLink:
    """Returns the ports of a broker whose node is the only voter: direct calls of the controller."""
    settings, node_id = ControllerSettings.from_config(config), config.node_id

    def assign(found: Mapping[tuple[bytes, int], bytes]) -> Future[None]:
        return controller.submit(lambda image: assign_directories(image, node_id, dict(found)))

    return ControllerLink(
        BrokerLifecycle(controller, config),
        LocalAlterPartition(controller, node_id, post, settings),
        assign,
        blocks_from_controller(controller, post, node_id),
        None,
    )


def remote_link(
    config: BrokerConfig,
    controller: ControllerLoop,
    other_nodes: OtherNodes,
    cluster_id: str,
    post: Post,
    schedule: Schedule,
    on_fatal: Callable[[BaseException], None],
) -> ControllerLink:
    """Returns the ports of a broker in a cluster of several nodes: requests to the active controller.

    `post` and `schedule` run work on the reactor's thread.
    """
    from kafkapy.quorum.broker_heartbeats import BrokerHeartbeats
    from kafkapy.server.forwarding import Forwarding
    from kafkapy.server.remote_controller import (
        ControllerChannels,
        RemoteAlterPartition,
        RemoteDirectoryAssignments,
        blocks_from_remote_controller,
    )

    thread, node_id = other_nodes.thread, config.node_id

    def broker_epoch() -> int:
        return heartbeats.broker_epoch

    channels = ControllerChannels.open(config, thread, controller_finder(controller))
    controller.on_leader_change = channels.controller_changed
    heartbeats = BrokerHeartbeats(
        config,
        thread,
        channels.heartbeats,
        cluster_id=cluster_id,
        metadata_offset=lambda: controller.image.offset - 1,
        on_fatal=on_fatal,
    )
    assignments = RemoteDirectoryAssignments(thread, channels.directories, node_id, broker_epoch)
    return ControllerLink(
        heartbeats,
        RemoteAlterPartition(channels.alter_partition, node_id, broker_epoch, post, schedule),
        assignments.assign,
        blocks_from_remote_controller(channels.forwarding, post, node_id, broker_epoch),
        Forwarding(channels.forwarding, post),
    )
