"""One member of a streams group: a stream thread, with the tasks that it has."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kafkapy.coordinator.group.member_state import MemberState
from kafkapy.named_tuple import NamedTuple

# subtopology id -> partitions
Tasks = Mapping[str, frozenset[int]]
# subtopology id -> partition -> the assignment epoch in which the member got the task
TasksWithEpochs = Mapping[str, Mapping[int, int]]


class TaskAssignment(NamedTuple):
    """The tasks that a member is to have, or that it reports as its own: partitions by subtopology id.

    Apache Kafka 4.3 assigns no warm-up tasks.
    """

    active: Tasks = {}
    standby: Tasks = {}
    warmup: Tasks = {}

    @property
    def is_empty(self) -> bool:
        return not (self.active or self.standby or self.warmup)


class OwnedTasks(NamedTuple):
    """The tasks that a member has: partitions by subtopology id. An active task also has the epoch in which it was
    assigned."""

    active: TasksWithEpochs = {}
    standby: Tasks = {}
    warmup: Tasks = {}

    def has_any(self, reported: TaskAssignment) -> bool:
        """Returns whether the member has at least one of the reported tasks."""
        return any(_intersects(mine, theirs) for mine, theirs in zip(self, reported, strict=True))

    def contains(self, reported: TaskAssignment) -> bool:
        """Returns whether the member has all of the reported tasks."""
        return all(_contains(mine, theirs) for mine, theirs in zip(self, reported, strict=True))


def _intersects(mine: Mapping[str, Collection[int]], theirs: Tasks) -> bool:
    return any(partition in mine.get(name, ()) for name, partitions in theirs.items() for partition in partitions)


def _contains(mine: Mapping[str, Collection[int]], theirs: Tasks) -> bool:
    return all(
        name in mine and all(partition in mine[name] for partition in partitions) for name, partitions in theirs.items()
    )


class StreamsMember(NamedTuple):
    """A member of a streams group. The object does not change after its construction.

    `process_id` names the instance of the application: members with the same process id share their local state.
    `user_endpoint` is the host and port for interactive queries. `assigned` are the tasks that the member has;
    `pending_revocation` are tasks that it has to revoke and may still run. `client_tags` are sorted.
    """

    member_id: str
    member_epoch: int = 0
    previous_member_epoch: int = 0
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topology_epoch: int = -1
    process_id: str = ""
    user_endpoint: tuple[str, int] | None = None
    client_tags: tuple[tuple[str, str], ...] = ()
    assigned: OwnedTasks = OwnedTasks()
    pending_revocation: OwnedTasks = OwnedTasks()

    @property
    def metadata(self) -> tuple[object, ...]:
        """The tuple of the member's fields that its metadata record contains, for the comparison of two states of a
        member."""
        return (
            self.instance_id,
            self.rack_id,
            self.client_id,
            self.client_host,
            self.rebalance_timeout_ms,
            self.topology_epoch,
            self.process_id,
            self.user_endpoint,
            self.client_tags,
        )
