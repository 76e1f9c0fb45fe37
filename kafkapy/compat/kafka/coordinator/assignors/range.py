"""The assignor range."""

from __future__ import annotations

from kafkapy.compat.kafka.coordinator.assignors.abstract import AbstractPartitionAssignor


class RangePartitionAssignor(AbstractPartitionAssignor):
    """Assigns to each member a range of consecutive partitions of each topic."""

    name = "range"
