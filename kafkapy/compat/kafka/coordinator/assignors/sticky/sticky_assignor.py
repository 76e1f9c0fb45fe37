"""The assignor sticky."""

from __future__ import annotations

from kafkapy.compat.kafka.coordinator.assignors.abstract import AbstractPartitionAssignor


class StickyPartitionAssignor(AbstractPartitionAssignor):
    """Assigns partitions evenly, with as few moves as possible."""

    name = "sticky"
