"""Records of classic groups in `__consumer_offsets`, in the version that Apache Kafka 4.3 writes."""

from __future__ import annotations

from collections.abc import Mapping

from kafkapy.coordinator.group.classic.classic_group import ClassicGroup, GroupState
from kafkapy.coordinator.group.classic.classic_member import ClassicMember
from kafkapy.coordinator.record import CoordinatorRecord
from kafkapy.protocol.coordinator_record import encode_coordinator
from kafkapy.protocol.messages.coordinator_records import GroupMetadataKey, GroupMetadataValue

# Record type, written in front of the key.
GROUP_METADATA_KEY = 2
# Version 4 (flexible) has no further fields, and older brokers cannot read it.
_GROUP_METADATA_VALUE_VERSION = 3


def group_metadata_record(group: ClassicGroup, assignments: Mapping[str, bytes]) -> CoordinatorRecord:
    """Returns the record of the group with `assignments`, opaque bytes by member id; other members get an empty
    assignment."""
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


def classic_group_from(group_id: str, value: GroupMetadataValue, wall_ms: int) -> ClassicGroup:
    """Returns the group that the record's `value` describes: in the state Stable if it has members, otherwise Empty.

    `wall_ms` is the time of the last change of state if the record does not contain it.
    """
    timestamp = value.current_state_timestamp if value.current_state_timestamp != -1 else wall_ms
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
