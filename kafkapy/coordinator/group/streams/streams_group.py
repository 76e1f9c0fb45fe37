"""A streams group's state (KIP-1071): members, epochs, topology, target assignment. This module uses no clock and no
log.

The group epoch counts the changes of members, topology, topics and assignment settings. The assignment epoch is the
group epoch for which the target assignment was computed.

not ready      the topology is unknown, or its topics are missing or have wrong numbers of partitions
assigning      the assignment epoch is behind the group epoch, so that the target has to be computed again
reconciling    a member is behind the assignment epoch, has to revoke tasks, or waits for others to release them
stable         every member has its target
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from kafkapy.coordinator.group.member_group import CommittingGroup
from kafkapy.coordinator.group.offset_requests import OffsetToCommit
from kafkapy.coordinator.group.streams.streams_member import StreamsMember, TaskAssignment
from kafkapy.coordinator.group.streams.topic_configuration import ConfiguredTopology
from kafkapy.coordinator.group.streams.topology import Topology


class StreamsGroup(CommittingGroup[StreamsMember]):
    """A group of a Kafka Streams application, with its members. Only the thread that owns it may use it.

    The group changes when records are replayed, except the fields that are not in the log: `configured`, the topology
    with the numbers of partitions of its topics, which was computed from the topics image `checked_topics`;
    `endpoint_epoch`, which counts the changes of the tasks of members with an endpoint for queries; and
    `shutdown_member_id`, the member that requested the shutdown of the application.

    Invariants: `active_processes` has, for each active task, the process of the member that has the task.
    `standby_processes` and `warmup_processes` have, for each standby or warm-up task, the processes of all members that
    have the task.
    """

    group_type = protocol_type = "streams"

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.validated_topology_epoch = 0
        self.assignment_configs: Mapping[str, str] = {}
        self.topology: Topology | None = None
        self.target: dict[str, TaskAssignment] = {}
        self.active_processes: dict[tuple[str, int], str] = {}
        self.standby_processes: dict[tuple[str, int], set[str]] = {}
        self.warmup_processes: dict[tuple[str, int], set[str]] = {}
        self.configured: ConfiguredTopology | None = None
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
                    remaining = processes.get(task, set())
                    remaining.discard(member.process_id)
                    if not remaining:
                        processes.pop(task, None)

    # -- queries

    @property
    def state_name(self) -> str:
        if self.members and (self.topology is None or self.topology.epoch != self.validated_topology_epoch):
            return "NotReady"
        return super().state_name

    def is_subscribed_to(self, topic: str) -> bool:
        return bool(self.members) and self.topology is not None and self.topology.reader_of(topic) is not None

    def assignment_epoch_of(self, member: StreamsMember, entry: OffsetToCommit) -> int | None:
        reader = None if self.topology is None else self.topology.reader_of(entry.topic)
        if reader is None:
            return None
        for owned in (member.assigned, member.pending_revocation):
            since = owned.active.get(reader.subtopology_id, {}).get(entry.partition)
            if since is not None:
                return since
        return None


def _tasks(tasks: Mapping[str, Iterable[int]]) -> Iterator[tuple[str, int]]:
    for name, partitions in tasks.items():
        for partition in partitions:
            yield name, partition
