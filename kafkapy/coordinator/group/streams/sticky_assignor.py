"""The task assignor `sticky` of Apache Kafka. This module has no state and does no I/O.

An active task stays with its member, or goes to a member that had it as standby task. This is done only while the
member has fewer tasks than an equal share. Every other active task goes to the least loaded process, and in it to the
least loaded member. Then the standby tasks of stateful subtopologies are assigned by the same rules. A process never
has the same task twice, so that there may be fewer standby tasks than configured.

Members are considered in the order of their ids. The load of a process is the number of its tasks per member.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypeVar

from kafkapy.coordinator.group.streams.streams_member import TaskAssignment
from kafkapy.named_tuple import NamedTuple

# subtopology id, partition
TaskId = tuple[str, int]
T = TypeVar("T")


class AssignedMember(NamedTuple):
    """A member with its process (the instance of the application) and its previous target assignment."""

    member_id: str
    process_id: str
    previous: TaskAssignment


class AssignedSubtopology(NamedTuple):
    tasks: int
    is_stateful: bool


def assign(
    members: Mapping[str, AssignedMember], subtopologies: Mapping[str, AssignedSubtopology], standby_replicas: int
) -> dict[str, TaskAssignment]:
    """Returns the target assignment of each member, by member id.

    `members` are by member id, `subtopologies` by subtopology id; `standby_replicas` is the wanted number of standby
    copies of each stateful task.
    """
    return _Assignment(members, subtopologies, standby_replicas).result()


class _Heap(Generic[T]):
    """A binary heap of elements, ordered by their load, which returns equally loaded elements in the order of Java's
    PriorityQueue. This order decides which of several equally loaded processes or members gets a task."""

    def __init__(self) -> None:
        self._entries: list[tuple[float, T]] = []

    def __len__(self) -> int:
        return len(self._entries)

    def push(self, load: float, element: T) -> None:
        entries = self._entries
        index = len(entries)
        entries.append((load, element))
        while index > 0:
            parent = (index - 1) // 2
            if load >= entries[parent][0]:
                break
            entries[index] = entries[parent]
            index = parent
        entries[index] = (load, element)

    def pop(self) -> T:
        entries = self._entries
        least = entries[0][1]
        last = entries.pop()
        if not entries:
            return least
        index = 0
        while (child := 2 * index + 1) < len(entries):
            if child + 1 < len(entries) and entries[child + 1][0] < entries[child][0]:
                child += 1
            if last[0] <= entries[child][0]:
                break
            entries[index] = entries[child]
            index = child
        entries[index] = last
        return least


class _Process:
    """One instance of a Kafka Streams application: its members (threads), the number of tasks of each member, and the
    tasks of all its members."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.tasks: set[TaskId] = set()
        self._heap: _Heap[str] | None = None
        self._total = 0

    @property
    def load(self) -> float:
        return self._total / len(self.counts)

    def add(self, member_id: str, task: TaskId) -> int:
        """Adds the task to the member `member_id` of the process; returns the number of tasks that the member then
        has."""
        self._heap = None
        return self._add(member_id, task)

    def _add(self, member_id: str, task: TaskId) -> int:
        self.tasks.add(task)
        self._total += 1
        self.counts[member_id] += 1
        return self.counts[member_id]

    def add_to_least_loaded(self, task: TaskId) -> tuple[str, int]:
        """Adds the task to the member with the fewest tasks; returns the member's id and the number of tasks that it
        then has."""
        if len(self.counts) == 1:
            member_id = next(iter(self.counts))
            return member_id, self._add(member_id, task)
        if self._heap is None:
            self._heap = _Heap()
            for member_id, count in self.counts.items():
                self._heap.push(count, member_id)
        member_id = self._heap.pop()
        count = self._add(member_id, task)
        self._heap.push(count, member_id)
        return member_id, count


