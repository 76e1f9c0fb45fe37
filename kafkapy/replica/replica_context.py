"""The parts that all partitions of this broker share: identity, live brokers, clock, purgatories, controller."""

from __future__ import annotations

from kafkapy.metadata.image import MetadataCache
from kafkapy.purgatory.purgatory import Schedule
from kafkapy.replica.alter_partition import AlterPartitionPort
from kafkapy.replica.delayed_operations import DelayedOperations
from kafkapy.replica.remote_replica import RemoteReplica
from kafkapy.types import Clock


UNKNOWN_BROKER_EPOCH = -1  # of a follower whose fetch version has no broker epoch


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

    def is_isr_eligible(self, replica: RemoteReplica) -> bool:
        """Returns whether the controller would accept the replica in an ISR (KIP-903).

        Its broker must be active, and must have sent its last fetch since its last registration: a broker that was
        restarted may have lost records that it had fetched before.
        """
        registration = self.metadata.image.brokers.get(replica.broker_id)
        return (
            registration is not None
            and registration.is_active
            and replica.broker_epoch in (UNKNOWN_BROKER_EPOCH, registration.epoch)
        )

    def is_outdated(self, broker_id: int, broker_epoch: int) -> bool:
        """Returns whether a fetch with this broker epoch was sent before the broker's last registration (KIP-903)."""
        registration = self.metadata.image.brokers.get(broker_id)
        return (
            broker_epoch != UNKNOWN_BROKER_EPOCH
            and registration is not None
            and not registration.fenced
            and registration.epoch > broker_epoch
        )
