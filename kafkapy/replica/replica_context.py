"""The objects that all partitions of this broker share, such as its id, the clock and the purgatories."""

from __future__ import annotations

from collections.abc import Mapping

from kafkapy._core.broker_state.replica_state import PeerState
from kafkapy._core.gate.data_gate import DataGate
from kafkapy.metadata.cluster_image import BrokerRegistration
from kafkapy.metadata.image import MetadataCache
from kafkapy.purgatory.purgatory import Schedule
from kafkapy.replica.alter_partition import AlterPartitionPort
from kafkapy.replica.delayed_operations import DelayedOperations
from kafkapy.types import Clock

NO_BROKER_EPOCH = -1


class ReplicaContext:
    """The objects that the partitions of one replica manager share. Only the thread that owns it may use it, except
    for `metadata.image`."""

    __slots__ = (
        "_brokers",
        "_peers",
        "alter_partition",
        "clock",
        "delayed_operations",
        "gate",
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
        gate: DataGate | None = None,
    ) -> None:
        self.node_id = node_id
        self.clock = clock
        self.metadata = metadata
        self.schedule = schedule
        self.delayed_operations = DelayedOperations(schedule)
        self.replica_lag_max_ms = replica_lag_max_ms
        self.alter_partition = alter_partition
        self.gate = gate
        self._peers: dict[int, PeerState] = {}
        self._brokers: Mapping[int, BrokerRegistration] = {}  # the registrations that `_peers` reflects
        self.isr_shrinks = 0  # confirmed changes since the start
        self.isr_expands = 0

    def is_alive(self, broker_id: int) -> bool:
        """Returns whether the broker is registered and not fenced in the newest image."""
        registration = self.metadata.image.brokers.get(broker_id)
        return registration is not None and not registration.fenced

    def peer(self, broker_id: int) -> PeerState:
        """Returns the state of another broker, one object for all its replicas, which `follow_brokers` updates."""
        peer = self._peers.get(broker_id)
        if peer is None:
            peer = self._peers[broker_id] = PeerState()
            _update(peer, self._brokers.get(broker_id))
        return peer

    def follow_brokers(self, brokers: Mapping[int, BrokerRegistration]) -> None:
        """Updates the states of other brokers from the registrations of a new image."""
        if brokers is self._brokers:
            return
        self._brokers = brokers
        for broker_id, peer in self._peers.items():
            _update(peer, brokers.get(broker_id))


def _update(peer: PeerState, registration: BrokerRegistration | None) -> None:
    is_alive = registration is not None and not registration.fenced
    peer.epoch = registration.epoch if registration is not None and is_alive else NO_BROKER_EPOCH
    peer.is_active = registration is not None and registration.is_active
