"""The groups and committed offsets of one partition of `__consumer_offsets`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cached_property
from itertools import repeat
from typing import TYPE_CHECKING, Any, TypeVar

from kafkapy.coordinator.group.classic.classic_group import ClassicGroup, GroupState
from kafkapy.coordinator.group.classic.classic_member import SyncResponder
from kafkapy.coordinator.group.classic.classic_membership import ClassicMembership
from kafkapy.coordinator.group.classic.classic_rebalance import ClassicRebalance
from kafkapy.coordinator.group.classic.classic_records import GROUP_METADATA_KEY, classic_group_from
from kafkapy.coordinator.group.classic.classic_responses import join_error
from kafkapy.coordinator.group.classic.join_call import JoinCall
from kafkapy.coordinator.group.committed_offset import CommittedOffset
from kafkapy.coordinator.group.consumer_group import CONSUMER_KEYS, ConsumerGroup
from kafkapy.coordinator.group.consumer_settings import ConsumerGroupSettings
from kafkapy.coordinator.group.group import Group, GroupProtocol
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
from kafkapy.coordinator.group.record_keys import group_id_of, key_type
from kafkapy.coordinator.group.share_group import SHARE_KEYS, ShareGroup
from kafkapy.coordinator.record import EMPTY_RESULT, CoordinatorRecord, CoordinatorResult, StateChange
from kafkapy.coordinator.shard import ShardContext, run_in_parts
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.coordinator_record import decode_coordinator_key, decode_coordinator_value
from kafkapy.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafkapy.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from kafkapy.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

if TYPE_CHECKING:
    from kafkapy.coordinator.group.consumer_classic_members import ClassicMembers
    from kafkapy.coordinator.group.consumer_membership import ConsumerMembership, ResolveRegexes
    from kafkapy.coordinator.group.share_membership import ShareMembership
    from kafkapy.coordinator.group.streams.streams_protocol import StreamsProtocol

G = TypeVar("G")

STREAMS_GROUP_TYPE = "streams"
# The types of a streams group's records.
STREAMS_KEYS = frozenset((17, 19, 20, 21, 22, 23))


class GroupShard:
    """The groups and offsets of one partition. Only the thread that owns it may use it.

    An operation returns a CoordinatorResult and does not append to the log. Offsets and consumer groups change when
    `replay` applies the records. Members join and leave classic groups in the operation itself; an assignment takes
    effect when its record is committed.
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
        self._classic = ClassicMembership(self._rebalance, config, new_uuid)
        self.groups: dict[str, Group] = {}
        self._settings = settings
        self._resolve_regexes = resolve_regexes
        self._new_uuid = new_uuid
        self.offsets = OffsetStore(context.committed_offset)

    # -- the protocols of groups

    # The modules of the newer kinds of groups are imported with the first group of the kind, because many brokers have
    # none.

    @cached_property
    def consumers(self) -> ConsumerMembership:
        """The handler of the ConsumerGroupHeartbeat requests of this partition's groups."""
        from kafkapy.coordinator.group.consumer_membership import ConsumerMembership
        from kafkapy.coordinator.group.consumer_migration import GroupMigration

        migration = GroupMigration(self._context, self._settings, self._rebalance)
        return ConsumerMembership(self._context, self._settings, self.groups, migration, self._resolve_regexes)

    @cached_property
    def _classic_members(self) -> ClassicMembers:
        from kafkapy.coordinator.group.consumer_classic_members import ClassicMembers

        return ClassicMembers(self._context, self._settings, self.consumers, self._new_uuid)

    @cached_property
    def shares(self) -> ShareMembership:
        """The handler of the ShareGroupHeartbeat requests of this partition's groups."""
        from kafkapy.coordinator.group.share_membership import ShareMembership
        from kafkapy.coordinator.group.share_settings import ShareGroupSettings

        settings = ShareGroupSettings(self._settings.config, self._settings.image)
        return ShareMembership(self._context, settings, self.groups)

    @cached_property
    def streams(self) -> StreamsProtocol:
        """The handler of all requests of streams groups of this partition."""
        from kafkapy.coordinator.group.streams.streams_protocol import StreamsProtocol

        return StreamsProtocol(self._context, self._settings, self.groups)

    def _protocol_of(self, group: Group) -> GroupProtocol[Any]:
        """Returns the handler of JoinGroup, SyncGroup, Heartbeat and LeaveGroup for a group of this type.

        `_classic` serves classic groups. `_classic_members` serves the members of a consumer group that still use the
        classic protocol (KIP-848).
        """
        if isinstance(group, ClassicGroup):
            return self._classic
        if isinstance(group, ConsumerGroup):
            return self._classic_members
        if isinstance(group, ShareGroup):
            return self.shares
        assert group.group_type == STREAMS_GROUP_TYPE, group
        return self.streams

    def _find(self, group_id: str, kind: type[G]) -> G | None:
        """Returns the group, or None if it does not exist or is not of the class `kind`."""
        group = self.groups.get(group_id)
        return group if isinstance(group, kind) else None

    def _existing(self, group_id: str, missing: Error) -> Group:
        """Returns the group; raises ApiError with the error `missing` if the group does not exist."""
        group = self.groups.get(group_id)
        if group is None:
            raise ApiError(missing)
        return group

    # -- the log

    def replay(self, offset: int, producer_id: int, key: bytes, value: bytes | None) -> None:
        kind = key_type(key)
        if kind in OFFSET_COMMIT_KEYS:
            self._replay_offset(offset, producer_id, key, value)
        elif kind == GROUP_METADATA_KEY:
            self._replay_group(key, value)
        elif kind in CONSUMER_KEYS:
            self._replay_consumer(kind, key, value)
        elif kind in SHARE_KEYS:
            self._replay_share(kind, key, value)
        elif kind in STREAMS_KEYS:
            self.streams.replay(kind, key, value)
        # Types newer than 4.3 are ignored; Apache Kafka also ignores types that it does not know.

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
            self._create_classic(group_id)
        if producer_id == -1:
            self.offsets.put(group_id, topic, partition, committed)
        else:
            self.offsets.put_pending(producer_id, group_id, topic, partition, committed)

    def _create_classic(self, group_id: str) -> ClassicGroup:
        group = self.groups[group_id] = ClassicGroup(group_id, self._context.clock.wall_ms())
        return group

    def _replay_group(self, key: bytes, value: bytes | None) -> None:
        group_id = group_id_of(key)
        if value is not None:
            stored: Any = decode_coordinator_value(GROUP_METADATA_KEY, value)
            self.groups[group_id] = classic_group_from(group_id, stored, self._context.clock.wall_ms())
            return
        group = self._find(group_id, ClassicGroup)
        if group is not None:
            del self.groups[group_id]
            self._rebalance.cancel_all(group)
            group.transition_to(GroupState.DEAD, self._context.clock.wall_ms())

    def _replay_consumer(self, kind: int, key: bytes, value: bytes | None) -> None:
        from kafkapy.coordinator.group.consumer_records import replay_into

        group_id = group_id_of(key)
        group = self._find(group_id, ConsumerGroup)
        if group is None:
            if value is None:
                return
            group = self.groups[group_id] = ConsumerGroup(group_id)
        if replay_into(group, kind, key, value):
            del self.groups[group_id]

    def _replay_share(self, kind: int, key: bytes, value: bytes | None) -> None:
        from kafkapy.coordinator.group.share_records import replay_into

        group_id = group_id_of(key)
        group = self._find(group_id, ShareGroup)
        if group is None:
            if value is None:
                return
            group = self.groups[group_id] = ShareGroup(group_id)
        if replay_into(group, kind, key, value, self._context.clock.wall_ms()):
            del self.groups[group_id]

    def on_loaded(self) -> None:
        for group_id in self.offsets.group_ids():
            if group_id not in self.groups:
                # The log has offsets of the group but no record of the group itself: a classic group that replaced
                # another group has no record before its first generation.
                self._create_classic(group_id)
        for group in self.groups.values():
            self._protocol_of(group).on_loaded(group)

    def on_unloaded(self) -> None:
        for group in self.groups.values():
            self._protocol_of(group).on_unloaded(group)

    # -- members of the classic protocol

    def join(self, call: JoinCall) -> CoordinatorResult[None]:
        """Handles JoinGroup. A new member creates a classic group if the group does not exist, or if it is an empty
        group of another type that a classic group may replace."""
        group = self.groups.get(call.group_id)
        if group is not None and not group.is_replaceable:
            return self._protocol_of(group).join(group, call)
        if call.member_id:
            call.respond(join_error(call.member_id, Error.UNKNOWN_MEMBER_ID))
            return EMPTY_RESULT
        tombstones = [] if group is None else self._protocol_of(group).tombstones(group)
        result = self._classic.join(self._create_classic(call.group_id), call)
        if not tombstones:
            return result
        # The classic group is already in `groups`; the tombstones take effect when the log is loaded again.
        assert result.state_change is not StateChange.ON_COMMIT, "a new classic group has no assignment to commit"
        return CoordinatorResult(
            [*tombstones, *result.records], on_committed=result.on_committed, state_change=StateChange.ALREADY_APPLIED
        )

    def sync(self, request: SyncGroupRequest, respond: SyncResponder) -> CoordinatorResult[SyncGroupResponse]:
        group = self._existing(request.group_id, Error.UNKNOWN_MEMBER_ID)
        return self._protocol_of(group).sync(group, request, respond)

    def heartbeat(self, request: HeartbeatRequest) -> CoordinatorResult[HeartbeatResponse]:
        group = self._existing(request.group_id, Error.UNKNOWN_MEMBER_ID)
        return self._protocol_of(group).heartbeat(group, request)

    def leave(
        self, group_id: str, members: Sequence[LeaveGroupRequest.MemberIdentity]
    ) -> CoordinatorResult[LeaveGroupResponse]:
        group = self._existing(group_id, Error.UNKNOWN_MEMBER_ID)
        return self._protocol_of(group).leave(group, members)

    # -- administration

    def delete_group(self, group_id: str) -> CoordinatorResult[Error]:
        """Deletes an empty group with its offsets. Raises ApiError GROUP_ID_NOT_FOUND or NON_EMPTY_GROUP."""
        group = self._existing(group_id, Error.GROUP_ID_NOT_FOUND)
        group.validate_deletion()
        records = [
            offset_tombstone(group_id, topic, partition)
            for topic, partition in sorted(self.offsets.partitions(group_id))
        ]
        return CoordinatorResult([*records, *self._protocol_of(group).tombstones(group)], response=Error.NONE)

    # -- offsets

    def commit(self, call: CommitCall) -> CoordinatorResult[list[Error]]:
        """Commits offsets. The response has one error for each offset of the call, in order. Raises ApiError if the
        whole request is refused."""
        group = self.groups.get(call.group_id)
        if group is not None:
            errors = group.validate_commit(call)
            self._protocol_of(group).on_commit(group, call.member_id)
            return self._commit_result(call, None, errors)
        if call.generation_id >= 0:
            raise ApiError(Error.GROUP_ID_NOT_FOUND if call.is_new_protocol else Error.ILLEGAL_GENERATION)
        return self._commit_result(call, None, ())  # A simple consumer or an administrator commits the offsets.

    def commit_transactional(self, call: CommitCall, producer: tuple[int, int]) -> CoordinatorResult[list[Error]]:
        """Commits offsets within the transaction of `producer` (id, epoch).

        The response has one error for each offset of the call, in order. Raises ApiError if the whole request is
        refused.
        """
        group = self.groups.get(call.group_id)
        if group is not None:
            return self._commit_result(call, producer, group.validate_transactional_commit(call))
        if call.generation_id >= 0:
            raise ApiError(Error.ILLEGAL_GENERATION)
        return self._commit_result(call, producer, ())

    def _commit_result(
        self, call: CommitCall, producer: tuple[int, int] | None, member_errors: Sequence[Error]
    ) -> CoordinatorResult[list[Error]]:
        """Returns the records of the valid offsets; the response has one error for each offset of the call.

        `member_errors` has the error of each offset, or is empty if the member may commit all of them. `producer` is
        (producer id, epoch), or None outside a transaction.
        """
        wall_ms = self._context.clock.wall_ms()
        expire_ms = -1 if call.retention_ms == -1 else wall_ms + call.retention_ms
        errors: list[Error] = []
        records = []
        for wanted, error in zip(call.offsets, member_errors or repeat(Error.NONE), strict=False):
            if error is not Error.NONE:
                errors.append(error)
                continue
            if len(wanted.metadata) > self._config.max_metadata_length:
                errors.append(Error.OFFSET_METADATA_TOO_LARGE)
                continue
            errors.append(Error.NONE)
            records.append(_commit_record(call.group_id, wanted, wall_ms, expire_ms))
        return CoordinatorResult(records, response=errors, producer=producer)

    def fetch(self, call: FetchCall) -> list[FetchedOffset]:
        """Returns the committed offsets; a partition without a committed offset has the offset -1.

        Raises ApiError if the request names a member that is not in the group, or that has another epoch.
        """
        group = self.groups.get(call.group_id)
        if group is not None:
            try:
                group.validate_fetch(call.member_id, call.member_epoch)
            except ApiError as error:
                if error.error is not Error.GROUP_ID_NOT_FOUND:
                    raise
                # Apache Kafka responds for a share group, which has no committed offsets, as for a missing group.
                return [FetchedOffset(topic, partition) for topic, partition, _ in call.partitions or ()]
        if call.partitions is None:
            return [
                self._fetched(call, topic, partition, committed)
                for topic, partition, committed in self.offsets.committed(call.group_id)
            ]
        fetched = []
        for topic, partition, topic_id in call.partitions:
            committed = self.offsets.get(call.group_id, topic, partition)
            if committed is not None and any(topic_id) and any(committed.topic_id) and committed.topic_id != topic_id:
                committed = None  # The offset was committed for a deleted topic of the same name.
            fetched.append(self._fetched(call, topic, partition, committed))
        return fetched

    def _fetched(self, call: FetchCall, topic: str, partition: int, committed: CommittedOffset | None) -> FetchedOffset:
        if call.require_stable and self.offsets.has_pending(call.group_id, topic, partition):
            return FetchedOffset(topic, partition, error=Error.UNSTABLE_OFFSET_COMMIT)
        if committed is None:
            return FetchedOffset(topic, partition)
        return FetchedOffset(topic, partition, committed.offset, committed.leader_epoch, committed.metadata)

    def delete_offsets(
        self, group_id: str, partitions: Iterable[tuple[str, int]]
    ) -> CoordinatorResult[PartitionErrors]:
        """Deletes committed offsets of `partitions`, which are pairs (topic, partition). The response maps each pair to
        its error. Raises ApiError if the whole request is refused."""
        group = self._existing(group_id, Error.GROUP_ID_NOT_FOUND)
        group.validate_offset_deletion()
        errors: PartitionErrors = {}
        records = []
        known = self.offsets.partitions(group_id)
        for topic, partition in partitions:
            if group.is_subscribed_to(topic):
                errors[(topic, partition)] = Error.GROUP_SUBSCRIBED_TO_TOPIC
                continue
            errors[(topic, partition)] = Error.NONE
            if (topic, partition) in known:
                records.append(offset_tombstone(group_id, topic, partition))
        return CoordinatorResult(records, response=errors)

    def forget_topics(self, names: frozenset[str], topic_ids: Collection[bytes]) -> CoordinatorResult[None]:
        """Deletes the committed offsets of the deleted topics `names`, and removes the deleted topics `topic_ids` from
        share groups."""
        records = [
            offset_tombstone(group_id, topic, partition)
            for group_id in self.offsets.group_ids()
            for topic, partition in sorted(self.offsets.partitions(group_id))
            if topic in names
        ]
        for group in self.groups.values():
            if isinstance(group, ShareGroup):
                records += self.shares.forget_topics(group, topic_ids)
        return run_in_parts(self._context, records)

    def expire(self) -> CoordinatorResult[None]:
        """Deletes the offsets whose retention has ended, and empty groups that have no offsets."""
        wall_ms = self._context.clock.wall_ms()
        records: list[CoordinatorRecord] = []
        for group_id, group in list(self.groups.items()):
            kept = self.offsets.pending_partitions(group_id)
            for topic, partition, committed in self.offsets.newest(group_id):
                if (topic, partition) in kept:
                    continue
                if is_expired(group, topic, committed, wall_ms, self._config.offsets_retention_ms):
                    records.append(offset_tombstone(group_id, topic, partition))
                else:
                    kept.add((topic, partition))
            if not kept and group.is_unused:
                records.extend(self._protocol_of(group).tombstones(group))
        return run_in_parts(self._context, records)


def _commit_record(group_id: str, wanted: OffsetToCommit, wall_ms: int, expire_ms: int) -> CoordinatorRecord:
    committed = CommittedOffset(
        wanted.offset, wanted.leader_epoch, wanted.metadata, wall_ms, expire_ms, wanted.topic_id
    )
    return offset_record(group_id, wanted.topic, wanted.partition, committed)
