"""The sticky assignors: as even an assignment as possible, in which members keep as many partitions as possible. This
module has no state and does no I/O.

The result is the same as Apache Kafka's, so that partitions do not move when the leader of a mixed group changes. If
all members read the same topics, each member gets the floor or the ceiling of the even share: it keeps as many of its
partitions as it may have, and the others are assigned in turn (`_EqualShares`). Otherwise each partition goes to the
member with the fewest partitions among those that read the topic, and partitions are then moved as long as that makes
the assignment more even (`_Balance`).

Members get partitions with replicas in their racks, unless this makes the assignment less even (KIP-881). A partition
without a replica in the rack of its owner may therefore move.

Where Java iterates over members in the order of a hash table, this module uses alphabetical order.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterable, Mapping

from kafkapy.client.rack_matching import NO_RACKS, PartitionRacks, RackMatching
from kafkapy.named_tuple import NamedTuple
from kafkapy.types import TopicPartition

Assignment = dict[str, list[TopicPartition]]


class GroupMember(NamedTuple):
    """A member as the leader sees it; `owned` are the partitions that it had in `generation`."""

    topics: tuple[str, ...]
    owned: tuple[TopicPartition, ...] = ()
    generation: int = -1
    instance_id: str | None = None
    rack: str | None = None


Members = Mapping[str, GroupMember]
PartitionCounts = Mapping[str, int]


def assign_sticky(members: Members, counts: PartitionCounts, racks: PartitionRacks = NO_RACKS) -> Assignment:
    """Assigns the partitions of the subscribed topics by the strategy `sticky`: evenly, with few moves."""
    return _assign(members, counts, racks)[0]


def assign_cooperatively(members: Members, counts: PartitionCounts, racks: PartitionRacks = NO_RACKS) -> Assignment:
    """Assigns like `assign_sticky`, but leaves out the partitions that another member must give up first.

    They are assigned in the next rebalance (strategy `cooperative-sticky`).
    """
    assigned, moving = _assign(members, counts, racks)
    if moving is None:
        moving = _moving(members, assigned)
    return {
        member_id: [topic_partition for topic_partition in each if moving.get(topic_partition) != member_id]
        for member_id, each in assigned.items()
    }


def _assign(
    members: Members, counts: PartitionCounts, racks: PartitionRacks
) -> tuple[Assignment, dict[TopicPartition, str] | None]:
    """Assigns all partitions of the subscribed topics; returns the assignment and the moves.

    The moves map each partition that another member must give up to its new owner. If the members subscribe to
    different topics, the moves are not computed, and None is returned instead.
    """
    subscribed = {topic for member in members.values() for topic in member.topics}
    known = {topic: counts[topic] for topic in sorted(subscribed) if counts.get(topic, 0) > 0}
    owned, disputed = _valid_ownership(members, known)
    matching = RackMatching({member_id: member.rack for member_id, member in members.items()}, racks, known)
    if len({frozenset(member.topics) for member in members.values()}) == 1:
        shares = _EqualShares(known, owned, disputed, matching)
        shares.assign()
        return shares.assigned, shares.moving
    balance = _Balance(members, known, owned, matching)
    balance.assign()
    return balance.assigned, None


def _valid_ownership(members: Members, counts: PartitionCounts) -> tuple[Assignment, set[TopicPartition]]:
    """Returns the partitions that each member owns, and the disputed partitions.

    If members claim a partition for different generations, the claim of the latest generation is valid. If several
    members claim it for the same generation, the partition is disputed and has no owner. Partitions that no longer
    exist are left out.
    """
    owned: Assignment = {}
    owner: dict[TopicPartition, str] = {}
    disputed: set[TopicPartition] = set()
    for member_id in sorted(members):
        mine = owned.setdefault(member_id, [])
        generation = members[member_id].generation
        for topic_partition in members[member_id].owned:
            if topic_partition.partition >= counts.get(topic_partition.topic, 0):
                continue  # the partition no longer exists
            other = owner.get(topic_partition)
            if other is None:
                owner[topic_partition] = member_id
                mine.append(topic_partition)
            elif generation == members[other].generation:
                disputed.add(topic_partition)
                if topic_partition in owned[other]:
                    owned[other].remove(topic_partition)
                owner[topic_partition] = member_id
            elif generation > members[other].generation:
                if topic_partition in owned[other]:
                    owned[other].remove(topic_partition)
                owner[topic_partition] = member_id
                mine.append(topic_partition)
    return owned, disputed


def _moving(members: Members, assigned: Assignment) -> dict[TopicPartition, str]:
    """Returns the new owner of each partition that moves from one member to another."""
    given = {
        topic_partition: member_id
        for member_id, each in assigned.items()
        for topic_partition in set(each) - set(members[member_id].owned)
    }
    taken = {
        topic_partition
        for member_id, each in assigned.items()
        for topic_partition in set(members[member_id].owned) - set(each)
    }
    return {topic_partition: member_id for topic_partition, member_id in given.items() if topic_partition in taken}


def _partitions(topics: Iterable[str], counts: PartitionCounts) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for topic in topics for number in range(counts[topic])]


class _EqualShares:
    """The assignment of members that all read the same topics.

    `at_least` is the number of partitions divided by the number of members, rounded down, and `at_most` rounded up;
    `over_count` members get `at_most` partitions if the two numbers differ. The lists of members have the order of
    `owned`, which is alphabetical.
    """

    def __init__(
        self, counts: PartitionCounts, owned: Assignment, disputed: set[TopicPartition], matching: RackMatching
    ) -> None:
        self.matching = matching
        self.partitions = _partitions(counts, counts)
        self.owned = owned
        self.disputed = disputed
        self.assigned: Assignment = {member_id: [] for member_id in owned}
        self.moving: dict[TopicPartition, str] = {}
        self.at_least, self.over_count = divmod(len(self.partitions), len(owned))
        self.at_most = self.at_least + (self.over_count > 0)
        self.over = 0  # number of members with more than `at_least`
        self.under: list[str] = []  # members with less than `at_least`
        self.even: list[str] = []  # members with exactly `at_least` that may get one more
        self.revoked: dict[TopicPartition, str] = {}  # partition -> the member that must give it up

    def assign(self) -> None:
        """Computes `assigned`, the partitions by member, and `moving`, the new owner of each partition that another
        member owned.
        """
        for member_id, had in self.owned.items():
            misplaced = {each for each in had if self.matching.is_mismatch(member_id, each)}
            self.revoked.update(dict.fromkeys(misplaced, member_id))
            undisputed = [each for each in had if each not in self.disputed and each not in misplaced]
            self._keep(
                member_id,
                sorted(undisputed, key=lambda topic_partition: (topic_partition.partition, topic_partition.topic)),
            )
        taken = {topic_partition for each in self.assigned.values() for topic_partition in each}
        free = self.matching.fewest_readers_first(each for each in self.partitions if each not in taken)
        if self.matching.is_used:
            free = self._assign_within_racks(free)
        self._assign_rest(free)

    def _keep(self, member_id: str, had: list[TopicPartition]) -> None:
        if len(had) < self.at_least:
            self.assigned[member_id] += had
            self.under.append(member_id)
            return
        if len(had) >= self.at_most and self.over < self.over_count:
            kept = self.at_most
            self.over += 1
            if self.over == self.over_count:
                self.even.clear()
        else:
            kept = self.at_least
            if self.over < self.over_count:
                self.even.append(member_id)
        self.assigned[member_id] += had[:kept]
        self.revoked.update(dict.fromkeys(had[kept:], member_id))

    def _assign_within_racks(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """Assigns partitions to members in the same rack as one of their replicas, as long as these members may get
        more.

        Returns the partitions for which there is no such member.
        """
        left = []
        index = 0
        for topic_partition in partitions:
            place = self._near(topic_partition, self.under, index)
            if place is not None:
                member_id = self.under[place]
                self._give(topic_partition, member_id)
                size = len(self.assigned[member_id])
                if size >= self.at_least:
                    del self.under[place]
                    if size < self.at_most and self.over < self.over_count:
                        self.even.append(member_id)
                else:
                    place += 1
                index = place % len(self.under) if self.under else 0
                continue
            place = self._near(topic_partition, self.even, 0)
            if place is None:
                left.append(topic_partition)
                continue
            self._give(topic_partition, self.even.pop(place))
            self.over += 1
            if self.over == self.over_count:
                self.even.clear()
        return left

    def _near(self, topic_partition: TopicPartition, candidates: list[str], first: int) -> int | None:
        """Returns the index of the first candidate (member id) that is in a rack of the partition's replicas.

        The search begins at the index `first`, and continues at index 0 after the last candidate. Returns None if no
        candidate is in such a rack.
        """
        places = [(first + step) % len(candidates) for step in range(len(candidates))]
        return next((each for each in places if self.matching.is_near(candidates[each], topic_partition)), None)

    def _give(self, topic_partition: TopicPartition, member_id: str) -> None:
        self.assigned[member_id].append(topic_partition)
        if self.revoked.get(topic_partition, member_id) != member_id or topic_partition in self.disputed:
            self.moving[topic_partition] = member_id

    def _assign_rest(self, partitions: list[TopicPartition]) -> None:
        """Assigns partitions in turn to the members that have fewer than `at_least`, until each of them has `at_least`.

        Then each remaining partition goes to another member that may get one more.
        """
        even = deque(self.even)
        index = 0
        for topic_partition in partitions:
            if self.under:
                index = index if index < len(self.under) else 0
                member_id = self.under[index]
                index += 1
            else:
                member_id = even.popleft()
            self._give(topic_partition, member_id)
            if self.under and len(self.assigned[member_id]) == self.at_least:
                index -= 1
                del self.under[index]
                even.append(member_id)


class _Balance:
    """The assignment of members that read different topics.

    `order` contains pairs of (number of partitions, member id), in ascending order, for the members whose partitions
    may still move.
    """

    def __init__(self, members: Members, counts: PartitionCounts, owned: Assignment, matching: RackMatching) -> None:
        self.matching = matching
        self.members = members
        self.counts = counts
        self.topics = {
            member_id: [topic for topic in member.topics if topic in counts] for member_id, member in members.items()
        }
        self.readers: dict[str, list[str]] = {topic: [] for topic in counts}
        for member_id in sorted(members):
            for topic in self.topics[member_id]:
                self.readers[topic].append(member_id)
        by_readers = sorted(counts, key=lambda topic: (len(self.readers[topic]), topic))
        self.partitions = _partitions(by_readers, counts)
        self.assigned: Assignment = {
            member_id: [
                each
                for each in had
                if each.topic in members[member_id].topics and not matching.is_mismatch(member_id, each)
            ]
            for member_id, had in owned.items()
        }
        self.has_revoked = any(len(self.assigned[member_id]) < len(had) for member_id, had in owned.items())
        self.owner = {
            topic_partition: member_id for member_id, each in self.assigned.items() for topic_partition in each
        }
        self.order = sorted((len(each), member_id) for member_id, each in self.assigned.items())
        self.movements = _Movements()

    def assign(self) -> None:
        """Computes `assigned`, the partitions of each member."""
        is_first = self.order[-1][0] == 0
        free = [topic_partition for topic_partition in self.partitions if topic_partition not in self.owner]
        for topic_partition in self._given_within_racks(free) if self.matching.is_used else free:
            self._give(
                topic_partition, next(each for _, each in self.order if topic_partition.topic in self.topics[each])
            )
        movable = [
            topic_partition for topic_partition in self.partitions if len(self.readers[topic_partition.topic]) > 1
        ]
        fixed = {member_id: each for member_id, each in self.assigned.items() if not self._may_change(member_id)}
        for member_id in fixed:
            self.order.remove((len(self.assigned.pop(member_id)), member_id))
        before = {member_id: list(each) for member_id, each in self.assigned.items()}
        if not self.has_revoked:
            self._level([topic_partition for topic_partition in free if len(self.readers[topic_partition.topic]) > 1])
        if self._level(movable) and not is_first and _unevenness(self.assigned) >= _unevenness(before):
            self.assigned = before
        self.assigned.update(fixed)

    def _given_within_racks(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """Assigns each partition to a member in a rack of its replicas, or to a member that has no rack.

        Among these members, chooses the one with the fewest partitions. Returns the partitions for which there is no
        such member.
        """
        left = []
        for topic_partition in partitions:
            near = (
                each
                for _, each in self.order
                if topic_partition.topic in self.topics[each] and not self.matching.is_mismatch(each, topic_partition)
            )
            member_id = next(near, None)
            if member_id is None:
                left.append(topic_partition)
            else:
                self._give(topic_partition, member_id)
        return left

    def _give(self, topic_partition: TopicPartition, member_id: str) -> None:
        mine = self.assigned[member_id]
        del self.order[bisect_left(self.order, (len(mine), member_id))]
        mine.append(topic_partition)
        self.owner[topic_partition] = member_id
        insort(self.order, (len(mine), member_id))

    def _take(self, topic_partition: TopicPartition, member_id: str) -> None:
        mine = self.assigned[member_id]
        del self.order[bisect_left(self.order, (len(mine), member_id))]
        mine.remove(topic_partition)
        insort(self.order, (len(mine), member_id))

    def _may_change(self, member_id: str) -> bool:
        """Returns whether the member reads topics of which it lacks partitions, or has partitions that other members
        could read.
        """
        mine = self.assigned[member_id]
        if len(mine) < sum(self.counts[topic] for topic in self.topics[member_id]):
            return True
        return any(len(self.readers[topic_partition.topic]) > 1 for topic_partition in mine)

    def _level(self, partitions: list[TopicPartition]) -> bool:
        """Moves partitions to members that have at least two partitions fewer, until the assignment is balanced.

        Returns whether a partition has moved.
        """
        previous_owner = self._previous_owners()
        has_moved = False
        while True:
            moved = False
            for topic_partition in partitions:
                if self._is_balanced():
                    break
                have = len(self.assigned[self.owner[topic_partition]])
                before = previous_owner.get(topic_partition)
                if before in self.assigned and have > len(self.assigned[before]) + 1:
                    self._move(topic_partition, before)
                    moved = True
                elif any(have > len(self.assigned[each]) + 1 for each in self.readers[topic_partition.topic]):
                    self._move(
                        topic_partition,
                        next(each for _, each in self.order if topic_partition.topic in self.topics[each]),
                    )
                    moved = True
            has_moved = has_moved or moved
            if not moved:
                return has_moved

    def _previous_owners(self) -> dict[TopicPartition, str]:
        """Returns the previous owner of each partition, if this member still subscribes to the partition's topic.

        The current generation is the highest one of all members. The previous owner of a partition is the member that
        claims the partition for the highest generation below the current one.
        """
        latest = max((member.generation for member in self.members.values()), default=-1)
        found: dict[TopicPartition, tuple[int, str]] = {}
        for member_id in sorted(self.members):
            member = self.members[member_id]
            if member.generation < latest:
                for topic_partition in member.owned:
                    if topic_partition not in found or member.generation > found[topic_partition][0]:
                        found[topic_partition] = member.generation, member_id
        return {
            topic_partition: member_id
            for topic_partition, (_, member_id) in found.items()
            if topic_partition.topic in self.members[member_id].topics
        }

    def _move(self, topic_partition: TopicPartition, receiver: str) -> None:
        moved = self.movements.partition_to_move(topic_partition, self.owner[topic_partition], receiver)
        giver = self.owner[moved]
        self.movements.record(moved, giver, receiver)
        self._take(moved, giver)
        self._give(moved, receiver)

    def _is_balanced(self) -> bool:
        """Returns whether the assignment is balanced.

        This is the case if the numbers of partitions of any two members differ by one at most, or if no member could
        get a partition from a member that has more partitions.
        """
        if self.order[0][0] >= self.order[-1][0] - 1:
            return True
        for count, member_id in self.order:
            possible = _partitions(self.topics[member_id], self.counts)
            if count == len(possible):
                continue
            for topic_partition in possible:
                other = self.owner[topic_partition]
                if other != member_id and count < len(self.assigned[other]):
                    return False
        return True


class _Movements:
    """The moves of partitions so far, which prevent that two members exchange partitions of the same topic.

    If a partition has moved from A to B and another partition of the topic is to move from B to A, the first one is
    moved back instead.
    """

    def __init__(self) -> None:
        self.moves: dict[TopicPartition, tuple[str, str]] = {}

    def record(self, topic_partition: TopicPartition, giver: str, receiver: str) -> None:
        first = self.moves.pop(topic_partition, (giver, giver))[0]
        if first != receiver:  # otherwise the partition is back at its first owner
            self.moves[topic_partition] = first, receiver

    def partition_to_move(self, topic_partition: TopicPartition, giver: str, receiver: str) -> TopicPartition:
        """Returns the partition to move from `giver` to `receiver` when `topic_partition` is to move between them.

        If another partition of the topic has moved from `receiver` to `giver` before, returns this partition, which so
        moves back. Otherwise returns `topic_partition`. If `topic_partition` itself has moved before, its first owner
        counts as `giver`.
        """
        giver = self.moves.get(topic_partition, (giver, giver))[0]
        back = [
            each
            for each, pair in self.moves.items()
            if each.topic == topic_partition.topic and pair == (receiver, giver)
        ]
        return max(back, default=topic_partition)


def _unevenness(assigned: Assignment) -> int:
    sizes = sorted(map(len, assigned.values()))
    return sum(sizes[late] - sizes[early] for late in range(len(sizes)) for early in range(late))
