"""The range assignor: consecutive partitions of each topic, in the racks of their readers where possible. This module
has no state and does no I/O.

The readers of a topic are the members that subscribe to the topic. If a topic's partitions do not divide evenly, the
first members get one more. Topics with the same readers and the same number of partitions are co-partitioned: a member
gets the partitions with the same numbers of all these topics, if each of these partitions has a replica in the member's
rack (KIP-881). Racks never make an assignment less even.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from kafkapy.client.rack_matching import NO_RACKS, PartitionRacks, are_racks_useful, racks_of
from kafkapy.client.sticky_assignor import Assignment, Members, PartitionCounts
from kafkapy.types import TopicPartition


def in_order(members: Members) -> list[str]:
    """Returns the members' ids: static members by instance id, then the others by member id."""
    return sorted(members, key=lambda each: (members[each].instance_id is None, members[each].instance_id or each))


def assign_range(members: Members, counts: PartitionCounts, racks: PartitionRacks = NO_RACKS) -> Assignment:
    """Returns the partitions of each member: a range of consecutive partitions of each topic that it subscribes to.

    `counts` has the number of each topic's partitions, `racks` the racks of their replicas.
    """
    ordered = in_order(members)
    member_racks = {member_id: members[member_id].rack for member_id in members}
    topics = sorted({topic for member in members.values() for topic in member.topics if counts.get(topic, 0)})
    states = [
        _TopicState(
            topic,
            [each for each in ordered if topic in members[each].topics],
            member_racks,
            [racks_of(racks, topic, number) for number in range(counts[topic])],
        )
        for topic in topics
    ]
    if any(state.needs_racks for state in states):
        _assign_within_racks(states)
    for state in states:
        state.assign_ranges(lambda member_id, number: True)
    assigned: Assignment = {member_id: [] for member_id in members}
    for state in states:
        for member_id, given in state.given.items():
            assigned[member_id] += [TopicPartition(state.topic, number) for number in sorted(given)]
    return assigned


class _TopicState:
    """The assignment of one topic, while it is computed.

    `readers` are the ids of the members that subscribe to the topic, in the order in which they get partitions; `free`
    are the partitions that no reader has yet, and `given` has the partitions of each reader.
    """

    def __init__(
        self,
        topic: str,
        readers: Sequence[str],
        member_racks: Mapping[str, str | None],
        racks: Sequence[frozenset[str]],
    ) -> None:
        self.topic = topic
        self.readers = readers
        self.racks = racks
        self.reader_racks = {each: member_racks[each] for each in readers}
        self.free = list(range(len(racks)))
        self.given: dict[str, list[int]] = {each: [] for each in readers}
        self._share, self._extra = divmod(len(racks), len(readers))
        known = [rack for rack in self.reader_racks.values() if rack]
        self.has_racks = bool(known)
        self.needs_racks = are_racks_useful(known, racks)

    def is_match(self, member_id: str, number: int) -> bool:
        """Returns whether the member has no rack, or a replica of the partition is in its rack."""
        rack = self.reader_racks[member_id]
        return not rack or rack in self.racks[number]

    def room_of(self, member_id: str) -> int:
        """Returns the number of partitions that the member may still get."""
        return max(0, self._share + (self._extra > 0) - len(self.given[member_id]))

    def give(self, member_id: str, numbers: Sequence[int]) -> None:
        self.given[member_id] += numbers
        if len(self.given[member_id]) > self._share:
            self._extra -= 1
        self.free = [each for each in self.free if each not in numbers]

    def assign_ranges(self, may_get: Callable[[str, int], bool]) -> None:
        """Assigns to each member the first free partitions that it may get, until it has its fair number, or no such
        partition is left.

        `may_get(member_id, number)` returns whether the member may get the partition with this number.
        """
        for member_id in self.readers:
            chosen = [each for each in self.free if may_get(member_id, each)][: self.room_of(member_id)]
            if chosen:
                self.give(member_id, chosen)


def _assign_within_racks(states: Sequence[_TopicState]) -> None:
    groups: dict[tuple[tuple[str, ...], int], list[_TopicState]] = {}
    for state in states:
        count = len(state.racks) if state.has_racks else 0
        groups.setdefault((tuple(state.readers), count), []).append(state)
    for (readers, count), group in groups.items():
        if len(group) > 1:
            _assign_co_partitioned(readers, count, group)
        elif group[0].needs_racks:
            group[0].assign_ranges(group[0].is_match)


def _assign_co_partitioned(readers: Sequence[str], count: int, states: Sequence[_TopicState]) -> None:
    """Assigns the partitions of several topics so that one member gets all partitions with the same number.

    For each number, this is the first member that may still get partitions of every topic and, if it has a rack, has
    replicas of all these partitions in its rack. The topics in `states` have the same `readers`; each has `count`
    partitions, or `count` is 0 and nothing is assigned.
    """
    remaining = list(readers)
    for number in range(count):
        for member_id in remaining:
            if all(state.is_match(member_id, number) and state.room_of(member_id) for state in states):
                for state in states:
                    state.give(member_id, [number])
                if not any(state.room_of(member_id) for state in states):
                    remaining.remove(member_id)
                break
