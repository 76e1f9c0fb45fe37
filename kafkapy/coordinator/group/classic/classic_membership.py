"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup of a classic group (KIP-62, 134, 229, 345, 394, 559, 814)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kafkapy.coordinator.group.classic.classic_group import ClassicGroup, GroupState
from kafkapy.coordinator.group.classic.classic_member import ClassicMember, SyncResponder
from kafkapy.coordinator.group.classic.classic_rebalance import ClassicRebalance
from kafkapy.coordinator.group.classic.classic_records import group_metadata_record, group_tombstone
from kafkapy.coordinator.group.classic.classic_responses import (
    NO_MEMBER_ID,
    join_error,
    join_success,
    leave_response,
    respond_to_join,
    respond_to_sync,
    sync_error,
    sync_success,
)
from kafkapy.coordinator.group.classic.join_call import JoinCall
from kafkapy.coordinator.group.group_config import GroupConfig
from kafkapy.coordinator.record import EMPTY_RESULT, CoordinatorRecord, CoordinatorResult, StateChange
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafkapy.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from kafkapy.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from kafkapy.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse


class ClassicMembership:
    """The handlers of JoinGroup, SyncGroup, Heartbeat and LeaveGroup. The object has no state: the groups belong to the
    shard, the state of one partition of `__consumer_offsets`. Only the thread that owns the shard may use it.
    """

    def __init__(self, rebalance: ClassicRebalance, config: GroupConfig, new_uuid: Callable[[], str]) -> None:
        self._rebalance = rebalance
        self._config = config
        self._new_uuid = new_uuid

    # -- JoinGroup

    def join(self, group: ClassicGroup, call: JoinCall) -> CoordinatorResult[None]:
        if not self._has_room(group, call.member_id):
            group.remove(call.member_id)
            return _refuse(call, NO_MEMBER_ID, Error.GROUP_MAX_SIZE_REACHED)
        if group.is_in(GroupState.DEAD):
            return _refuse(call, call.member_id, Error.COORDINATOR_NOT_AVAILABLE)
        if not group.supports(call.protocol_type, call.protocols):
            return _refuse(call, call.member_id, Error.INCONSISTENT_GROUP_PROTOCOL)
        if call.member_id == NO_MEMBER_ID:
            return self._join_new(group, call)
        if call.member_id in group.pending_members:
            return self._add_member(group, call, call.member_id)
        return self._join_existing(group, call)

    def _has_room(self, group: ClassicGroup, member_id: str) -> bool:
        """Returns True if group.max.size permits the JoinGroup of `member_id`. While a rebalance is being prepared,
        only the members that have already joined the next generation are counted."""
        maximum = self._config.max_group_size
        member = group.members.get(member_id)
        if group.is_in(GroupState.PREPARING_REBALANCE):
            return (member is not None and member.join_responder is not None) or group.joined_count < maximum
        if group.is_in(GroupState.COMPLETING_REBALANCE, GroupState.STABLE):
            return member is not None or len(group.members) < maximum
        return True

    def _join_new(self, group: ClassicGroup, call: JoinCall) -> CoordinatorResult[None]:
        if call.group_instance_id is not None:
            member_id = f"{call.group_instance_id}-{self._new_uuid()}"
            old_member_id = group.static_members.get(call.group_instance_id)
            if old_member_id is not None:
                return self._replace_static(group, call, old_member_id, member_id)
            return self._add_member(group, call, member_id)
        member_id = f"{call.client_id}-{self._new_uuid()}"
        if call.api_version >= JoinGroupRequest.FIRST_VERSION_WITH_MEMBER_ID_REQUIRED:
            self._rebalance.await_pending_member(group, member_id, call.session_timeout_ms)
            return _refuse(call, member_id, Error.MEMBER_ID_REQUIRED)
        return self._add_member(group, call, member_id)

    def _add_member(self, group: ClassicGroup, call: JoinCall, member_id: str) -> CoordinatorResult[None]:
        """Adds the member `member_id`, whose JoinGroup then waits for the next generation, and rebalances the group."""
        member = ClassicMember(
            member_id,
            call.group_instance_id,
            call.client_id,
            call.client_host,
            call.rebalance_timeout_ms,
            call.session_timeout_ms,
            call.protocol_type,
            call.protocols,
        )
        member.is_new = True
        member.join_responder = call.respond
        if group.is_in(GroupState.PREPARING_REBALANCE) and group.previous_state is GroupState.EMPTY:
            group.new_member_added = True
        group.add(member)
        self._rebalance.reschedule_heartbeat(group, member, self._config.new_member_join_timeout_ms)
        return self._rebalance.maybe_rebalance(group, f"adding new member {member_id}; client reason: {call.reason}")

    def _join_existing(self, group: ClassicGroup, call: JoinCall) -> CoordinatorResult[None]:
        """Handles the JoinGroup of a member: responds with the current generation if nothing has changed, and otherwise
        rebalances the group."""
        try:
            member = group.validate_member(call.member_id, call.group_instance_id)
        except ApiError as error:
            return _refuse(call, call.member_id, error.error)
        is_unchanged = member.protocols == call.protocols
        if group.is_in(GroupState.PREPARING_REBALANCE):
            return self._update_member(group, member, call, "rejoining")
        if group.is_in(GroupState.COMPLETING_REBALANCE) and is_unchanged:
            # The response was lost; the generation is still the same.
            return _respond(call, group, member)
        if group.is_in(GroupState.COMPLETING_REBALANCE):
            return self._update_member(group, member, call, "updating metadata")
        if group.is_in(GroupState.STABLE) and group.leader_id == member.member_id:
            # The leader asks for a rebalance by joining again, for example when topics have changed.
            return self._update_member(group, member, call, "leader rejoining")
        if group.is_in(GroupState.STABLE) and not is_unchanged:
            return self._update_member(group, member, call, "updating metadata")
        if group.is_in(GroupState.STABLE):
            return _respond(call, group, member)
        return _refuse(call, call.member_id, Error.UNKNOWN_MEMBER_ID)

    def _update_member(
        self, group: ClassicGroup, member: ClassicMember, call: JoinCall, what: str
    ) -> CoordinatorResult[None]:
        _adopt(member, call)
        reason = f"{what} member {member.member_id}; client reason: {call.reason}"
        return self._rebalance.maybe_rebalance(group, reason)

    def _replace_static(
        self, group: ClassicGroup, call: JoinCall, old_member_id: str, new_member_id: str
    ) -> CoordinatorResult[None]:
        """Handles the JoinGroup of a restarted static member: the member gets the id `new_member_id` and keeps its
        assignment, and requests with `old_member_id` are refused with FENCED_INSTANCE_ID."""
        assert call.group_instance_id is not None
        old_leader_id = group.leader_id
        member = group.members[old_member_id]
        respond_to_join(member, join_error(old_member_id, Error.FENCED_INSTANCE_ID))
        respond_to_sync(member, sync_error(Error.FENCED_INSTANCE_ID))
        self._rebalance.cancel_heartbeat(group, old_member_id)
        group.replace_static_member(call.group_instance_id, old_member_id, new_member_id)
        before = (member.protocols, member.rebalance_timeout_ms, member.session_timeout_ms)
        _adopt(member, call)
        self._rebalance.reschedule_heartbeat(group, member)
        if not group.is_in(GroupState.STABLE):
            return self._rebalance.maybe_rebalance(group, f"static member {call.group_instance_id} restarted")
        if group.select_protocol() != group.protocol_name:
            return self._rebalance.maybe_rebalance(group, f"static member {new_member_id} changes the protocol")
        # There is no rebalance: the new id is written and the member keeps its assignment.
        assignments = {other.member_id: other.assignment for other in group.members.values()}
        records = [group_metadata_record(group, assignments)]

        def on_committed(error: Error) -> None:
            if error is Error.NONE:
                self._respond_to_replaced(group, member, call, old_leader_id)
                return
            respond_to_join(member, join_error(NO_MEMBER_ID, error))
            if group.members.get(new_member_id) is member:
                member.protocols, member.rebalance_timeout_ms, member.session_timeout_ms = before
                group.replace_static_member(call.group_instance_id or "", new_member_id, old_member_id)
                self._rebalance.cancel_heartbeat(group, new_member_id)
                self._rebalance.reschedule_heartbeat(group, member)

        return CoordinatorResult(records, on_committed=on_committed, state_change=StateChange.ALREADY_APPLIED)

    def _respond_to_replaced(
        self, group: ClassicGroup, member: ClassicMember, call: JoinCall, old_leader_id: str | None
    ) -> None:
        if call.api_version >= JoinGroupResponse.FIRST_VERSION_WITH_SKIP_ASSIGNMENT:
            is_leader = group.leader_id == member.member_id
            respond_to_join(member, join_success(group, member, skip_assignment=is_leader))
        else:
            # A client older than KIP-814 must not compute an assignment, because nothing would use it. The response
            # therefore names the old leader.
            respond_to_join(member, join_success(group, member, leader=old_leader_id, with_members=False))

    # -- SyncGroup

    def sync(
        self, group: ClassicGroup, request: SyncGroupRequest, respond: SyncResponder
    ) -> CoordinatorResult[SyncGroupResponse]:
        """Handles SyncGroup. In a stable group the result has the response with the member's assignment.

        While the leader's assignment is awaited, the result has no response: `respond` is called once the assignment
        has been committed, or with an error if another rebalance begins first. Raises ApiError to refuse the request.
        """
        if group.is_in(GroupState.DEAD):
            raise ApiError(Error.COORDINATOR_NOT_AVAILABLE)
        member = group.validate_member(request.member_id, request.group_instance_id)
        if request.generation_id != group.generation_id:
            raise ApiError(Error.ILLEGAL_GENERATION)
        if (request.protocol_type is not None and request.protocol_type != group.protocol_type) or (
            request.protocol_name is not None and request.protocol_name != group.protocol_name
        ):
            raise ApiError(Error.INCONSISTENT_GROUP_PROTOCOL)
        if group.is_in(GroupState.EMPTY):
            raise ApiError(Error.UNKNOWN_MEMBER_ID)
        if group.is_in(GroupState.PREPARING_REBALANCE):
            raise ApiError(Error.REBALANCE_IN_PROGRESS)
        self._rebalance.synced(group, member.member_id)
        if group.is_in(GroupState.STABLE):
            return CoordinatorResult(response=sync_success(group, member))
        member.sync_responder = respond
        if group.leader_id != member.member_id:
            return EMPTY_RESULT
        return self._assign(group, {given.member_id: bytes(given.assignment) for given in request.assignments})

    def _assign(self, group: ClassicGroup, assignments: dict[str, bytes]) -> CoordinatorResult[SyncGroupResponse]:
        """Writes the leader's `assignments`, opaque bytes by member id, to the log.

        Once the record is committed, responds to all waiting SyncGroups.
        """
        generation_id = group.generation_id

        def on_committed(error: Error) -> None:
            if not group.is_in(GroupState.COMPLETING_REBALANCE) or group.generation_id != generation_id:
                return  # Another rebalance has begun, which has responded to all members.
            if error is not Error.NONE:
                self._rebalance.reset_assignment(group, error)
                self._rebalance.maybe_rebalance(group, f"the assignment could not be written: {error.name}")
                return
            for member in group.members.values():
                member.assignment = assignments.get(member.member_id, b"")
            self._rebalance.stabilize(group)

        record = group_metadata_record(group, assignments)
        return CoordinatorResult([record], on_committed=on_committed, state_change=StateChange.ON_COMMIT)

    # -- Heartbeat and LeaveGroup

    def heartbeat(self, group: ClassicGroup, request: HeartbeatRequest) -> CoordinatorResult[HeartbeatResponse]:
        if group.is_in(GroupState.DEAD):
            raise ApiError(Error.COORDINATOR_NOT_AVAILABLE)
        member = group.validate_member(request.member_id, request.group_instance_id)
        if request.generation_id != group.generation_id:
            raise ApiError(Error.ILLEGAL_GENERATION)
        if group.is_in(GroupState.EMPTY):
            raise ApiError(Error.UNKNOWN_MEMBER_ID)
        self._rebalance.reschedule_heartbeat(group, member)
        if group.is_in(GroupState.PREPARING_REBALANCE):
            raise ApiError(Error.REBALANCE_IN_PROGRESS)
        return CoordinatorResult(response=HeartbeatResponse())

    def leave(
        self, group: ClassicGroup, leaving: Sequence[LeaveGroupRequest.MemberIdentity]
    ) -> CoordinatorResult[LeaveGroupResponse]:
        if group.is_in(GroupState.DEAD):
            raise ApiError(Error.COORDINATOR_NOT_AVAILABLE)
        responses = []
        removed = 0
        for identity in leaving:
            error = self._leave_one(group, identity.member_id, identity.group_instance_id)
            removed += error is Error.NONE
            responses.append(leave_response(identity, error))
        response = LeaveGroupResponse(members=responses)
        if not removed:
            return CoordinatorResult(response=response)
        result = self._rebalance.after_removal(group, f"{removed} members left")
        return CoordinatorResult(result.records, response, result.on_committed, result.state_change)

    def _leave_one(self, group: ClassicGroup, member_id: str, group_instance_id: str | None) -> Error:
        """Removes one member or pending id, and returns the error code of that member in the LeaveGroup response.

        An empty `member_id` with an instance id names a static member by its instance id.
        """
        if member_id == NO_MEMBER_ID and group_instance_id is not None:
            # An administrator removes a static member by its instance id.
            member_id = group.static_members.get(group_instance_id, NO_MEMBER_ID)
            if member_id == NO_MEMBER_ID:
                return Error.UNKNOWN_MEMBER_ID
        if member_id in group.pending_members:
            group.remove(member_id)
            self._rebalance.cancel_heartbeat(group, member_id)
            return Error.NONE
        try:
            member = group.validate_member(member_id, group_instance_id)
        except ApiError as error:
            return error.error
        self._rebalance.remove_member(group, member)
        return Error.NONE

    # -- load, commit and unload

    def on_commit(self, group: ClassicGroup, member_id: str) -> None:
        """Renews the session of `member_id`, if it is a member, because an OffsetCommit counts as a heartbeat."""
        member = group.members.get(member_id)
        if member is not None:
            self._rebalance.reschedule_heartbeat(group, member)

    def on_loaded(self, group: ClassicGroup) -> None:
        for member in group.members.values():
            self._rebalance.reschedule_heartbeat(group, member)

    def on_unloaded(self, group: ClassicGroup) -> None:
        self._rebalance.close(group)

    def tombstones(self, group: ClassicGroup) -> list[CoordinatorRecord]:
        return [group_tombstone(group.group_id)]


def _adopt(member: ClassicMember, call: JoinCall) -> None:
    """Stores the protocols and timeouts of the JoinGroup request in the member. The member then waits for the next
    generation.
    """
    member.protocols = call.protocols
    member.session_timeout_ms = call.session_timeout_ms
    member.rebalance_timeout_ms = call.rebalance_timeout_ms
    member.join_responder = call.respond


def _refuse(call: JoinCall, member_id: str, error: Error) -> CoordinatorResult[None]:
    call.respond(join_error(member_id, error))
    return EMPTY_RESULT


def _respond(call: JoinCall, group: ClassicGroup, member: ClassicMember) -> CoordinatorResult[None]:
    call.respond(join_success(group, member))
    return EMPTY_RESULT
