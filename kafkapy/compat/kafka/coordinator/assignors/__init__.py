"""The names of the assignors, for `partition_assignment_strategy`. kafkapy's client computes the assignments."""

from __future__ import annotations

from typing import Any

from kafkapy.client.assignors import ASSIGNORS, Assignor
from kafkapy.compat.kafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from kafkapy.compat.kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafkapy.compat.kafka.coordinator.assignors.range import RangePartitionAssignor
from kafkapy.compat.kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafkapy.compat.kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafkapy.compat.kafka.errors import KafkaConfigurationError


def client_assignor(configured: Any) -> Assignor:
    """Returns kafkapy's assignor for one of kafka-python's, which is given as a class, an instance or a name.

    Raises KafkaConfigurationError for an unknown assignor.
    """
    name = configured if isinstance(configured, str) else getattr(configured, "name", None)
    is_ours = isinstance(configured, str) or (
        isinstance(configured, AbstractPartitionAssignor)
        or (isinstance(configured, type) and issubclass(configured, AbstractPartitionAssignor))
    )
    if not is_ours or name not in ASSIGNORS:
        raise KafkaConfigurationError(
            f"kafkapy.compat.kafka cannot honour partition_assignment_strategy={configured!r}: it has the assignors "
            "range, roundrobin, sticky and cooperative-sticky"
        )
    return ASSIGNORS[name]


__all__ = [
    "AbstractPartitionAssignor",
    "CooperativeStickyAssignor",
    "RangePartitionAssignor",
    "RoundRobinPartitionAssignor",
    "StickyPartitionAssignor",
    "client_assignor",
]
