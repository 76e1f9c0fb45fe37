"""The active controller of a simulated cluster: the real functions of `kafkapy.controller` over one metadata log.

What the controller commits is durable at once: the quorum has a simulation of its own (`tests.simulation.raft`). The
controller can be unavailable, and it can be replaced by another one, which does not know the sessions of the brokers.
"""

from __future__ import annotations

from typing import Any

from kafkapy.controller.broker_sessions import BrokerSessions, Heartbeat, HeartbeatResponse
from kafkapy.controller.elections import balance_leaders, elect_unclean_leaders
from kafkapy.controller.partitions import AlterPartition, alter_partitions
from kafkapy.controller.reassignments import alter_partition_reassignments
from kafkapy.controller.result import ControllerResult
from kafkapy.errors import ApiError
from kafkapy.metadata.delta import MetadataDelta
from kafkapy.metadata.image import MetadataImage
from kafkapy.metadata.topics_image import PartitionImage
from kafkapy.protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from kafkapy.server.handlers.partition_changes import _altered
from kafkapy.types import TopicPartition
from tests.harness.metadata import registration
from tests.simulation.replication.world import World

SESSION_TIMEOUT_MS = 2500
CHECK_MS = SESSION_TIMEOUT_MS // 8
UNCLEAN_CHECK_MS = 3000
ALTER_PARTITION_VERSION = 3


class SimulatedController:
    """Owns the metadata: `image` is the newest one, and `log` has the records that lead to it."""

    def __init__(self, world: World, image: MetadataImage) -> None:
        self.world = world
        self.image = image
        self.first_image = image
        self.log: list[tuple[int, list[Any]]] = []
        self.is_available = True
        self.incarnations = 0
        self.unclean_elections = 0
        self.sessions = BrokerSessions(image, SESSION_TIMEOUT_MS, world.now_ms)
        self._check_sessions()
        self._check_unclean()

    def partitions(self) -> dict[TopicPartition, PartitionImage]:
        return {
            TopicPartition(topic.name, number): partition
            for topic in self.image.topics.by_name.values()
            for number, partition in topic.partitions.items()
        }

    # -- records

    def commit(self, result: ControllerResult[Any]) -> Any:
        """Appends the records of an operation, informs the brokers, and returns the operation's response."""
        records = [record[0] if isinstance(record, tuple) else record for record in result.records]
        if records:
            before = self.image
            delta = MetadataDelta(before)
            for record in records:
                delta.replay(record)
            self.image = delta.to_image(before.offset + len(records), before.epoch)
            self.log.append((self.image.offset, records))
            self._note_changes(before)
            for broker in self.world.brokers.values():
                broker.follow_metadata_later()
        return result.response

    def _note_changes(self, before: MetadataImage) -> None:
        for topic_partition, partition in self.partitions().items():
            old = before.topics.partition(*topic_partition)
            if old is partition:
                continue
            if partition.leader_recovery_state and not (old is not None and old.leader_recovery_state):
                self.unclean_elections += 1
            self.world.note(
                f"{topic_partition} leader {partition.leader} epochs {partition.leader_epoch}/"
                f"{partition.partition_epoch} isr {partition.isr} elr {partition.elr} last {partition.last_known_elr} "
                f"replicas {partition.replicas}"
            )

    # -- tasks

    def _check_sessions(self) -> None:
        if self.is_available:
            while self.commit(self.sessions.fence_expired(self.image, self.world.now_ms)):
                pass
        self.world.after(CHECK_MS, self._check_sessions)

    def _check_unclean(self) -> None:
        if self.is_available:
            self.commit(elect_unclean_leaders(self.image))
        self.world.after(UNCLEAN_CHECK_MS, self._check_unclean)

    def balance(self) -> None:
        self.commit(balance_leaders(self.image))

    def fail_over(self) -> None:
        """Lets another controller take over; it gives every unfenced broker a full session."""
        self.sessions = BrokerSessions(self.image, SESSION_TIMEOUT_MS, self.world.now_ms)

    def reassign(self, topic_partition: TopicPartition, replicas: tuple[int, ...] | None) -> None:
        """Moves a partition to other replicas; None cancels the move."""
        self.world.note(f"reassign {topic_partition} to {replicas}")
        try:
            self.commit(alter_partition_reassignments(self.image, [(topic_partition, replicas)]))
        except ApiError as error:
            self.world.note(f"refused: {error}")

    # -- requests

    def register(self, broker_id: int, incarnation: int, clean_broker_epoch: int) -> int | None:
        """Returns the broker epoch, None if the broker has to try again."""
        try:
            wanted = registration(broker_id, incarnation=incarnation)
            result = self.sessions.register(self.image, wanted, clean_broker_epoch, self.world.now_ms)
        except ApiError:
            return None
        epoch: int = self.commit(result)
        return epoch

    def heartbeat(self, request: Heartbeat) -> HeartbeatResponse | ApiError:
        try:
            response: HeartbeatResponse = self.commit(self.sessions.heartbeat(self.image, request, self.world.now_ms))
        except ApiError as error:
            return error
        return response

    def alter_partition(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        changes = [
            AlterPartition(
                topic.topic_id,
                partition.partition_index,
                partition.leader_epoch,
                partition.partition_epoch,
                tuple(member.broker_id for member in partition.new_isr_with_epochs),
                partition.leader_recovery_state,
                tuple(member.broker_epoch for member in partition.new_isr_with_epochs),
            )
            for topic in request.topics
            for partition in topic.partitions
        ]
        try:
            result = alter_partitions(self.image, request.broker_id, request.broker_epoch, changes)
        except ApiError as error:
            return AlterPartitionResponse(error_code=error.error)
        return _altered(self.commit(result))
