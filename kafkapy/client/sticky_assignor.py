"""The sticky assignors: as even as can be, and what members had stays theirs as far as that allows.  Pure.

Apache Kafka's leader and ours come to the same assignment, so that a group with members of both does not shift
partitions about when the leader changes. Where all members read the same topics there are quotas: each member gets
floor or ceiling of the even share, those that had most keep most, and what is left is dealt out in turn
(`_EqualShares`). Else partitions go to the member with the fewest that may read them, and are then moved from one
member to another as long as that makes the assignment more even (`_Balance`).

Java goes through members in the order of a hash table where it keeps what they had; here it is the alphabet's.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterable, Mapping
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


def assign_sticky(members: Members, counts: PartitionCounts) -> Assignment:
    """All partitions of the topics that members read, to members that read them."""
    return _assign(members, counts)[0]


def assign_cooperatively(members: Members, counts: PartitionCounts) -> Assignment:
    """As `assign_sticky`, but a partition that moves is first taken from its owner, and given in the next round."""
    assigned, moving = _assign(members, counts)
    if moving is None:
        moving = _moving(members, assigned)
    return {
        member_id: [where for where in each if moving.get(where) != member_id] for member_id, each in assigned.items()
    }


def _assign(members: Members, counts: PartitionCounts) -> tuple[Assignment, dict[TopicPartition, str] | None]:
    """The assignment, and where partitions go that others have to give up first (None: to be found out)."""
    subscribed = {topic for member in members.values() for topic in member.topics}
    known = {topic: counts[topic] for topic in sorted(subscribed) if counts.get(topic, 0) > 0}
    owned, disputed = _keep_rightful(members, known)
    if len({frozenset(member.topics) for member in members.values()}) == 1:
        shares = _EqualShares(known, owned, disputed)
        shares.assign()
        return shares.assigned, shares.moving
    balance = _Balance(members, known, owned)
    balance.assign()
    return balance.assigned, None


def _keep_rightful(members: Members, counts: PartitionCounts) -> tuple[Assignment, set[TopicPartition]]:
    """What each member had, and the partitions that several had at once: of those that say so the latest generation is
    believed, and of the same generation nobody."""
    owned: Assignment = {}
    owner: dict[TopicPartition, str] = {}
    disputed: set[TopicPartition] = set()
    for member_id in sorted(members):
        mine = owned.setdefault(member_id, [])
        generation = members[member_id].generation
        for where in members[member_id].owned:
            if where.partition >= counts.get(where.topic, 0):
                continue  # it exists no more
            other = owner.get(where)
            if other is None:
                owner[where] = member_id
                mine.append(where)
            elif generation == members[other].generation:
                disputed.add(where)
                if where in owned[other]:
                    owned[other].remove(where)
                owner[where] = member_id
            elif generation > members[other].generation:
                if where in owned[other]:
                    owned[other].remove(where)
                owner[where] = member_id
                mine.append(where)
    return owned, disputed


def _moving(members: Members, assigned: Assignment) -> dict[TopicPartition, str]:
    """Partitions that one member has and another is to get."""
    given = {
        where: member_id for member_id, each in assigned.items() for where in set(each) - set(members[member_id].owned)
    }
    taken = {where for member_id, each in assigned.items() for where in set(members[member_id].owned) - set(each)}
    return {where: member_id for where, member_id in given.items() if where in taken}


def _partitions(topics: Iterable[str], counts: PartitionCounts) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for topic in topics for number in range(counts[topic])]


class _EqualShares:
    """Members that read the same topics.  `at_least` is floor of the even share, `at_most` its ceiling; `over_count`
    members have to get more than `at_least`."""

    def __init__(self, counts: PartitionCounts, owned: Assignment, disputed: set[TopicPartition]) -> None:
        self.partitions = _partitions(counts, counts)
        self.owned = owned
        self.disputed = disputed
        self.assigned: Assignment = {member_id: [] for member_id in owned}
        self.moving: dict[TopicPartition, str] = {}
        self.at_least, self.over_count = divmod(len(self.partitions), len(owned))
        self.at_most = self.at_least + (self.over_count > 0)
        self.over = 0  # members that have more than `at_least`
        self.under: list[str] = []  # members that have less than `at_least`
        self.even: list[str] = []  # members that have just that and may get one more
        self.revoked: set[TopicPartition] = set()

    def assign(self) -> None:
        for member_id, had in self.owned.items():
            rightful = [where for where in had if where not in self.disputed]
            self._keep(member_id, sorted(rightful, key=lambda where: (where.partition, where.topic)))
        self._deal()

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
        self.revoked.update(had[kept:])

    def _deal(self) -> None:
        """What is left, to those that have too little, one each in turn; then to those that may get one more."""
        taken = {where for each in self.assigned.values() for where in each}
        self.under.sort()
        even = deque(sorted(self.even))
        turn = 0
        for where in self.partitions:
            if where in taken:
                continue
            if self.under:
                turn = turn if turn < len(self.under) else 0
                member_id = self.under[turn]
                turn += 1
            else:
                member_id = even.popleft()
            self.assigned[member_id].append(where)
            if where in self.revoked or where in self.disputed:
                self.moving[where] = member_id
            if self.under and len(self.assigned[member_id]) == self.at_least:
                turn -= 1
                del self.under[turn]
                even.append(member_id)


class _Balance:
    """Members that read different topics.  `order` holds (count of partitions, member), the least first, of the members
    whose partitions may still move."""

    def __init__(self, members: Members, counts: PartitionCounts, owned: Assignment) -> None:
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
            member_id: [where for where in had if where.topic in members[member_id].topics]
            for member_id, had in owned.items()
        }
        self.has_revoked = any(len(self.assigned[member_id]) < len(had) for member_id, had in owned.items())
        self.owner = {where: member_id for member_id, each in self.assigned.items() for where in each}
        self.order = sorted((len(each), member_id) for member_id, each in self.assigned.items())
        self.movements = _Movements()

    def assign(self) -> None:
        is_first = self.order[-1][0] == 0
        free = [where for where in self.partitions if where not in self.owner]
        for where in free:
            self._give(where, next(each for _, each in self.order if where.topic in self.topics[each]))
        movable = [where for where in self.partitions if len(self.readers[where.topic]) > 1]
        fixed = {member_id: each for member_id, each in self.assigned.items() if not self._may_change(member_id)}
        for member_id in fixed:
            self.order.remove((len(self.assigned.pop(member_id)), member_id))
        before = {member_id: list(each) for member_id, each in self.assigned.items()}
        if not self.has_revoked:
            self._level([where for where in free if len(self.readers[where.topic]) > 1])
        if self._level(movable) and not is_first and _unevenness(self.assigned) >= _unevenness(before):
            self.assigned = before
        self.assigned.update(fixed)

    def _give(self, where: TopicPartition, member_id: str) -> None:
        mine = self.assigned[member_id]
        del self.order[bisect_left(self.order, (len(mine), member_id))]
        mine.append(where)
        self.owner[where] = member_id
        insort(self.order, (len(mine), member_id))

    def _take(self, where: TopicPartition, member_id: str) -> None:
        mine = self.assigned[member_id]
        del self.order[bisect_left(self.order, (len(mine), member_id))]
        mine.remove(where)
        insort(self.order, (len(mine), member_id))

    def _may_change(self, member_id: str) -> bool:
        """Whether the member could have more, or something that others could have."""
        mine = self.assigned[member_id]
        if len(mine) < sum(self.counts[topic] for topic in self.topics[member_id]):
            return True
        return any(len(self.readers[where.topic]) > 1 for where in mine)

    def _level(self, partitions: list[TopicPartition]) -> bool:
        """Moves partitions from who has at least two more to who has least, until nothing can be gained."""
        earlier = self._earlier_owners()
        has_moved = False
        while True:
            moved = False
            for where in partitions:
                if self._is_balanced():
                    break
                have = len(self.assigned[self.owner[where]])
                before = earlier.get(where)
                if before in self.assigned and have > len(self.assigned[before]) + 1:
                    self._move(where, before)
                    moved = True
                elif any(have > len(self.assigned[each]) + 1 for each in self.readers[where.topic]):
                    self._move(where, next(each for _, each in self.order if where.topic in self.topics[each]))
                    moved = True
            has_moved = has_moved or moved
            if not moved:
                return has_moved

    def _earlier_owners(self) -> dict[TopicPartition, str]:
        """Who had a partition in a generation before the last one."""
        latest = max((member.generation for member in self.members.values()), default=-1)
        found: dict[TopicPartition, tuple[int, str]] = {}
        for member_id in sorted(self.members):
            member = self.members[member_id]
            if member.generation < latest:
                for where in member.owned:
                    if where not in found or member.generation > found[where][0]:
                        found[where] = member.generation, member_id
        return {
            where: member_id for where, (_, member_id) in found.items() if where.topic in self.members[member_id].topics
        }

    def _move(self, where: TopicPartition, receiver: str) -> None:
        moved = self.movements.really_moved(where, self.owner[where], receiver)
        giver = self.owner[moved]
        self.movements.note(moved, giver, receiver)
        self._take(moved, giver)
        self._give(moved, receiver)

    def _is_balanced(self) -> bool:
        """Whether nobody could get a partition from somebody who has more."""
        if self.order[0][0] >= self.order[-1][0] - 1:
            return True
        for count, member_id in self.order:
            possible = _partitions(self.topics[member_id], self.counts)
            if count == len(possible):
                continue
            for where in possible:
                other = self.owner[where]
                if other != member_id and count < len(self.assigned[other]):
                    return False
        return True


class _Movements:
    """Where partitions were moved from and to, so that none goes there and another comes back.

    Instead of the second, one of the same topic that went the other way is moved back.
    """

    def __init__(self) -> None:
        self.moves: dict[TopicPartition, tuple[str, str]] = {}

    def note(self, where: TopicPartition, giver: str, receiver: str) -> None:
        first = self.moves.pop(where, (giver, giver))[0]
        if first != receiver:  # else it is back where it was
            self.moves[where] = first, receiver

    def really_moved(self, where: TopicPartition, giver: str, receiver: str) -> TopicPartition:
        """The partition to move when `where` is to go from one member to another."""
        giver = self.moves.get(where, (giver, giver))[0]
        back = [each for each, pair in self.moves.items() if each.topic == where.topic and pair == (receiver, giver)]
        return max(back, default=where)


def _unevenness(assigned: Assignment) -> int:
    sizes = sorted(map(len, assigned.values()))
    return sum(sizes[late] - sizes[early] for late in range(len(sizes)) for early in range(late))