class _Share:
    """The largest number of tasks that a member may have (`per_member`), so that the tasks are divided about equally.

    A member that has reached this number is full. The number for the other members is then computed again, from the
    tasks that the full members do not have.
    """

    def __init__(self, tasks: int, members: int) -> None:
        self._tasks = tasks
        self._members = members
        self._update()

    def _update(self) -> None:
        self.per_member = -(-self._tasks // self._members) if self._members else 0

    def count(self, tasks_of_member: int) -> None:
        """Updates the share after a member got a task. `tasks_of_member` is the number of tasks of this member now.

        If the member has reached `per_member`, the largest permitted number, computes `per_member` again: it divides
        the tasks that the full members do not have among the members that are not full.
        """
        if tasks_of_member == self.per_member:
            self._members -= 1
            self._tasks -= tasks_of_member
            self._update()


class _Assignment:
    def __init__(
        self,
        members: Mapping[str, AssignedMember],
        subtopologies: Mapping[str, AssignedSubtopology],
        standby_replicas: int,
    ) -> None:
        self._subtopologies = subtopologies
        self._standby_replicas = standby_replicas
        active = sum(each.tasks for each in subtopologies.values())
        standby = sum(each.tasks for each in subtopologies.values() if each.is_stateful) * standby_replicas
        self._active_share = _Share(active, len(members))
        self._share = _Share(active + standby, len(members))
        self._processes: dict[str, _Process] = {}
        self._process_of: dict[str, _Process] = {}
        self._previous_active: dict[TaskId, str] = {}
        self._previous_standby: dict[TaskId, list[str]] = {}
        self._active: dict[str, dict[str, set[int]]] = {member_id: {} for member_id in members}
        self._standby: dict[str, dict[str, set[int]]] = {member_id: {} for member_id in members}
        for member_id in sorted(members):
            self._add_member(members[member_id])

    def _add_member(self, member: AssignedMember) -> None:
        process = self._processes.setdefault(member.process_id, _Process())
        process.counts[member.member_id] = 0
        self._process_of[member.member_id] = process
        for subtopology_id, partitions in member.previous.active.items():
            for partition in partitions:
                self._previous_active[subtopology_id, partition] = member.member_id
        for subtopology_id, partitions in member.previous.standby.items():
            for partition in partitions:
                self._previous_standby.setdefault((subtopology_id, partition), []).append(member.member_id)

    def result(self) -> dict[str, TaskAssignment]:
        self._assign_active()
        if self._standby_replicas > 0:
            self._assign_standby()
        return {
            member_id: TaskAssignment(_frozen(self._active[member_id]), _frozen(self._standby[member_id]))
            for member_id in self._active
        }

    # -- active tasks

    def _assign_active(self) -> None:
        tasks = [(name, partition) for name, each in self._subtopologies.items() for partition in range(each.tasks)]
        tasks.sort(key=lambda task: (task[1], task[0]))
        tasks = [task for task in tasks if not self._keep_active(task, self._previous_active.get(task))]
        tasks = [task for task in tasks if not self._keep_active(task, self._least_loaded_standby(task))]
        tasks.sort()
        heap = self._processes_by_load()
        for task in tasks:
            process = heap.pop()
            member_id, count = process.add_to_least_loaded(task)
            self._record_active(member_id, task, count)
            heap.push(process.load, process)

    def _keep_active(self, task: TaskId, member_id: str | None) -> bool:
        """Assigns the active task to the member and returns True.

        Returns False if `member_id` is None, or if the member has the largest permitted number of tasks.
        """
        if member_id is None or self._process_of[member_id].counts[member_id] >= self._active_share.per_member:
            return False
        self._record_active(member_id, task, self._process_of[member_id].add(member_id, task))
        return True

    def _record_active(self, member_id: str, task: TaskId, count: int) -> None:
        self._active[member_id].setdefault(task[0], set()).add(task[1])
        self._active_share.count(count)
        self._share.count(count)

    def _processes_by_load(self) -> _Heap[_Process]:
        heap: _Heap[_Process] = _Heap()
        for process in self._processes.values():
            heap.push(process.load, process)
        return heap

    # -- standby tasks

    def _assign_standby(self) -> None:
        """Assigns the standby copies of all stateful tasks: to members that had the task before where possible, and the
        remaining copies to the least loaded processes."""
        tasks = [
            (name, partition)
            for name, each in self._subtopologies.items()
            if each.is_stateful
            for partition in range(each.tasks)
        ]
        tasks.sort(key=lambda task: (task[1], task[0]), reverse=True)
        left = []
        for task in tasks:
            for replica in range(self._standby_replicas):
                if not self._keep_standby(task):
                    left.append((task, self._standby_replicas - replica))
                    break
        left.sort(reverse=True)
        heap = self._processes_by_load()
        for task, replicas in left:
            for _ in range(replicas):
                if not self._add_standby(heap, task):
                    break

    def _keep_standby(self, task: TaskId) -> bool:
        """Assigns one standby copy of the task to a member that had the task before. Returns False if no such member
        can get it.

        The member that had the task as active task comes first, then the member that `_least_loaded_standby` returns. A
        member cannot get the copy if its process has been assigned the task already, or if the member has the largest
        permitted number of tasks.
        """
        member_id = self._previous_active.get(task)
        if member_id is not None and task not in self._process_of[member_id].tasks and self._has_room(member_id):
            self._record_standby(member_id, task, self._process_of[member_id].add(member_id, task))
            return True
        member_id = self._least_loaded_standby(task, without_task=True)
        if member_id is not None and self._has_room(member_id):
            self._record_standby(member_id, task, self._process_of[member_id].add(member_id, task))
            return True
        return False

    def _has_room(self, member_id: str) -> bool:
        return self._process_of[member_id].counts[member_id] < self._share.per_member

    def _record_standby(self, member_id: str, task: TaskId, count: int) -> None:
        self._standby[member_id].setdefault(task[0], set()).add(task[1])
        self._share.count(count)

    def _add_standby(self, heap: _Heap[_Process], task: TaskId) -> bool:
        """Assigns one standby copy of the task to the least loaded process that does not have the task; returns False
        if every process has it."""
        popped = []
        is_added = False
        while len(heap) and not is_added:
            process = heap.pop()
            popped.append(process)
            if task not in process.tasks:
                member_id, count = process.add_to_least_loaded(task)
                self._record_standby(member_id, task, count)
                is_added = True
        for process in reversed(popped):
            heap.push(process.load, process)
        return is_added

    def _least_loaded_standby(self, task: TaskId, *, without_task: bool = False) -> str | None:
        """Returns a member with few tasks among the members that had the task as standby task.

        Returns None if no member had the task as standby task. As in Apache Kafka, begins with the first of these
        members. A later member is chosen instead only if its process has a lower load, and the member itself has fewer
        tasks, than the member found so far. If `without_task` is True, members whose process has been assigned the task
        already are skipped; but if the first member is one of them, the result is None.
        """
        members = self._previous_standby.get(task)
        if not members:
            return None
        first = self._process_of[members[0]]
        if without_task and task in first.tasks:
            return None
        found, load, count = members[0], first.load, first.counts[members[0]]
        for member_id in members[1:]:
            process = self._process_of[member_id]
            if process.load >= load or (without_task and task in process.tasks):
                continue
            if process.counts[member_id] < count:
                found, load, count = member_id, process.load, process.counts[member_id]
        return found


def _frozen(tasks: Mapping[str, set[int]]) -> dict[str, frozenset[int]]:
    return {subtopology_id: frozenset(tasks[subtopology_id]) for subtopology_id in sorted(tasks)}
