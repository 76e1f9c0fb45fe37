"""The assignor of share groups, `simple`: balances the number of members of each partition. This module has no state
and does no I/O.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil

from kafkapy.coordinator.group.assignment import Assignment
from kafkapy.named_tuple import NamedTuple

SIMPLE_ASSIGNOR = "simple"
Partition = tuple[bytes, int]


class SharingMember(NamedTuple):
    """A member, the topics that it subscribes to (by id), and its previous target assignment."""

    member_id: str
    topic_ids: frozenset[bytes]
    previous: Assignment


def assign_simple(
    members: Sequence[SharingMember], assignable: Mapping[bytes, frozenset[int]]
) -> dict[str, dict[bytes, frozenset[int]]]:
    """Returns the target assignment of each member, by member id: partitions by topic id.

    `assignable` maps each topic id to the partitions that may be assigned. With M members and P partitions, each
    partition has ceil(M / P) members, and the members' numbers of partitions differ by at most one. A member keeps its
    previous partitions if possible. If the members subscribe to different topics, each topic is balanced separately.
    """
    if len({member.topic_ids for member in members}) <= 1:
        topic_ids = sorted(members[0].topic_ids) if members else []
        partitions = [(each, number) for each in topic_ids for number in sorted(assignable.get(each, ()))]
        chosen = _balance(members, partitions)
    else:
        chosen = {member.member_id: set() for member in members}
        for topic_id in sorted({each for member in members for each in member.topic_ids}):
            subscribers = [member for member in members if topic_id in member.topic_ids]
            partitions = [(topic_id, number) for number in sorted(assignable.get(topic_id, ()))]
            for member_id, added in _balance(subscribers, partitions).items():
                chosen[member_id] |= added
    return {member_id: _by_topic(partitions) for member_id, partitions in chosen.items()}


def _balance(members: Sequence[SharingMember], partitions: Sequence[Partition]) -> dict[str, set[Partition]]:
    """Returns the partitions of each member by member id. Every member subscribes to the topics of all `partitions`."""
    assigned: dict[str, set[Partition]] = {member.member_id: set() for member in members}
    if not partitions or not members:
        return assigned
    members_per_partition = -(-len(members) // len(partitions))
    mean = members_per_partition * len(partitions) / len(members)
    desired = {
        member.member_id: ceil(mean * (number + 1)) - ceil(mean * number) for number, member in enumerate(members)
    }
    owners: dict[Partition, set[str]] = {partition: set() for partition in partitions}
    for member in members:
        for partition in _kept(member, owners):
            if (
                len(assigned[member.member_id]) < desired[member.member_id]
                and len(owners[partition]) < members_per_partition
            ):
                assigned[member.member_id].add(partition)
                owners[partition].add(member.member_id)
    unfilled = [each for each in assigned if len(assigned[each]) < desired[each]]
    for partition in partitions:
        _add_members(partition, owners[partition], members_per_partition, assigned, desired, unfilled)
    return assigned


def _kept(member: SharingMember, owners: Mapping[Partition, object]) -> list[Partition]:
    previous = [(topic_id, number) for topic_id, numbers in member.previous.items() for number in sorted(numbers)]
    return [partition for partition in previous if partition in owners]


def _add_members(
    partition: Partition,
    owners: set[str],
    members_per_partition: int,
    assigned: dict[str, set[Partition]],
    desired: Mapping[str, int],
    unfilled: list[str],
) -> None:
    """Assigns the partition to the members at the front of `unfilled`, until the partition has `members_per_partition`
    members or each member of the queue has been tried once.

    `owners` are the members that have the partition. `assigned` maps each member id to the member's partitions, and
    `desired` the number of partitions that the member is to have. `unfilled` is the queue of the members that have
    fewer partitions than desired. Changes `owners`, `assigned` and `unfilled`.
    """
    for _ in range(len(unfilled)):
        if len(owners) >= members_per_partition:
            return
        member_id = unfilled.pop(0)
        if member_id not in owners:
            owners.add(member_id)
            assigned[member_id].add(partition)
        if len(assigned[member_id]) < desired[member_id]:
            unfilled.append(member_id)


def _by_topic(partitions: set[Partition]) -> dict[bytes, frozenset[int]]:
    topics: dict[bytes, set[int]] = {}
    for topic_id, number in sorted(partitions):
        topics.setdefault(topic_id, set()).add(number)
    return {topic_id: frozenset(numbers) for topic_id, numbers in topics.items()}
