"""The assignor cooperative-sticky."""

from __future__ import annotations

from kafkapy.compat.kafka.coordinator.assignors.abstract import AbstractPartitionAssignor


class CooperativeStickyAssignor(AbstractPartitionAssignor):
    """Assigns partitions evenly with few moves, as StickyPartitionAssignor does, but by cooperative rebalances.

    Members continue to read the partitions that they keep during a rebalance.
    """

    name = "cooperative-sticky"
