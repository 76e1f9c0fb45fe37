"""The group coordinator of this broker: runs each request on the shard of its group, which is the state of one
partition of `__consumer_offsets`, and responds when the change is durable.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from kafkapy.coordinator.coordinator_log import CoordinatorLog
from kafkapy.coordinator.group.classic.classic_group import GroupState
from kafkapy.coordinator.group.classic.classic_responses import join_error, leave_response, sync_error
from kafkapy.coordinator.group.classic.join_call import JoinCall
from kafkapy.coordinator.group.consumer_settings import ConsumerGroupSettings
from kafkapy.coordinator.group.group import Group
from kafkapy.coordinator.group.group_config import GroupConfig
from kafkapy.coordinator.group.group_shard import GroupShard
from kafkapy.coordinator.group.offset_requests import CommitCall, FetchCall, FetchedOffset, PartitionErrors
from kafkapy.coordinator.group.regex_resolver import evaluate_here
from kafkapy.coordinator.group.share_group import ShareGroup
from kafkapy.coordinator.partitioning import coordinator_partition
from kafkapy.coordinator.record import CoordinatorResult
from kafkapy.coordinator.runtime import CoordinatorRuntime, ErrorResponder, ignore_response
from kafkapy.errors import ApiError, Error
from kafkapy.metadata.internal_topics import GROUP_METADATA_TOPIC
from kafkapy.protocol.messages.describe_groups import DescribeGroupsResponse
from kafkapy.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafkapy.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from kafkapy.protocol.messages.list_groups import ListGroupsResponse
from kafkapy.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from kafkapy.purgatory.delayed_operation import TimerEntry
from kafkapy.purgatory.purgatory import Schedule
from kafkapy.replica.partition import Partition
from kafkapy.types import Clock, random_java_uuid

if TYPE_CHECKING:
    from kafkapy.coordinator.group.consumer_membership import ConsumerHeartbeatCall, ResolveRegexes
    from kafkapy.coordinator.group.streams.streams_membership import StreamsHeartbeatCall, StreamsHeartbeatResult
    from kafkapy.protocol.messages.consumer_group_describe import ConsumerGroupDescribeResponse
    from kafkapy.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
    from kafkapy.protocol.messages.streams_group_describe import StreamsGroupDescribeResponse

R = TypeVar("R")


class GroupCoordinator:
    """The group coordinator, which owns the runtime of `__consumer_offsets`. Only the reactor's thread may use it;
    nothing blocks.

    A method for a request that may write to the log, or wait, has an argument `respond` or `on_done`, and calls it
    exactly once, perhaps before the method returns. A method for a request that only reads returns the response.
    """

    def __init__(
        self,
        config: GroupConfig,
        *,
        log: CoordinatorLog,
        schedule: Schedule,
        clock: Clock,
        new_uuid: Callable[[], str] = random_java_uuid,
        settings: ConsumerGroupSettings | None = None,
        resolve_regexes: ResolveRegexes = evaluate_here,
    ) -> None:
        """Creates a coordinator that leads no partition yet.

        `settings` has the broker's configuration and the cluster's metadata, which are used for consumer, share and
        streams groups; None means the default configuration and a cluster without topics. `resolve_regexes` evaluates
        regular expressions of clients; the broker passes a function that uses another thread.
        """
        consumer_settings = settings or ConsumerGroupSettings()
        self.settings = consumer_settings
        self._config = config
        self._schedule = schedule
        self._expiry_timer: TimerEntry | None = None
        self._runtime: CoordinatorRuntime[GroupShard] = CoordinatorRuntime(
            GROUP_METADATA_TOPIC,
            log=log,
            make_shard=lambda context: GroupShard(context, config, new_uuid, consumer_settings, resolve_regexes),
            schedule=schedule,
            clock=clock,
            load_buffer_bytes=config.load_buffer_bytes,
            on_elected=self._start_expiry,
        )

    # -- leadership

    def partition_for(self, group_id: str) -> int:
        return coordinator_partition(group_id, self._config.partition_count)

    def elect(self, partition: int, leader_epoch: int) -> None:
        """Begins to load the partition of `__consumer_offsets`, which this broker now leads. The load is made in short
        slices, between which the reactor's thread does other work."""
        self._runtime.elect(partition, leader_epoch)

    def is_coordinator_of(self, partition: int) -> bool:
        """Returns whether this broker coordinates the groups of this partition of `__consumer_offsets`, even if its log
        is still being loaded."""
        return self._runtime.is_coordinator_of(partition)

    def resign(self, partition: int) -> None:
        self._runtime.resign(partition)

    def on_leadership(self, led: Iterable[Partition], followed: Iterable[Partition]) -> None:
        """Begins to coordinate the groups of the partitions in `led`, which this broker leads now, and ends the
        coordination for the partitions in `followed`, which it no longer leads."""
        self._runtime.on_leadership(led, followed)

    def forget_topics(self, names: Iterable[str], topic_ids: Collection[bytes]) -> None:
        """Deletes the committed offsets of the deleted topics `names`, and removes the deleted topics `topic_ids` from
        share groups."""
        topics = frozenset(names)
        self._runtime.execute_on_all(lambda shard: shard.forget_topics(topics, topic_ids))

    def shutdown(self) -> None:
        if self._expiry_timer is not None:
            self._expiry_timer.cancel()
            self._expiry_timer = None
        self._runtime.shutdown()

    def _start_expiry(self) -> None:
        if self._expiry_timer is None:
            self._expiry_timer = self._schedule(self._config.offsets_retention_check_interval_ms, self._expire)

    def _expire(self) -> None:
        self._expiry_timer = self._schedule(self._config.offsets_retention_check_interval_ms, self._expire)
        self._runtime.execute_on_all(lambda shard: shard.expire())

    # -- membership

    def join_group(self, call: JoinCall) -> None:
        """Handles JoinGroup; calls `call.respond` with the response, in most cases when the group's next generation
        begins."""

        def refuse(error: Error, message: str | None = None) -> None:
            call.respond(join_error(call.member_id, error))

        if not call.group_id:
            refuse(Error.INVALID_GROUP_ID)
        elif not self._config.min_session_timeout_ms <= call.session_timeout_ms <= self._config.max_session_timeout_ms:
            refuse(Error.INVALID_SESSION_TIMEOUT)
        else:
            self.execute(call.group_id, lambda shard: shard.join(call), ignore_response, refuse)

    def sync_group(self, request: SyncGroupRequest, respond: Callable[[SyncGroupResponse], None]) -> None:
        def operation(shard: GroupShard) -> CoordinatorResult[SyncGroupResponse]:
            return shard.sync(request, respond)

        def refuse(error: Error, message: str | None = None) -> None:
            # A rebalance that was in progress is not in the log. The error makes the member join again.
            respond(sync_error(Error.REBALANCE_IN_PROGRESS if error is Error.COORDINATOR_LOAD_IN_PROGRESS else error))

        if not request.group_id:
            refuse(Error.INVALID_GROUP_ID)
        else:
            self.execute(request.group_id, operation, respond, refuse)

    def heartbeat(self, request: HeartbeatRequest, respond: Callable[[HeartbeatResponse], None]) -> None:
        def operation(shard: GroupShard) -> CoordinatorResult[HeartbeatResponse]:
            return shard.heartbeat(request)

        def refuse(error: Error, message: str | None = None) -> None:
            # While the group is loading every heartbeat is accepted: sessions begin after the load.
            respond(HeartbeatResponse(error_code=Error.NONE if error is Error.COORDINATOR_LOAD_IN_PROGRESS else error))

        if not request.group_id:
            refuse(Error.INVALID_GROUP_ID)
        else:
            self.execute(request.group_id, operation, respond, refuse)

    def leave_group(
        self,
        group_id: str,
        members: Sequence[LeaveGroupRequest.MemberIdentity],
        respond: Callable[[LeaveGroupResponse], None],
    ) -> None:
        def refuse(error: Error, message: str | None = None) -> None:
            if error is Error.UNKNOWN_MEMBER_ID:  # The group does not exist, so none of the members exists.
                respond(LeaveGroupResponse(members=[leave_response(member, error) for member in members]))
            else:
                respond(LeaveGroupResponse(error_code=error))

        if not group_id:
            refuse(Error.INVALID_GROUP_ID)
            return
        self.execute(group_id, lambda shard: shard.leave(group_id, members), respond, refuse)

    def consumer_group_heartbeat(
        self,
        call: ConsumerHeartbeatCall,
        respond: Callable[[ConsumerGroupHeartbeatResponse], None],
        refuse: ErrorResponder,
    ) -> None:
        self.execute(call.group_id, lambda shard: shard.consumers.heartbeat(call), respond, refuse)

    def streams_group_heartbeat(
        self,
        call: StreamsHeartbeatCall,
        respond: Callable[[StreamsHeartbeatResult], None],
        refuse: ErrorResponder,
    ) -> None:
        self.execute(call.group_id, lambda shard: shard.streams.membership.heartbeat(call), respond, refuse)

    # -- administration

    def describe_streams_group(self, group_id: str) -> StreamsGroupDescribeResponse.DescribedGroup:
        """Returns the description of the group.

        Raises ApiError GROUP_ID_NOT_FOUND, NOT_COORDINATOR or COORDINATOR_LOAD_IN_PROGRESS.
        """
        from kafkapy.coordinator.group.streams.streams_responses import described_group

        shard = self._runtime.shard(self.partition_for(group_id))
        return described_group(shard.streams.membership.existing(group_id))

    def describe_consumer_group(self, group_id: str) -> ConsumerGroupDescribeResponse.DescribedGroup:
        """Returns the description of the group.

        Raises ApiError GROUP_ID_NOT_FOUND, NOT_COORDINATOR or COORDINATOR_LOAD_IN_PROGRESS.
        """
        from kafkapy.coordinator.group.consumer_description import described_group

        shard = self._runtime.shard(self.partition_for(group_id))
        return described_group(shard.consumers.existing(group_id), self.settings)

    def describe_group(self, group_id: str, api_version: int) -> DescribeGroupsResponse.DescribedGroup:
        try:
            group = self._runtime.shard(self.partition_for(group_id)).groups.get(group_id)
            if group is None:
                raise ApiError(Error.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
            return group.describe_classic()
        except ApiError as error:
            described = DescribeGroupsResponse.DescribedGroup(group_id=group_id, error_code=error.error)
            if error.error is Error.GROUP_ID_NOT_FOUND:
                described.group_state = GroupState.DEAD.value
                described.error_message = error.message
                if api_version < DescribeGroupsResponse.FIRST_VERSION_WITH_ERROR_MESSAGE:
                    described.error_code, described.error_message = Error.NONE, None
            return described

    def list_groups(self, states: Sequence[str], types: Sequence[str]) -> ListGroupsResponse:
        """Returns the groups of all partitions of `__consumer_offsets` that this broker leads, if their state is in
        `states` and their type in `types`. The case of letters does not matter; an empty sequence matches all
        groups."""
        if self._runtime.is_any_loading:
            return ListGroupsResponse(error_code=Error.COORDINATOR_LOAD_IN_PROGRESS)
        wanted_states = {state.lower() for state in states}
        wanted_types = {group_type.lower() for group_type in types}
        listed = []
        for _, shard in self._runtime.loaded_partitions():
            for group in shard.groups.values():
                entry = _listed(group)
                if wanted_states and entry.group_state.lower() not in wanted_states:
                    continue
                if wanted_types and entry.group_type not in wanted_types:
                    continue
                listed.append(entry)
        return ListGroupsResponse(groups=listed)

    def all_groups(self) -> Iterator[Group]:
        """Yields the groups of all loaded partitions. Any thread may call it."""
        for _, shard in self._runtime.loaded_partitions():
            yield from list(shard.groups.values())

    def all_offsets(self) -> Iterator[tuple[str, str, int, int]]:
        """Yields (group, topic, partition, offset) of every committed offset of the loaded partitions. Any thread may
        call it."""
        for _, shard in self._runtime.loaded_partitions():
            for group_id in shard.offsets.group_ids():
                for topic, partition, entry in shard.offsets.committed(group_id):
                    yield group_id, topic, partition, entry.offset

    def delete_groups(self, group_ids: Sequence[str], respond: Callable[[Mapping[str, Error]], None]) -> None:
        """Deletes groups. Calls `respond` with the error of each group, by its id, when all deletions are committed."""
        unique = list(dict.fromkeys(group_ids))
        errors: dict[str, Error] = {}

        def delete(group_id: str) -> None:
            def done(error: Error, message: str | None = None) -> None:
                errors[group_id] = error
                if len(errors) == len(unique):
                    respond(errors)

            self.execute(group_id, lambda shard: shard.delete_group(group_id), done, done)

        if not unique:
            respond(errors)
        for group_id in unique:
            delete(group_id)

    # -- offsets

    def commit_offsets(self, call: CommitCall, respond: Callable[[list[Error]], None]) -> None:
        """Commits offsets. Calls `respond` when they are durable, with one error for each offset of the call, in the
        same order."""

        def refuse(error: Error, message: str | None = None) -> None:
            respond([error] * len(call.offsets))

        self.execute(call.group_id, lambda shard: shard.commit(call), respond, refuse)

    def commit_transactional_offsets(
        self, call: CommitCall, producer: tuple[int, int], respond: Callable[[list[Error]], None]
    ) -> None:
        """Commits offsets within the transaction of `producer` (id, epoch). The caller must have verified that the
        transaction contains the partition of `__consumer_offsets`.

        Calls `respond` when the offsets are durable, with one error for each offset of the call, in the same order.
        """

        def refuse(error: Error, message: str | None = None) -> None:
            respond([error] * len(call.offsets))

        self.execute(call.group_id, lambda shard: shard.commit_transactional(call, producer), respond, refuse)

    def end_transaction(
        self, partition: int, marker: bytes, producer_id: int, *, committed: bool, on_done: Callable[[Error], None]
    ) -> None:
        """Writes the marker batch of a transaction to the partition of `__consumer_offsets`.

        If `committed`, the offsets of the transaction take effect; otherwise they are discarded. `on_done` is called
        with the outcome of the append, Error.NONE after success.
        """
        self._runtime.end_transaction(partition, marker, producer_id, committed=committed, on_done=on_done)

    def fetch_offsets(self, call: FetchCall) -> list[FetchedOffset]:
        """Returns the committed offsets of the group. Raises ApiError NOT_COORDINATOR or COORDINATOR_LOAD_IN_PROGRESS
        when this broker cannot serve the group, or another error when the request is refused."""
        return self._runtime.shard(self.partition_for(call.group_id)).fetch(call)

    def delete_offsets(
        self,
        group_id: str,
        partitions: Sequence[tuple[str, int]],
        respond: Callable[[PartitionErrors], None],
        refuse: Callable[[Error, str | None], None],
    ) -> None:
        if not group_id:
            refuse(Error.INVALID_GROUP_ID, None)
            return
        self.execute(group_id, lambda shard: shard.delete_offsets(group_id, partitions), respond, refuse)

    def is_share_group(self, group_id: str) -> bool:
        """Returns True if this broker coordinates the group and the group is a share group."""
        try:
            return isinstance(self.shard_of(group_id).groups.get(group_id), ShareGroup)
        except ApiError:
            return False

    def shard_of(self, group_id: str) -> GroupShard:
        """Returns the shard of the group. Raises ApiError NOT_COORDINATOR or COORDINATOR_LOAD_IN_PROGRESS when this
        broker does not lead the group's partition or has not loaded it completely."""
        return self._runtime.shard(self.partition_for(group_id))

    def execute(
        self,
        group_id: str,
        operation: Callable[[GroupShard], CoordinatorResult[R]],
        on_response: Callable[[R], None],
        refuse: ErrorResponder,
    ) -> None:
        self._runtime.execute(self.partition_for(group_id), operation, on_response, refuse)


def _listed(group: Group) -> ListGroupsResponse.ListedGroup:
    return ListGroupsResponse.ListedGroup(
        group_id=group.group_id,
        protocol_type=group.protocol_type or "",
        group_state=group.state_name,
        group_type=group.group_type,
    )
