"""What every partition of this broker shares: who it is, who is alive, the clock, the purgatories, the controller."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from kafkapy.errors import Error
from kafkapy.metadata.image import MetadataCache
from kafkapy.purgatory.purgatory import Schedule
from kafkapy.replica.alter_partition import AlterPartitionPort, AlterPartitionResult, IsrChange
from kafkapy.replica.delayed_operations import DelayedOperations
from kafkapy.replica.isr_state import IsrState
from kafkapy.types import Clock

if TYPE_CHECKING:
    from kafkapy.replica.partition import Partition

logger = logging.getLogger("kafka.cluster.Partition")

RETRY_MS = 500
# The controller saw the request and its state says no: ours is old, and the newer one is on its way.
_WAIT_FOR_METADATA = frozenset(
    {
        Error.UNKNOWN_TOPIC_OR_PARTITION,
        Error.UNKNOWN_TOPIC_ID,
        Error.FENCED_LEADER_EPOCH,
        Error.INVALID_UPDATE_VERSION,
        Error.INVALID_REQUEST,
        Error.NEW_LEADER_ELECTED,
    }
)
# The proposal itself is refused: back to what was confirmed last.
_GIVE_UP = frozenset({Error.OPERATION_NOT_ATTEMPTED, Error.INELIGIBLE_REPLICA})


class ReplicaContext:
    """Shared by the partitions of one replica manager. Owner thread only, `metadata.image` aside."""

    __slots__ = (
        "_alter_partition",
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
        self._alter_partition = alter_partition
        self.isr_shrinks = 0  # confirmed, since the start
        self.isr_expands = 0

    def is_alive(self, broker_id: int) -> bool:
        """Registered and not fenced."""
        registration = self.metadata.image.brokers.get(broker_id)
        return registration is not None and not registration.fenced

    def is_isr_eligible(self, broker_id: int) -> bool:
        """Whether the controller would take the broker into an ISR."""
        registration = self.metadata.image.brokers.get(broker_id)
        return registration is not None and registration.is_active

    def propose_isr(self, partition: Partition, proposal: IsrState) -> None:
        """Asks the controller for `proposal`; until it answers, the high watermark waits for the larger ISR."""
        partition.isr_state = proposal
        change = IsrChange(
            partition.topic_partition,
            partition.topic_id,
            partition.leader_epoch,
            partition.partition_epoch,
            partition.leader_recovery_state,
            tuple(replica for replica in partition.replicas if replica in proposal.proposed_isr),
        )
        logger.info("%s: asks for ISR %s (confirmed: %s)", partition.topic_partition, change.new_isr, proposal.isr)
        self._alter_partition.submit(change, lambda result: self._on_isr_result(partition, proposal, result))

    def _on_isr_result(self, partition: Partition, proposal: IsrState, result: AlterPartitionResult) -> None:
        if partition.isr_state is not proposal or not partition.is_leader:
            return  # newer metadata came first and decided
        if result.error is Error.NONE:
            if result.leader_epoch != partition.leader_epoch or result.partition_epoch < partition.partition_epoch:
                return  # of an older term
            before = partition.isr_state.isr
            partition.isr_state = IsrState.committed(frozenset(result.isr))
            self.isr_shrinks += not before <= partition.isr_state.isr
            self.isr_expands += not partition.isr_state.isr <= before
            partition.partition_epoch = result.partition_epoch
            partition.maybe_increment_high_watermark(self.clock.monotonic_ms())
            # Also when it did not rise: the size of the ISR alone can settle a produce.
            self.delayed_operations.complete_all(partition.topic_partition)
        elif result.error in _GIVE_UP:
            logger.info("%s: ISR change refused: %s", partition.topic_partition, result.error.name)
            partition.isr_state = proposal.last_committed()
        elif result.error not in _WAIT_FOR_METADATA:
            # It is not known whether the controller took it, so that only the same question again can settle it.
            logger.warning("%s: ISR change failed: %s; trying again", partition.topic_partition, result.error.name)
            self.schedule(RETRY_MS, lambda: self._retry(partition, proposal))

    def _retry(self, partition: Partition, proposal: IsrState) -> None:
        if partition.isr_state is proposal and partition.is_leader:
            self.propose_isr(partition, proposal)
