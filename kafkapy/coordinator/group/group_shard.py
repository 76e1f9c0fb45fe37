"""The groups and committed offsets of one partition of `__consumer_offsets`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import repeat
from typing import TYPE_CHECKING, Any

from kafkapy.coordinator.group.classic.classic_group import ClassicGroup, GroupState
from kafkapy.coordinator.group.classic.classic_member import SyncResponder
from kafkapy.coordinator.group.classic.classic_membership import ClassicMembership, JoinCall
from kafkapy.coordinator.group.classic.classic_rebalance import ClassicRebalance
from kafkapy.coordinator.group.classic.classic_records import GROUP_METADATA_KEY, classic_group_from, group_tombstone
from kafkapy.coordinator.group.classic.classic_responses import (
    UNKNOWN_MEMBER_ID,
    answer_join,
    answer_sync,
    join_error,
    sync_error,
)
from kafkapy.coordinator.group.committed_offset import CommittedOffset
from kafkapy.coordinator.group.consumer_group import CONSUMER_KEYS, ConsumerGroup
from kafkapy.coordinator.group.consumer_settings import ConsumerGroupSettings
from kafkapy.coordinator.group.foreign_group import (
    GROUP_EPOCH_KEYS,
    GROUP_TYPES,
    ForeignGroup,
    group_id_of,
    key_type,
)
from kafkapy.coordinator.group.group_config import GroupConfig
from kafkapy.coordinator.group.offset_expiry import is_expired
from kafkapy.coordinator.group.offset_records import (
    OFFSET_COMMIT_KEY,
    OFFSET_COMMIT_KEYS,
    committed_offset_from,
    offset_record,
    offset_tombstone,
)
from kafkapy.coordinator.group.offset_requests import (
    CommitCall,
    FetchCall,
    FetchedOffset,
    OffsetToCommit,
    PartitionErrors,
)
from kafkapy.coordinator.group.offset_store import OffsetStore
from kafkapy.coordinator.record import EMPTY_RESULT, CoordinatorRecord, CoordinatorResult
from kafkapy.coordinator.shard import ShardContext
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.coordinator_record import decode_coordinator_key, decode_coordinator_value
from kafkapy.protocol.messages.heartbeat import HeartbeatRequest
from kafkapy.protocol.messages.leave_group import LeaveGroupRequest
from kafkapy.protocol.messages.sync_group import SyncGroupRequest

if TYPE_CHECKING:
    from kafkapy.coordinator.group.consumer_classic_members import ClassicMembers
    from kafkapy.coordinator.group.consumer_membership import ConsumerMembership, ResolveRegexes

Group = ClassicGroup | ConsumerGroup | ForeignGroup


class GroupShard:
    """Owns the groups of one partition. Owner thread only.

    Operations answer a CoordinatorResult and never touch the log; `replay` is what changes offsets and groups that are
    written, the members of classic groups change in the operation itself.
    """

    def __init__(
        self,
        context: ShardContext,
        config: GroupConfig,
        new_uuid: Callable[[], str],
        settings: ConsumerGroupSettings,
        resolve_regexes: ResolveRegexes,
    ) -> None:
        self._context = context
        self._config = config
        self._rebalance = ClassicRebalance(context, config)
        self.membership = ClassicMembership(self._rebalance, config, new_uuid)
        self.groups: dict[str, Group] = {}
        self._settings = settings
        self._resolve_regexes = resolve_regexes
        self._new_uuid = new_uuid
        self.offsets = OffsetStore(context.committed_offset)

    # What consumer groups need is imported when there is the first one: a broker may never see one.

    @cached_property
    def consumers(self) -> ConsumerMembership:
        """The heartbeats of consumer groups."""
        from kafkapy.coordinator.group.consumer_membership import ConsumerMembership
        from kafkapy.coordinator.group.consumer_migration import GroupMigration

        migration = GroupMigration(self._context, self._settings, self._rebalance)
        return ConsumerMembership(self._context, self._settings, self.groups, migration, self._resolve_regexes)

    @cached_property
    def _classic_members(self) -> ClassicMembers:
        from kafkapy.coordinator.group.consumer_classic_members import ClassicMembers

        return ClassicMembers(self._context, self._settings, self.consumers, self._new_uuid)

    # -- the log

    def replay(self, offset: int, producer_id: int, key: bytes, value: bytes | None) -> None:
        kind = key_type(key)
        if kind in OFFSET_COMMIT_KEYS:
            self._replay_offset(offset, producer_id, key, value)
        elif kind == GROUP_METADATA_KEY:
            self._replay_group(key, value)
        elif kind in CONSUMER_KEYS:
            self._replay_consumer(kind, key, value)
        elif kind in GROUP_TYPES:
            self._replay_foreign(kind, key, value)
        # Types from after 4.3 are left alone, as Apache Kafka does with types it does not know.

    def replay_end_of_transaction(self, offset: int, producer_id: int, committed: bool) -> None:
        self.offsets.end_transaction(producer_id, committed)

    def _replay_offset(self, offset: int, producer_id: int, key: bytes, value: bytes | None) -> None:
        commit_key: Any = decode_coordinator_key(key)
        group_id, topic, partition = commit_key.group, commit_key.topic, commit_key.partition
        if value is None:
            self.offsets.delete(group_id, topic, partition, offset)
            return
        stored: Any = decode_coordinator_value(OFFSET_COMMIT_KEY, value)
        committed = committed_offset_from(stored, offset)
        if group_id not in self.groups:
            # A simple consumer has no group record of its own.
            self.groups[group_id] = ClassicGroup(group_id, self._context.clock.now_ms())
        if producer_id == -1:
            self.offsets.put(group_id, topic, partition, committed)
        else:
            self.offsets.put_pending(producer_id, group_id, topic, partition, committed)

    def _replay_group(self, key: bytes, value: bytes | None) -> None:
        group_id = group_id_of(key)
        if value is None:
            group = self.groups.get(group_id)
            if isinstance(group, ClassicGroup):
                del self.groups[group_id]
                self._rebalance.cancel_all(group)
                group.transition_to(GroupState.DEAD, self._context.clock.now_ms())
            return
        stored: Any = decode_coordinator_value(GROUP_METADATA_KEY, value)
        self.groups[group_id] = classic_group_from(group_id, stored, self._context.clock.now_ms())

    def _replay_consumer(self, kind: int, key: bytes, value: bytes | None) -> None:
        from kafkapy.coordinator.group.consumer_records import replay_into

        group_id = group_id_of(key)
        group = self.groups.get(group_id)
        if not isinstance(group, ConsumerGroup):
            if value is None:
                return
            group = self.groups[group_id] = ConsumerGroup(group_id)
        if replay_into(group, kind, key, value):
            del self.groups[group_id]

    def _replay_foreign(self, kind: int, key: bytes, value: bytes | None) -> None:
        group_id = group_id_of(key)
        group = self.groups.get(group_id)
        if value is not None:
            if not isinstance(group, ForeignGroup):
                group = self.groups[group_id] = ForeignGroup(group_id, GROUP_TYPES[kind])
            group.keys[key] = None
        elif isinstance(group, ForeignGroup):
            group.keys.pop(key, None)
            if kind in GROUP_EPOCH_KEYS:
                del self.groups[group_id]

    def on_loaded(self) -> None:
        """Members found in the log have one session to show that they are alive."""
        for group_id in self.offsets.group_ids():
            if group_id not in self.groups:
                # Its group record is gone (a take-over that did not get to its first generation); its offsets are not.
                self.groups[group_id] = ClassicGroup(group_id, self._context.clock.now_ms())
        for group in self.groups.values():
            if isinstance(group, ClassicGroup):
                for member in group.members.values():
                    self._rebalance.reschedule_heartbeat(group, member)
            elif isinstance(group, ConsumerGroup):
                self.consumers.start_timers(group)

    def on_unloaded(self) -> None:
        for group in self.groups.values():
            if isinstance(group, ClassicGroup):
                group.transition_to(GroupState.DEAD, self._context.clock.now_ms())
                for member in list(group.members.values()):
                    answer_join(member, join_error(member.member_id, Error.NOT_COORDINATOR))
                    answer_sync(member, sync_error(Error.NOT_COORDINATOR))

    # -- groups

    def classic(self, group_id: str, missing: Error = Error.UNKNOWN_MEMBER_ID) -> ClassicGroup:
        """The classic group of that id, or ApiError `missing`."""
        group = self.groups.get(group_id)
        if not isinstance(group, ClassicGroup):
            raise ApiError(missing)
        return group

    def sync(self, request: SyncGroupRequest, respond: SyncResponder) -> CoordinatorResult:
        group = self.groups.get(request.group_id)
        if isinstance(group, ConsumerGroup):
            return self._classic_members.sync(group, request)
        return self.membership.sync(self.classic(request.group_id), request, respond)

    def heartbeat(self, request: HeartbeatRequest) -> CoordinatorResult:
        group = self.groups.get(request.group_id)
        if isinstance(group, ConsumerGroup):
            return self._classic_members.heartbeat(group, request)
        return self.membership.heartbeat(self.classic(request.group_id), request)

    def leave(self, group_id: str, members: Sequence[LeaveGroupRequest.MemberIdentity]) -> CoordinatorResult:
        group = self.groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return self._classic_members.leave(group, members)
        return self.membership.leave(self.classic(group_id), members)

    def join(self, call: JoinCall) -> CoordinatorResult:
        group = self.groups.get(call.group_id)
        if isinstance(group, ConsumerGroup) and not group.is_empty:
            return self._classic_members.join(group, call)
        if isinstance(group, ForeignGroup) and group.is_share_group:
            call.respond(join_error(UNKNOWN_MEMBER_ID, Error.INCONSISTENT_GROUP_PROTOCOL))
            return EMPTY_RESULT
        takeover: list[CoordinatorRecord] = []
        if not isinstance(group, ClassicGroup):
            if call.member_id:
                call.respond(join_error(call.member_id, Error.UNKNOWN_MEMBER_ID))
                return EMPTY_RESULT
            if group is not None:
                takeover = _group_tombstones(group)
            group = self.groups[call.group_id] = ClassicGroup(call.group_id, self._context.clock.now_ms())
        result = self.membership.join(group, call)
        if takeover:
            # The state is the classic group's already; the tombstones tell the next loader.
            return CoordinatorResult([*takeover, *result.records], on_append=result.on_append, replay=False)
        return result

    def delete_group(self, group_id: str) -> CoordinatorResult:
        """Deletes an empty group with its offsets; ApiError GROUP_ID_NOT_FOUND or NON_EMPTY_GROUP."""
        group = self.groups.get(group_id)
        if group is None or (isinstance(group, ClassicGroup) and group.is_in(GroupState.DEAD)):
            raise ApiError(Error.GROUP_ID_NOT_FOUND)
        if isinstance(group, ClassicGroup) and not group.is_in(GroupState.EMPTY):
            raise ApiError(Error.NON_EMPTY_GROUP)
        if isinstance(group, ConsumerGroup) and not group.is_empty:
            raise ApiError(Error.NON_EMPTY_GROUP)
        records = [
            offset_tombstone(group_id, topic, partition)
            for topic, partition in sorted(self.offsets.partitions(group_id))
        ]
        return CoordinatorResult([*records, *_group_tombstones(group)], response=Error.NONE)

    # -- offsets

    def commit(self, call: CommitCall) -> CoordinatorResult:
        """The response has the error of each of the call's offsets, in their order."""
        return self._commit_result(call, None, self._validate_commit(call))

    def commit_transactional(self, call: CommitCall, producer: tuple[int, int]) -> CoordinatorResult:
        """As `commit`, within the transaction of `producer`."""
        return self._commit_result(call, producer, self._validate_transactional_commit(call))

    def _commit_result(
        self, call: CommitCall, producer: tuple[int, int] | None, judged: Sequence[Error]
    ) -> CoordinatorResult:
        """`judged`: what was found of each offset already; nothing when all may be committed."""
        now_ms = self._context.clock.now_ms()
        expire_ms = -1 if call.retention_ms == -1 else now_ms + call.retention_ms
        errors: list[Error] = []
        records = []
        for wanted, error in zip(call.offsets, judged or repeat(Error.NONE), strict=False):
            if error is not Error.NONE:
                errors.append(error)
                continue
            if len(wanted.metadata) > self._config.max_metadata_length:
                errors.append(Error.OFFSET_METADATA_TOO_LARGE)
                continue
            errors.append(Error.NONE)
            records.append(_commit_record(call.group_id, wanted, now_ms, expire_ms))
        return CoordinatorResult(records, response=errors, producer=producer)

    def _validate_commit(self, call: CommitCall) -> Sequence[Error]:
        """The error of each offset, or nothing when all may be committed; ApiError when none may."""
        group = self.groups.get(call.group_id)
        is_managed = call.generation_id >= 0 or call.member_id != "" or call.group_instance_id is not None
        if group is None:
            if call.generation_id < 0:
                return ()  # a simple consumer, or an administrator
            raise ApiError(Error.GROUP_ID_NOT_FOUND if call.is_new_protocol else Error.ILLEGAL_GENERATION)
        if isinstance(group, ForeignGroup):
            if group.is_share_group:
                raise ApiError(Error.GROUP_ID_NOT_FOUND)
            if is_managed:
                raise ApiError(Error.UNKNOWN_MEMBER_ID)
            return ()
        if isinstance(group, ConsumerGroup):
            return group.validate_commit(call)
        if group.is_in(GroupState.DEAD):
            raise ApiError(Error.COORDINATOR_NOT_AVAILABLE)
        if call.generation_id < 0 and group.is_in(GroupState.EMPTY):
            return ()
        if not is_managed:
            raise ApiError(Error.UNKNOWN_MEMBER_ID)
        member = group.validate_member(call.member_id, call.group_instance_id)
        if call.generation_id != group.generation_id:
            raise ApiError(Error.ILLEGAL_GENERATION)
        if group.is_in(GroupState.COMPLETING_REBALANCE):
            raise ApiError(Error.REBALANCE_IN_PROGRESS)
        self._rebalance.reschedule_heartbeat(group, member)
        return ()

    def _validate_transactional_commit(self, call: CommitCall) -> Sequence[Error]:
        """Producers from before KIP-447 name no member: the transactional id alone fences them."""
        group = self.groups.get(call.group_id)
        if group is None:
            if call.generation_id >= 0:
                raise ApiError(Error.ILLEGAL_GENERATION)
            return ()
        is_managed = call.generation_id >= 0 or call.member_id != "" or call.group_instance_id is not None
        if isinstance(group, ForeignGroup):
            if group.is_share_group:
                raise ApiError(Error.GROUP_ID_NOT_FOUND)
            if is_managed:
                raise ApiError(Error.UNKNOWN_MEMBER_ID)
            return ()
        if isinstance(group, ConsumerGroup):
            return group.validate_transactional_commit(call) if is_managed else ()
        if group.is_in(GroupState.DEAD):
            raise ApiError(Error.COORDINATOR_NOT_AVAILABLE)
        if not is_managed or (call.generation_id < 0 and group.is_in(GroupState.EMPTY)):
            return ()
        group.validate_member(call.member_id, call.group_instance_id)
        if call.generation_id != group.generation_id:
            raise ApiError(Error.ILLEGAL_GENERATION)
        return ()

    def fetch(self, call: FetchCall) -> list[FetchedOffset]:
        group = self.groups.get(call.group_id)
        if isinstance(group, ConsumerGroup):
            group.validate_fetch(call.member_id, call.member_epoch)
        elif isinstance(group, ForeignGroup) and group.is_share_group:
            # As in Apache Kafka: the group is not found, which OffsetFetch shows as a group without offsets.
            return [FetchedOffset(topic, partition) for topic, partition, _ in call.partitions or ()]
        elif call.is_member and isinstance(group, ForeignGroup):
            raise ApiError(Error.UNKNOWN_MEMBER_ID)
        if call.partitions is None:
            return [
                self._fetched(call, topic, partition, committed)
                for topic, partition, committed in self.offsets.committed(call.group_id)
            ]
        answer = []
        for topic, partition, topic_id in call.partitions:
            committed = self.offsets.get(call.group_id, topic, partition)
            if committed is not None and any(topic_id) and any(committed.topic_id) and committed.topic_id != topic_id:
                committed = None  # committed for a topic of the same name that is no more
            answer.append(self._fetched(call, topic, partition, committed))
        return answer

    def _fetched(self, call: FetchCall, topic: str, partition: int, committed: CommittedOffset | None) -> FetchedOffset:
        if call.require_stable and self.offsets.has_pending(call.group_id, topic, partition):
            return FetchedOffset(topic, partition, error=Error.UNSTABLE_OFFSET_COMMIT)
        if committed is None:
            return FetchedOffset(topic, partition)
        return FetchedOffset(topic, partition, committed.offset, committed.leader_epoch, committed.metadata)

    def delete_offsets(self, group_id: str, partitions: Iterable[tuple[str, int]]) -> CoordinatorResult:
        """The response maps (topic, partition) to its error."""
        group = self.groups.get(group_id)
        if group is None or (isinstance(group, ClassicGroup) and group.is_in(GroupState.DEAD)):
            raise ApiError(Error.GROUP_ID_NOT_FOUND)
        if isinstance(group, ForeignGroup) and group.is_share_group:
            raise ApiError(Error.GROUP_ID_NOT_FOUND)
        has_members = isinstance(group, ClassicGroup) and not group.is_in(GroupState.EMPTY)
        if has_members and isinstance(group, ClassicGroup) and not group.uses_consumer_protocol:
            raise ApiError(Error.NON_EMPTY_GROUP)
        errors: PartitionErrors = {}
        records = []
        known = self.offsets.partitions(group_id)
        for topic, partition in partitions:
            is_subscribed = isinstance(group, ConsumerGroup) and group.is_subscribed_to(topic)
            if is_subscribed or (isinstance(group, ClassicGroup) and has_members and group.is_subscribed_to(topic)):
                errors[(topic, partition)] = Error.GROUP_SUBSCRIBED_TO_TOPIC
                continue
            errors[(topic, partition)] = Error.NONE
            if (topic, partition) in known:
                records.append(offset_tombstone(group_id, topic, partition))
        return CoordinatorResult(records, response=errors)

    def forget_topics(self, topics: frozenset[str]) -> CoordinatorResult:
        """Deletes the offsets of topics that are no more."""
        return CoordinatorResult(
            [
                offset_tombstone(group_id, topic, partition)
                for group_id in self.offsets.group_ids()
                for topic, partition in sorted(self.offsets.partitions(group_id))
                if topic in topics
            ]
        )

    def expire(self) -> CoordinatorResult:
        """Deletes offsets past their retention, and groups that are empty and have none left."""
        now_ms = self._context.clock.now_ms()
        records: list[CoordinatorRecord] = []
        for group_id, group in list(self.groups.items()):
            known = None if isinstance(group, ForeignGroup) else group
            kept = self.offsets.pending_partitions(group_id)
            for topic, partition, committed in self.offsets.newest(group_id):
                if (topic, partition) in kept:
                    continue
                if is_expired(known, topic, committed, now_ms, self._config.offsets_retention_ms):
                    records.append(offset_tombstone(group_id, topic, partition))
                else:
                    kept.add((topic, partition))
            if not kept and _is_abandoned(group):
                records.extend(_group_tombstones(group))
        return CoordinatorResult(records)


def _commit_record(group_id: str, wanted: OffsetToCommit, now_ms: int, expire_ms: int) -> CoordinatorRecord:
    committed = CommittedOffset(wanted.offset, wanted.leader_epoch, wanted.metadata, now_ms, expire_ms, wanted.topic_id)
    return offset_record(group_id, wanted.topic, wanted.partition, committed)


def _is_abandoned(group: Group) -> bool:
    if isinstance(group, ClassicGroup):
        return group.is_in(GroupState.EMPTY) and not group.pending_members
    return isinstance(group, ConsumerGroup) and group.is_empty


def _group_tombstones(group: Group) -> list[CoordinatorRecord]:
    if isinstance(group, ConsumerGroup):
        from kafkapy.coordinator.group.consumer_records import group_tombstones

        return group_tombstones(group)
    if isinstance(group, ForeignGroup):
        # The epoch record last: it is the one that ends the group.
        keys = sorted(group.keys, key=lambda key: key_type(key) in GROUP_EPOCH_KEYS)
        return [CoordinatorRecord(key, None) for key in keys]
    return [group_tombstone(group.group_id)]
