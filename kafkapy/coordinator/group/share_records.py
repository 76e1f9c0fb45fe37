"""Records of share groups in `__consumer_offsets`: types 10 to 15."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kafkapy.coordinator.group.assignment import Assignment, assignment_from, topic_entries
from kafkapy.coordinator.group.group_records import (
    Replay,
    current_replay,
    group_record,
    replay,
    replay_group_epoch,
    replay_target_epoch,
    subscription_replay,
    target_replay,
    tombstones,
)
from kafkapy.coordinator.group.share_group import ShareGroup, ShareMember, StatePartitions, TopicPartitions
from kafkapy.coordinator.record import CoordinatorRecord
from kafkapy.protocol.coordinator_record import decode_coordinator_value
from kafkapy.protocol.messages.coordinator_records import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataKey,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupStatePartitionMetadataValue,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMetadataValue,
)

SUBSCRIPTION_KEY, GROUP_EPOCH_KEY, TARGET_EPOCH_KEY, TARGET_KEY, CURRENT_KEY, STATES_KEY = range(10, 16)
# The state in every record of a current assignment; members of share groups have no other state.
_STABLE = 0

# The keys of a member's records. The tombstone of the last one removes the member.
_MEMBER_KEYS = (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupMemberMetadataKey,
)
# The keys of the group's own records. The tombstone of the last one removes the group.
_GROUP_KEYS = (ShareGroupStatePartitionMetadataKey, ShareGroupTargetAssignmentMetadataKey, ShareGroupMetadataKey)


# -- writing


def subscription_record(group_id: str, member: ShareMember) -> CoordinatorRecord:
    value = ShareGroupMemberMetadataValue(
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.subscribed_topic_names),
    )
    return group_record(ShareGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id), value)


def group_epoch_record(group_id: str, epoch: int, metadata_hash: int) -> CoordinatorRecord:
    value = ShareGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return group_record(ShareGroupMetadataKey(group_id=group_id), value)


def target_epoch_record(group_id: str, epoch: int, timestamp_ms: int) -> CoordinatorRecord:
    value = ShareGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=timestamp_ms)
    return group_record(ShareGroupTargetAssignmentMetadataKey(group_id=group_id), value)


def target_record(group_id: str, member_id: str, assignment: Assignment) -> CoordinatorRecord:
    partitions = topic_entries(ShareGroupTargetAssignmentMemberValue.TopicPartition, assignment)
    value = ShareGroupTargetAssignmentMemberValue(topic_partitions=partitions)
    return group_record(ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), value)


def current_record(group_id: str, member: ShareMember) -> CoordinatorRecord:
    value = ShareGroupCurrentMemberAssignmentValue(
        member_epoch=member.member_epoch,
        previous_member_epoch=member.previous_member_epoch,
        state=_STABLE,
        assigned_partitions=topic_entries(ShareGroupCurrentMemberAssignmentValue.TopicPartitions, member.assigned),
    )
    return group_record(ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id), value)


def states_record(group_id: str, states: StatePartitions) -> CoordinatorRecord:
    def topics(partitions: Mapping[bytes, TopicPartitions]) -> list[Any]:
        return [
            ShareGroupStatePartitionMetadataValue.TopicPartitionsInfo(
                topic_id=topic_id, topic_name=each.topic, partitions=sorted(each.partitions)
            )
            for topic_id, each in partitions.items()
        ]

    value = ShareGroupStatePartitionMetadataValue(
        initializing_topics=topics(states.initializing),
        initialized_topics=topics(states.initialized),
        deleting_topics=[
            ShareGroupStatePartitionMetadataValue.TopicInfo(topic_id=topic_id, topic_name=name)
            for topic_id, name in states.deleting.items()
        ],
    )
    return group_record(ShareGroupStatePartitionMetadataKey(group_id=group_id), value)


def member_tombstones(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    """Returns the tombstones of all records of one member: current assignment, target and subscription."""
    return tombstones(_MEMBER_KEYS, group_id=group_id, member_id=member_id)


def group_tombstones(group: ShareGroup) -> list[CoordinatorRecord]:
    """Returns the tombstones of all records of the group. The epoch is last, because its deletion removes the group."""
    group_id = group.group_id
    records = [record for member_id in group.members for record in member_tombstones(group_id, member_id)]
    return records + tombstones(_GROUP_KEYS, group_id=group_id)


# -- reading


def replay_into(group: ShareGroup, kind: int, key_bytes: bytes, value_bytes: bytes | None, wall_ms: int) -> bool:
    """Applies a record of type `kind` (the number at the start of its key) to its group. Returns True if the record is
    the tombstone that deletes the group.

    `wall_ms` is the current time. It replaces the time at which an initialization began, which is not in the record.
    """
    if kind == STATES_KEY:
        value = None if value_bytes is None else decode_coordinator_value(kind, value_bytes)
        group.states = StatePartitions() if value is None else _states(value, wall_ms)
    return replay(_REPLAYS, group, kind, key_bytes, value_bytes)


def _subscription_from(value: Any) -> dict[str, Any]:
    return {
        "rack_id": value.rack_id,
        "client_id": value.client_id,
        "client_host": value.client_host,
        "subscribed_topic_names": tuple(sorted(value.subscribed_topic_names)),
    }


_REPLAYS: dict[int, Replay] = {
    GROUP_EPOCH_KEY: replay_group_epoch,
    SUBSCRIPTION_KEY: subscription_replay(ShareMember, _subscription_from),
    TARGET_EPOCH_KEY: replay_target_epoch,
    TARGET_KEY: target_replay(lambda value: assignment_from(value.topic_partitions)),
    CURRENT_KEY: current_replay(
        ShareMember, lambda value: {"assigned": assignment_from(value.assigned_partitions)}, {"assigned": {}}
    ),
}


def _states(value: Any, wall_ms: int) -> StatePartitions:
    def topics(entries: Iterable[Any], timestamp_ms: int) -> dict[bytes, TopicPartitions]:
        return {
            entry.topic_id: TopicPartitions(entry.topic_name, frozenset(entry.partitions), timestamp_ms)
            for entry in entries
        }

    return StatePartitions(
        topics(value.initializing_topics, wall_ms),
        topics(value.initialized_topics, 0),
        {entry.topic_id: entry.topic_name for entry in value.deleting_topics},
    )
