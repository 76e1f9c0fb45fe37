"""Records of consumer groups in `__consumer_offsets`: types 3, 5, 6, 7, 8 and 16; of type 4 only tombstones."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kafkapy.coordinator.group.consumer_group import ConsumerGroup, ResolvedRegex
from kafkapy.coordinator.group.consumer_member import (
    Assignment,
    ClassicMetadata,
    ConsumerMember,
    MemberState,
    OwnedPartitions,
)
from kafkapy.coordinator.record import CoordinatorRecord
from kafkapy.protocol.coordinator_record import (
    decode_coordinator_key,
    decode_coordinator_value,
    encode_coordinator,
)
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


# -- writing


def group_epoch_record(group_id: str, epoch: int, metadata_hash: int) -> CoordinatorRecord:
    value = ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return _record(ConsumerGroupMetadataKey(group_id=group_id), value)


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
    return _record(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id), value)


def target_epoch_record(group_id: str, epoch: int, timestamp_ms: int) -> CoordinatorRecord:
    value = ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=timestamp_ms)
    return _record(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), value)


def target_record(group_id: str, member_id: str, assignment: Assignment) -> CoordinatorRecord:
    value = ConsumerGroupTargetAssignmentMemberValue(
        topic_partitions=[
            ConsumerGroupTargetAssignmentMemberValue.TopicPartition(topic_id=topic_id, partitions=sorted(partitions))
            for topic_id, partitions in assignment.items()
            if partitions
        ]
    )
    return _record(ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), value)


def current_record(group_id: str, member: ConsumerMember) -> CoordinatorRecord:
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member.member_epoch,
        previous_member_epoch=member.previous_member_epoch,
        state=int(member.state),
        assigned_partitions=_owned(member.assigned),
        partitions_pending_revocation=_owned(member.pending_revocation),
    )
    return _record(ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id), value)


def _owned(owned: OwnedPartitions) -> list[Any]:
    return [
        ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions(
            topic_id=topic_id,
            partitions=sorted(partitions),
            assignment_epochs=[partitions[partition] for partition in sorted(partitions)],
        )
        for topic_id, partitions in owned.items()
        if partitions
    ]


def regex_record(group_id: str, pattern: str, resolved: ResolvedRegex) -> CoordinatorRecord:
    value = ConsumerGroupRegularExpressionValue(
        topics=sorted(resolved.topics), version=resolved.version, timestamp=resolved.timestamp_ms
    )
    return _record(ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=pattern), value)


def regex_tombstone(group_id: str, pattern: str) -> CoordinatorRecord:
    return _tombstone(ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=pattern))


def member_tombstones(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    """Returns the tombstones of a member. The subscription is last, because its deletion removes the member."""
    return [
        _tombstone(ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id)),
        _tombstone(ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)),
        _tombstone(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id)),
    ]


def group_tombstones(group: ConsumerGroup) -> list[CoordinatorRecord]:
    """Returns the tombstones of all records of the group. The epoch is last, because its deletion removes the group."""
    group_id = group.group_id
    records = [record for member_id in group.members for record in member_tombstones(group_id, member_id)]
    records += [regex_tombstone(group_id, pattern) for pattern in group.regexes]
    records.append(_tombstone(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id)))
    records.append(_tombstone(ConsumerGroupPartitionMetadataKey(group_id=group_id)))
    records.append(_tombstone(ConsumerGroupMetadataKey(group_id=group_id)))
    return records


def whole_group(group: ConsumerGroup) -> list[CoordinatorRecord]:
    """Returns the records that describe the complete group, to be written when a classic group becomes a consumer
    group."""
    group_id = group.group_id
    records = [subscription_record(group_id, member) for member in group.members.values()]
    records.append(group_epoch_record(group_id, group.group_epoch, group.metadata_hash))
    records += [target_record(group_id, member_id, target) for member_id, target in group.target.items()]
    records.append(target_epoch_record(group_id, group.assignment_epoch, group.assignment_timestamp_ms))
    records += [current_record(group_id, member) for member in group.members.values()]
    return records


def _record(key: Any, value: Any) -> CoordinatorRecord:
    return CoordinatorRecord(encode_coordinator(key), encode_coordinator(value, 0))


def _tombstone(key: Any) -> CoordinatorRecord:
    return CoordinatorRecord(encode_coordinator(key), None)


# -- reading


def replay_into(group: ConsumerGroup, kind: int, key_bytes: bytes, value_bytes: bytes | None) -> bool:
    """Applies one record to its group; returns True if the record is the tombstone that deletes the group."""
    key: Any = decode_coordinator_key(key_bytes)
    value: Any = None if value_bytes is None else decode_coordinator_value(kind, value_bytes)
    if kind == GROUP_EPOCH_KEY:
        if value is None:
            return True
        group.group_epoch, group.metadata_hash = value.epoch, value.metadata_hash
    elif kind == TARGET_EPOCH_KEY:
        group.assignment_epoch = -1 if value is None else value.assignment_epoch
        group.assignment_timestamp_ms = 0 if value is None else value.assignment_timestamp
    elif kind == REGEX_KEY:
        resolved = None if value is None else ResolvedRegex(frozenset(value.topics), value.version, value.timestamp)
        group.put_regex(key.regular_expression, resolved)
    elif kind == SUBSCRIPTION_KEY:
        _replay_subscription(group, key.member_id, value)
    elif kind == TARGET_KEY:
        if value is None:
            group.target.pop(key.member_id, None)
        else:
            group.target[key.member_id] = {
                entry.topic_id: frozenset(entry.partitions) for entry in value.topic_partitions
            }
    elif kind == CURRENT_KEY:
        _replay_current(group, key.member_id, value)
    return False


def _replay_subscription(group: ConsumerGroup, member_id: str, value: Any) -> None:
    if value is None:
        group.remove(member_id)
        return
    classic = None
    if value.classic_member_metadata is not None:
        classic = ClassicMetadata(
            value.classic_member_metadata.session_timeout_ms,
            tuple((each.name, bytes(each.metadata)) for each in value.classic_member_metadata.supported_protocols),
        )
    old = group.members.get(member_id) or ConsumerMember(member_id)
    group.put(
        old._replace(
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            subscribed_topic_names=tuple(sorted(value.subscribed_topic_names)),
            subscribed_topic_regex=value.subscribed_topic_regex or "",
            server_assignor=value.server_assignor,
            classic=classic,
        )
    )


def _replay_current(group: ConsumerGroup, member_id: str, value: Any) -> None:
    old = group.members.get(member_id)
    if value is None:
        if old is not None:
            gone = old._replace(member_epoch=LEFT, previous_member_epoch=LEFT, state=MemberState.STABLE)
            group.put(gone._replace(assigned={}, pending_revocation={}))
        return
    states = {int(state) for state in MemberState}
    group.put(
        (old or ConsumerMember(member_id))._replace(
            member_epoch=value.member_epoch,
            previous_member_epoch=value.previous_member_epoch,
            state=MemberState(value.state) if value.state in states else MemberState.UNKNOWN,
            assigned=_from(value.assigned_partitions, value.member_epoch),
            pending_revocation=_from(value.partitions_pending_revocation, value.member_epoch),
        )
    )


# The epoch of a member whose current assignment was deleted, before its subscription is.
LEFT = -1


def _from(entries: Iterable[Any], member_epoch: int) -> dict[bytes, dict[int, int]]:
    """Returns the partitions that a record lists, by topic id, with the epoch in which each was assigned.

    Records from before 4.3 have no assignment epochs. The member epoch of the record replaces them.
    """
    owned = {}
    for entry in entries:
        epochs = entry.assignment_epochs
        if epochs is None or len(epochs) != len(entry.partitions):
            epochs = [member_epoch] * len(entry.partitions)
        owned[entry.topic_id] = dict(zip(entry.partitions, epochs, strict=True))
    return owned
