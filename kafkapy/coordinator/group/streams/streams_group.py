"""A streams group's state (KIP-1071): members, epochs, topology, target assignment. Pure: no clock, no log.

The group epoch counts the changes of members, topology, topics and assignment settings. The assignment epoch is the
group epoch for which the target assignment was computed.

not ready      the topology's topics are not all there
assigning      the assignment epoch is behind the group epoch, so that the target has to be computed again
reconciling    a member is behind the assignment epoch, has to revoke tasks, or waits for others to release them
stable         every member has its target
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from kafkapy.coordinator.group.committed_offset import CommittedOffset
from kafkapy.coordinator.group.offset_requests import CommitCall, OffsetToCommit
from kafkapy.coordinator.group.streams.streams_member import StreamsMember, TaskAssignment
from kafkapy.coordinator.group.streams.topic_configuration import ConfiguredTopology
from kafkapy.coordinator.group.streams.topology import Topology
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.messages.describe_groups import DescribeGroupsResponse

# The epoch of a new group, before its first record.
INITIAL_EPOCH = 1


class StreamsGroup:
    """A group of a Kafka Streams application, with its members. Owner thread only.

    Replay changes the group, except the fields that are not in the log: `configured`, the topology with the sizes of
    its topics, which was computed from the topics image `checked_topics`; `endpoint_epoch`, which counts the changes of
    the tasks of members with an endpoint for queries; and `shutdown_member_id`, the member that asked all others to
    stop.

    Invariants: `active_processes` has, for each active task, the process of the member that has it; for standby and
    warm-up tasks `standby_processes` and `warmup_processes` have all such processes.
    """

    group_type = protocol_type = "streams"

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.group_epoch = INITIAL_EPOCH
        self.metadata_hash = 0
        self.validated_topology_epoch = 0
        self.assignment_configs: Mapping[str, str] = {}
        self.assignment_epoch = INITIAL_EPOCH
        self.assignment_timestamp_ms = 0
        self.topology: Topology | None = None
        self.members: dict[str, StreamsMember] = {}
        self.target: dict[str, TaskAssignment] = {}
        self.active_processes: dict[tuple[str, int], str] = {}
        self.standby_processes: dict[tuple[str, int], set[str]] = {}
        self.warmup_processes: dict[tuple[str, int], set[str]] = {}
        self.configured: ConfiguredTopology | None = None
        self.checked_topics: object = None
        self.endpoint_epoch = 0
        self.shutdown_member_id: str | None = None

    # -- changes, by replay

    def put(self, member: StreamsMember) -> None:
        self._forget_tasks(self.members.get(member.member_id))
        self.members[member.member_id] = member
        for owned in (member.assigned, member.pending_revocation):
            for task in _tasks(owned.active):
                self.active_processes[task] = member.process_id
            for task in _tasks(owned.standby):
                self.standby_processes.setdefault(task, set()).add(member.process_id)
            for task in _tasks(owned.warmup):
                self.warmup_processes.setdefault(task, set()).add(member.process_id)

    def remove(self, member_id: str) -> None:
        self._forget_tasks(self.members.pop(member_id, None))
        if not self.members:
            self.shutdown_member_id = None

    def _forget_tasks(self, member: StreamsMember | None) -> None:
        if member is None:
            return
        for owned in (member.assigned, member.pending_revocation):
            for task in _tasks(owned.active):
                if self.active_processes.get(task) == member.process_id:
                    del self.active_processes[task]
            for tasks, processes in ((owned.standby, self.standby_processes), (owned.warmup, self.warmup_processes)):
                for task in _tasks(tasks):
                    users = processes.get(task, set())
                    users.discard(member.process_id)
                    if not users:
                        processes.pop(task, None)

    # -- queries

    @property
    def is_empty(self) -> bool:
        return not self.members

    @property
    def is_replaceable(self) -> bool:
        return self.is_empty

    @property
    def is_unused(self) -> bool:
        return self.is_empty

    @property
    def state_name(self) -> str:
        """The state in StreamsGroupDescribe and ListGroups. Any thread may read it."""
        if not self.members:
            return "Empty"
        if self.topology is None or self.topology.epoch != self.validated_topology_epoch:
            return "NotReady"
        if self.group_epoch > self.assignment_epoch:
            return "Assigning"
        if all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.copy().values()):
            return "Stable"
        return "Reconciling"

    def is_subscribed_to(self, topic: str) -> bool:
        return bool(self.members) and self.topology is not None and self.topology.reader_of(topic) is not None

    # -- validation

    def member(self, member_id: str) -> StreamsMember:
        """Returns the member with this id; raises ApiError UNKNOWN_MEMBER_ID if there is none."""
        member = self.members.get(member_id)
        if member is None:
            message = f"Member {member_id} is not a member of group {self.group_id}."
            raise ApiError(Error.UNKNOWN_MEMBER_ID, message)
        return member

    def validate_commit(self, call: CommitCall) -> Sequence[Error]:
        """Returns the error of each offset, or an empty sequence when all may be committed.

        An older member epoch is accepted for a source partition of a task that the member already had in that epoch
        (KIP-1251). Raises ApiError when the member may not commit any offset.
        """
        if call.generation_id < 0 and self.is_empty:
            return ()  # An administrator commits the offsets.
        member = self.member(call.member_id)
        if not call.is_new_protocol:
            raise ApiError(Error.UNSUPPORTED_VERSION)
        return self._commit_errors(member, call)

    def validate_transactional_commit(self, call: CommitCall) -> Sequence[Error]:
        """Validates TxnOffsetCommit like `validate_commit`, but with ILLEGAL_GENERATION for a stale epoch."""
        if not call.names_member or (call.generation_id < 0 and self.is_empty):
            return ()
        errors = self._commit_errors(self.member(call.member_id), call)
        return [Error.ILLEGAL_GENERATION if error is Error.STALE_MEMBER_EPOCH else error for error in errors]

    def _commit_errors(self, member: StreamsMember, call: CommitCall) -> Sequence[Error]:
        epoch = call.generation_id
        if epoch == member.member_epoch:
            return ()
        is_old = epoch < member.member_epoch
        return [
            Error.NONE if is_old and self._has_task_since(member, epoch, entry) else Error.STALE_MEMBER_EPOCH
            for entry in call.offsets
        ]

    def _has_task_since(self, member: StreamsMember, epoch: int, entry: OffsetToCommit) -> bool:
        reader = None if self.topology is None else self.topology.reader_of(entry.topic)
        if reader is None:
            return False
        for owned in (member.assigned, member.pending_revocation):
            since = owned.active.get(reader.subtopology_id, {}).get(entry.partition)
            if since is not None:
                return epoch >= since
        return False

    def validate_fetch(self, member_id: str | None, epoch: int) -> None:
        """Raises ApiError if the request names a member that is not in the group in this epoch.

        The error is UNKNOWN_MEMBER_ID or STALE_MEMBER_EPOCH.
        """
        if member_id is None and epoch < 0:
            return
        if member_id is None:
            # Apache Kafka responds with this error when a request has an epoch and no member id.
            raise ApiError(Error.UNKNOWN_SERVER_ERROR)
        if epoch != self.member(member_id).member_epoch:
            raise ApiError(Error.STALE_MEMBER_EPOCH)

    def validate_offset_deletion(self) -> None:
        """Does nothing, because offsets of topics that the application does not read can be deleted at any time."""

    def retention_start_ms(self, topic: str, committed: CommittedOffset) -> int | None:
        """Returns the time of the commit, or None while a member reads the topic."""
        return None if self.is_subscribed_to(topic) else committed.commit_timestamp_ms

    def validate_deletion(self) -> None:
        if not self.is_empty:
            raise ApiError(Error.NON_EMPTY_GROUP)

    def describe_classic(self) -> DescribeGroupsResponse.DescribedGroup:
        raise ApiError(Error.GROUP_ID_NOT_FOUND, f"Group {self.group_id} is not a classic group.")


def _tasks(tasks: Mapping[str, Iterable[int]]) -> Iterator[tuple[str, int]]:
    for name, partitions in tasks.items():
        for partition in partitions:
            yield name, partition
