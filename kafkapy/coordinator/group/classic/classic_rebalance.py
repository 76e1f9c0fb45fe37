"""The rebalance of a classic group from one generation to the next. Its timers have these keys:

join-<group>              ends the join phase, after the initial delay or the rebalance timeout
sync-<group>              removes members that have joined but not sent SyncGroup
heartbeat-<group>-<id>    ends the session of a member, or drops a member id that no client has used in time
"""

from __future__ import annotations

import logging

from kafkapy.coordinator.group.classic.classic_group import REBALANCEABLE_STATES, ClassicGroup, GroupState
from kafkapy.coordinator.group.classic.classic_member import ClassicMember
from kafkapy.coordinator.group.classic.classic_records import group_metadata_record
from kafkapy.coordinator.group.classic.classic_responses import (
    NO_MEMBER_ID,
    join_error,
    join_success,
    respond_to_join,
    respond_to_sync,
    sync_error,
    sync_success,
)
from kafkapy.coordinator.group.group_config import GroupConfig
from kafkapy.coordinator.record import EMPTY_RESULT, CoordinatorResult, StateChange
from kafkapy.coordinator.shard import ShardContext
from kafkapy.errors import Error

logger = logging.getLogger("kafka.coordinator.group")


class ClassicRebalance:
    """Makes the transitions of groups between states, and sends the responses to their members. The object itself has
    no state. Only the thread that owns it may use it."""

    def __init__(self, context: ShardContext, config: GroupConfig) -> None:
        self._context = context
        self._config = config

    # -- the join phase

    def maybe_rebalance(self, group: ClassicGroup, reason: str) -> CoordinatorResult[None]:
        """Handles a change of membership for `reason`: starts a rebalance, or completes the rebalance in progress if
        all members have joined."""
        if group.state in REBALANCEABLE_STATES:
            return self.prepare(group, reason)
        return self.maybe_complete_join(group)

    def prepare(self, group: ClassicGroup, reason: str) -> CoordinatorResult[None]:
        """Starts a rebalance for `reason`. The join phase of a group that was empty lasts at least
        group.initial.rebalance.delay.ms, so that more members can join."""
        if group.is_in(GroupState.COMPLETING_REBALANCE):
            # The members no longer get the assignment that they wait for.
            for member in group.members.values():
                member.assignment = b""
            self._respond_to_all_syncs(group, Error.REBALANCE_IN_PROGRESS)
        self._context.cancel(_sync_key(group))
        is_initial = group.is_in(GroupState.EMPTY)
        group.transition_to(GroupState.PREPARING_REBALANCE, self._context.clock.wall_ms())
        logger.info(
            "Preparing to rebalance group %s with old generation %d (reason: %s).",
            group.group_id,
            group.generation_id,
            reason,
        )
        if is_initial:
            # Members of a new group often join at about the same time: wait for them, and longer while more members
            # join.
            delay_ms = self._config.initial_rebalance_delay_ms
            remaining_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
            self._schedule_initial(group, delay_ms, remaining_ms)
            return EMPTY_RESULT
        if group.has_all_members_joined:
            return self.complete_join(group)
        self._schedule_join(group)
        return EMPTY_RESULT

    def maybe_complete_join(self, group: ClassicGroup) -> CoordinatorResult[None]:
        if (
            group.is_in(GroupState.PREPARING_REBALANCE)
            and group.previous_state is not GroupState.EMPTY
            and group.has_all_members_joined
        ):
            return self.complete_join(group)
        return EMPTY_RESULT

    def complete_join(self, group: ClassicGroup) -> CoordinatorResult[None]:
        """Ends the join phase: removes the dynamic members that have not joined again, begins the next generation, and
        responds to the members that have joined.

        If only static members are left and none of them has joined again, the join phase continues instead.
        """
        self._context.cancel(_join_key(group))
        if group.is_in(GroupState.DEAD):
            return EMPTY_RESULT
        for member in [m for m in group.members.values() if m.join_responder is None and not m.is_static]:
            logger.info("Group %s removed member %s, which did not rejoin.", group.group_id, member.member_id)
            group.remove(member.member_id)
            self.cancel_heartbeat(group, member.member_id)
        if not group.elect_joined_leader() and group.members:
            # Only static members are left, and none has joined again yet. They are removed when their sessions expire.
            self._schedule_join(group)
            return EMPTY_RESULT
        group.init_next_generation(self._context.clock.wall_ms())
        if group.is_in(GroupState.EMPTY):
            logger.info("Group %s with generation %d is now empty.", group.group_id, group.generation_id)
            record = group_metadata_record(group, {})
            return CoordinatorResult([record], state_change=StateChange.ALREADY_APPLIED)
        logger.info(
            "Stabilized group %s generation %d with %d members.",
            group.group_id,
            group.generation_id,
            len(group.members),
        )
        for member in list(group.members.values()):
            respond_to_join(member, join_success(group, member))
            member.is_new = False
            group.pending_sync_members.add(member.member_id)
            self.reschedule_heartbeat(group, member)
        self._schedule_pending_sync(group)
        return EMPTY_RESULT

    def _schedule_initial(self, group: ClassicGroup, delay_ms: int, remaining_ms: int) -> None:
        """Starts the timer of the join phase of a group that was empty.

        When `delay_ms` have passed, the join phase ends, unless members have joined in that time and `remaining_ms` is
        above 0; then the timer starts again. `remaining_ms` limits the sum of these further delays.
        """

        def expire() -> CoordinatorResult[None]:
            if not group.new_member_added or remaining_ms == 0:
                return self.complete_join(group)
            group.new_member_added = False
            next_delay_ms = min(self._config.initial_rebalance_delay_ms, remaining_ms)
            self._schedule_initial(group, next_delay_ms, max(remaining_ms - delay_ms, 0))
            return EMPTY_RESULT

        self._context.schedule(_join_key(group), delay_ms, expire)

    def _schedule_join(self, group: ClassicGroup) -> None:
        self._context.schedule(_join_key(group), group.rebalance_timeout_ms, lambda: self.complete_join(group))

    # -- the sync phase

    def _schedule_pending_sync(self, group: ClassicGroup) -> None:
        """Starts the timer that removes the members that do not send SyncGroup within the rebalance timeout."""
        generation_id = group.generation_id

        def expire() -> CoordinatorResult[None]:
            if group.generation_id != generation_id or not group.is_in(
                GroupState.COMPLETING_REBALANCE, GroupState.STABLE
            ):
                return EMPTY_RESULT
            late = list(group.pending_sync_members)
            if not late:
                return EMPTY_RESULT
            for member_id in late:
                group.remove(member_id)
                self.cancel_heartbeat(group, member_id)
            return self.prepare(group, f"{len(late)} members did not sync in time")

        self._context.schedule(_sync_key(group), group.rebalance_timeout_ms, expire)

    def synced(self, group: ClassicGroup, member_id: str) -> None:
        """Records that the member has sent SyncGroup. After the last member's SyncGroup, cancels the timer that would
        remove members without one."""
        group.pending_sync_members.discard(member_id)
        if not group.pending_sync_members:
            self._context.cancel(_sync_key(group))

    def stabilize(self, group: ClassicGroup) -> None:
        """Enters Stable: sends each waiting member its assignment and renews the session of these members.

        The sessions are renewed because a member sends no heartbeats while it waits.
        """
        group.transition_to(GroupState.STABLE, self._context.clock.wall_ms())
        for member in list(group.members.values()):
            if respond_to_sync(member, sync_success(group, member)):
                self.reschedule_heartbeat(group, member)

    def reset_assignment(self, group: ClassicGroup, error: Error) -> None:
        for member in group.members.values():
            member.assignment = b""
        self._respond_to_all_syncs(group, error)

    def _respond_to_all_syncs(self, group: ClassicGroup, error: Error) -> None:
        for member in list(group.members.values()):
            if respond_to_sync(member, sync_error(error)):
                self.reschedule_heartbeat(group, member)

    # -- sessions

    def reschedule_heartbeat(self, group: ClassicGroup, member: ClassicMember, timeout_ms: int | None = None) -> None:
        member_id = member.member_id
        self._context.schedule(
            _heartbeat_key(group, member_id),
            member.session_timeout_ms if timeout_ms is None else timeout_ms,
            lambda: self.expire_heartbeat(group, member_id),
        )

    def await_pending_member(self, group: ClassicGroup, member_id: str, timeout_ms: int) -> None:
        """Adds a member id that a client has received, but not joined with. The id is removed if no client joins with
        it within `timeout_ms`."""
        group.pending_members.add(member_id)
        self._context.schedule(
            _heartbeat_key(group, member_id), timeout_ms, lambda: self.expire_heartbeat(group, member_id)
        )

    def cancel_heartbeat(self, group: ClassicGroup, member_id: str) -> None:
        self._context.cancel(_heartbeat_key(group, member_id))

    def cancel_all(self, group: ClassicGroup) -> None:
        self._context.cancel(_join_key(group))
        self._context.cancel(_sync_key(group))
        for member_id in [*group.members, *group.pending_members]:
            self.cancel_heartbeat(group, member_id)

    def close(self, group: ClassicGroup) -> None:
        """Ends a group whose partition this broker no longer leads.

        Requests that wait are answered with NOT_COORDINATOR, so that the clients look for the new coordinator.
        """
        group.transition_to(GroupState.DEAD, self._context.clock.wall_ms())
        for member in list(group.members.values()):
            respond_to_join(member, join_error(member.member_id, Error.NOT_COORDINATOR))
            respond_to_sync(member, sync_error(Error.NOT_COORDINATOR))

    def expire_heartbeat(self, group: ClassicGroup, member_id: str) -> CoordinatorResult[None]:
        if group.is_in(GroupState.DEAD):
            return EMPTY_RESULT
        if member_id in group.pending_members:
            group.remove(member_id)
            return self.maybe_complete_join(group)
        member = group.members.get(member_id)
        if member is None or member.has_satisfied_heartbeat:
            return EMPTY_RESULT
        logger.info("Member %s in group %s has failed, removing it from the group.", member_id, group.group_id)
        self.remove_member(group, member)
        return self.after_removal(group, "a member's session expired")

    def remove_member(self, group: ClassicGroup, member: ClassicMember) -> None:
        """Removes the member, and answers its waiting request with UNKNOWN_MEMBER_ID, so that a client that is alive
        joins again."""
        self.cancel_heartbeat(group, member.member_id)
        group.remove(member.member_id)
        respond_to_join(member, join_error(NO_MEMBER_ID, Error.UNKNOWN_MEMBER_ID))
        respond_to_sync(member, sync_error(Error.UNKNOWN_MEMBER_ID))

    def after_removal(self, group: ClassicGroup, reason: str) -> CoordinatorResult[None]:
        if group.is_in(GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
            return self.maybe_rebalance(group, reason)
        return self.maybe_complete_join(group)


def _join_key(group: ClassicGroup) -> str:
    return f"join-{group.group_id}"


def _sync_key(group: ClassicGroup) -> str:
    return f"sync-{group.group_id}"


def _heartbeat_key(group: ClassicGroup, member_id: str) -> str:
    return f"heartbeat-{group.group_id}-{member_id}"
