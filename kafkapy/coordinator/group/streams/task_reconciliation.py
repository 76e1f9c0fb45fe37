"""Computes the next step of one member from its present tasks to its target assignment. This module has no state and
does no I/O. A member changes its state on these conditions:

    STABLE       it has to revoke tasks                           -> UNREVOKED
    STABLE       other members still have tasks of its target     -> UNRELEASED
    UNREVOKED    it has revoked the tasks                         -> STABLE or UNRELEASED, by the newest target
    UNRELEASED   the other members have released the tasks        -> STABLE

A member enters the target's epoch as soon as it has nothing left to revoke. An active task waits until no member has it
as active task; a task of any kind waits while another thread of the member's process has it, because both would use the
same local state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from typing import Protocol

from kafkapy.coordinator.group.member_group import is_reconciled
from kafkapy.coordinator.group.member_state import MemberState
from kafkapy.coordinator.group.streams.streams_member import OwnedTasks, StreamsMember, TaskAssignment, Tasks
from kafkapy.errors import ApiError, Error

# (subtopology id, partition) -> whether the member cannot get the task yet
_IsTaken = Callable[[str, int], bool]
_NOBODY: frozenset[str] = frozenset()


class TaskProcesses(Protocol):
    """The processes (instances of the application) whose members have each task.

    The keys of the mappings are (subtopology id, partition) and identify a task; the values are process ids. A task is
    active in at most one process, but several processes may have it as standby or warm-up task.
    """

    @property
    def active_processes(self) -> Mapping[tuple[str, int], str]: ...

    @property
    def standby_processes(self) -> Mapping[tuple[str, int], AbstractSet[str]]: ...

    @property
    def warmup_processes(self) -> Mapping[tuple[str, int], AbstractSet[str]]: ...


def next_step(
    member: StreamsMember,
    target_epoch: int,
    target: TaskAssignment,
    processes: TaskProcesses,
    reported: TaskAssignment | None,
) -> StreamsMember:
    """Returns the member one step closer to its target assignment. Returns an equal member if the member has reached
    the target, or if it has not yet revoked the tasks that it has to revoke.

    `target` are the member's tasks in the assignment of `target_epoch`. `reported` are the tasks that the client says
    it has; None if it says nothing. Raises ApiError FENCED_MEMBER_EPOCH if the member is in a state that this broker
    does not know, unless the client says that it has no tasks.
    """
    if member.state is MemberState.UNREVOKED:
        if reported is None or member.pending_revocation.has_any(reported):
            return member
        return _toward_target(member, member.member_epoch + 1, target_epoch, target, processes, reported)
    if member.state is MemberState.UNKNOWN:
        if reported is None or not reported.is_empty:
            message = (
                "The streams group member is in a unknown state. The member must abandon all its tasks and rejoin."
            )
            raise ApiError(Error.FENCED_MEMBER_EPOCH, message)
        return _toward_target(member, target_epoch, target_epoch, target, processes, reported)
    if is_reconciled(member, target_epoch):
        return member
    return _toward_target(member, member.member_epoch, target_epoch, target, processes, reported)


def _toward_target(
    member: StreamsMember,
    epoch: int,
    target_epoch: int,
    target: TaskAssignment,
    processes: TaskProcesses,
    reported: TaskAssignment | None,
) -> StreamsMember:
    """Returns the member one step closer to `target`, its tasks in the assignment of `target_epoch`.

    If the member has to revoke tasks first, it is in UNREVOKED with the member epoch `epoch`. Otherwise it is in
    `target_epoch` and has the tasks of the target, except those for which it has to wait: an active task while any
    member has it as active task, and a task of any kind while a member of the same process has it. `reported` are the
    tasks that the client says it has; None if it says nothing.
    """
    process = member.process_id

    def has_passive(name: str, partition: int) -> bool:
        """Returns True if a member in the same process as `member` (perhaps `member` itself) has the task (subtopology
        `name`, `partition`) as standby or warm-up task."""
        task = (name, partition)
        return process in processes.standby_processes.get(task, _NOBODY) or process in processes.warmup_processes.get(
            task, _NOBODY
        )

    active = _ActiveDifference(
        member.assigned.active,
        target.active,
        lambda name, partition: (name, partition) in processes.active_processes or has_passive(name, partition),
    )

    def is_taken(name: str, partition: int) -> bool:
        return processes.active_processes.get((name, partition)) == process or has_passive(name, partition)

    standby = _Difference(member.assigned.standby, target.standby, is_taken)
    warmup = _Difference(member.assigned.warmup, target.warmup, is_taken)
    revoked = OwnedTasks(active.revoked, standby.revoked, warmup.revoked)
    kept = OwnedTasks(active.kept, standby.kept, warmup.kept)
    if any(revoked) and (reported is None or revoked.has_any(reported)):
        return member._replace(
            state=MemberState.UNREVOKED,
            member_epoch=epoch,
            previous_member_epoch=member.member_epoch,
            assigned=kept,
            pending_revocation=revoked,
        )
    is_waiting = active.is_waiting or standby.is_waiting or warmup.is_waiting
    return member._replace(
        state=MemberState.UNRELEASED if is_waiting else MemberState.STABLE,
        member_epoch=target_epoch,
        previous_member_epoch=member.member_epoch,
        assigned=OwnedTasks(active.with_added(target_epoch), standby.with_added(), warmup.with_added()),
        pending_revocation=OwnedTasks(),
    )


class _Difference:
    """The difference between a member's present standby (or warm-up) tasks and its target tasks: the tasks that the
    member keeps, the tasks that it has to revoke, and the tasks that it can get now.

    A task that the member does not have yet is available unless `is_taken(subtopology_id, partition)` returns True for
    it. `is_waiting` is True if a task of the target is not available yet.
    """

    def __init__(self, current: Tasks, target: Tasks, is_taken: _IsTaken) -> None:
        self.kept: dict[str, frozenset[int]] = {}
        self.revoked: dict[str, frozenset[int]] = {}
        self._added: dict[str, frozenset[int]] = {}
        self.is_waiting = False
        for name in dict.fromkeys((*target, *current)):
            mine, wanted = current.get(name, frozenset()), target.get(name, frozenset())
            missing = wanted - mine
            free = frozenset(partition for partition in missing if not is_taken(name, partition))
            self.is_waiting = self.is_waiting or len(free) < len(missing)
            for tasks, partitions in ((self.kept, mine & wanted), (self.revoked, mine - wanted), (self._added, free)):
                if partitions:
                    tasks[name] = partitions

    def with_added(self) -> Tasks:
        """Returns the tasks that the member keeps and those that it can get now, together."""
        return {
            name: self.kept.get(name, frozenset()) | self._added.get(name, frozenset())
            for name in dict.fromkeys((*self.kept, *self._added))
        }


class _ActiveDifference:
    """The difference between the present active tasks of a member and the active tasks of its target: the tasks that
    the member keeps, the tasks that it has to revoke, and the tasks that it can get now. Each task has the epoch in
    which it was assigned."""

    def __init__(self, current: Mapping[str, Mapping[int, int]], target: Tasks, is_taken: _IsTaken) -> None:
        tasks = {name: frozenset(partitions) for name, partitions in current.items()}
        self._difference = _Difference(tasks, target, is_taken)
        self.is_waiting = self._difference.is_waiting
        self.kept = _with_epochs(current, self._difference.kept)
        self.revoked = _with_epochs(current, self._difference.revoked)

    def with_added(self, epoch: int) -> dict[str, dict[int, int]]:
        return {
            name: {partition: self.kept.get(name, {}).get(partition, epoch) for partition in partitions}
            for name, partitions in self._difference.with_added().items()
        }


def _with_epochs(current: Mapping[str, Mapping[int, int]], tasks: Tasks) -> dict[str, dict[int, int]]:
    return {name: {partition: current[name][partition] for partition in tasks[name]} for name in tasks}
