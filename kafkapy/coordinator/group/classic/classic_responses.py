"""Responses of the classic group APIs that are built in several places."""

from __future__ import annotations

from kafkapy.coordinator.group.classic.classic_group import ClassicGroup
from kafkapy.coordinator.group.classic.classic_member import ClassicMember
from kafkapy.errors import Error
from kafkapy.protocol.messages.join_group import JoinGroupResponse
from kafkapy.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from kafkapy.protocol.messages.sync_group import SyncGroupResponse

# The member id in requests of a client that has none yet, and in responses that assign none.
NO_MEMBER_ID = ""


def join_error(member_id: str, error: Error) -> JoinGroupResponse:
    return JoinGroupResponse(error_code=error, member_id=member_id, protocol_name="")


def join_success(
    group: ClassicGroup,
    member: ClassicMember,
    *,
    leader: str | None = None,
    with_members: bool | None = None,
    skip_assignment: bool = False,
) -> JoinGroupResponse:
    """Returns the JoinGroup response for `member` with the current generation.

    The list of members is included if `member` is the leader; `with_members` overrides this. `leader` is the member id
    that the response names as the leader, by default the group's leader. `skip_assignment` is True for a leader that
    must not compute an assignment (KIP-814).
    """
    is_leader = group.leader_id == member.member_id
    members = []
    if is_leader if with_members is None else with_members:
        members = [
            JoinGroupResponse.JoinGroupResponseMember(
                member_id=other.member_id,
                group_instance_id=other.group_instance_id,
                metadata=other.metadata(group.protocol_name),
            )
            for other in group.members.values()
        ]
    return JoinGroupResponse(
        error_code=Error.NONE,
        generation_id=group.generation_id,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=leader if leader is not None else group.leader_id or "",
        skip_assignment=skip_assignment,
        member_id=member.member_id,
        members=members,
    )


def sync_error(error: Error) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=error)


def sync_success(group: ClassicGroup, member: ClassicMember) -> SyncGroupResponse:
    return SyncGroupResponse(
        error_code=Error.NONE,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        assignment=member.assignment,
    )


def leave_response(identity: LeaveGroupRequest.MemberIdentity, error: Error) -> LeaveGroupResponse.MemberResponse:
    return LeaveGroupResponse.MemberResponse(
        member_id=identity.member_id, group_instance_id=identity.group_instance_id, error_code=error
    )


def respond_to_join(member: ClassicMember, response: JoinGroupResponse) -> None:
    """Responds to the member's waiting JoinGroup, if there is one."""
    responder, member.join_responder = member.join_responder, None
    if responder is not None:
        responder(response)


def respond_to_sync(member: ClassicMember, response: SyncGroupResponse) -> bool:
    """Responds to the member's waiting SyncGroup and returns True; returns False if no SyncGroup waits."""
    responder, member.sync_responder = member.sync_responder, None
    if responder is None:
        return False
    responder(response)
    return True
