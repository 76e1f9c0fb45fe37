"""StreamsGroupHeartbeat of a streams group (KIP-1071): joins, heartbeats, leaves, and the timers of its members.

session            removes a member that sends no heartbeats
rebalance          removes a member that does not revoke its tasks within its rebalance timeout
initial rebalance  delays the first assignment of a group, so that more members can join
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TypeVar

from kafkapy.coordinator.group.classic.classic_group import ClassicGroup
from kafkapy.coordinator.group.classic.classic_records import group_tombstone
from kafkapy.coordinator.group.consumer_member import LEAVE_EPOCH, STATIC_LEAVE_EPOCH
from kafkapy.coordinator.group.consumer_topics import metadata_hash
from kafkapy.coordinator.group.group import Group
from kafkapy.coordinator.group.member_group import existing_group, of_kind
from kafkapy.coordinator.group.member_state import MemberState
from kafkapy.coordinator.group.streams.sticky_assignor import AssignedMember, AssignedSubtopology, assign
from kafkapy.coordinator.group.streams.streams_group import StreamsGroup
from kafkapy.coordinator.group.streams.streams_member import StreamsMember, TaskAssignment
from kafkapy.coordinator.group.streams.streams_records import (
    current_record,
    group_epoch_record,
    member_record,
    member_tombstones,
    target_epoch_record,
    target_record,
    topology_record,
)
from kafkapy.coordinator.group.streams.streams_responses import endpoint_partitions, set_tasks
from kafkapy.coordinator.group.streams.streams_settings import STANDBY_REPLICAS, StreamsGroupSettings
from kafkapy.coordinator.group.streams.task_reconciliation import next_step
from kafkapy.coordinator.group.streams.topic_configuration import (
    ConfiguredTopology,
    InternalTopic,
    Status,
    TopicProblem,
    configure,
)
from kafkapy.coordinator.group.streams.topology import Topology
from kafkapy.coordinator.record import EMPTY_RESULT, CoordinatorRecord, CoordinatorResult
from kafkapy.coordinator.shard import ShardContext
from kafkapy.errors import ApiError, Error
from kafkapy.named_tuple import NamedTuple
from kafkapy.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatResponse

logger = logging.getLogger("kafka.coordinator.group")

R = TypeVar("R")
NOT_VALIDATED = -1


class StreamsHeartbeatCall(NamedTuple):
    """One validated StreamsGroupHeartbeat.

    A field that is None, or a timeout of -1, has not changed since the member's previous request.
    `endpoint_epoch` is the epoch of the interactive-query endpoints that the client has received last.
    """

    group_id: str
    member_id: str
    member_epoch: int
    endpoint_epoch: int
    rack_id: str | None
    rebalance_timeout_ms: int
    client_id: str
    client_host: str
    topology: Topology | None
    owned: TaskAssignment | None
    process_id: str | None
    user_endpoint: tuple[str, int] | None
    client_tags: tuple[tuple[str, str], ...] | None
    wants_shutdown: bool


class StreamsHeartbeatResult(NamedTuple):
    """The response to a heartbeat, and the internal topics that must be created before the group gets tasks, by
    name."""

    response: StreamsGroupHeartbeatResponse
    missing_topics: Mapping[str, InternalTopic] = {}


class StreamsMembership:
    """The handler of the heartbeats of streams groups. Only the thread that owns it may use it.

    `groups` belongs to the shard, the state of one partition of `__consumer_offsets`. A method reads the group and
    returns the records of the change; the members change when these records are replayed.
    """

    def __init__(self, context: ShardContext, settings: StreamsGroupSettings, groups: dict[str, Group]) -> None:
        self._context = context
        self._settings = settings
        self._groups = groups

    # -- heartbeats

    def heartbeat(self, call: StreamsHeartbeatCall) -> CoordinatorResult[StreamsHeartbeatResult]:
        """Handles StreamsGroupHeartbeat; raises ApiError if the request is refused."""
        if call.member_epoch in (LEAVE_EPOCH, STATIC_LEAVE_EPOCH):
            return self._leave(call)
        records: list[CoordinatorRecord] = []
        group = self._group_for(call, records)
        if call.member_epoch == 0:
            self._check_room(group)
            before = group.members.get(call.member_id) or StreamsMember(call.member_id)
        else:
            before = group.member(call.member_id)
            _validate_epoch(before, call)
        after = _with_changes(before, call)
        has_changed = after.metadata != before.metadata
        if has_changed:
            records.append(member_record(group.group_id, after))
        topology, problems = _topology_for(group, after, call, records)
        configured, digest = self._configure(group, topology)
        if configured.subtopologies is not None and configured.is_ready:
            _check_tasks(configured, call.owned)
        configs = self._settings.assignment_configs(group.group_id)
        epoch = self._group_epoch(group, configured, digest, configs, records, has_changed=has_changed)
        self._delay_first_assignment(group)
        target_epoch, target = self._target(group, epoch, after, configured, configs, records, problems)
        member = next_step(after, target_epoch, target, group, call.owned)
        if member != after:
            records.append(current_record(group.group_id, member))
            self._reschedule_rebalance(group.group_id, member)
        self._reschedule_session(group.group_id, call.member_id)
        if call.wants_shutdown:
            _request_shutdown(group, call.member_id)
        if configured.problem is not None:
            problems.append(configured.problem)
        response = self._response(group, call, before, member, configured)
        response.status = _statuses(group, problems)
        return CoordinatorResult(records, StreamsHeartbeatResult(response, configured.missing_topics))

    def existing(self, group_id: str) -> StreamsGroup:
        """Returns the group. Raises ApiError GROUP_ID_NOT_FOUND if it does not exist or is not a streams group."""
        return existing_group(self._groups, group_id, StreamsGroup)

    def _group_for(self, call: StreamsHeartbeatCall, records: list[CoordinatorRecord]) -> StreamsGroup:
        """Returns the group of the request; raises ApiError GROUP_ID_NOT_FOUND if it is not a streams group.

        For a member that joins, creates the group or replaces an empty classic group, whose tombstone is appended to
        `records`. A group that is created here is used for this request only: the replay of the records creates the
        group in the shard.
        """
        group = self._groups.get(call.group_id)
        if call.member_epoch != 0:
            if group is None:
                raise ApiError(Error.GROUP_ID_NOT_FOUND, f"Streams group {call.group_id} not found.")
        elif group is None:
            return StreamsGroup(call.group_id)
        elif isinstance(group, ClassicGroup) and not group.members:
            logger.info("The empty classic group %s becomes a streams group.", call.group_id)
            records.append(group_tombstone(call.group_id))
            return StreamsGroup(call.group_id)
        return of_kind(group, StreamsGroup)

    def _check_room(self, group: StreamsGroup) -> None:
        maximum = self._settings.max_group_size
        if len(group.members) >= maximum:
            message = f"The streams group has reached its maximum capacity of {maximum} members."
            raise ApiError(Error.GROUP_MAX_SIZE_REACHED, message)

    # -- topology and group epoch

    def _partition_count(self, topic: str) -> int | None:
        found = self._settings.image().topics.by_name.get(topic)
        return None if found is None else len(found.partitions)

    def _configure(self, group: StreamsGroup, topology: Topology) -> tuple[ConfiguredTopology, int]:
        """Returns `topology` with the numbers of partitions of its topics, and the hash of the topics' metadata.
        Returns the results of the previous call for the group if no topic has changed in the cluster."""
        topics = self._settings.image().topics
        digest, configured = group.metadata_hash, group.configured
        if group.topology is None or configured is None or group.checked_topics is not topics:
            digest = metadata_hash(self._settings.image(), topology.required_topics())
            if group.topology is None or configured is None or digest != group.metadata_hash:
                configured = group.configured = configure(topology, self._partition_count)
            group.checked_topics = topics
        return configured, digest

    def _group_epoch(
        self,
        group: StreamsGroup,
        configured: ConfiguredTopology,
        digest: int,
        configs: Mapping[str, str],
        records: list[CoordinatorRecord],
        *,
        has_changed: bool,
    ) -> int:
        """Returns the group's epoch. Increases it by one, and appends its record to `records`, if something that the
        assignment depends on has changed.

        This is the case if a member has changed (`has_changed` is True), or if the hash `digest` of the topics'
        metadata, the assignment settings `configs`, or the topology's epoch (-1 while it is not ready) differs from
        that of the group.
        """
        validated = configured.epoch if configured.is_ready else NOT_VALIDATED
        if (
            not has_changed
            and digest == group.metadata_hash
            and validated == group.validated_topology_epoch
            and configs == group.assignment_configs
        ):
            return group.group_epoch
        epoch = group.group_epoch + 1
        records.append(group_epoch_record(group.group_id, epoch, digest, validated, configs))
        return epoch

    # -- target assignment

    def _delay_first_assignment(self, group: StreamsGroup) -> None:
        group_id = group.group_id
        delay_ms = self._settings.initial_rebalance_delay_ms(group_id)
        if group.is_empty and delay_ms > 0:
            key = initial_rebalance_key(group_id)
            self._context.schedule_unless_scheduled(key, delay_ms, lambda: self._compute_first_target(group_id))

    def _compute_first_target(self, group_id: str) -> CoordinatorResult[None]:
        """Computes the target assignment of a new group at the end of the initial rebalance delay, and returns its
        records."""
        group = self._groups.get(group_id)
        if not isinstance(group, StreamsGroup) or group.is_empty or group.configured is None:
            # Without `configured` no member has sent a second heartbeat yet; the next heartbeat computes the target.
            return EMPTY_RESULT
        records: list[CoordinatorRecord] = []
        self._target(group, group.group_epoch, None, group.configured, group.assignment_configs, records, [])
        return CoordinatorResult(records)

    def _target(
        self,
        group: StreamsGroup,
        epoch: int,
        changed: StreamsMember | None,
        configured: ConfiguredTopology,
        configs: Mapping[str, str],
        records: list[CoordinatorRecord],
        problems: list[TopicProblem],
    ) -> tuple[int, TaskAssignment]:
        """Returns the epoch of the target assignment, and the target of the member `changed` (no tasks if `changed` is
        None).

        If the assignment is older than the group's `epoch`, computes the targets of all members and appends their
        records to `records`. If the computation has to wait, for the initial rebalance delay or the assignment
        interval, appends the reason to `problems` instead.
        """
        if self._context.is_scheduled(initial_rebalance_key(group.group_id)):
            detail = "Assignment delayed due to the configured initial rebalance delay."
            problems.append(TopicProblem(Status.ASSIGNMENT_DELAYED, detail))
            return group.assignment_epoch, TaskAssignment()
        member_id = "" if changed is None else changed.member_id
        current_target = group.target.get(member_id, TaskAssignment())
        if group.assignment_epoch >= epoch:
            return group.assignment_epoch, current_target
        wall_ms = self._context.clock.wall_ms()
        elapsed_ms = wall_ms - group.assignment_timestamp_ms
        # If the clock was set back, the assignment is due, so that the group is not blocked.
        if 0 <= elapsed_ms < self._settings.assignment_interval_ms(group.group_id):
            detail = "Assignment delayed due to the configured assignment interval."
            problems.append(TopicProblem(Status.ASSIGNMENT_DELAYED, detail))
            return group.assignment_epoch, current_target
        target = new_target(group, changed, configured, int(configs.get(STANDBY_REPLICAS, 0)))
        for each_id, tasks in target.items():
            if group.target.get(each_id) != tasks:
                records.append(target_record(group.group_id, each_id, tasks))
        records.append(target_epoch_record(group.group_id, epoch, wall_ms))
        return epoch, target.get(member_id, TaskAssignment())

    # -- responses

    def _response(
        self,
        group: StreamsGroup,
        call: StreamsHeartbeatCall,
        before: StreamsMember,
        member: StreamsMember,
        configured: ConfiguredTopology,
    ) -> StreamsGroupHeartbeatResponse:
        """Returns the response to a heartbeat, with the member's tasks if they have changed since `before`.

        The response lists the source partitions of all members with an endpoint for interactive queries if the client
        has not received the newest list. Increases `group.endpoint_epoch` if the tasks of a member with an endpoint
        have changed.
        """
        response = StreamsGroupHeartbeatResponse(
            member_id=member.member_id,
            member_epoch=member.member_epoch,
            heartbeat_interval_ms=self._settings.heartbeat_interval_ms(group.group_id),
        )
        if call.member_epoch == 0 or member.assigned != before.assigned:
            set_tasks(response, member.assigned)
            if member.user_endpoint is not None:
                group.endpoint_epoch += 1
        if group.endpoint_epoch != call.endpoint_epoch:
            others = (each for each in group.members.values() if each.member_id != member.member_id)
            response.partitions_by_user_endpoint = endpoint_partitions(
                [*others, member], configured, self._partition_count
            )
        if group is self._groups.get(group.group_id):
            # The object of a new group is temporary, and replay creates the group with the endpoint epoch 0.
            response.endpoint_information_epoch = group.endpoint_epoch
        return response

    # -- leaving

    def _leave(self, call: StreamsHeartbeatCall) -> CoordinatorResult[StreamsHeartbeatResult]:
        group = self.existing(call.group_id)
        if call.wants_shutdown:
            _request_shutdown(group, call.member_id)
        member = group.member(call.member_id)
        response = StreamsGroupHeartbeatResponse(member_id=call.member_id, member_epoch=call.member_epoch)
        response.status = []
        return self._remove(group, member, "it left", StreamsHeartbeatResult(response))

    def _remove(
        self, group: StreamsGroup, member: StreamsMember, why: str, response: R | None = None
    ) -> CoordinatorResult[R]:
        """Cancels the member's timers, and returns the records that remove the member and increase the group epoch.

        `response` is sent to the client when the records are committed. `why` is the reason that is logged.
        """
        group_id, member_id = group.group_id, member.member_id
        logger.info("Member %s of streams group %s is removed: %s.", member_id, group_id, why)
        self._context.cancel(_session_key(group_id, member_id))
        self._context.cancel(_rebalance_key(group_id, member_id))
        records = [
            *member_tombstones(group_id, member_id),
            group_epoch_record(
                group_id,
                group.group_epoch + 1,
                group.metadata_hash,
                group.validated_topology_epoch,
                group.assignment_configs,
            ),
        ]

        def on_committed(error: Error) -> None:
            if error is not Error.NONE:  # The removal failed, so the member stays.
                self._reschedule_session(group_id, member_id)

        return CoordinatorResult(records, response, on_committed)

    # -- timers

    def start_timers(self, group: StreamsGroup) -> None:
        """Starts the timers of a group that was read from the log. Each member has one session timeout to send a
        heartbeat."""
        for member in group.members.values():
            self._reschedule_session(group.group_id, member.member_id)
            self._reschedule_rebalance(group.group_id, member)

    def cancel_delay(self, group_id: str) -> None:
        """Cancels the timer that delays the first assignment of a group, because the group is deleted."""
        self._context.cancel(initial_rebalance_key(group_id))

    def _reschedule_session(self, group_id: str, member_id: str) -> None:
        timeout_ms = self._settings.session_timeout_ms(group_id)
        key = _session_key(group_id, member_id)
        self._context.schedule(key, timeout_ms, lambda: self._expire(group_id, member_id, None, "its session expired"))

    def _reschedule_rebalance(self, group_id: str, member: StreamsMember) -> None:
        """Starts the rebalance timer of a member that has to revoke tasks; cancels the timer of any other member."""
        member_id, epoch = member.member_id, member.member_epoch
        key = _rebalance_key(group_id, member_id)
        if member.state is not MemberState.UNREVOKED:
            self._context.cancel(key)
            return
        why = "it did not revoke its tasks in time"
        self._context.schedule(key, member.rebalance_timeout_ms, lambda: self._expire(group_id, member_id, epoch, why))

    def _expire(self, group_id: str, member_id: str, epoch: int | None, why: str) -> CoordinatorResult[None]:
        """Returns the records that remove the member whose timer has ended. `why` is the reason that is logged.

        Returns no records if the member has left already, or if its epoch is no longer `epoch`. If `epoch` is None, the
        member is removed in any epoch.
        """
        group = self._groups.get(group_id)
        if not isinstance(group, StreamsGroup) or member_id not in group.members:
            return EMPTY_RESULT
        member = group.members[member_id]
        if epoch is not None and member.member_epoch != epoch:
            return EMPTY_RESULT
        return self._remove(group, member, why)


def new_target(
    group: StreamsGroup, changed: StreamsMember | None, configured: ConfiguredTopology, standby_replicas: int
) -> dict[str, TaskAssignment]:
    """Returns the target of each member of the group, by member id. `changed`, unless it is None, replaces the member
    with the same id. No member gets tasks while the topology is not ready."""
    members = dict(group.members)
    if changed is not None:
        members[changed.member_id] = changed
    if configured.subtopologies is None or not configured.is_ready:
        return dict.fromkeys(members, TaskAssignment())
    return assign(
        {
            member_id: AssignedMember(member_id, member.process_id, group.target.get(member_id, TaskAssignment()))
            for member_id, member in members.items()
        },
        {
            name: AssignedSubtopology(subtopology.tasks, subtopology.is_stateful)
            for name, subtopology in configured.subtopologies.items()
        },
        standby_replicas,
    )


def _validate_epoch(member: StreamsMember, call: StreamsHeartbeatCall) -> None:
    """Raises ApiError FENCED_MEMBER_EPOCH if the request's epoch is not the member's epoch.

    The previous epoch is accepted if the client says that it has only tasks that the member still has, because in that
    case the response with the new epoch may have been lost.
    """
    epoch, current = call.member_epoch, member.member_epoch
    if epoch == current:
        return
    is_previous = epoch < current and epoch == member.previous_member_epoch
    if is_previous and call.owned is not None and member.assigned.contains(call.owned):
        return
    size = "greater" if epoch > current else "smaller"
    message = (
        f"The streams group member has a {size} member epoch ({epoch}) than the one known by the group coordinator "
        f"({current}). The member must abandon all its partitions and rejoin."
    )
    raise ApiError(Error.FENCED_MEMBER_EPOCH, message)


def _with_changes(member: StreamsMember, call: StreamsHeartbeatCall) -> StreamsMember:
    """Returns the member with the fields that the request contains. A field that is None, or a timeout of -1, changes
    nothing."""
    return member._replace(
        instance_id=None,
        rack_id=member.rack_id if call.rack_id is None else call.rack_id,
        rebalance_timeout_ms=(
            member.rebalance_timeout_ms if call.rebalance_timeout_ms == -1 else call.rebalance_timeout_ms
        ),
        topology_epoch=member.topology_epoch if call.topology is None else call.topology.epoch,
        client_id=call.client_id,
        client_host=call.client_host,
        process_id=member.process_id if call.process_id is None else call.process_id,
        user_endpoint=member.user_endpoint if call.user_endpoint is None else call.user_endpoint,
        client_tags=member.client_tags if call.client_tags is None else call.client_tags,
    )


def _topology_for(
    group: StreamsGroup, member: StreamsMember, call: StreamsHeartbeatCall, records: list[CoordinatorRecord]
) -> tuple[Topology, list[TopicProblem]]:
    """Returns the group's topology, and the problems to report to a member whose own topology is older.

    If the group has no topology, the topology of the request becomes the group's, and its record is appended to
    `records`. Raises ApiError INVALID_REQUEST if the request has a different topology of the same or a higher epoch,
    and UNKNOWN_SERVER_ERROR if neither the group nor the request has a topology.
    """
    current = group.topology
    if current is None:
        if call.topology is None:
            raise ApiError(Error.UNKNOWN_SERVER_ERROR)
        records.append(topology_record(group.group_id, call.topology))
        return call.topology, []
    if call.topology is not None and call.topology.epoch >= current.epoch and call.topology != current:
        raise ApiError(Error.INVALID_REQUEST, "Topology updates are not supported yet.")
    if member.topology_epoch >= current.epoch:
        return current, []
    detail = (
        f"The member's topology epoch {member.topology_epoch} is behind the group's topology epoch {current.epoch}."
    )
    return current, [TopicProblem(Status.STALE_TOPOLOGY, detail)]


def _check_tasks(configured: ConfiguredTopology, owned: TaskAssignment | None) -> None:
    """Raises ApiError INVALID_REQUEST if `owned`, the tasks that the client says it has, contains a task that the
    topology does not have."""
    for tasks in owned or ():
        for name, partitions in tasks.items():
            subtopology = (configured.subtopologies or {}).get(name)
            if subtopology is None:
                raise ApiError(Error.INVALID_REQUEST, f"Subtopology {name} does not exist in the topology.")
            for partition in sorted(partitions):
                if not 0 <= partition < subtopology.tasks:
                    message = (
                        f"Task {partition} for subtopology {name} is invalid. Number of tasks for this subtopology: "
                        f"{subtopology.tasks}"
                    )
                    raise ApiError(Error.INVALID_REQUEST, message)


def _request_shutdown(group: StreamsGroup, member_id: str) -> None:
    if group.shutdown_member_id is None:
        logger.info(
            "Member %s of streams group %s requests the shutdown of the application.", member_id, group.group_id
        )
        group.shutdown_member_id = member_id


def _statuses(group: StreamsGroup, problems: list[TopicProblem]) -> list[StreamsGroupHeartbeatResponse.Status]:
    statuses = [
        StreamsGroupHeartbeatResponse.Status(status_code=problem.status, status_detail=problem.detail)
        for problem in problems
    ]
    if group.shutdown_member_id is not None:
        detail = (
            f"Streams group member {group.shutdown_member_id} encountered a fatal error and requested a shutdown for "
            "the entire application."
        )
        statuses.append(
            StreamsGroupHeartbeatResponse.Status(status_code=Status.SHUTDOWN_APPLICATION, status_detail=detail)
        )
    return statuses


def initial_rebalance_key(group_id: str) -> str:
    return f"streams-initial-rebalance\0{group_id}"


def _session_key(group_id: str, member_id: str) -> str:
    return f"streams-session\0{group_id}\0{member_id}"


def _rebalance_key(group_id: str, member_id: str) -> str:
    return f"streams-rebalance\0{group_id}\0{member_id}"
