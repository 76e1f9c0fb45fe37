"""The interfaces (ports) through which a broker uses the active controller of its cluster.

They call the controller directly while this node is the whole cluster, and send requests as soon as the cluster has
another node.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Protocol

from kafkapy.config import BrokerConfig
from kafkapy.config.listener import Listener
from kafkapy.controller.partitions import assign_directories
from kafkapy.controller.producer_ids import ProducerIdsBlock
from kafkapy.controller.settings import ControllerSettings
from kafkapy.coordinator.producer_id_manager import AllocateBlock, blocks_from_controller
from kafkapy.errors import Error
from kafkapy.named_tuple import NamedTuple
from kafkapy.purgatory.purgatory import Schedule
from kafkapy.quorum.broker_lifecycle import BrokerLifecycle
from kafkapy.quorum.controller_loop import ControllerLoop
from kafkapy.replica.alter_partition import AlterPartitionPort, AlterPartitionResult, IsrChange
from kafkapy.server.controller_ports import LocalAlterPartition
from kafkapy.server.forwarding_port import ForwardingPort
from kafkapy.server.other_nodes import OtherNodes, controller_finder

Post = Callable[[Callable[[], None]], None]


class Lifecycle(Protocol):
    """The registration of this broker with the controller and its heartbeats, from its start to its stop.
    `broker_epoch` is the epoch of the registration, -1 before it.
    """

    broker_epoch: int

    def register(
        self, directory_ids: Sequence[bytes], clean_broker_epoch: int, advertised: Sequence[Listener] | None = None
    ) -> int: ...
    def unfence(self) -> None: ...
    def report_offline(self, directory_id: bytes) -> None: ...
    def report_cordoned(self) -> None: ...
    def give_up_leaderships(self) -> None: ...
    def end_session(self) -> None: ...


class ControllerPorts(NamedTuple):
    """The interfaces (ports) through which a broker uses the active controller. The object does not change after its
    construction.

    Either all of them call the controller in this process directly, or all of them send requests. `assign_directories`
    reports the directory id of each (topic id, partition); `allocate_producer_ids` requests a block of producer ids.
    `forwarding` forwards requests of clients; it is None if the controller is called directly.
    """

    lifecycle: Lifecycle
    alter_partition: AlterPartitionPort
    assign_directories: Callable[[Mapping[tuple[bytes, int], bytes]], Future[None]]
    allocate_producer_ids: AllocateBlock
    forwarding: ForwardingPort | None


class ControllerLink:
    """The interfaces (ports) through which a broker uses the active controller at present.

    A node that is the whole cluster calls its controller directly. When another voter or broker joins, direct calls are
    replaced by requests, once, on the reactor's thread.
    """

    def __init__(self, ports: ControllerPorts, make_remote: Callable[[int], ControllerPorts]) -> None:
        """`ports` are the interfaces to the controller at the start; they call it directly or send requests.

        `make_remote(broker_epoch)` makes ports that send requests. `leave_direct_calls` calls it if `ports` call the
        controller directly.
        """
        self._ports = ports
        self._make_remote = make_remote

    @property
    def lifecycle(self) -> Lifecycle:
        return self._ports.lifecycle

    @property
    def forwarding(self) -> ForwardingPort | None:
        return self._ports.forwarding

    def submit(self, change: IsrChange, on_result: Callable[[AlterPartitionResult], None]) -> None:
        """Proposes a change of an ISR; `on_result` is called once, after this method has returned. Only the reactor's
        thread may use it."""
        self._ports.alter_partition.submit(change, on_result)

    def assign_directories(self, found: Mapping[tuple[bytes, int], bytes]) -> Future[None]:
        """Reports the directories of replicas: `found` maps (topic id, partition) to a directory id. Any thread may
        call it.

        The Future ends when the controller has recorded the directories.
        """
        return self._ports.assign_directories(found)

    def allocate_producer_ids(self, on_block: Callable[[ProducerIdsBlock | Error], None]) -> None:
        """Requests a block of producer ids and passes it, or the error, to `on_block`. Only the reactor's thread may
        use it."""
        self._ports.allocate_producer_ids(on_block)

    def leave_direct_calls(self) -> None:
        """Replaces direct calls with requests. Called on the reactor's thread, after the broker was unfenced and before
        it stops.

        The broker keeps its registration: the heartbeats continue with its broker epoch.
        """
        former = self._ports
        if former.forwarding is None:
            self._ports = self._make_remote(former.lifecycle.broker_epoch)


def local_ports(
    config: BrokerConfig,
    controller: ControllerLoop,
    post: Post,
    cordoned_directories: Callable[[], tuple[bytes, ...]],
) -> ControllerPorts:
    """Returns the ports of a broker whose node is the whole cluster; they call the controller in this process.

    `post` runs work on the reactor's thread. `cordoned_directories` returns the ids of the cordoned log directories.
    """
    settings, node_id = ControllerSettings.from_config(config), config.node_id

    def assign(found: Mapping[tuple[bytes, int], bytes]) -> Future[None]:
        return controller.submit(lambda image: assign_directories(image, node_id, dict(found)))

    return ControllerPorts(
        BrokerLifecycle(controller, config, cordoned_directories),
        LocalAlterPartition(controller, node_id, post, settings),
        assign,
        blocks_from_controller(controller, post, node_id),
        None,
    )


def remote_ports(
    config: BrokerConfig,
    controller: ControllerLoop,
    other_nodes: OtherNodes,
    cluster_id: str,
    post: Post,
    schedule: Schedule,
    on_fatal: Callable[[BaseException], None],
    broker_epoch: int,
    cordoned_directories: Callable[[], tuple[bytes, ...]],
) -> ControllerPorts:
    """Returns the ports of a broker in a cluster of several nodes; they send requests to the active controller.

    `post` and `schedule` run work on the reactor's thread. `on_fatal` is called if the failure of a log directory could
    not be reported to the controller in time, so that the broker has to stop. `broker_epoch` is the epoch of a broker
    that is registered and unfenced already, or -1 for a broker that starts. `cordoned_directories` returns the ids of
    the cordoned log directories.
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

    def current_epoch() -> int:
        return heartbeats.broker_epoch

    channels = ControllerChannels.open(config, thread, controller_finder(controller))
    controller.on_leader_change = channels.controller_changed
    heartbeats = BrokerHeartbeats(
        config,
        thread,
        channels.heartbeats,
        cluster_id=cluster_id,
        metadata_offset=lambda: controller.image.offset - 1,
        cordoned_directories=cordoned_directories,
        on_fatal=on_fatal,
    )
    if broker_epoch >= 0:
        heartbeats.continue_registration(broker_epoch)
    assignments = RemoteDirectoryAssignments(thread, channels.directories, node_id, current_epoch)
    return ControllerPorts(
        heartbeats,
        RemoteAlterPartition(channels.alter_partition, node_id, current_epoch, post, schedule),
        assignments.assign,
        blocks_from_remote_controller(channels.forwarding, post, node_id, current_epoch),
        Forwarding(channels.forwarding, post),
    )
