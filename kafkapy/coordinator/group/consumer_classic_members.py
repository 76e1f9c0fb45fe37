"""Members of a consumer group that use the classic protocol: JoinGroup, SyncGroup, Heartbeat and LeaveGroup.

While a group changes its protocol, it has members of both protocols, and the broker computes the assignment. A classic
member gets its assignment by a JoinGroup and a SyncGroup, which do not wait for other members. When its assignment has
changed, the response to its next Heartbeat is REBALANCE_IN_PROGRESS, and the member joins again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kafkapy.coordinator.group.classic.classic_group import CONSUMER_PROTOCOL_TYPE
from kafkapy.coordinator.group.classic.classic_member import SyncResponder
from kafkapy.coordinator.group.classic.classic_responses import NO_MEMBER_ID, join_error, leave_response
from kafkapy.coordinator.group.classic.join_call import JoinCall
from kafkapy.coordinator.group.consumer_group import ConsumerGroup
from kafkapy.coordinator.group.consumer_member import ClassicMetadata, ConsumerMember
from kafkapy.coordinator.group.consumer_membership import ConsumerMembership, join_key, sync_key
from kafkapy.coordinator.group.consumer_progress import MemberChange, advance_member
from kafkapy.coordinator.group.consumer_records import group_tombstones
from kafkapy.coordinator.group.consumer_settings import ConsumerGroupSettings
from kafkapy.coordinator.group.embedded_protocol import Subscription, decode_subscription, encode_assignment
from kafkapy.coordinator.group.member_state import MemberState
from kafkapy.coordinator.record import EMPTY_RESULT, CoordinatorRecord, CoordinatorResult, StateChange
from kafkapy.coordinator.shard import ShardContext
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafkapy.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from kafkapy.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from kafkapy.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse


class ClassicMembers:
    """The handlers of requests of classic members. The object has no state: members change only when the records that
    a handler returns are replayed. Only the thread that owns it may use it."""

    def __init__(
        self,
        context: ShardContext,
        settings: ConsumerGroupSettings,
        membership: ConsumerMembership,
        new_uuid: Callable[[], str],
    ) -> None:
        self._context = context
        self._settings = settings
        self._membership = membership
        self._new_uuid = new_uuid

    # -- JoinGroup

    def join(self, group: ConsumerGroup, call: JoinCall) -> CoordinatorResult[None]:
        """Handles JoinGroup; responds through `call.respond` when the member's change is committed."""
        try:
            return self._join(group, call)
        except ApiError as error:
            call.respond(join_error(NO_MEMBER_ID, error.error))
            return EMPTY_RESULT

    def _join(self, group: ConsumerGroup, call: JoinCall) -> CoordinatorResult[None]:
        """Handles JoinGroup as `join` does, but raises ApiError if the request is refused."""
        self._membership.check_room(group, call.member_id, is_joining=True)
        _check_protocols(group, call)
        if call.member_id == NO_MEMBER_ID and call.group_instance_id is None:
            member_id = f"{call.client_id}-{self._new_uuid()}"
            if call.api_version >= JoinGroupRequest.FIRST_VERSION_WITH_MEMBER_ID_REQUIRED:
                call.respond(join_error(member_id, Error.MEMBER_ID_REQUIRED))
                return EMPTY_RESULT
            call = call._replace(member_id=member_id)
        try:
            subscription = decode_subscription(call.protocols[0][1], self._settings.image().topics)
        except ValueError:
            raise ApiError(Error.UNKNOWN_SERVER_ERROR) from None  # Apache Kafka responds with this error.
        records: list[CoordinatorRecord] = []
        change = self._member_change(group, call, subscription, records)
        if change.replaced is not None and self._membership.is_last_consumer_protocol_member(group, change.replaced):
            downgraded: CoordinatorResult[None] = self._membership.downgrade(
                group, [change.replaced], replacement=change.after
            )
            on_committed = _join_callback(call, change.after.member_id, group.group_epoch)
            return CoordinatorResult(
                downgraded.records, on_committed=on_committed, state_change=StateChange.ALREADY_APPLIED
            )
        member = advance_member(group, change, self._settings, self._context.clock.wall_ms(), records)
        self._membership.update_timers(
            group, member, has_new_assignment=member.current_assignment != change.before.current_assignment
        )
        self._await_sync(group.group_id, member)
        return CoordinatorResult(records, on_committed=_join_callback(call, member.member_id, member.member_epoch))

    def _member_change(
        self, group: ConsumerGroup, call: JoinCall, subscription: Subscription, records: list[CoordinatorRecord]
    ) -> MemberChange:
        """Returns the member before and after the JoinGroup.

        If a static member returns with a new member id, also appends to `records` the records that replace the old id.
        """
        replaced = None
        member_id = call.member_id
        before = group.members.get(member_id)
        if call.group_instance_id is not None:
            owner_id = group.static_members.get(call.group_instance_id)
            if member_id != NO_MEMBER_ID:
                before = group.static_member(call.group_instance_id, member_id)
            else:
                member_id = f"{call.group_instance_id}-{self._new_uuid()}"
                if owner_id is not None:
                    replaced = owner_id
                    before = self._membership.replace_static(group, group.members[owner_id], member_id, records)
        if before is None:
            before = ConsumerMember(member_id)
        after = before._replace(
            instance_id=call.group_instance_id,
            rack_id=subscription.rack_id,
            client_id=call.client_id,
            client_host=call.client_host,
            rebalance_timeout_ms=call.rebalance_timeout_ms,
            subscribed_topic_names=subscription.topics,
            subscribed_topic_regex="",
            server_assignor=None,
            classic=ClassicMetadata(call.session_timeout_ms, tuple(call.protocols)),
        )
        return MemberChange(before, after, subscription.owned, replaced)

    def _await_sync(self, group_id: str, member: ConsumerMember) -> None:
        member_id = member.member_id
        self._context.cancel(join_key(group_id, member_id))
        self._context.schedule(
            sync_key(group_id, member_id),
            member.rebalance_timeout_ms,
            lambda: self._membership.expire(group_id, member_id, "it did not sync in time"),
        )

    # -- SyncGroup

    def sync(
        self, group: ConsumerGroup, request: SyncGroupRequest, respond: SyncResponder
    ) -> CoordinatorResult[SyncGroupResponse]:
        """Handles SyncGroup; responds at once, because the broker has the assignment already."""
        member, classic = _classic_member(group, request.member_id, request.group_instance_id, request.generation_id)
        if (request.protocol_type is not None and request.protocol_type != CONSUMER_PROTOCOL_TYPE) or (
            request.protocol_name is not None and request.protocol_name != classic.protocols[0][0]
        ):
            raise ApiError(Error.INCONSISTENT_GROUP_PROTOCOL)
        if member.member_epoch < group.group_epoch and member.state is not MemberState.UNREVOKED:
            raise ApiError(Error.REBALANCE_IN_PROGRESS)
        self._context.cancel(sync_key(group.group_id, member.member_id))
        self._membership.reschedule_session(group.group_id, member)
        topics = self._settings.image().topics
        version = decode_subscription(classic.protocols[0][1], topics).version
        response = SyncGroupResponse(
            protocol_type=CONSUMER_PROTOCOL_TYPE,
            protocol_name=classic.protocols[0][0],
            assignment=encode_assignment(member.assigned, version, topics),
        )
        return CoordinatorResult(response=response)

    # -- Heartbeat

    def heartbeat(self, group: ConsumerGroup, request: HeartbeatRequest) -> CoordinatorResult[HeartbeatResponse]:
        member, _ = _classic_member(group, request.member_id, request.group_instance_id, request.generation_id)
        self._membership.reschedule_session(group.group_id, member)
        if not _must_join_again(group, member):
            return CoordinatorResult(response=HeartbeatResponse())
        group_id, member_id = group.group_id, member.member_id
        self._context.schedule_unless_scheduled(
            join_key(group_id, member_id),
            member.rebalance_timeout_ms,
            lambda: self._membership.expire(group_id, member_id, "it did not join again in time"),
        )
        raise ApiError(Error.REBALANCE_IN_PROGRESS)

    # -- LeaveGroup

    def leave(
        self, group: ConsumerGroup, leaving: Sequence[LeaveGroupRequest.MemberIdentity]
    ) -> CoordinatorResult[LeaveGroupResponse]:
        """Removes the members in `leaving`, of the classic or of the consumer protocol; the response has a result for
        each one. An administrator names a static member by its instance id alone, without a member id."""
        responses, gone = [], {}
        for identity in leaving:
            error = Error.NONE
            try:
                member = _leaving_member(group, identity)
                gone[member.member_id] = member
            except ApiError as failure:
                error = failure.error
            responses.append(leave_response(identity, error))
        return self._membership.remove(group, gone.values(), "it left", LeaveGroupResponse(members=responses))

    # -- load, commit and unload

    def on_commit(self, group: ConsumerGroup, member_id: str) -> None:
        """Does nothing: a commit does not renew the session of a member of a consumer group."""

    def on_loaded(self, group: ConsumerGroup) -> None:
        self._membership.start_timers(group)

    def on_unloaded(self, group: ConsumerGroup) -> None:
        """Does nothing when this broker stops leading the group's partition: JoinGroup and SyncGroup of the classic
        members of a consumer group never wait for other members."""

    def tombstones(self, group: ConsumerGroup) -> list[CoordinatorRecord]:
        return group_tombstones(group)


