"""Members on their way to targets that change never share an active task, nor a process the state of a task."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkapy.coordinator.group.member_group import is_reconciled
from kafkapy.coordinator.group.member_state import MemberState
from kafkapy.coordinator.group.streams.streams_group import StreamsGroup
from kafkapy.coordinator.group.streams.streams_member import OwnedTasks, StreamsMember, TaskAssignment
from kafkapy.coordinator.group.streams.task_reconciliation import next_step
from kafkapy.errors import ApiError, Error

TASKS = range(5)
MEMBERS = range(4)
# The active member and the standby process of each task; a standby in the active process is left out.
Shares = list[tuple[int, int]]


def process_of(number: int) -> int:
    return number // 2


def target_of(number: int, shares: Shares) -> TaskAssignment:
    active = frozenset(task for task in TASKS if shares[task][0] == number)
    standby = frozenset(
        task for task in TASKS if shares[task][1] == number and process_of(shares[task][0]) != process_of(number)
    )
    return TaskAssignment({"0": active} if active else {}, {"0": standby} if standby else {})


@given(
    st.lists(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=5, max_size=5), min_size=1, max_size=4),
    st.randoms(use_true_random=False),
)
def test_members_reach_every_target_and_never_share_a_task(targets: list[Shares], random) -> None:  # type: ignore[no-untyped-def]
    group = StreamsGroup("g")
    for number in MEMBERS:
        group.put(StreamsMember(str(number), process_id=f"p{process_of(number)}"))
    for epoch, shares in enumerate(targets, start=1):
        is_last = epoch == len(targets)
        for turn in range(80 if is_last else random.randrange(8)):
            number = turn % 4 if is_last else random.randrange(4)
            member = group.members[str(number)]
            held = TaskAssignment(
                *({name: frozenset(tasks) for name, tasks in each.items()} for each in member.assigned)
            )
            group.put(next_step(member, epoch, target_of(number, shares), group, held))
            _check_exclusive(group)
    for number in MEMBERS:
        member = group.members[str(number)]
        target = target_of(number, targets[-1])
        assert is_reconciled(member, len(targets))
        assert {name: frozenset(tasks) for name, tasks in member.assigned.active.items()} == target.active
        assert member.assigned.standby == target.standby


def _check_exclusive(group: StreamsGroup) -> None:
    active = []
    by_process = []
    for member in group.members.values():
        for owned in (member.assigned, member.pending_revocation):
            active += list(owned.active.get("0", {}))
            by_process += [(member.process_id, task) for kind in owned for task in kind.get("0", ())]
    assert len(active) == len(set(active))
    assert len(by_process) == len(set(by_process))


def test_a_kept_active_task_keeps_the_epoch_it_was_assigned_in() -> None:
    member = StreamsMember("m", 3, 2, process_id="p", assigned=OwnedTasks({"0": {1: 3}}))
    moved = next_step(member, 5, TaskAssignment({"0": frozenset({1, 2})}), StreamsGroup("g"), None)
    assert moved.assigned.active == {"0": {1: 3, 2: 5}}
    assert (moved.member_epoch, moved.previous_member_epoch, moved.state) == (5, 3, MemberState.STABLE)


def test_a_member_reports_tasks_before_it_is_asked_to_revoke_them() -> None:
    member = StreamsMember("m", 3, 2, process_id="p", assigned=OwnedTasks({"0": {1: 3}}))
    held = TaskAssignment({"0": frozenset({1})})
    revoking = next_step(member, 5, TaskAssignment(), StreamsGroup("g"), held)
    assert (revoking.state, revoking.member_epoch) == (MemberState.UNREVOKED, 3)
    assert revoking.pending_revocation.active == {"0": {1: 3}}
    assert next_step(revoking, 5, TaskAssignment(), StreamsGroup("g"), None) == revoking
    assert next_step(revoking, 5, TaskAssignment(), StreamsGroup("g"), held) == revoking
    done = next_step(revoking, 5, TaskAssignment(), StreamsGroup("g"), TaskAssignment())
    assert (done.state, done.member_epoch, done.assigned) == (MemberState.STABLE, 5, OwnedTasks())


def test_a_member_without_tasks_to_report_need_not_revoke() -> None:
    member = StreamsMember("m", 3, 2, process_id="p", assigned=OwnedTasks({"0": {1: 3}}))
    moved = next_step(member, 5, TaskAssignment(), StreamsGroup("g"), TaskAssignment())
    assert (moved.state, moved.member_epoch) == (MemberState.STABLE, 5)


def test_a_member_in_an_unknown_state_starts_again() -> None:
    member = StreamsMember("m", 3, 2, MemberState.UNKNOWN, process_id="p")
    target = TaskAssignment({"0": frozenset({1})})
    with pytest.raises(ApiError) as fenced:
        next_step(member, 5, target, StreamsGroup("g"), None)
    assert fenced.value.error is Error.FENCED_MEMBER_EPOCH
    assert next_step(member, 5, target, StreamsGroup("g"), TaskAssignment()).member_epoch == 5
