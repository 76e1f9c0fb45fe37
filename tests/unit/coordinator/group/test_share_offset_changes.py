"""Changes of the partitions whose states a share group has."""

from __future__ import annotations

from kafkapy.coordinator.group.share_group import StatePartitions, TopicPartitions
from kafkapy.coordinator.group.share_offset_changes import forgotten

A, B, C = (bytes([number]) * 16 for number in range(3))


def test_deleted_topics_are_forgotten_in_every_state() -> None:
    partitions = TopicPartitions("t", frozenset((0, 1)))
    states = StatePartitions({A: partitions}, {B: partitions}, {C: "t"})
    assert forgotten(states, [A]) == StatePartitions({}, {B: partitions}, {C: "t"})
    assert forgotten(states, [B, C]) == StatePartitions({A: partitions})
    assert forgotten(states, [b"other"]) == states
