"""How the leader of a classic group shares partitions among members: range, round robin, sticky.  Pure.

Every assignor takes the same: the members by id, the number of partitions of each topic that exists; and gives each
member its partitions. Members are taken in the order of their instance ids, then of their member ids.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from kafkapy.types import TopicPartition

Assignment = dict[str, list[TopicPartition]]


class GroupMember(NamedTuple):
    """What the leader knows of a member: `owned` are the partitions that it had, as of `generation`."""

    topics: tuple[str, ...]
    owned: tuple[TopicPartition, ...] = ()
    generation: int = -1
    instance_id: str | None = None


Members = Mapping[str, GroupMember]
PartitionCounts = Mapping[str, int]


def in_order(members: Members) -> list[str]:
    """Ids of members: static ones by their instance id, before the others by their own."""
    return sorted(members, key=lambda each: (members[each].instance_id is None, members[each].instance_id or each))


def assign_range(members: Members, counts: PartitionCounts) -> Assignment:
    """Each topic by itself, in ranges of consecutive partitions; the first members get one more."""
    assigned: Assignment = {member_id: [] for member_id in members}
    ordered = in_order(members)
    for topic in sorted({topic for member in members.values() for topic in member.topics}):
        readers = [each for each in ordered if topic in members[each].topics]
        share, more = divmod(counts.get(topic, 0), len(readers))
        start = 0
        for place, member_id in enumerate(readers):
            end = start + share + (place < more)
            assigned[member_id] += [TopicPartition(topic, number) for number in range(start, end)]
            start = end
    return assigned


def assign_round_robin(members: Members, counts: PartitionCounts) -> Assignment:
    """All partitions in order, to the members in turn; who does not read a topic is passed over."""
    assigned: Assignment = {member_id: [] for member_id in members}
    ordered = in_order(members)
    turn = 0
    for where in _all_partitions(members, counts):
        while where.topic not in members[ordered[turn % len(ordered)]].topics:
            turn += 1
        assigned[ordered[turn % len(ordered)]].append(where)
        turn += 1
    return assigned


def assign_sticky(members: Members, counts: PartitionCounts) -> Assignment:
    """As even as can be, and of all such ways one that leaves most partitions where they are."""
    assigned = _keep_owned(members, counts)
    taken = {where for each in assigned.values() for where in each}
    free = [where for where in _all_partitions(members, counts) if where not in taken]
    # Partitions that few members may read go first: the others can still make up for them.
    readers = _readers(members)
    free.sort(key=lambda where: (len(readers[where.topic]), where))
    ordered = in_order(members)
    place = {member_id: number for number, member_id in enumerate(ordered)}
    for where in free:
        least = min(readers[where.topic], key=lambda each: (len(assigned[each]), place[each]))
        assigned[least].append(where)
    _level(assigned, readers, place)
    return {member_id: sorted(each) for member_id, each in assigned.items()}


def assign_cooperatively(members: Members, counts: PartitionCounts) -> Assignment:
    """As `assign_sticky`, but a partition that moves is first taken from its owner, and given in the next round."""
    wanted = assign_sticky(members, counts)
    owned = _keep_owned(members, counts, evenly=False)
    owner = {where: member_id for member_id, each in owned.items() for where in each}
    return {
        member_id: [where for where in each if owner.get(where, member_id) == member_id]
        for member_id, each in wanted.items()
    }


def _all_partitions(members: Members, counts: PartitionCounts) -> list[TopicPartition]:
    topics = sorted({topic for member in members.values() for topic in member.topics})
    return [TopicPartition(topic, number) for topic in topics for number in range(counts.get(topic, 0))]


def _readers(members: Members) -> dict[str, list[str]]:
    readers: dict[str, list[str]] = {}
    for member_id in in_order(members):
        for topic in members[member_id].topics:
            readers.setdefault(topic, []).append(member_id)
    return readers


def _keep_owned(members: Members, counts: PartitionCounts, *, evenly: bool = True) -> Assignment:
    """What members had and may keep: of several who say that they own a partition, the one of the latest generation; of
    the same generation, none. `evenly`: not more than an even share, where all read the same topics."""
    claims: dict[TopicPartition, list[str]] = {}
    for member_id in in_order(members):
        member = members[member_id]
        for where in member.owned:
            if where.topic in member.topics and where.partition < counts.get(where.topic, 0):
                claims.setdefault(where, []).append(member_id)
    assigned: Assignment = {member_id: [] for member_id in members}
    for where, claimants in sorted(claims.items()):
        latest = max(members[each].generation for each in claimants)
        rightful = [each for each in claimants if members[each].generation == latest]
        if len(rightful) == 1:
            assigned[rightful[0]].append(where)
    if evenly and len({frozenset(member.topics) for member in members.values()}) == 1:
        _trim(assigned, len(_all_partitions(members, counts)), in_order(members))
    return assigned


def _trim(assigned: Assignment, partition_count: int, ordered: list[str]) -> None:
    """Takes away what is above an even share: so many members may have one more as there are left over."""
    share, more = divmod(partition_count, len(ordered))
    for member_id in ordered:
        if len(assigned[member_id]) > share and more > 0:
            more -= 1
            del assigned[member_id][share + 1 :]
        else:
            del assigned[member_id][share:]


def _level(assigned: Assignment, readers: Mapping[str, list[str]], place: Mapping[str, int]) -> None:
    """Moves partitions from who has much to who has at least two fewer, until nobody has."""
    moved = True
    while moved:
        moved = False
        for member_id in sorted(assigned, key=lambda each: (-len(assigned[each]), place[each])):
            for where in list(reversed(assigned[member_id])):
                least = min(readers[where.topic], key=lambda each: (len(assigned[each]), place[each]))
                if len(assigned[member_id]) - len(assigned[least]) >= 2:
                    assigned[member_id].remove(where)
                    assigned[least].append(where)
                    moved = True


class Assignor(NamedTuple):
    """An assignor by the name that members vote for. `is_cooperative`: partitions that stay are kept meanwhile."""

    name: str
    assign: Callable[[Members, PartitionCounts], Assignment]
    is_cooperative: bool = False


_JAVA = "org.apache.kafka.clients.consumer."
RANGE = Assignor("range", assign_range)
ROUND_ROBIN = Assignor("roundrobin", assign_round_robin)
STICKY = Assignor("sticky", assign_sticky)
COOPERATIVE_STICKY = Assignor("cooperative-sticky", assign_cooperatively, is_cooperative=True)
# By what partition.assignment.strategy may say.
ASSIGNORS: dict[str, Assignor] = {
    **{each.name: each for each in (RANGE, ROUND_ROBIN, STICKY, COOPERATIVE_STICKY)},
    f"{_JAVA}RangeAssignor": RANGE,
    f"{_JAVA}RoundRobinAssignor": ROUND_ROBIN,
    f"{_JAVA}StickyAssignor": STICKY,
    f"{_JAVA}CooperativeStickyAssignor": COOPERATIVE_STICKY,
}
