"""Placement of new replicas on racks and brokers in turn (Kafka's StripedReplicaPlacer)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

from kafkapy.errors import ApiError, Error

RandomBelow = Callable[[int], int]
Item = TypeVar("Item")


class PlaceableBroker(Protocol):
    """A broker to which replicas can be assigned: its registration in an image, or a tool's description of it."""

    @property
    def broker_id(self) -> int: ...

    @property
    def rack(self) -> str | None: ...

    @property
    def fenced(self) -> bool: ...

    @property
    def accepts_replicas(self) -> bool: ...


def place_replicas(
    brokers: Iterable[PlaceableBroker], partitions: int, replication_factor: int, random_below: RandomBelow
) -> list[tuple[int, ...]]:
    """Returns the replicas of `partitions` new partitions; the first replica of each is the leader.

    Brokers in a controlled shutdown, and brokers with only cordoned log directories, get no replicas. Fenced brokers
    get replicas when there are too few unfenced brokers, but never lead. `random_below(n)` returns a random number from
    0 to n - 1. Raises ApiError(INVALID_REPLICATION_FACTOR) if there are too few brokers.
    """
    usable = [broker for broker in brokers if broker.accepts_replicas]
    if replication_factor < 1:
        raise ApiError(
            Error.INVALID_REPLICATION_FACTOR,
            f"Invalid replication factor {replication_factor}: the replication factor must be positive.",
        )
    if all(broker.fenced for broker in usable):
        raise ApiError(
            Error.INVALID_REPLICATION_FACTOR,
            "All brokers are currently fenced, or have all their log directories cordoned.",
        )
    if replication_factor > len(usable):
        raise ApiError(
            Error.INVALID_REPLICATION_FACTOR,
            f"The target replication factor of {replication_factor} cannot be reached because only {len(usable)} "
            "broker(s) are registered or some brokers have all their log directories cordoned.",
        )
    racks = _Racks(usable, random_below)
    return [racks.place(replication_factor) for _ in range(partitions)]


class _Ring:
    """Brokers that get replicas in turn, in the order of a ring.

    The first replicas of successive partitions are placed on successive brokers of the ring.
    """

    def __init__(self, brokers: list[int], random_below: RandomBelow) -> None:
        self._brokers = sorted(brokers)
        self._start = random_below(len(brokers)) if brokers else 0
        self._taken = 0
        self._round = 0

    def next(self, placement_round: int) -> int | None:
        """Returns the broker for the next replica of a partition. `placement_round` is the number of the partition.

        Returns None if the partition already has a replica on every broker of the ring.
        """
        if not self._brokers:
            return None
        if self._round != placement_round:
            self._round = placement_round
            self._taken = 0
            self._start = (self._start + 1) % len(self._brokers)
        if self._taken >= len(self._brokers):
            return None
        broker = self._brokers[(self._taken + self._start) % len(self._brokers)]
        self._taken += 1
        return broker

    def shuffle(self, random_below: RandomBelow) -> None:
        _shuffle(self._brokers, random_below)


class _Rack:
    """The brokers of one rack; unfenced brokers get replicas before fenced ones."""

    def __init__(self, brokers: list[PlaceableBroker], random_below: RandomBelow) -> None:
        self.fenced = _Ring([broker.broker_id for broker in brokers if broker.fenced], random_below)
        self.unfenced = _Ring([broker.broker_id for broker in brokers if not broker.fenced], random_below)

    def next(self, placement_round: int) -> int | None:
        broker = self.unfenced.next(placement_round)
        return self.fenced.next(placement_round) if broker is None else broker


class _Racks:
    """All racks. Replicas are placed on the racks in turn, and each partition begins with the next rack.

    After as many partitions as there are unfenced brokers, racks and brokers are shuffled, so that assignments differ.
    """

    def __init__(self, brokers: list[PlaceableBroker], random_below: RandomBelow) -> None:
        self._random_below = random_below
        by_name: dict[str | None, list[PlaceableBroker]] = {}
        for broker in brokers:
            by_name.setdefault(broker.rack, []).append(broker)
        names = sorted(by_name, key=lambda name: (name is not None, name or ""))
        self._racks = [_Rack(by_name[name], random_below) for name in names]
        self._start = random_below(len(self._racks))
        self._unfenced = sum(not broker.fenced for broker in brokers)
        self._round = 0

    def place(self, replication_factor: int) -> tuple[int, ...]:
        """Returns the replicas of the next partition, the leader first.

        The caller has checked that there are enough brokers, and that at least one is unfenced.
        """
        if self._round == self._unfenced and self._unfenced > 1:
            self._shuffle()
            self._round = 0
        count = len(self._racks)
        self._start %= count
        leader_rack = self._start
        leader = self._racks[leader_rack].unfenced.next(self._round)
        while leader is None:
            leader_rack = (leader_rack + 1) % count
            leader = self._racks[leader_rack].unfenced.next(self._round)
        replicas = [leader]
        position = self._start
        has_passed_leader = False
        while len(replicas) < replication_factor:
            if position == leader_rack and not has_passed_leader:
                has_passed_leader = True
            else:
                broker = self._racks[position].next(self._round)
                if broker is not None:
                    replicas.append(broker)
            position = (position + 1) % count
        self._round += 1
        self._start += 1
        return tuple(replicas)

    def _shuffle(self) -> None:
        _shuffle(self._racks, self._random_below)
        for rack in self._racks:
            rack.fenced.shuffle(self._random_below)
            rack.unfenced.shuffle(self._random_below)


def _shuffle(items: list[Item], random_below: RandomBelow) -> None:
    for position in range(len(items) - 1, 0, -1):
        other = random_below(position + 1)
        items[position], items[other] = items[other], items[position]
