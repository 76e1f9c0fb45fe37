"""How the leader of a classic group shares partitions among members: range, round robin, sticky.  Pure.

Every assignor takes the same: the members by id, the number of partitions of each topic that exists; and gives each
member its partitions. Members are taken in the order of their instance ids, then of their member ids.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from kafkapy.client.sticky_assignor import (
    Assignment,
    GroupMember,
    Members,
    PartitionCounts,
    assign_cooperatively,
    assign_sticky,
)
from kafkapy.types import TopicPartition

__all__ = [
    "ASSIGNORS",
    "COOPERATIVE_STICKY",
    "RANGE",
    "ROUND_ROBIN",
    "STICKY",
    "Assignor",
    "GroupMember",
    "assign_cooperatively",
    "assign_range",
    "assign_round_robin",
    "assign_sticky",
]


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


def _all_partitions(members: Members, counts: PartitionCounts) -> list[TopicPartition]:
    topics = sorted({topic for member in members.values() for topic in member.topics})
    return [TopicPartition(topic, number) for topic in topics for number in range(counts.get(topic, 0))]


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
