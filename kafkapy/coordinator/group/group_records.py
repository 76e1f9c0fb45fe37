"""Records of `__consumer_offsets`, in the versions that Apache Kafka 4.3 writes."""

from __future__ import annotations

from collections.abc import Mapping

from kafkapy.coordinator.group.classic_group import ClassicGroup, GroupState
from kafkapy.coordinator.group.classic_member import ClassicMember
from kafkapy.coordinator.group.committed_offset import CommittedOffset
from kafkapy.coordinator.record import CoordinatorRecord
from kafkapy.protocol.coordinator_record import encode_coordinator
from kafkapy.protocol.messages.coordinator_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)

# Record types, written in front of the key; 0 is the offset commit of before 0.8.2.
OFFSET_COMMIT_KEY = 1
GROUP_METADATA_KEY = 2
OFFSET_COMMIT_KEYS = (0, OFFSET_COMMIT_KEY)
# 4 (flexible) adds nothing yet; older brokers read 3.
_GROUP_METADATA_VALUE_VERSION = 3


def group_metadata_record(group: ClassicGroup, assignments: Mapping[str, bytes]) -> CoordinatorRecord:
    """The group with these assignments; members that have none get an empty one."""
    members = [
        GroupMetadataValue.MemberMetadata(
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            rebalance_timeout=member.rebalance_timeout_ms,
            session_timeout=member.session_timeout_ms,
            subscription=member.metadata(group.protocol_name),
            assignment=assignments.get(member.member_id, b""),
        )
        for member in group.members.values()
    ]
    value = GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation_id,
        protocol=group.protocol_name,
        leader=group.leader_id,
        current_state_timestamp=group.state_timestamp_ms,
        members=members,
    )
    return CoordinatorRecord(group_key(group.group_id), encode_coordinator(value, _GROUP_METADATA_VALUE_VERSION))


def group_key(group_id: str) -> bytes:
    return encode_coordinator(GroupMetadataKey(group=group_id))


def group_tombstone(group_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(group_key(group_id), None)


def offset_key(group_id: str, topic: str, partition: int) -> bytes:
    return encode_coordinator(OffsetCommitKey(group=group_id, topic=topic, partition=partition))


def offset_tombstone(group_id: str, topic: str, partition: int) -> CoordinatorRecord:
    return CoordinatorRecord(offset_key(group_id, topic, partition), None)


def offset_record(group_id: str, topic: str, partition: int, committed: CommittedOffset) -> CoordinatorRecord:
    value = OffsetCommitValue(
        offset=committed.offset,
        leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
        commit_timestamp=committed.commit_timestamp_ms,
        expire_timestamp=committed.expire_timestamp_ms,
        topic_id=committed.topic_id,
    )
    encoded = encode_coordinator(value, _offset_value_version(committed))
    return CoordinatorRecord(offset_key(group_id, topic, partition), encoded)


def _offset_value_version(committed: CommittedOffset) -> int:
    """1 is the only version that holds an expiry, 4 the first that holds a topic id (or none, in a transaction)."""
    return 4 if committed.expire_timestamp_ms == -1 else 1


def committed_offset_from(value: OffsetCommitValue, log_offset: int) -> CommittedOffset:
    return CommittedOffset(
        offset=value.offset,
        leader_epoch=value.leader_epoch,
        metadata=value.metadata,
        commit_timestamp_ms=value.commit_timestamp,
        expire_timestamp_ms=value.expire_timestamp,
        topic_id=value.topic_id,
        log_offset=log_offset,
    )


def classic_group_from(group_id: str, value: GroupMetadataValue, now_ms: int) -> ClassicGroup:
    """The group as it stands in the log: Stable with its members, or Empty."""
    timestamp = value.current_state_timestamp if value.current_state_timestamp != -1 else now_ms
    group = ClassicGroup(group_id, timestamp, GroupState.STABLE if value.members else GroupState.EMPTY)
    group.generation_id = value.generation
    protocol_name = value.protocol or None
    for stored in value.members:
        member = ClassicMember(
            member_id=stored.member_id,
            group_instance_id=stored.group_instance_id,
            client_id=stored.client_id,
            client_host=stored.client_host,
            rebalance_timeout_ms=stored.rebalance_timeout if stored.rebalance_timeout != -1 else stored.session_timeout,
            session_timeout_ms=stored.session_timeout,
            protocol_type=value.protocol_type,
            protocols=[(protocol_name or "", bytes(stored.subscription))],
            assignment=bytes(stored.assignment),
        )
        group.add(member)
    group.protocol_type = value.protocol_type or None
    group.protocol_name = protocol_name if value.members else None
    group.leader_id = value.leader
    group.compute_subscribed_topics()
    return group
