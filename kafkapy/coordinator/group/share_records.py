"""Records of share groups in `__consumer_offsets`: types 10 to 15."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kafkapy.coordinator.group.consumer_member import Assignment
from kafkapy.coordinator.group.share_group import ShareGroup, ShareMember, StatePartitions, TopicPartitions
from kafkapy.coordinator.record import CoordinatorRecord
from kafkapy.protocol.coordinator_record import (
    decode_coordinator_key,
    decode_coordinator_value,
    encode_coordinator,
)
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
# The state of a member in its current assignment: share groups know no other.
_STABLE = 0


# -- writing


def subscription_record(group_id: str, member: ShareMember) -> CoordinatorRecord:
    value = ShareGroupMemberMetadataValue(
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.subscribed_topic_names),
    )
    return _record(ShareGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id), value)


def group_epoch_record(group_id: str, epoch: int, metadata_hash: int) -> CoordinatorRecord:
    value = ShareGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return _record(ShareGroupMetadataKey(group_id=group_id), value)


def target_epoch_record(group_id: str, epoch: int, timestamp_ms: int) -> CoordinatorRecord:
    value = ShareGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=timestamp_ms)
    return _record(ShareGroupTargetAssignmentMetadataKey(group_id=group_id), value)


def target_record(group_id: str, member_id: str, assignment: Assignment) -> CoordinatorRecord:
    partitions = _partitions(ShareGroupTargetAssignmentMemberValue.TopicPartition, assignment)
    value = ShareGroupTargetAssignmentMemberValue(topic_partitions=partitions)
    return _record(ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), value)


def current_record(group_id: str, member: ShareMember) -> CoordinatorRecord:
    value = ShareGroupCurrentMemberAssignmentValue(
        member_epoch=member.member_epoch,
        previous_member_epoch=member.previous_member_epoch,
        state=_STABLE,
        assigned_partitions=_partitions(ShareGroupCurrentMemberAssignmentValue.TopicPartitions, member.assigned),
    )
    return _record(ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id), value)


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
    return _record(ShareGroupStatePartitionMetadataKey(group_id=group_id), value)


def _partitions(entry_class: Any, assignment: Assignment) -> list[Any]:
    return [
        entry_class(topic_id=topic_id, partitions=sorted(partitions))
        for topic_id, partitions in assignment.items()
        if partitions
    ]


def member_tombstones(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    """Returns the tombstones of a member. The subscription is last, because its deletion removes the member."""
    return [
        _tombstone(ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id)),
        _tombstone(ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)),
        _tombstone(ShareGroupMemberMetadataKey(group_id=group_id, member_id=member_id)),
    ]


def group_tombstones(group: ShareGroup) -> list[CoordinatorRecord]:
    """Returns the tombstones of all records of the group. The epoch is last, because its deletion removes the group."""
    group_id = group.group_id
    records = [record for member_id in group.members for record in member_tombstones(group_id, member_id)]
    records.append(_tombstone(ShareGroupStatePartitionMetadataKey(group_id=group_id)))
    records.append(_tombstone(ShareGroupTargetAssignmentMetadataKey(group_id=group_id)))
    records.append(_tombstone(ShareGroupMetadataKey(group_id=group_id)))
    return records


def _record(key: Any, value: Any) -> CoordinatorRecord:
    return CoordinatorRecord(encode_coordinator(key), encode_coordinator(value, 0))


def _tombstone(key: Any) -> CoordinatorRecord:
    return CoordinatorRecord(encode_coordinator(key), None)


# -- reading


def replay_into(group: ShareGroup, kind: int, key_bytes: bytes, value_bytes: bytes | None, wall_ms: int) -> bool:
    """Applies one record to its group; returns True if the record is the tombstone that deletes the group.

    `wall_ms` is the present time: partitions that are being initialized count from it.
    """
    key: Any = decode_coordinator_key(key_bytes)
    value: Any = None if value_bytes is None else decode_coordinator_value(kind, value_bytes)
    if kind == GROUP_EPOCH_KEY:
        if value is None:
            return True
        group.group_epoch, group.metadata_hash = value.epoch, value.metadata_hash
    elif kind == TARGET_EPOCH_KEY:
        group.assignment_epoch = -1 if value is None else value.assignment_epoch
        group.assignment_timestamp_ms = 0 if value is None else value.assignment_timestamp
    elif kind == SUBSCRIPTION_KEY:
        _replay_subscription(group, key.member_id, value)
    elif kind == TARGET_KEY:
        if value is None:
            group.target.pop(key.member_id, None)
        else:
            group.target[key.member_id] = _assignment(value.topic_partitions)
    elif kind == CURRENT_KEY:
        _replay_current(group, key.member_id, value)
    elif kind == STATES_KEY:
        group.states = StatePartitions() if value is None else _states(value, wall_ms)
    return False


def _replay_subscription(group: ShareGroup, member_id: str, value: Any) -> None:
    if value is None:
        group.remove(member_id)
        return
    old = group.members.get(member_id) or ShareMember(member_id)
    group.put(
        old._replace(
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            subscribed_topic_names=tuple(sorted(value.subscribed_topic_names)),
        )
    )


def _replay_current(group: ShareGroup, member_id: str, value: Any) -> None:
    old = group.members.get(member_id)
    if value is None:
        if old is not None:
            group.put(old._replace(member_epoch=-1, previous_member_epoch=-1, assigned={}))
        return
    group.put(
        (old or ShareMember(member_id))._replace(
            member_epoch=value.member_epoch,
            previous_member_epoch=value.previous_member_epoch,
            assigned=_assignment(value.assigned_partitions),
        )
    )


def _assignment(entries: Iterable[Any]) -> dict[bytes, frozenset[int]]:
    return {entry.topic_id: frozenset(entry.partitions) for entry in entries}


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
