"""The assignor roundrobin."""

from __future__ import annotations

from kafkapy.compat.kafka.coordinator.assignors.abstract import AbstractPartitionAssignor


class RoundRobinPartitionAssignor(AbstractPartitionAssignor):
    """Assigns the partitions of all topics to the members in turn."""

    name = "roundrobin"
