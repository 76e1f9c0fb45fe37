"""The assignor range."""

from __future__ import annotations

from kafkapy.compat.kafka.coordinator.assignors.abstract import AbstractPartitionAssignor


class RangePartitionAssignor(AbstractPartitionAssignor):
    """Assigns consecutive partitions of each topic to each member."""

    name = "range"
