"""ConsumerGroupHeartbeat of a consumer group (KIP-848): joins, heartbeats, leaves, and the timers of its members.

session     removes a member that sends no heartbeats
rebalance   removes a member that does not revoke its partitions within its rebalance timeout
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable
from collections.abc import Set as AbstractSet
from typing import TypeVar

from kafkapy.coordinator.group.assignment import Assignment, topic_entries
from kafkapy.coordinator.group.classic.classic_group import ClassicGroup
from kafkapy.coordinator.group.classic.classic_records import group_tombstone
from kafkapy.coordinator.group.consumer_group import ConsumerGroup, ResolvedRegex
from kafkapy.coordinator.group.consumer_member import LEAVE_EPOCH, STATIC_LEAVE_EPOCH, ConsumerMember, partitions_of
from kafkapy.coordinator.group.consumer_migration import GroupMigration
from kafkapy.coordinator.group.consumer_progress import MemberChange, advance_member, epoch_after_removal
from kafkapy.coordinator.group.consumer_records import (
    current_record,
    group_epoch_record,
    member_tombstones,
    regex_record,
    subscription_record,
    target_record,
)
from kafkapy.coordinator.group.consumer_settings import ConsumerGroupSettings
from kafkapy.coordinator.group.consumer_topics import metadata_hash
from kafkapy.coordinator.group.group import Group
from kafkapy.coordinator.group.member_group import existing_group, of_kind
from kafkapy.coordinator.group.member_state import MemberState
from kafkapy.coordinator.group.topic_pattern import PatternError, TopicPattern
from kafkapy.coordinator.record import EMPTY_RESULT, CoordinatorRecord, CoordinatorResult
from kafkapy.coordinator.shard import ShardContext
from kafkapy.errors import ApiError, Error
from kafkapy.named_tuple import NamedTuple
from kafkapy.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse

logger = logging.getLogger("kafka.coordinator.group")

R = TypeVar("R")

# The shortest time between two evaluations of the expressions of a group whose topics change.
REGEX_REFRESH_INTERVAL_MS = 10_000
# The time after which expressions are evaluated again although topics have not changed, because permissions may have.
PERMISSIONS_REFRESH_INTERVAL_MS = 600_000
# Takes topic names; returns the names of the topics that the client may not describe.
DeniedTopics = Callable[[AbstractSet[str]], AbstractSet[str]]
# (expressions, topic names, callback): evaluates the expressions, possibly on another thread, and calls the callback on
# the thread that owns the groups, with the topics that each expression matches.
ResolveRegexes = Callable[[list[str], list[str], Callable[[dict[str, frozenset[str]]], None]], None]


class ConsumerHeartbeatCall(NamedTuple):
    """One validated ConsumerGroupHeartbeat.

    A field that is None, or a timeout of -1, has not changed since the member's previous request.
    `denied_topics(names)` returns those of the topics `names` that the client may not describe; the member's regular
    expression does not match these topics. It is None if the client may describe all topics.
    """

    group_id: str
    member_id: str
    member_epoch: int
    instance_id: str | None
    rack_id: str | None
    rebalance_timeout_ms: int
    client_id: str
    client_host: str
    subscribed_topic_names: list[str] | None
    subscribed_topic_regex: str | None
    server_assignor: str | None
    owned: Assignment | None
    denied_topics: DeniedTopics | None = None

    @property
    def is_full(self) -> bool:
        """True if the member joins or the request contains all fields. The response then contains the assignment even
        if it has not changed."""
        has_subscription = self.subscribed_topic_names is not None or self.subscribed_topic_regex is not None
        return self.member_epoch == 0 or (
            self.rebalance_timeout_ms != -1 and has_subscription and self.owned is not None
        )


class ConsumerMembership:
    """The handler of the heartbeats of consumer groups. Only the thread that owns it may use it.

    `groups` belongs to the shard, the state of one partition of `__consumer_offsets`. A method reads the group and
    returns the records of the change; the members change when these records are replayed.
    """

    def __init__(
        self,
        context: ShardContext,
        settings: ConsumerGroupSettings,
        groups: dict[str, Group],
        migration: GroupMigration,
        resolve_regexes: ResolveRegexes,
    ) -> None:
        self._context = context
        self._settings = settings
        self._groups = groups
        self._migration = migration
        self._resolve_regexes = resolve_regexes

    # -- heartbeats

    def heartbeat(self, call: ConsumerHeartbeatCall) -> CoordinatorResult[ConsumerGroupHeartbeatResponse]:
        """Handles ConsumerGroupHeartbeat; raises ApiError if the request is refused."""
        if call.member_epoch in (LEAVE_EPOCH, STATIC_LEAVE_EPOCH):
            return self._leave(self.existing(call.group_id), call)
        records: list[CoordinatorRecord] = []
        group = self._group_for(call, records)
        self.check_room(group, call.member_id, is_joining=call.member_epoch == 0)
        change = self._member_change(group, call, records)
        member = advance_member(group, change, self._settings, self._context.clock.wall_ms(), records)
        self.update_timers(
            group, member, has_new_assignment=member.current_assignment != change.before.current_assignment
        )
        self._start_regex_evaluation(group, member, call.denied_topics)
        has_assignment = call.is_full or partitions_of(member.assigned) != partitions_of(change.before.assigned)
        response = ConsumerGroupHeartbeatResponse(
            member_id=member.member_id,
            member_epoch=member.member_epoch,
            heartbeat_interval_ms=self._settings.heartbeat_interval_ms(group.group_id),
            assignment=_assignment(member) if has_assignment else None,
        )
        return CoordinatorResult(records, response)

    def existing(self, group_id: str) -> ConsumerGroup:
        return existing_group(self._groups, group_id, ConsumerGroup)

    def _group_for(self, call: ConsumerHeartbeatCall, records: list[CoordinatorRecord]) -> ConsumerGroup:
        """Returns the group of the request; raises ApiError GROUP_ID_NOT_FOUND if it is not a consumer group.

        For a member that joins, creates the group, replaces an empty classic group, or upgrades a classic group; the
        records of this change are appended to `records`. A group that is created or upgraded here is used for this
        request only: the replay of the records creates the group in the shard.
        """
        group = self._groups.get(call.group_id)
        if isinstance(group, ConsumerGroup):
            return group
        if group is None and call.member_epoch == 0:
            return ConsumerGroup(call.group_id)
        if group is None:
            raise ApiError(Error.GROUP_ID_NOT_FOUND, f"Consumer group {call.group_id} not found.")
        if call.member_epoch != 0 or not isinstance(group, ClassicGroup):
            return of_kind(group, ConsumerGroup)
        if not group.members:
            records.append(group_tombstone(call.group_id))
            return ConsumerGroup(call.group_id)
        upgraded = self._migration.upgrade(group, records)
        self.start_timers(upgraded)
        return upgraded

    def check_room(self, group: ConsumerGroup, member_id: str, *, is_joining: bool) -> None:
        maximum = self._settings.max_group_size
        if is_joining and member_id not in group.members and len(group.members) >= maximum:
            message = f"The consumer group has reached its maximum capacity of {maximum} members."
            raise ApiError(Error.GROUP_MAX_SIZE_REACHED, message)

    def _member_change(
        self, group: ConsumerGroup, call: ConsumerHeartbeatCall, records: list[CoordinatorRecord]
    ) -> MemberChange:
        """Returns the member before and after the heartbeat.

        If a static member returns with a new member id, also appends to `records` the records that replace the old id.
        """
        if call.instance_id is None:
            before = self._dynamic_member(group, call)
        elif call.member_epoch == 0:
            return self._static_join(group, call, records)
        else:
            before = group.static_member(call.instance_id, call.member_id)
            _validate_epoch(before, call)
        return MemberChange(before, self._with_changes(group, before, call), call.owned)

    def _dynamic_member(self, group: ConsumerGroup, call: ConsumerHeartbeatCall) -> ConsumerMember:
        if call.member_epoch == 0:
            return group.members.get(call.member_id) or ConsumerMember(call.member_id)
        member = group.member(call.member_id)
        _validate_epoch(member, call)
        return member

    def _static_join(
        self, group: ConsumerGroup, call: ConsumerHeartbeatCall, records: list[CoordinatorRecord]
    ) -> MemberChange:
        """Returns the member before and after the join of a static member; records of a changed member id are appended
        to `records`. Raises ApiError UNRELEASED_INSTANCE_ID if another member of the consumer protocol has the instance
        id and has not left."""
        assert call.instance_id is not None
        owner_id = group.static_members.get(call.instance_id)
        if owner_id is None or owner_id == call.member_id:
            before = group.members.get(call.member_id) or ConsumerMember(call.member_id)
            return MemberChange(before, self._with_changes(group, before, call), call.owned)
        owner = group.members[owner_id]
        if owner.member_epoch != STATIC_LEAVE_EPOCH and owner.classic is None:
            message = (
                f"Static member {call.member_id} with instance id {call.instance_id} cannot join the group because "
                f"the instance id is owned by {owner_id} member."
            )
            raise ApiError(Error.UNRELEASED_INSTANCE_ID, message)
        before = self.replace_static(group, owner, call.member_id, records)
        return MemberChange(before, self._with_changes(group, before, call), call.owned, replaced=owner_id)

    def replace_static(
        self, group: ConsumerGroup, owner: ConsumerMember, member_id: str, records: list[CoordinatorRecord]
    ) -> ConsumerMember:
        """Returns the static member `owner` with the new `member_id` and epoch 0, and appends the records of this
        change to `records`.

        The target and the partitions of the old member id move to the new one, and the old id's timers are cancelled.
        """
        self.cancel_timers(group.group_id, owner.member_id)
        member = owner._replace(member_id=member_id, member_epoch=0, previous_member_epoch=0)
        records += member_tombstones(group.group_id, owner.member_id)
        records.append(subscription_record(group.group_id, member))
        records.append(target_record(group.group_id, member_id, group.target.get(owner.member_id, {})))
        records.append(current_record(group.group_id, member))
        return member

    def _with_changes(
        self, group: ConsumerGroup, member: ConsumerMember, call: ConsumerHeartbeatCall
    ) -> ConsumerMember:
        """Returns the member with the fields that the request contains. A field that is None, or a timeout of -1,
        changes nothing.

        Raises ApiError INVALID_REGULAR_EXPRESSION if the request has a new, invalid expression.
        """
        names, regex = call.subscribed_topic_names, call.subscribed_topic_regex
        if regex and regex != member.subscribed_topic_regex and regex not in group.regexes:
            check_regex(regex)
        return member._replace(
            instance_id=member.instance_id if call.instance_id is None else call.instance_id,
            rack_id=member.rack_id if call.rack_id is None else call.rack_id,
            rebalance_timeout_ms=(
                member.rebalance_timeout_ms if call.rebalance_timeout_ms == -1 else call.rebalance_timeout_ms
            ),
            server_assignor=member.server_assignor if call.server_assignor is None else call.server_assignor,
            subscribed_topic_names=member.subscribed_topic_names if names is None else tuple(sorted(set(names))),
            subscribed_topic_regex=member.subscribed_topic_regex if regex is None else regex,
            client_id=call.client_id,
            client_host=call.client_host,
            classic=None,
        )

    # -- leaving

    def _leave(
        self, group: ConsumerGroup, call: ConsumerHeartbeatCall
    ) -> CoordinatorResult[ConsumerGroupHeartbeatResponse]:
        """Removes the member; a static member that leaves temporarily stays in the group with the epoch -2."""
        response = ConsumerGroupHeartbeatResponse(member_id=call.member_id, member_epoch=call.member_epoch)
        if call.instance_id is None:
            return self.remove(group, [group.member(call.member_id)], "it left", response)
        member = group.static_member(call.instance_id, call.member_id)
        if call.member_epoch == LEAVE_EPOCH:
            return self.remove(group, [member], "it left", response)
        # The member is expected to return: it stays in the group until its session ends.
        away = member._replace(
            member_epoch=STATIC_LEAVE_EPOCH,
            state=MemberState.STABLE,
            assigned={topic_id: dict.fromkeys(partitions, 0) for topic_id, partitions in member.assigned.items()},
            pending_revocation={},
        )
        self._context.cancel(_rebalance_key(group.group_id, member.member_id))
        return CoordinatorResult([current_record(group.group_id, away)], response)

    def remove(
        self, group: ConsumerGroup, members: Iterable[ConsumerMember], why: str, response: R | None = None
    ) -> CoordinatorResult[R]:
        """Returns the records that remove `members`, with `response` for the client, and cancels the members' timers.

        If only classic members are left and the configuration permits it, the group becomes a classic group. `why` is
        the reason that is logged.
        """
        gone = [member.member_id for member in members]
        if not gone:
            return CoordinatorResult(response=response)
        for member_id in gone:
            logger.info("Member %s of group %s is removed: %s.", member_id, group.group_id, why)
            self.cancel_timers(group.group_id, member_id)
        if self._migration.is_downgrade_due(group, gone):
            return self.downgrade(group, gone, response)
        records = [record for member_id in gone for record in member_tombstones(group.group_id, member_id)]
        records += epoch_after_removal(group, gone, self._settings)

        def on_committed(error: Error) -> None:
            if error is Error.NONE:
                return
            for member_id in gone:
                if member_id in group.members:  # The removal was not written, so the member stays.
                    self.reschedule_session(group.group_id, group.members[member_id])

        return CoordinatorResult(records, response, on_committed)

    def is_last_consumer_protocol_member(self, group: ConsumerGroup, member_id: str) -> bool:
        """Returns True if the group becomes a classic group when the member `member_id` is replaced by a classic
        member."""
        if group.members[member_id].classic is not None:
            return False
        is_alone = len(group.members) == 1 and self._settings.can_downgrade
        return is_alone or self._migration.is_downgrade_due(group, [member_id])

    def downgrade(
        self,
        group: ConsumerGroup,
        gone: Collection[str],
        response: R | None = None,
        replacement: ConsumerMember | None = None,
    ) -> CoordinatorResult[R]:
        for member_id in group.members:
            self.cancel_timers(group.group_id, member_id)
        return self._migration.downgrade(group, gone, self._groups, response, replacement=replacement)

    # -- timers

    def start_timers(self, group: ConsumerGroup) -> None:
        """Starts the timers of a group that was read from the log or upgraded. Each member has one session timeout to
        send a heartbeat."""
        for member in group.members.values():
            self.update_timers(group, member, has_new_assignment=True)

    def update_timers(self, group: ConsumerGroup, member: ConsumerMember, *, has_new_assignment: bool) -> None:
        """Renews the member's session.

        If `has_new_assignment` is True, also starts the rebalance timer if the member has to revoke partitions, and
        otherwise cancels this timer.
        """
        group_id, member_id = group.group_id, member.member_id
        self.reschedule_session(group_id, member)
        key = _rebalance_key(group_id, member_id)
        if has_new_assignment and member.state is MemberState.UNREVOKED:
            epoch = member.member_epoch
            timeout_ms = member.rebalance_timeout_ms
            self._context.schedule(key, timeout_ms, lambda: self._expire_rebalance(group_id, member_id, epoch))
        elif has_new_assignment:
            self._context.cancel(key)

    def reschedule_session(self, group_id: str, member: ConsumerMember) -> None:
        timeout_ms = self._settings.session_timeout_ms(group_id)
        if member.classic is not None:
            timeout_ms = member.classic.session_timeout_ms
        member_id = member.member_id
        key = _session_key(group_id, member_id)
        self._context.schedule(key, timeout_ms, lambda: self.expire(group_id, member_id, "its session expired"))

    def expire(self, group_id: str, member_id: str, why: str) -> CoordinatorResult[None]:
        group = self._groups.get(group_id)
        if not isinstance(group, ConsumerGroup) or member_id not in group.members:
            return EMPTY_RESULT
        return self.remove(group, [group.members[member_id]], why)

    def _expire_rebalance(self, group_id: str, member_id: str, epoch: int) -> CoordinatorResult[None]:
        group = self._groups.get(group_id)
        if not isinstance(group, ConsumerGroup) or member_id not in group.members:
            return EMPTY_RESULT
        member = group.members[member_id]
        if member.member_epoch != epoch or member.state is not MemberState.UNREVOKED:
            return EMPTY_RESULT
        return self.remove(group, [member], "it did not revoke its partitions in time")

    def cancel_timers(self, group_id: str, member_id: str) -> None:
        for key in (_session_key, _rebalance_key, join_key, sync_key):
            self._context.cancel(key(group_id, member_id))

    # -- regular expressions

    def _start_regex_evaluation(
        self, group: ConsumerGroup, member: ConsumerMember, denied_topics: DeniedTopics | None
    ) -> None:
        """Starts the evaluation of the member's regular expression if it is new to the group, and of all expressions of
        the group if topics or permissions may have changed.

        `denied_topics(names)` returns those of the topics `names` that the client of `member` may not describe; it is
        None if the client may describe all topics. As in Apache Kafka, no evaluated expression matches a denied topic.
        """
        pattern = member.subscribed_topic_regex
        image = self._settings.image()
        wanted = {pattern} if pattern and pattern not in group.regexes else set()
        monotonic_ms = self._context.clock.monotonic_ms()
        age_ms = monotonic_ms - group.regexes_checked_ms
        have_topics_changed = age_ms >= REGEX_REFRESH_INTERVAL_MS and group.regexes_topics is not image.topics
        if have_topics_changed or (denied_topics is not None and age_ms >= PERMISSIONS_REFRESH_INTERVAL_MS):
            wanted |= set(group.regexes)
        wanted -= group.resolving
        if not wanted:
            return
        group.resolving |= wanted
        group.regexes_checked_ms = monotonic_ms
        group.regexes_topics = image.topics
        names, version = list(image.topics.by_name), image.offset

        def on_matches(matches: dict[str, frozenset[str]]) -> None:
            group.resolving -= matches.keys()
            if denied_topics is not None:
                denied = denied_topics(frozenset().union(*matches.values()))
                matches = {pattern: found - denied for pattern, found in matches.items()}
            self._context.run(lambda: self._store_matches(group, matches, version))

        self._resolve_regexes(sorted(wanted), names, on_matches)

    def _store_matches(
        self, evaluated: ConsumerGroup, matches: dict[str, frozenset[str]], version: int
    ) -> CoordinatorResult[None]:
        """Returns the records of the regular expressions whose matching topics have changed, and the record of a new
        group epoch. Returns no records if the topics of no expression have changed.

        `evaluated` is the group as it was when the evaluation of the expressions began. `matches` maps each expression
        to the topics that it matches. `version` is the offset of the metadata in which the topics were searched.
        """
        group_id = evaluated.group_id
        group = self._groups.get(group_id)
        if not isinstance(group, ConsumerGroup):
            return EMPTY_RESULT
        # `evaluated` may be the object of a new group's first heartbeat, which replay has replaced (`_group_for`).
        if evaluated.regexes_checked_ms > group.regexes_checked_ms:
            group.regexes_checked_ms = evaluated.regexes_checked_ms
            group.regexes_topics = evaluated.regexes_topics
        records = []
        topics = set(group.topic_subscribers)
        wall_ms = self._context.clock.wall_ms()
        group.resolving -= matches.keys()
        for pattern, found in matches.items():
            old = group.regexes.get(pattern)
            is_used = any(member.subscribed_topic_regex == pattern for member in group.members.values())
            if is_used and (old is None or old.topics != found):
                records.append(regex_record(group_id, pattern, ResolvedRegex(found, version, wall_ms)))
                topics |= found
        if not records:
            return EMPTY_RESULT
        records.append(
            group_epoch_record(group_id, group.group_epoch + 1, metadata_hash(self._settings.image(), topics))
        )
        return CoordinatorResult(records)


def check_regex(expression: str) -> None:
    try:
        TopicPattern.check(expression)
    except PatternError as error:
        reason = str(error).partition(": `")[0]
        message = f"SubscribedTopicRegex `{expression}` is not a valid regular expression: {reason}."
        raise ApiError(Error.INVALID_REGULAR_EXPRESSION, message) from None


def _validate_epoch(member: ConsumerMember, call: ConsumerHeartbeatCall) -> None:
    """Raises ApiError FENCED_MEMBER_EPOCH unless the member epoch in the request is the epoch that `member` has here.

    The previous epoch of the member is also accepted, because the response with the new epoch may have been lost. It is
    accepted only if the request lists the partitions that the client owns, and all of them are still assigned to the
    member.
    """
    epoch, current = call.member_epoch, member.member_epoch
    if epoch == current:
        return
    if epoch < current and epoch == member.previous_member_epoch and _reports_only_assigned(call.owned, member):
        return
    size = "greater" if epoch > current else "smaller"
    message = (
        f"The consumer group member has a {size} member epoch ({epoch}) than the one known by the group coordinator "
        f"({current}). The member must abandon all its partitions and rejoin."
    )
    raise ApiError(Error.FENCED_MEMBER_EPOCH, message)


def _reports_only_assigned(owned: Assignment | None, member: ConsumerMember) -> bool:
    if owned is None:
        return False
    return all(partitions <= member.assigned.get(topic_id, {}).keys() for topic_id, partitions in owned.items())


def _assignment(member: ConsumerMember) -> ConsumerGroupHeartbeatResponse.Assignment:
    return ConsumerGroupHeartbeatResponse.Assignment(
        topic_partitions=topic_entries(ConsumerGroupHeartbeatResponse.TopicPartitions, member.assigned)
    )


def _session_key(group_id: str, member_id: str) -> str:
    return f"consumer-session\0{group_id}\0{member_id}"


def _rebalance_key(group_id: str, member_id: str) -> str:
    return f"consumer-rebalance\0{group_id}\0{member_id}"


def join_key(group_id: str, member_id: str) -> str:
    """Returns the key of the timer that removes a classic member that does not join again."""
    return f"consumer-join\0{group_id}\0{member_id}"


def sync_key(group_id: str, member_id: str) -> str:
    """Returns the key of the timer that removes a classic member that has joined, but does not send SyncGroup."""
    return f"consumer-sync\0{group_id}\0{member_id}"