def _join_callback(call: JoinCall, member_id: str, generation_id: int) -> Callable[[Error], None]:
    """Returns the callback that responds to JoinGroup when the member's change is committed or has failed. The response
    names no member as the leader, because the broker computes the assignment."""
    response = JoinGroupResponse(
        generation_id=generation_id,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        protocol_name=call.protocols[0][0],
        member_id=member_id,
    )
    return lambda error: call.respond(response if error is Error.NONE else join_error(NO_MEMBER_ID, error))


def _leaving_member(group: ConsumerGroup, identity: LeaveGroupRequest.MemberIdentity) -> ConsumerMember:
    if identity.group_instance_id is None:
        return group.member(identity.member_id)
    owner_id = group.static_members.get(identity.group_instance_id)
    return group.static_member(identity.group_instance_id, identity.member_id or owner_id or "")


def _check_protocols(group: ConsumerGroup, call: JoinCall) -> None:
    """Raises ApiError INCONSISTENT_GROUP_PROTOCOL if the member's protocols would prevent the group from becoming a
    classic group again. The broker does not use the protocols themselves."""
    names = {name for name, _ in call.protocols}
    for member in group.members.values():
        if member.classic is not None and member.member_id != call.member_id:
            names &= {name for name, _ in member.classic.protocols}
    if call.protocol_type != CONSUMER_PROTOCOL_TYPE or not names:
        raise ApiError(Error.INCONSISTENT_GROUP_PROTOCOL)


def _classic_member(
    group: ConsumerGroup, member_id: str, instance_id: str | None, generation_id: int
) -> tuple[ConsumerMember, ClassicMetadata]:
    member = group.member(member_id) if instance_id is None else group.static_member(instance_id, member_id)
    if member.classic is None:
        raise ApiError(Error.UNKNOWN_MEMBER_ID)
    if generation_id != member.member_epoch:
        raise ApiError(Error.ILLEGAL_GENERATION)
    return member, member.classic


def _must_join_again(group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Returns True if the response to a heartbeat has to make the classic member join again.

    This is the case if the member's epoch is below the group epoch, if the member has to revoke partitions, or if it
    has waited for partitions of its target, which other members have released now.
    """
    if member.member_epoch < group.group_epoch or member.state is MemberState.UNREVOKED:
        return True
    return member.state is MemberState.UNRELEASED and not group.waits_for_others(member)
