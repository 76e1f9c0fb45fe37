"""Members on their way to targets that change never share a partition."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kafkapy.coordinator.group.consumer_member import ConsumerMember, partitions_of
from kafkapy.coordinator.group.consumer_reconciliation import next_step
from kafkapy.coordinator.group.member_group import is_reconciled
from kafkapy.coordinator.group.member_state import MemberState

TOPIC = b"t" * 16
PARTITIONS = range(6)
Shares = list[int]


@given(st.lists(st.lists(st.integers(0, 3), min_size=6, max_size=6), min_size=1, max_size=4), st.randoms())
def test_members_reach_every_target_and_never_share_a_partition(targets: list[Shares], random) -> None:  # type: ignore[no-untyped-def]
    """Members report in random order while the target changes; a target names the owner of each partition."""
    members = {number: ConsumerMember(str(number)) for number in range(4)}
    held: dict[int, frozenset[int]] = dict.fromkeys(members, frozenset())
    for epoch, shares in enumerate(targets, start=1):
        rounds = 40 if epoch == len(targets) else random.randrange(6)
        for turn in range(rounds):
            number = turn % 4 if epoch == len(targets) else random.randrange(4)
            target = {TOPIC: frozenset(p for p in PARTITIONS if shares[p] == number)}
            others = [member for other, member in members.items() if other != number]
            members[number] = next_step(
                members[number],
                epoch,
                target,
                lambda topic_id, partition, others=others: any(m.owns(topic_id, partition) for m in others),
                {TOPIC: held[number]},
                None,
            )
            # The client revokes the requested partitions, and reports the rest in its next heartbeat.
            held[number] = partitions_of(members[number].assigned).get(TOPIC, frozenset())
            owned = [p for m in members.values() for p in PARTITIONS if m.owns(TOPIC, p)]
            assert len(owned) == len(set(owned))
            consumed = [p for numbers in held.values() for p in numbers]
            assert len(consumed) == len(set(consumed))
    for number, member in members.items():
        assert is_reconciled(member, len(targets))
        assert held[number] == frozenset(p for p in PARTITIONS if targets[-1][p] == number)


def test_a_kept_partition_keeps_the_epoch_it_was_assigned_in() -> None:
    member = next_step(ConsumerMember("m"), 3, {TOPIC: frozenset((0,))}, lambda *_: False, {}, None)
    member = next_step(member, 5, {TOPIC: frozenset((0, 1))}, lambda *_: False, None, None)
    assert member.assigned == {TOPIC: {0: 3, 1: 5}}
    assert (member.member_epoch, member.previous_member_epoch, member.state) == (5, 3, MemberState.STABLE)


def test_topics_that_are_not_subscribed_to_any_more_are_taken_before_there_is_a_new_target() -> None:
    member = next_step(ConsumerMember("m"), 3, {TOPIC: frozenset((0,))}, lambda *_: False, {}, None)
    revoking = next_step(member, 3, {TOPIC: frozenset((0,))}, lambda *_: False, None, frozenset())
    assert (revoking.assigned, revoking.pending_revocation) == ({}, {TOPIC: {0: 3}})
    assert revoking.state is MemberState.UNREVOKED
