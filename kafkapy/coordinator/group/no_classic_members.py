"""The classic APIs of groups that have no members of the classic protocol: share and streams groups."""

from __future__ import annotations

from collections.abc import Sequence

from kafkapy.coordinator.group.classic.classic_member import SyncResponder
from kafkapy.coordinator.group.classic.classic_responses import NO_MEMBER_ID, join_error
from kafkapy.coordinator.group.classic.join_call import JoinCall
from kafkapy.coordinator.group.group import Group
from kafkapy.coordinator.record import EMPTY_RESULT, CoordinatorResult
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafkapy.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from kafkapy.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse


class NoClassicMembers:
    """The base class of the handlers of share and streams groups: it refuses JoinGroup, SyncGroup, Heartbeat and
    LeaveGroup. It has no state."""

    def join(self, group: Group, call: JoinCall) -> CoordinatorResult[None]:
        call.respond(join_error(NO_MEMBER_ID, Error.INCONSISTENT_GROUP_PROTOCOL))
        return EMPTY_RESULT

    def sync(
        self, group: Group, request: SyncGroupRequest, respond: SyncResponder
    ) -> CoordinatorResult[SyncGroupResponse]:
        raise ApiError(Error.UNKNOWN_MEMBER_ID)

    def heartbeat(self, group: Group, request: HeartbeatRequest) -> CoordinatorResult[HeartbeatResponse]:
        raise ApiError(Error.UNKNOWN_MEMBER_ID)

    def leave(
        self, group: Group, leaving: Sequence[LeaveGroupRequest.MemberIdentity]
    ) -> CoordinatorResult[LeaveGroupResponse]:
        raise ApiError(Error.UNKNOWN_MEMBER_ID)

    def on_commit(self, group: Group, member_id: str) -> None:
        """Does nothing, because an OffsetCommit does not renew the session of a member of a share or streams group."""

    def on_unloaded(self, group: Group) -> None:
        """Does nothing when this broker stops leading the group's partition: no request of a member waits for a
        response."""
