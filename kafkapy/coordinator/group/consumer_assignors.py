"""The assignors that run on the broker (KIP-848): `uniform` and `range`. This module has no state and does no I/O.

uniform    the members' numbers of partitions differ by at most one; a member keeps its previous target if possible
range      each member gets a range of the partitions of each topic; topics with equal subscribers and numbers of
           partitions are divided equally
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence

from kafkapy.coordinator.group.assignment import Assignment
from kafkapy.named_tuple import NamedTuple


class AssignedTopic(NamedTuple):
    """An existing topic. `racks` has, for each partition, the racks of the brokers with its replicas; it is empty when
    no rack is known."""

    topic_id: bytes
    partitions: Sequence[int]
    racks: Mapping[int, frozenset[str]]


class AssignedMember(NamedTuple):
    """A member, the existing topics that it subscribes to, and its previous target assignment."""

    member_id: str
    instance_id: str | None
    rack_id: str | None
    topic_ids: frozenset[bytes]
    previous: Assignment


Topics = Mapping[bytes, AssignedTopic]
Partition = tuple[bytes, int]
Result = dict[str, dict[bytes, frozenset[int]]]
Assignor = Callable[[Sequence[AssignedMember], Topics], Result]


def assign_range(members: Sequence[AssignedMember], topics: Topics) -> Result:
    """Assigns each member a range of the partitions of each topic that it subscribes to. Returns, for each member id, a
    dictionary with the numbers of the member's partitions by topic id.

    Static members come first, in the order of their instance ids, so that a restart changes no assignment.
    """
    ordered = sorted(members, key=lambda m: (m.instance_id is None, m.instance_id or m.member_id))
    result: Result = {member.member_id: {} for member in members}
    for topic_id, topic in topics.items():
        subscribers = [member for member in ordered if topic_id in member.topic_ids]
        if not subscribers:
            continue
        share, extra = divmod(len(topic.partitions), len(subscribers))
        start = 0
        for number, member in enumerate(subscribers):
            end = start + share + (number < extra)
            if end > start:
                result[member.member_id][topic_id] = frozenset(topic.partitions[start:end])
            start = end
    return result


def assign_uniform(members: Sequence[AssignedMember], topics: Topics) -> Result:
    if not members:
        return {}
    is_homogeneous = all(member.topic_ids == members[0].topic_ids for member in members)
    owned = _share_equally(members, topics) if is_homogeneous else _share_unequally(members, topics)
    return {member_id: _by_topic(partitions) for member_id, partitions in owned.items()}


ASSIGNORS: dict[str, Assignor] = {"uniform": assign_uniform, "range": assign_range}


# -- all members have the same subscription: each member has a quota of partitions


def _share_equally(members: Sequence[AssignedMember], topics: Topics) -> dict[str, set[Partition]]:
    """Assigns the partitions of topics to members that all subscribe to the same topics. The members' numbers of
    partitions then differ by at most one. Returns a set of (topic id, partition) for each member id."""
    everything = [(topic_id, p) for topic_id in sorted(members[0].topic_ids) for p in topics[topic_id].partitions]
    share, extra = divmod(len(everything), len(members))
    # The members with the largest previous targets keep one partition more.
    ordered = sorted(members, key=lambda member: -_count(member))
    quotas = {member.member_id: share + (number < extra) for number, member in enumerate(ordered)}
    owned, unassigned = _keep(members, everything, quotas)
    if any(member.rack_id for member in members):
        unassigned = _assign_within_racks(members, topics, owned, quotas, unassigned)
    rest = iter(unassigned)
    for member in members:
        mine = owned[member.member_id]
        for _ in range(quotas[member.member_id] - len(mine)):
            mine.add(next(rest))
    return owned


def _keep(
    members: Sequence[AssignedMember], everything: Sequence[Partition], quotas: Mapping[str, int]
) -> tuple[dict[str, set[Partition]], list[Partition]]:
    """Lets each member keep partitions of its previous target, at most `quotas[member id]` of them.

    `everything` has all partitions to assign. Returns the kept partitions by member id, and the list of the partitions
    in `everything` that no member keeps.
    """
    free = set(everything)
    owned: dict[str, set[Partition]] = {}
    for member in members:
        mine = owned[member.member_id] = set()
        quota = quotas[member.member_id]
        for topic_id in sorted(member.previous):
            if topic_id in member.topic_ids:
                for partition in sorted(member.previous[topic_id]):
                    if len(mine) < quota and (topic_id, partition) in free:
                        free.remove((topic_id, partition))
                        mine.add((topic_id, partition))
    return owned, [each for each in everything if each in free]


def _assign_within_racks(
    members: Sequence[AssignedMember],
    topics: Topics,
    owned: Mapping[str, set[Partition]],
    quotas: Mapping[str, int],
    unassigned: Sequence[Partition],
) -> list[Partition]:
    """Assigns each partition of `unassigned` to a member in the same rack as a replica of the partition, if such a
    member has fewer partitions than its quota. Returns the partitions that remain unassigned.

    `owned` maps each member id to the member's partitions, and the assigned partitions are added to it. `quotas` maps
    each member id to the highest permitted number of partitions.
    """
    by_rack: dict[str, list[str]] = {}
    for member in reversed(members):
        if member.rack_id:
            by_rack.setdefault(member.rack_id, []).append(member.member_id)
    left = []
    for topic_id, partition in unassigned:
        for rack in sorted(topics[topic_id].racks.get(partition, ())):
            candidates = by_rack.get(rack, [])
            while candidates and len(owned[candidates[-1]]) >= quotas[candidates[-1]]:
                candidates.pop()
            if candidates:
                owned[candidates[-1]].add((topic_id, partition))
                break
        else:
            left.append((topic_id, partition))
    return left


# -- subscriptions differ: assign to the least loaded member, then balance the loads


def _share_unequally(members: Sequence[AssignedMember], topics: Topics) -> dict[str, set[Partition]]:
    """Assigns the partitions of all topics to members that subscribe to different topics.

    Balances the members by moving partitions between the subscribers of a topic. Returns a set of (topic id, partition)
    for each member id.
    """
    subscribers = {
        topic_id: [member.member_id for member in members if topic_id in member.topic_ids] for topic_id in topics
    }
    everything = [(topic_id, p) for topic_id in topics if subscribers[topic_id] for p in topics[topic_id].partitions]
    owned, unassigned = _keep(members, everything, {member.member_id: len(everything) for member in members})
    # Topics with few subscribers come first, because the other topics can still balance the load.
    for topic_id in sorted({topic_id for topic_id, _ in unassigned}, key=lambda t: (len(subscribers[t]), t)):
        heap = [(len(owned[member_id]), member_id) for member_id in subscribers[topic_id]]
        heapq.heapify(heap)
        for partition in [p for each, p in unassigned if each == topic_id]:
            load, member_id = heap[0]
            owned[member_id].add((topic_id, partition))
            heapq.heapreplace(heap, (load + 1, member_id))
    has_moved = True
    while has_moved:
        has_moved = False
        for topic_id in sorted(topics):
            has_moved = _balance_topic(topic_id, subscribers[topic_id], owned) or has_moved
    return owned


def _balance_topic(topic_id: bytes, subscribers: Sequence[str], owned: Mapping[str, set[Partition]]) -> bool:
    """Moves partitions of the topic from its most to its least loaded subscriber, until the loads of all its
    subscribers differ by at most one. Returns True if a partition was moved.

    The load of a member is its number of partitions of all topics, in `owned`, which maps each member id to the
    member's partitions.
    """
    has_moved = False
    while subscribers:
        least_loaded = min(subscribers, key=lambda member_id: len(owned[member_id]))
        holders = [m for m in subscribers if any(topic == topic_id for topic, _ in owned[m])]
        most_loaded = max(holders, key=lambda member_id: len(owned[member_id]), default=least_loaded)
        if len(owned[most_loaded]) - len(owned[least_loaded]) < 2:
            break
        moved = max(each for each in owned[most_loaded] if each[0] == topic_id)
        owned[most_loaded].remove(moved)
        owned[least_loaded].add(moved)
        has_moved = True
    return has_moved


def _count(member: AssignedMember) -> int:
    return sum(len(partitions) for topic_id, partitions in member.previous.items() if topic_id in member.topic_ids)


def _by_topic(partitions: set[Partition]) -> dict[bytes, frozenset[int]]:
    grouped: dict[bytes, set[int]] = {}
    for topic_id, partition in sorted(partitions):
        grouped.setdefault(topic_id, set()).add(partition)
    return {topic_id: frozenset(numbers) for topic_id, numbers in grouped.items()}
