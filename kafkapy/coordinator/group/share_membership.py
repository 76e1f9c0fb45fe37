"""ShareGroupHeartbeat of a share group (KIP-932): joins, heartbeats, leaves and sessions of members; and the records
that say which partitions of the group have an initialized state."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping
from typing import TypeVar

from kafkapy.coordinator.group.assignment import topic_entries
from kafkapy.coordinator.group.consumer_member import LEAVE_EPOCH
from kafkapy.coordinator.group.consumer_topics import metadata_hash
from kafkapy.coordinator.group.group import Group
from kafkapy.coordinator.group.member_group import existing_group, of_kind
from kafkapy.coordinator.group.no_classic_members import NoClassicMembers
from kafkapy.coordinator.group.share_assignor import SharingMember, assign_simple
from kafkapy.coordinator.group.share_group import (
    ShareGroup,
    ShareMember,
    StatePartitions,
    TopicPartitions,
    with_partitions,
    without_partitions,
)
from kafkapy.coordinator.group.share_offset_changes import initializing, without_deleted_topics
from kafkapy.coordinator.group.share_records import (
    current_record,
    group_epoch_record,
    group_tombstones,
    member_tombstones,
    states_record,
    subscription_record,
    target_epoch_record,
    target_record,
)
from kafkapy.coordinator.group.share_settings import ShareGroupSettings
from kafkapy.coordinator.record import EMPTY_RESULT, CoordinatorRecord, CoordinatorResult
from kafkapy.coordinator.shard import ShardContext
from kafkapy.errors import ApiError, Error
from kafkapy.named_tuple import NamedTuple
from kafkapy.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatResponse

logger = logging.getLogger("kafka.coordinator.group")

R = TypeVar("R")

# The time after which a heartbeat begins the initialization of the same partitions again.
INITIALIZE_RETRY_MS = 30_000


class ShareHeartbeatCall(NamedTuple):
    """One validated ShareGroupHeartbeat. A field that is None has not changed since the previous request."""

    group_id: str
    member_id: str
    member_epoch: int
    rack_id: str | None
    client_id: str
    client_host: str
    subscribed_topic_names: list[str] | None


class ShareHeartbeatResult(NamedTuple):
    """The response to a heartbeat, and the partitions whose states have to be initialized, by topic id.

    `state_epoch` is the group's epoch, which becomes the state epoch of these partitions.
    """

    response: ShareGroupHeartbeatResponse
    state_epoch: int = 0
    to_initialize: Mapping[bytes, frozenset[int]] = {}


class ShareMembership(NoClassicMembers):
    """The handler of the heartbeats of share groups. Only the thread that owns it may use it.

    `groups` belongs to the shard, the state of one partition of `__consumer_offsets`. A method reads the group and
    returns the records of the change; the group changes when these records are replayed. JoinGroup, SyncGroup,
    Heartbeat and LeaveGroup are refused.
    """

    def __init__(self, context: ShardContext, settings: ShareGroupSettings, groups: dict[str, Group]) -> None:
        self._context = context
        self._settings = settings
        self._groups = groups

    # -- heartbeats

    def share_heartbeat(self, call: ShareHeartbeatCall) -> CoordinatorResult[ShareHeartbeatResult]:
        """Handles ShareGroupHeartbeat; raises ApiError if the request is refused."""
        if call.member_epoch == LEAVE_EPOCH:
            return self._leave(call)
        group = self._group_for(call)
        before = self._member_before(group, call)
        names = call.subscribed_topic_names
        after = before._replace(
            rack_id=before.rack_id if call.rack_id is None else call.rack_id,
            client_id=call.client_id,
            client_host=call.client_host,
            subscribed_topic_names=before.subscribed_topic_names if names is None else tuple(sorted(set(names))),
        )
        records: list[CoordinatorRecord] = []
        if call.member_id not in group.members or after.subscription != before.subscription:
            records.append(subscription_record(group.group_id, after))
        epoch, is_bumped = self._group_epoch(group, before, after, records)
        target_epoch, target = self._target(group, epoch, after, records)
        after = self._reconciled(group, after, target_epoch, target, records, is_epoch_bumped=is_bumped)
        self._reschedule_session(group.group_id, call.member_id)
        response = ShareGroupHeartbeatResponse(
            member_id=after.member_id,
            member_epoch=after.member_epoch,
            heartbeat_interval_ms=self._settings.heartbeat_interval_ms(group.group_id),
        )
        if call.member_epoch == 0 or names is not None or after.assigned != before.assigned:
            response.assignment = _assignment(after)
        to_initialize = self._to_initialize(group, after)
        if to_initialize:
            records.append(states_record(group.group_id, initializing(group.states, to_initialize)))
        partitions = {topic_id: each.partitions for topic_id, each in to_initialize.items()}
        return CoordinatorResult(records, ShareHeartbeatResult(response, epoch, partitions))

    def existing(self, group_id: str) -> ShareGroup:
        """Returns the group. Raises ApiError GROUP_ID_NOT_FOUND if it does not exist or is not a share group."""
        return existing_group(self._groups, group_id, ShareGroup)

    def _group_for(self, call: ShareHeartbeatCall) -> ShareGroup:
        """Returns the group of the request; creates it for a member that joins a group that does not exist.

        Raises ApiError: GROUP_ID_NOT_FOUND if the group is not a share group, or does not exist and the member does not
        join; GROUP_MAX_SIZE_REACHED if the group is full.
        """
        group = self._groups.get(call.group_id)
        if group is None and call.member_epoch != 0:
            raise ApiError(Error.GROUP_ID_NOT_FOUND, f"Share group {call.group_id} not found.")
        found = ShareGroup(call.group_id) if group is None else of_kind(group, ShareGroup)
        maximum = self._settings.max_group_size
        if len(found.members) >= maximum and call.member_id not in found.members:
            message = f"The share group has reached its maximum capacity of {maximum} members."
            raise ApiError(Error.GROUP_MAX_SIZE_REACHED, message)
        return found

    def _member_before(self, group: ShareGroup, call: ShareHeartbeatCall) -> ShareMember:
        if call.member_epoch == 0:
            return group.members.get(call.member_id) or ShareMember(call.member_id)
        member = group.member(call.member_id)
        _check_epoch(member, call.member_epoch)
        return member

    # -- epochs and assignments

    def _group_epoch(
        self, group: ShareGroup, before: ShareMember, after: ShareMember, records: list[CoordinatorRecord]
    ) -> tuple[int, bool]:
        """Returns the group's epoch, and True if this method has increased it and appended its record to `records`.

        The epoch is increased if the subscription or the topics have changed, or if partitions are initialized but not
        assigned yet.
        """
        image = self._settings.image()
        is_new = after.member_id not in group.members
        is_bumped = is_new or before.subscribed_topic_names != after.subscribed_topic_names
        if group.assignment_epoch >= group.group_epoch:
            is_bumped = is_bumped or group.has_unassigned_partitions()
        if not is_bumped and group.checked_topics is image.topics:
            return group.group_epoch, False
        digest = metadata_hash(image, group.subscribed_topics(after))
        group.checked_topics = image.topics
        if not is_bumped and digest == group.metadata_hash:
            return group.group_epoch, False
        records.append(group_epoch_record(group.group_id, group.group_epoch + 1, digest))
        return group.group_epoch + 1, True

    def _target(
        self, group: ShareGroup, epoch: int, changed: ShareMember, records: list[CoordinatorRecord]
    ) -> tuple[int, Mapping[bytes, frozenset[int]]]:
        """Returns the epoch of the target assignment, and the target of the member `changed`: partitions by topic id.

        `epoch` is the group's epoch. If the target assignment is older, and the assignment interval has passed,
        computes the targets of all members and appends their records to `records`.
        """
        wall_ms = self._context.clock.wall_ms()
        elapsed_ms = wall_ms - group.assignment_timestamp_ms
        is_due = not 0 <= elapsed_ms < self._settings.assignment_interval_ms(group.group_id)
        if group.assignment_epoch >= epoch or not is_due:
            return group.assignment_epoch, group.target.get(changed.member_id, {})
        topics = self._settings.image().topics
        assignable = {each: numbers for each, numbers in group.states.assignable.items() if each in topics.by_id}
        members = {**group.members, changed.member_id: changed}
        sharing = [
            SharingMember(
                member.member_id,
                frozenset(
                    topics.by_name[name].topic_id for name in member.subscribed_topic_names if name in topics.by_name
                ),
                group.target.get(member.member_id, {}),
            )
            for member in members.values()
        ]
        target = assign_simple(sharing, assignable)
        for member_id, partitions in target.items():
            if member_id not in group.target or group.target[member_id] != partitions:
                records.append(target_record(group.group_id, member_id, partitions))
        records.append(target_epoch_record(group.group_id, epoch, wall_ms))
        return epoch, target[changed.member_id]

    def _reconciled(
        self,
        group: ShareGroup,
        member: ShareMember,
        target_epoch: int,
        target: Mapping[bytes, frozenset[int]],
        records: list[CoordinatorRecord],
        *,
        is_epoch_bumped: bool,
    ) -> ShareMember:
        """Returns the member with `target` as its assignment, in `target_epoch`; appends its record to `records` if it
        changes.

        If the member is in `target_epoch` already, it keeps its assignment, and `target` is ignored. However, if
        `is_epoch_bumped` is True (this request has increased the group's epoch), the member loses the partitions of the
        topics that it no longer subscribes to.
        """
        reconciled = member
        if member.member_epoch != target_epoch:
            reconciled = member._replace(
                member_epoch=target_epoch, previous_member_epoch=member.member_epoch, assigned=target
            )
        elif is_epoch_bumped:
            by_id = self._settings.image().topics.by_id
            names = frozenset(member.subscribed_topic_names)
            kept = {
                each: parts for each, parts in member.assigned.items() if each in by_id and by_id[each].name in names
            }
            reconciled = member._replace(assigned=kept)
        if reconciled != member:
            records.append(current_record(group.group_id, reconciled))
        return reconciled

    # -- states of partitions

    def _to_initialize(self, group: ShareGroup, member: ShareMember) -> dict[bytes, TopicPartitions]:
        """Returns the partitions of subscribed topics whose share states do not exist, except those whose creation was
        requested less than INITIALIZE_RETRY_MS ago."""
        wall_ms = self._context.clock.wall_ms()
        topics = self._settings.image().topics.by_name
        found = {}
        for name in sorted(group.subscribed_topics(member)):
            topic = topics.get(name)
            if topic is None:
                continue
            known = self._initialized_or_begun(group.states, topic.topic_id, wall_ms)
            if len(known) < len(topic.partitions):
                missing = frozenset(topic.partitions) - known
                found[topic.topic_id] = TopicPartitions(name, missing, wall_ms)
        return found

    def _initialized_or_begun(self, states: StatePartitions, topic_id: bytes, wall_ms: int) -> frozenset[int]:
        known: frozenset[int] = frozenset()
        done, begun = states.initialized.get(topic_id), states.initializing.get(topic_id)
        if done is not None:
            known = done.partitions
        if begun is not None and wall_ms - begun.timestamp_ms < INITIALIZE_RETRY_MS:
            known |= begun.partitions
        return known

    def initialized(
        self, group_id: str, succeeded: Mapping[bytes, Iterable[int]], failed: Mapping[bytes, Iterable[int]]
    ) -> CoordinatorResult[bool]:
        """Returns the record with the results of initializing states of share partitions.

        Both arguments map topic ids to partitions. The record marks the states of the partitions in `succeeded` as
        initialized. The partitions in `failed` no longer count as being initialized, so that a later heartbeat begins
        their initialization again.

        The response is True. If the share group no longer exists, the response is False, and there is no record.
        """
        group = self._groups.get(group_id)
        if not isinstance(group, ShareGroup):
            return CoordinatorResult(response=False)
        states = group.states
        done = {}
        topics = self._settings.image().topics.by_id
        for topic_id, numbers in succeeded.items():
            before = states.initializing.get(topic_id)
            name = topics[topic_id].name if topic_id in topics else before.topic if before else ""
            done[topic_id] = TopicPartitions(name, frozenset(numbers))
        left = without_partitions(without_partitions(states.initializing, succeeded), failed)
        changed = states._replace(initializing=left, initialized=with_partitions(states.initialized, done))
        return CoordinatorResult([states_record(group_id, changed)], True)

    def forget_topics(self, group: ShareGroup, topic_ids: Collection[bytes]) -> list[CoordinatorRecord]:
        """Returns the record that removes the states of the deleted topics from the group, in a list; the list is empty
        if the group has no state of these topics."""
        left = without_deleted_topics(group.states, topic_ids)
        return [] if left == group.states else [states_record(group.group_id, left)]

    # -- leaving

    def _leave(self, call: ShareHeartbeatCall) -> CoordinatorResult[ShareHeartbeatResult]:
        group = self.existing(call.group_id)
        member = group.member(call.member_id)
        response = ShareGroupHeartbeatResponse(member_id=member.member_id, member_epoch=call.member_epoch)
        return self._remove(group, member.member_id, "it left", ShareHeartbeatResult(response))

    def _remove(self, group: ShareGroup, member_id: str, why: str, response: R | None = None) -> CoordinatorResult[R]:
        """Cancels the session timer of the member, and returns the records that remove the member, with `response` for
        the client.

        `why` is the reason that is logged.
        """
        group_id = group.group_id
        logger.info("Member %s of share group %s is removed: %s.", member_id, group_id, why)
        self._context.cancel(_session_key(group_id, member_id))
        digest = metadata_hash(self._settings.image(), group.subscribed_topics(without=member_id))
        records = [
            *member_tombstones(group_id, member_id),
            group_epoch_record(group_id, group.group_epoch + 1, digest),
        ]

        def on_committed(error: Error) -> None:
            if error is not Error.NONE:  # The removal failed, so the member stays.
                self._reschedule_session(group_id, member_id)

        return CoordinatorResult(records, response, on_committed)

    def _reschedule_session(self, group_id: str, member_id: str) -> None:
        timeout_ms = self._settings.session_timeout_ms(group_id)
        self._context.schedule(_session_key(group_id, member_id), timeout_ms, lambda: self._expire(group_id, member_id))

    def _expire(self, group_id: str, member_id: str) -> CoordinatorResult[None]:
        group = self._groups.get(group_id)
        if not isinstance(group, ShareGroup) or member_id not in group.members:
            return EMPTY_RESULT
        return self._remove(group, member_id, "its session expired")

    # -- load and deletion (GroupProtocol)

    def on_loaded(self, group: ShareGroup) -> None:
        for member_id in group.members:
            self._reschedule_session(group.group_id, member_id)

    def tombstones(self, group: ShareGroup) -> list[CoordinatorRecord]:
        return group_tombstones(group)


def _check_epoch(member: ShareMember, epoch: int) -> None:
    """Raises ApiError FENCED_MEMBER_EPOCH if the epoch is neither the member's current nor its previous epoch."""
    current = member.member_epoch
    if epoch > current:
        raise ApiError(
            Error.FENCED_MEMBER_EPOCH,
            f"The share group member has a greater member epoch ({epoch}) than the one known by the group coordinator "
            f"({current}). The member must abandon all its partitions and rejoin.",
        )
    if epoch < current and epoch != member.previous_member_epoch:
        raise ApiError(
            Error.FENCED_MEMBER_EPOCH,
            f"The share group member has a smaller member epoch ({epoch}) than the one known by the group coordinator "
            f"({current}), and it does not match the previous member epoch ({member.previous_member_epoch}). The "
            "member must abandon all its partitions and rejoin.",
        )


def _assignment(member: ShareMember) -> ShareGroupHeartbeatResponse.Assignment:
    return ShareGroupHeartbeatResponse.Assignment(
        topic_partitions=topic_entries(ShareGroupHeartbeatResponse.TopicPartitions, member.assigned)
    )


def _session_key(group_id: str, member_id: str) -> str:
    return f"share-session\0{group_id}\0{member_id}"
