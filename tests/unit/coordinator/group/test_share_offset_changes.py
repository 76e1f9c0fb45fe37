"""Changes of the partitions whose states a share group has."""

from __future__ import annotations

from pathlib import Path

from kafkapy.coordinator.group.share_group import ShareGroup, StatePartitions, TopicPartitions
from kafkapy.coordinator.group.share_offset_changes import without_deleted_topics
from kafkapy.coordinator.group.share_offsets import ShareOffsets
from kafkapy.coordinator.group.share_records import group_epoch_record, states_record
from kafkapy.coordinator.record import CoordinatorResult
from kafkapy.errors import Error
from tests.harness.group_handler import GroupHandlerHarness

A, B, C = (bytes([number]) * 16 for number in range(3))


def test_deleted_topics_are_forgotten_in_every_state() -> None:
    partitions = TopicPartitions("t", frozenset((0, 1)))
    states = StatePartitions({A: partitions}, {B: partitions}, {C: "t"})
    assert without_deleted_topics(states, [A]) == StatePartitions({}, {B: partitions}, {C: "t"})
    assert without_deleted_topics(states, [B, C]) == StatePartitions({A: partitions})
    assert without_deleted_topics(states, [b"other"]) == states


def test_a_group_forgets_a_deleted_topic(tmp_path: Path) -> None:
    harness = GroupHandlerHarness(tmp_path)
    partitions = TopicPartitions("t", frozenset((0, 1)))
    states = StatePartitions(initialized={A: partitions, B: partitions})
    records = [group_epoch_record("g", 1, 0), states_record("g", states)]
    refused: list[Error] = []
    harness.coordinator.execute(
        "g", lambda shard: CoordinatorResult(records), lambda found: None, lambda error, message: refused.append(error)
    )
    harness.coordinator.forget_topics(["t"], [A])
    group = harness.coordinator.shard_of("g").groups["g"]
    assert isinstance(group, ShareGroup)
    assert (set(group.states.initialized), refused) == ({B}, [])


def test_the_deletion_of_no_groups_states_ends_at_once() -> None:
    offsets = ShareOffsets(groups=None, end_offsets=None)  # type: ignore[arg-type]
    results: list[object] = []
    offsets.delete_all([], results.append)
    assert results == [{}]
