"""Plans that even out the replicas and leaders of a cluster, computed from loads and rules without side effects.

The planner first moves replicas from brokers that may not have them (an emptied broker, brokers that a topic does not
use), then from loaded to less loaded brokers until the loads are within a tolerance. Finally it changes preferred
leaders, which moves no data. A replica is moved at most once. If the rules are rack-aware and every broker has a rack,
no move lowers the number of racks that have a partition's replicas.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from math import inf

from kafkapy.named_tuple import NamedTuple
from kafkapy.types import TopicPartition

# A move has to lower the imbalance, the sum of squared shares, by more than this.
_LEAST_GAIN = 1e-9


class BrokerState(NamedTuple):
    """A live broker; `accepts_replicas` is False if all of its log directories are cordoned."""

    broker_id: int
    rack: str | None = None
    accepts_replicas: bool = True


class PartitionLoad(NamedTuple):
    """A partition, its replicas (the preferred leader first), and the load that each of its replicas causes.

    `loads` maps the name of a resource to the load. The load of the resource "disk" is a number of bytes.
    """

    partition: TopicPartition
    replicas: tuple[int, ...]
    loads: Mapping[str, float]


class Rules(NamedTuple):
    """The goals and limits of a plan.

    resources: the names of the resources whose loads are balanced, such as "disk".
    leaders: True if each broker is also to be the preferred leader of a similar number of partitions.
    tolerance: the permitted deviation of a broker's load from the mean load, as a fraction of the mean load.
    topics: the topics whose partitions may be changed; None means all topics.
    kept: maps a topic to the ids of the brokers that may have its replicas; all brokers may have the other topics'
        replicas.
    emptied: the ids of the brokers from which all replicas are moved away.
    most_per_broker: the largest number of replicas that are moved from or to one broker.
    most_per_topic: the largest number of replicas of one topic that are moved.
    rack_aware: True if no move may lower the number of racks of a partition; has no effect unless all brokers have a
        rack.
    """

    resources: tuple[str, ...] = ("disk",)
    leaders: bool = True
    tolerance: float = 0.1
    topics: Collection[str] | None = None
    kept: Mapping[str, Collection[int]] = {}
    emptied: Collection[int] = ()
    most_per_broker: float = inf
    most_per_topic: float = inf
    rack_aware: bool = True


class BalancePlan(NamedTuple):
    """The new replicas of the partitions that change.

    If a replica of a partition would have to move but cannot, `unmoved` maps the partition to the reason.
    """

    replicas: dict[TopicPartition, tuple[int, ...]]
    unmoved: dict[TopicPartition, str]


def plan_balance(brokers: Iterable[BrokerState], partitions: Iterable[PartitionLoad], rules: Rules) -> BalancePlan:
    """Returns a plan for the live brokers and all partitions of a cluster."""
    planner = _Planner(brokers, partitions, rules)
    planner.move_from_forbidden()
    planner.balance_replicas()
    if rules.leaders:
        planner.balance_leaders()
    return planner.plan()


def broker_loads(partitions: Iterable[PartitionLoad], resource: str) -> Counter[int]:
    """Returns the load of each broker that has replicas: the sum of the loads of its replicas in `resource`."""
    loads: Counter[int] = Counter()
    for each in partitions:
        for broker in each.replicas:
            loads[broker] += each.loads.get(resource, 0)  # type: ignore[assignment]
    return loads


class _Planner:
    """Computes a plan. The object stores the replicas of each partition and the load of each broker after the moves
    that are planned so far."""

    def __init__(self, brokers: Iterable[BrokerState], partitions: Iterable[PartitionLoad], rules: Rules) -> None:
        self._rules = rules
        self._brokers = {each.broker_id: each for each in brokers}
        # Racks are a rule only if every broker has one, as for the placement of new partitions.
        racks = {each.broker_id: each.rack for each in self._brokers.values() if each.rack is not None}
        self._racks = racks if rules.rack_aware and len(racks) == len(self._brokers) else {}
        self._before = {each.partition: each for each in partitions}
        self._replicas = {each.partition: each.replicas for each in self._before.values()}
        self._movable = [each for each in self._before if rules.topics is None or each.topic in rules.topics]
        self._targets = [
            number
            for number, each in sorted(self._brokers.items())
            if each.accepts_replicas and number not in rules.emptied
        ]
        # The mean load of the brokers that may have replicas after the plan.
        count = max(len([each for each in self._brokers if each not in rules.emptied]), 1)
        self._means = {name: mean for name in rules.resources if (mean := self._total(name) / count) > 0}
        self._resources = tuple(self._means)
        self._loads = {name: broker_loads(self._before.values(), name) for name in self._resources}
        # For each resource, the load of a replica of the partition as a share of the mean load of a broker.
        self._shares = {
            each.partition: tuple(each.loads.get(name, 0) / self._means[name] for name in self._resources)
            for each in self._before.values()
        }
        self._moves_of_broker: Counter[int] = Counter()
        self._moves_of_topic: Counter[str] = Counter()
        self._unmoved: dict[TopicPartition, str] = {}

    def _total(self, resource: str) -> float:
        return sum(each.loads.get(resource, 0) * len(each.replicas) for each in self._before.values())

    # -- single moves

    def _may_have(self, broker: int, topic: str) -> bool:
        kept = self._rules.kept.get(topic)
        return broker not in self._rules.emptied and (kept is None or broker in kept)

    def _keeps_racks(self, replicas: Sequence[int], source: int, target: int) -> bool:
        if not self._racks:
            return True
        before = {self._racks.get(each) for each in replicas}
        after = {self._racks.get(each) for each in replicas if each != source} | {self._racks[target]}
        return len(after) >= len(before)

    def _is_within_limits(self, partition: TopicPartition, source: int, target: int) -> bool:
        most = self._rules.most_per_broker
        return (
            self._moves_of_topic[partition.topic] < self._rules.most_per_topic
            and self._moves_of_broker[source] < most
            and self._moves_of_broker[target] < most
        )

    def _move(self, partition: TopicPartition, source: int, target: int) -> None:
        replicas = self._replicas[partition]
        self._replicas[partition] = tuple(target if each == source else each for each in replicas)
        for name in self._resources:
            size = self._before[partition].loads.get(name, 0)
            self._loads[name][source] -= size  # type: ignore[assignment]
            self._loads[name][target] += size  # type: ignore[assignment]
        self._moves_of_broker[source] += 1
        self._moves_of_broker[target] += 1
        self._moves_of_topic[partition.topic] += 1

    # -- replicas that have to move

    def move_from_forbidden(self) -> None:
        """Moves replicas away from brokers that the rules forbid, such as `emptied` ones; largest partitions first."""
        self._replica_counts = Counter(each for replicas in self._replicas.values() for each in replicas)
        for partition in sorted(self._movable, key=lambda each: (-self._weight(each), each)):
            for source in self._replicas[partition]:
                if not self._may_have(source, partition.topic):
                    self._move_away(partition, source)

    def _weight(self, partition: TopicPartition) -> float:
        return sum(self._shares[partition])

    def _fullness(self, broker: int) -> tuple[float, int, int]:
        share = sum(self._loads[name][broker] / self._means[name] for name in self._resources)
        return share, self._replica_counts[broker], broker

    def _move_away(self, partition: TopicPartition, source: int) -> None:
        replicas = self._replicas[partition]
        allowed = [each for each in self._targets if each not in replicas and self._may_have(each, partition.topic)]
        if not allowed:
            self._unmoved[partition] = f"no other broker may have the replica on broker {source}"
            return
        allowed = [each for each in allowed if self._keeps_racks(replicas, source, each)]
        if not allowed:
            self._unmoved[partition] = f"without the replica on broker {source} the replicas would be in fewer racks"
            return
        allowed = [each for each in allowed if self._is_within_limits(partition, source, each)]
        if not allowed:
            self._unmoved[partition] = f"a limit on the number of moves keeps the replica on broker {source}"
            return
        target = min(allowed, key=self._fullness)
        self._move(partition, source, target)
        self._replica_counts[source] -= 1
        self._replica_counts[target] += 1

    # -- balance

    def balance_replicas(self) -> None:
        """Moves replicas from loaded brokers to less loaded ones until the loads are within the tolerance."""
        movable: dict[int, dict[TopicPartition, None]] = {}
        for partition in self._movable:
            before = self._before[partition].replicas
            for broker in self._replicas[partition]:
                if broker in before:  # a replica is moved at most once
                    movable.setdefault(broker, {})[partition] = None
        while move := self._best_move(movable) if self._resources else None:
            partition, source, target = move
            self._move(partition, source, target)
            del movable[source][partition]

    def _best_move(self, movable: Mapping[int, Collection[TopicPartition]]) -> tuple[TopicPartition, int, int] | None:
        """Returns a move that lowers the imbalance, as (partition, source, target); None if there is no such move.

        The pairs of brokers are tried from the most uneven pair on, and the best move of the first pair that has one is
        returned. `movable` has, for each broker, the partitions of which a replica may be moved from this broker.
        """
        for source, target in self._uneven_pairs():
            differences = self._differences(source, target)
            best, best_gain = None, _LEAST_GAIN
            for partition in movable.get(source, ()):
                gain = 0.0
                for share, difference in zip(self._shares[partition], differences, strict=True):
                    gain += share * (difference - share)
                if gain > best_gain and self._may_move(partition, source, target):
                    best, best_gain = partition, gain
            if best is not None:
                return best, source, target
        return None

    def _differences(self, source: int, target: int) -> list[float]:
        """Returns, for each resource, the load of `source` minus the load of `target`, as a fraction of the mean
        load."""
        return [(self._loads[name][source] - self._loads[name][target]) / self._means[name] for name in self._resources]

    def _may_move(self, partition: TopicPartition, source: int, target: int) -> bool:
        replicas = self._replicas[partition]
        return (
            target not in replicas
            and target not in self._before[partition].replicas
            and self._may_have(target, partition.topic)
            and self._keeps_racks(replicas, source, target)
            and self._is_within_limits(partition, source, target)
        )

    def _uneven_pairs(self) -> list[tuple[int, int]]:
        """Returns the pairs (source, target) of brokers between which a move of a replica can lower the imbalance.

        For at least one resource, the source has a greater load than the target, and the load of the source is above
        the permitted range or that of the target is below it. The most uneven pair comes first.
        """
        pairs: dict[tuple[int, int], float] = {}
        for name in self._resources:
            loads, mean = self._loads[name], self._means[name]
            high, low = mean * (1 + self._rules.tolerance), mean * (1 - self._rules.tolerance)
            for source in self._brokers:
                for target in self._targets:
                    gap = loads[source] - loads[target]
                    if gap > 0 and (loads[source] > high or loads[target] < low):
                        pairs[source, target] = max(pairs.get((source, target), 0.0), gap / mean)
        return sorted(pairs, key=lambda pair: (-pairs[pair], pair))

    # -- leaders

    def balance_leaders(self) -> None:
        """Evens out the number of partitions of which a broker is the preferred leader."""
        counts = Counter(dict.fromkeys((each for each in self._brokers if each not in self._rules.emptied), 0))
        for replicas in self._replicas.values():
            if replicas[0] in counts:
                counts[replicas[0]] += 1
        led: dict[int, set[TopicPartition]] = {each: set() for each in self._brokers}
        for partition in self._movable:
            led.setdefault(self._replicas[partition][0], set()).add(partition)
        while path := self._first_path(counts, led):
            counts[self._replicas[path[0][0]][0]] -= 1
            counts[path[-1][1]] += 1
            for partition, target in path:
                former = self._replicas[partition][0]
                self._replicas[partition] = _led_by(self._replicas[partition], target)
                led[former].remove(partition)
                led[target].add(partition)

    def _first_path(
        self, counts: Counter[int], led: Mapping[int, Collection[TopicPartition]]
    ) -> list[tuple[TopicPartition, int]]:
        """Returns a chain of changes of leaders after which one broker leads one partition less; [] if there is no such
        chain.

        Each element is (partition, its new leader). The brokers are tried in turn, beginning with the broker that is
        the preferred leader of the most partitions; the first chain that is found is returned (see `_path`). `counts`
        maps each broker to the number of partitions of which it is the preferred leader; `led` maps it to the
        partitions among these that may be changed.
        """
        for source in sorted(counts, key=lambda each: (-counts[each], each)):
            if path := self._path(source, counts, led):
                return path
        return []

    def _path(
        self, source: int, counts: Counter[int], led: Mapping[int, Collection[TopicPartition]]
    ) -> list[tuple[TopicPartition, int]]:
        """Returns the shortest chain of changes of leaders after which `source` leads one partition less; [] if there
        is none.

        Each element is (partition, its new leader). Each new leader except the last gives up another partition in the
        next element, so that only the last new leader leads one partition more. The last new leader is the broker with
        the fewest partitions among all brokers that a chain can reach. It must lead at least two partitions fewer than
        `source`.

        `counts` maps each broker to the number of partitions of which it is the preferred leader; `led` maps it to the
        partitions among these that may be changed.
        """
        steps: dict[int, tuple[int, TopicPartition]] = {}
        queue = deque([source])
        while queue:
            broker = queue.popleft()
            for partition in sorted(led[broker]):
                for follower in self._replicas[partition][1:]:
                    if follower in counts and follower != source and follower not in steps:
                        steps[follower] = broker, partition
                        queue.append(follower)
        broker = min(steps, key=counts.__getitem__, default=source)  # the first of several, which is the nearest
        if counts[source] - counts[broker] < 2:
            return []
        path = []
        while broker != source:
            former, partition = steps[broker]
            path.append((partition, broker))
            broker = former
        return path[::-1]

    def plan(self) -> BalancePlan:
        changed = {
            partition: replicas
            for partition, replicas in self._replicas.items()
            if replicas != self._before[partition].replicas
        }
        return BalancePlan(changed, self._unmoved)


def _led_by(replicas: tuple[int, ...], leader: int) -> tuple[int, ...]:
    """Returns the replicas after exchanging `leader` with the first replica, which makes `leader` the preferred
    leader."""
    return tuple(leader if each == replicas[0] else replicas[0] if each == leader else each for each in replicas)
