"""The assignor cooperative-sticky."""

from __future__ import annotations

from kafkapy.compat.kafka.coordinator.assignors.abstract import AbstractPartitionAssignor


class CooperativeStickyAssignor(AbstractPartitionAssignor):
    """Assigns partitions as StickyPartitionAssignor does; members keep reading during a rebalance."""

    name = "cooperative-sticky"
