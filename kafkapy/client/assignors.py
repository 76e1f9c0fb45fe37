"""The assignors of a classic group's leader: range, round robin, sticky, cooperative sticky. This module has no state
and does no I/O.

An assignor is a function. Its arguments are the members by id, the number of partitions of each existing topic, and the
racks of the partitions' replicas; it returns the partitions of each member. Members are ordered by their instance ids,
then by their member ids.
"""

from __future__ import annotations

from collections.abc import Callable

from kafkapy.client.rack_matching import NO_RACKS, PartitionRacks
from kafkapy.client.range_assignor import assign_range, in_order
from kafkapy.client.sticky_assignor import (
    Assignment,
    GroupMember,
    Members,
    PartitionCounts,
    assign_cooperatively,
    assign_sticky,
)
from kafkapy.named_tuple import NamedTuple
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


def assign_round_robin(members: Members, counts: PartitionCounts, racks: PartitionRacks = NO_RACKS) -> Assignment:
    """Assigns all partitions in order to the members in turn, skipping members that do not read the topic. Racks are
    not used, as in Apache Kafka."""
    assigned: Assignment = {member_id: [] for member_id in members}
    ordered = in_order(members)
    position = 0
    for topic_partition in _all_partitions(members, counts):
        while topic_partition.topic not in members[ordered[position % len(ordered)]].topics:
            position += 1
        assigned[ordered[position % len(ordered)]].append(topic_partition)
        position += 1
    return assigned


def _all_partitions(members: Members, counts: PartitionCounts) -> list[TopicPartition]:
    topics = sorted({topic for member in members.values() for topic in member.topics})
    return [TopicPartition(topic, number) for topic in topics for number in range(counts.get(topic, 0))]


class Assignor(NamedTuple):
    """An assignor of a classic group's leader: its name in JoinGroup and the function that assigns partitions.

    `assign(members, counts, racks)` is called with the subscriptions by member, the number of partitions by topic, and
    the racks of each partition's replicas. With `is_cooperative`, members keep reading during a rebalance.
    """

    name: str
    assign: Callable[[Members, PartitionCounts, PartitionRacks], Assignment]
    is_cooperative: bool = False


_JAVA = "org.apache.kafka.clients.consumer."
RANGE = Assignor("range", assign_range)
ROUND_ROBIN = Assignor("roundrobin", assign_round_robin)
STICKY = Assignor("sticky", assign_sticky)
COOPERATIVE_STICKY = Assignor("cooperative-sticky", assign_cooperatively, is_cooperative=True)
# The values of partition.assignment.strategy.
ASSIGNORS: dict[str, Assignor] = {
    **{each.name: each for each in (RANGE, ROUND_ROBIN, STICKY, COOPERATIVE_STICKY)},
    f"{_JAVA}RangeAssignor": RANGE,
    f"{_JAVA}RoundRobinAssignor": ROUND_ROBIN,
    f"{_JAVA}StickyAssignor": STICKY,
    f"{_JAVA}CooperativeStickyAssignor": COOPERATIVE_STICKY,
}
