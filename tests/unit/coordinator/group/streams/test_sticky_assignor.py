"""The assignor `sticky`: every task once, balanced, and with its previous member where possible."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kafkapy.coordinator.group.streams.sticky_assignor import AssignedMember, AssignedSubtopology, assign
from kafkapy.coordinator.group.streams.streams_member import TaskAssignment

NOTHING = TaskAssignment()
members_of_processes = st.lists(st.integers(0, 3), min_size=1, max_size=8)
subtopologies = st.dictionaries(
    st.sampled_from("012"), st.builds(AssignedSubtopology, st.integers(1, 9), st.booleans()), min_size=1
)


def members(processes: list[int], previous: dict[str, TaskAssignment] | None = None) -> dict[str, AssignedMember]:
    return {
        f"m{number}": AssignedMember(f"m{number}", f"p{process}", (previous or {}).get(f"m{number}", NOTHING))
        for number, process in enumerate(processes)
    }


def tasks_of(assignment: TaskAssignment) -> set[tuple[str, int]]:
    return {(name, task) for name, tasks in assignment.active.items() for task in tasks}


@given(members_of_processes, subtopologies, st.integers(0, 3))
def test_every_task_is_active_once_and_at_most_once_in_a_process(
    processes: list[int], topology: dict[str, AssignedSubtopology], replicas: int
) -> None:
    joined = members(processes)
    target = assign(joined, topology, replicas)
    active = [(name, task) for each in target.values() for name, tasks in each.active.items() for task in tasks]
    assert sorted(active) == sorted((name, task) for name, each in topology.items() for task in range(each.tasks))
    in_process = [
        (joined[member_id].process_id, name, task)
        for member_id, each in target.items()
        for kind in each
        for name, tasks in kind.items()
        for task in tasks
    ]
    assert len(in_process) == len(set(in_process))
    standby = [(name, task) for each in target.values() for name, tasks in each.standby.items() for task in tasks]
    possible = min(replicas, len(set(processes)) - 1)
    stateful = sum(each.tasks for each in topology.values() if each.is_stateful)
    assert len(standby) == stateful * possible
    assert all(topology[name].is_stateful for name, _ in standby)


@given(members_of_processes, subtopologies, st.integers(0, 2))
def test_the_same_members_keep_their_active_tasks(
    processes: list[int], topology: dict[str, AssignedSubtopology], replicas: int
) -> None:
    first = assign(members(processes), topology, replicas)
    second = assign(members(processes, first), topology, replicas)
    loads = {member_id: len(tasks_of(each)) for member_id, each in first.items()}
    if max(loads.values()) - min(loads.values()) <= 1:
        assert {each: tasks_of(target) for each, target in second.items()} == {
            each: tasks_of(target) for each, target in first.items()
        }


def test_two_subtopologies_of_three_tasks_for_two_members() -> None:
    """The assignment that was observed with Apache Kafka 4.3."""
    topology = {"0": AssignedSubtopology(3, False), "1": AssignedSubtopology(3, False)}
    target = assign(members([0, 1]), topology, 0)
    assert target["m0"].active == {"0": {0, 2}, "1": {1}}
    assert target["m1"].active == {"0": {1}, "1": {0, 2}}


def test_an_active_task_goes_to_the_member_that_had_its_standby() -> None:
    previous = {"m1": TaskAssignment({}, {"0": frozenset({0})})}
    target = assign(members([0, 1], previous), {"0": AssignedSubtopology(1, True)}, 1)
    assert (target["m1"].active, target["m0"].standby) == ({"0": {0}}, {"0": {0}})


def test_a_standby_task_stays_with_its_member() -> None:
    task = {"0": frozenset({0})}
    previous = {"m0": TaskAssignment(task, {}), "m2": TaskAssignment({}, task)}
    target = assign(members([0, 1, 2], previous), {"0": AssignedSubtopology(1, True)}, 1)
    assert (target["m0"].active, target["m2"].standby) == ({"0": {0}}, {"0": {0}})
