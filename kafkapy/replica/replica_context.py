"""The parts that all partitions of this broker share: identity, live brokers, clock, purgatories, controller."""

from __future__ import annotations

from kafkapy.metadata.image import MetadataCache
from kafkapy.purgatory.purgatory import Schedule
from kafkapy.replica.alter_partition import AlterPartitionPort
from kafkapy.replica.delayed_operations import DelayedOperations
from kafkapy.types import Clock


class ReplicaContext:
    """Shared by the partitions of one replica manager. Owner thread only, except for `metadata.image`."""

    __slots__ = (
        "alter_partition",
        "clock",
        "delayed_operations",
        "isr_expands",
        "isr_shrinks",
        "metadata",
        "node_id",
        "replica_lag_max_ms",
        "schedule",
    )

    def __init__(
        self,
        node_id: int,
        clock: Clock,
        metadata: MetadataCache,
        schedule: Schedule,
        alter_partition: AlterPartitionPort,
        replica_lag_max_ms: int,
    ) -> None:
        self.node_id = node_id
        self.clock = clock
        self.metadata = metadata
        self.schedule = schedule
        self.delayed_operations = DelayedOperations(schedule)
        self.replica_lag_max_ms = replica_lag_max_ms
        self.alter_partition = alter_partition
        self.isr_shrinks = 0  # confirmed changes since the start
        self.isr_expands = 0

    def is_alive(self, broker_id: int) -> bool:
        """Returns whether the broker is registered and not fenced."""
        registration = self.metadata.image.brokers.get(broker_id)
        return registration is not None and not registration.fenced

    def is_isr_eligible(self, broker_id: int) -> bool:
        """Returns whether the controller would accept the broker in an ISR."""
        registration = self.metadata.image.brokers.get(broker_id)
        return registration is not None and registration.is_active
