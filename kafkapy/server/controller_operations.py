"""The operations that brokers and other controllers request from the active controller.

This is the only module that translates their requests into calls of the pure functions of `kafkapy.controller`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kafkapy.config import BrokerConfig
from kafkapy.controller.broker_registration import register_controller, unregister_broker
from kafkapy.controller.broker_sessions import BrokerSessions, Heartbeat, HeartbeatResponse
from kafkapy.controller.partitions import (
    AlteredPartition,
    AlterPartition,
    DirectoryAssignment,
    alter_partitions,
    assign_replicas_to_directories,
)
from kafkapy.controller.producer_ids import ProducerIdsBlock, allocate_producer_ids
from kafkapy.controller.registration_checks import check_cluster_id
from kafkapy.controller.result import ControllerResult, Operation
from kafkapy.controller.settings import ControllerSettings
from kafkapy.errors import Error
from kafkapy.metadata.cluster_image import BrokerRegistration, ControllerRegistration, Endpoint
from kafkapy.metadata.image import MetadataImage
from kafkapy.protocol.messages.alter_partition import AlterPartitionRequest
from kafkapy.protocol.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest
from kafkapy.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from kafkapy.protocol.messages.broker_registration import BrokerRegistrationRequest
from kafkapy.protocol.messages.controller_registration import ControllerRegistrationRequest
from kafkapy.types import Clock


class ControllerOperations:
    """Makes operations for `Controller.submit`, and owns the sessions of brokers while this node is the active
    controller.

    The operations run on the quorum thread, the thread of the controller; any thread may call `contact`.
    """

    def __init__(
        self, config: BrokerConfig, clock: Clock, cluster_id: str, kraft_version: Callable[[], int] = lambda: 0
    ) -> None:
        """`kraft_version` returns the finalized level of kraft.version, which is in the quorum's own log and not in the
        metadata."""
        self._config = config
        self._clock = clock
        self._cluster_id = cluster_id
        self._kraft_version = kraft_version
        self._epoch = -1
        self._sessions: BrokerSessions | None = None

    def sessions(self, image: MetadataImage) -> BrokerSessions:
        """Returns the sessions of brokers for the controller epoch of `image`. Only the quorum thread may call this.

        The first call in a new epoch creates new sessions.
        """
        sessions = self._sessions
        if sessions is None or self._epoch != image.epoch:
            timeout_ms = self._config.broker_session_timeout_ms
            sessions = self._sessions = BrokerSessions(image, timeout_ms, self._clock.monotonic_ms())
            self._epoch = image.epoch
        return sessions

    def contact(self, broker_id: int, broker_epoch: int) -> None:
        """Extends a valid session as soon as a heartbeat arrives, so that a busy controller does not fence a live
        broker."""
        sessions, monotonic_ms = self._sessions, self._clock.monotonic_ms()
        if sessions is not None and sessions.has_valid_session(broker_id, broker_epoch, monotonic_ms):
            sessions.contact(broker_id, broker_epoch, monotonic_ms)

    def register_broker(self, request: BrokerRegistrationRequest) -> Operation[int]:
        """Returns the operation that registers a broker; its response is the broker epoch. Raises
        ApiError(INCONSISTENT_CLUSTER_ID)."""
        check_cluster_id(self._cluster_id, request.cluster_id)
        registration = BrokerRegistration(
            broker_id=request.broker_id,
            epoch=-1,
            incarnation_id=request.incarnation_id,
            endpoints=_endpoints(request.listeners),
            features=_features(request.features),
            rack=request.rack,
            fenced=True,
            in_controlled_shutdown=False,
            log_dirs=tuple(request.log_dirs),
            cordoned_log_dirs=None,
            is_migrating_zk_broker=request.is_migrating_zk_broker,
        )
        return lambda image: self.sessions(image).register(
            image,
            registration,
            request.previous_broker_epoch,
            self._clock.monotonic_ms(),
            self._settings(),
            kraft_version=self._kraft_version(),
        )

    def heartbeat(self, request: BrokerHeartbeatRequest) -> Operation[HeartbeatResponse]:
        """Returns the operation that handles a broker's heartbeat."""
        cordoned = request.cordoned_log_dirs
        heartbeat = Heartbeat(
            request.broker_id,
            request.broker_epoch,
            request.current_metadata_offset,
            request.want_fence,
            request.want_shut_down,
            tuple(request.offline_log_dirs),
            None if cordoned is None else tuple(cordoned),
        )
        return lambda image: self.sessions(image).heartbeat(
            image, heartbeat, self._clock.monotonic_ms(), self._settings()
        )

    def fence_expired(self) -> Operation[bool]:
        """Returns the operation that fences one broker whose session has expired.

        The operation's response is True if there may be further brokers whose sessions have expired.
        """
        return lambda image: self.sessions(image).fence_expired(image, self._clock.monotonic_ms(), self._settings())

    def fence_dead(self, broker_id: int, broker_epoch: int) -> Operation[bool]:
        """Returns the operation that fences a broker whose process has died.

        The operation's response is True if the broker is fenced. It is False if the broker has registered again with a
        new epoch, or is not registered.
        """
        return lambda image: self.sessions(image).fence_dead(image, broker_id, broker_epoch, self._settings())

    def unregister_broker(self, broker_id: int) -> Operation[None]:
        """Returns the operation that removes a broker's registration."""
        return lambda image: unregister_broker(image, broker_id, self._settings())

    def register_controller(self, request: ControllerRegistrationRequest) -> Operation[None]:
        """Returns the operation that registers a controller."""
        registration = ControllerRegistration(
            request.controller_id,
            request.incarnation_id,
            request.zk_migration_ready,
            _endpoints(request.listeners),
            _features(request.features),
        )
        return lambda image: register_controller(image, registration)

    def alter_partitions(self, request: AlterPartitionRequest, version: int) -> Operation[list[AlteredPartition]]:
        """Returns the operation that changes ISRs; its response has the result of each partition in the request's
        order."""
        changes = []
        for topic in request.topics:
            for each in topic.partitions:
                isr: tuple[int, ...] = tuple(each.new_isr)
                epochs: tuple[int, ...] = ()
                if version >= AlterPartitionRequest.FIRST_VERSION_WITH_NEW_ISR_WITH_EPOCHS:
                    isr = tuple(member.broker_id for member in each.new_isr_with_epochs)
                    epochs = tuple(member.broker_epoch for member in each.new_isr_with_epochs)
                changes.append(
                    AlterPartition(
                        topic.topic_id,
                        each.partition_index,
                        each.leader_epoch,
                        each.partition_epoch,
                        isr,
                        each.leader_recovery_state,
                        epochs,
                    )
                )
        return lambda image: alter_partitions(image, request.broker_id, request.broker_epoch, changes, self._settings())

    def assign_directories(self, request: AssignReplicasToDirsRequest) -> Operation[list[Error]]:
        """Returns the operation that records the directories of replicas; its response has the errors in the request's
        order."""
        assignments = [
            DirectoryAssignment(topic.topic_id, partition.partition_index, directory.id)
            for directory in request.directories
            for topic in directory.topics
            for partition in topic.partitions
        ]
        return lambda image: assign_replicas_to_directories(
            image, request.broker_id, request.broker_epoch, assignments, self._settings()
        )

    @staticmethod
    def allocate_producer_ids(broker_id: int, broker_epoch: int) -> Operation[ProducerIdsBlock]:
        """Returns the operation that allocates a block of producer ids."""

        def allocate(image: MetadataImage) -> ControllerResult[ProducerIdsBlock]:
            return allocate_producer_ids(image, broker_id, broker_epoch)

        return allocate

    def _settings(self) -> ControllerSettings:
        return ControllerSettings.from_config(self._config)


def _endpoints(listeners: Sequence[Any]) -> dict[str, Endpoint]:
    return {each.name: Endpoint(each.name, each.host, each.port, each.security_protocol) for each in listeners}


def _features(features: Sequence[Any]) -> dict[str, tuple[int, int]]:
    return {each.name: (each.min_supported_version, each.max_supported_version) for each in features}
