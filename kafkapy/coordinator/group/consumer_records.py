"""Records of consumer groups in `__consumer_offsets`: types 3, 5, 6, 7, 8 and 16; of type 4 only tombstones."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kafkapy.coordinator.group.assignment import Assignment, assignment_from, topic_entries
from kafkapy.coordinator.group.consumer_group import ConsumerGroup, ResolvedRegex
from kafkapy.coordinator.group.consumer_member import ClassicMetadata, ConsumerMember, OwnedPartitions
from kafkapy.coordinator.group.group_records import (
    Replay,
    current_replay,
    group_record,
    replay,
    replay_group_epoch,
    replay_target_epoch,
    subscription_replay,
    target_replay,
    tombstone,
    tombstones,
    with_assignment_epochs,
)
from kafkapy.coordinator.group.member_state import MemberState
from kafkapy.coordinator.record import CoordinatorRecord
from kafkapy.protocol.messages.coordinator_records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)

GROUP_EPOCH_KEY, PARTITION_METADATA_KEY, SUBSCRIPTION_KEY = 3, 4, 5
TARGET_EPOCH_KEY, TARGET_KEY, CURRENT_KEY, REGEX_KEY = 6, 7, 8, 16

# The states of members in records of the current assignment.
MEMBER_STATES = {0: MemberState.STABLE, 1: MemberState.UNREVOKED, 2: MemberState.UNRELEASED, 127: MemberState.UNKNOWN}
_STATE_NUMBERS = {state: number for number, state in MEMBER_STATES.items()}
# The keys of a member's records. The tombstone of the last one removes the member.
_MEMBER_KEYS = (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupMemberMetadataKey,
)
# The keys of the group's own records. The tombstone of the last one removes the group.
_GROUP_KEYS = (ConsumerGroupTargetAssignmentMetadataKey, ConsumerGroupPartitionMetadataKey, ConsumerGroupMetadataKey)


# -- writing


def group_epoch_record(group_id: str, epoch: int, metadata_hash: int) -> CoordinatorRecord:
    value = ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return group_record(ConsumerGroupMetadataKey(group_id=group_id), value)


def subscription_record(group_id: str, member: ConsumerMember) -> CoordinatorRecord:
    classic = None
    if member.classic is not None:
        classic = ConsumerGroupMemberMetadataValue.ClassicMemberMetadata(
            session_timeout_ms=member.classic.session_timeout_ms,
            supported_protocols=[
                ConsumerGroupMemberMetadataValue.ClassicProtocol(name=name, metadata=metadata)
                for name, metadata in member.classic.protocols
            ],
        )
    value = ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.subscribed_topic_names),
        subscribed_topic_regex=member.subscribed_topic_regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.server_assignor,
        classic_member_metadata=classic,
    )
    return group_record(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id), value)


def target_epoch_record(group_id: str, epoch: int, timestamp_ms: int) -> CoordinatorRecord:
    value = ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=timestamp_ms)
    return group_record(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), value)


def target_record(group_id: str, member_id: str, assignment: Assignment) -> CoordinatorRecord:
    entries = topic_entries(ConsumerGroupTargetAssignmentMemberValue.TopicPartition, assignment)
    value = ConsumerGroupTargetAssignmentMemberValue(topic_partitions=entries)
    return group_record(ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), value)


def current_record(group_id: str, member: ConsumerMember) -> CoordinatorRecord:
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member.member_epoch,
        previous_member_epoch=member.previous_member_epoch,
        state=_STATE_NUMBERS[member.state],
        assigned_partitions=_owned(member.assigned),
        partitions_pending_revocation=_owned(member.pending_revocation),
    )
    return group_record(ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id), value)


def _owned(owned: OwnedPartitions) -> list[Any]:
    entries = topic_entries(ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions, owned)
    for entry in entries:
        entry.assignment_epochs = [owned[entry.topic_id][partition] for partition in entry.partitions]
    return entries


def regex_record(group_id: str, pattern: str, resolved: ResolvedRegex) -> CoordinatorRecord:
    value = ConsumerGroupRegularExpressionValue(
        topics=sorted(resolved.topics), version=resolved.version, timestamp=resolved.timestamp_ms
    )
    return group_record(ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=pattern), value)


def regex_tombstone(group_id: str, pattern: str) -> CoordinatorRecord:
    return tombstone(ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=pattern))


def member_tombstones(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    """Returns the tombstones of all records of one member: current assignment, target and subscription."""
    return tombstones(_MEMBER_KEYS, group_id=group_id, member_id=member_id)


def group_tombstones(group: ConsumerGroup) -> list[CoordinatorRecord]:
    """Returns the tombstones of all records of the group. The epoch is last, because its deletion removes the group."""
    group_id = group.group_id
    records = [record for member_id in group.members for record in member_tombstones(group_id, member_id)]
    records += [regex_tombstone(group_id, pattern) for pattern in group.regexes]
    return records + tombstones(_GROUP_KEYS, group_id=group_id)


def whole_group(group: ConsumerGroup) -> list[CoordinatorRecord]:
    """Returns the records that describe the complete group. They are written when a classic group becomes a consumer
    group."""
    group_id = group.group_id
    records = [subscription_record(group_id, member) for member in group.members.values()]
    records.append(group_epoch_record(group_id, group.group_epoch, group.metadata_hash))
    records += [target_record(group_id, member_id, target) for member_id, target in group.target.items()]
    records.append(target_epoch_record(group_id, group.assignment_epoch, group.assignment_timestamp_ms))
    records += [current_record(group_id, member) for member in group.members.values()]
    return records


# -- reading


def replay_into(group: ConsumerGroup, kind: int, key_bytes: bytes, value_bytes: bytes | None) -> bool:
    """Applies a record of type `kind` (the number at the start of its key) to its group. Returns True if the record is
    the tombstone that deletes the group."""
    return replay(_REPLAYS, group, kind, key_bytes, value_bytes)


def _replay_regex(group: ConsumerGroup, key: Any, value: Any) -> None:
    resolved = None if value is None else ResolvedRegex(frozenset(value.topics), value.version, value.timestamp)
    group.put_regex(key.regular_expression, resolved)


def _subscription_from(value: Any) -> dict[str, Any]:
    classic = None
    if value.classic_member_metadata is not None:
        classic = ClassicMetadata(
            value.classic_member_metadata.session_timeout_ms,
            tuple((each.name, bytes(each.metadata)) for each in value.classic_member_metadata.supported_protocols),
        )
    return {
        "instance_id": value.instance_id,
        "rack_id": value.rack_id,
        "client_id": value.client_id,
        "client_host": value.client_host,
        "rebalance_timeout_ms": value.rebalance_timeout_ms,
        "subscribed_topic_names": tuple(sorted(value.subscribed_topic_names)),
        "subscribed_topic_regex": value.subscribed_topic_regex or "",
        "server_assignor": value.server_assignor,
        "classic": classic,
    }


def _current_from(value: Any) -> dict[str, Any]:
    return {
        "state": MEMBER_STATES.get(value.state, MemberState.UNKNOWN),
        "assigned": _owned_from(value.assigned_partitions, value.member_epoch),
        "pending_revocation": _owned_from(value.partitions_pending_revocation, value.member_epoch),
    }


def _owned_from(entries: Iterable[Any], member_epoch: int) -> dict[bytes, dict[int, int]]:
    return {entry.topic_id: with_assignment_epochs(entry, member_epoch) for entry in entries}


_NO_ASSIGNMENT = {"state": MemberState.STABLE, "assigned": {}, "pending_revocation": {}}
_REPLAYS: dict[int, Replay] = {
    GROUP_EPOCH_KEY: replay_group_epoch,
    SUBSCRIPTION_KEY: subscription_replay(ConsumerMember, _subscription_from),
    TARGET_EPOCH_KEY: replay_target_epoch,
    TARGET_KEY: target_replay(lambda value: assignment_from(value.topic_partitions)),
    CURRENT_KEY: current_replay(ConsumerMember, _current_from, _NO_ASSIGNMENT),
    REGEX_KEY: _replay_regex,
}
