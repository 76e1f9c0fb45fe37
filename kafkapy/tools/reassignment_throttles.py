"""The throttles that `kafka-reassign-partitions` sets for the duration of a reassignment (KIP-73, KIP-113).

The configuration of the brokers contains the rates. The configuration of the topics lists the replicas to which the
rates apply: the present replicas of a moving partition as leaders, and the added replicas as followers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kafkapy.client.admin import (
    Admin,
    ConfigChange,
    ConfigOperation,
    ConfigResource,
    Reassignment,
    Replica,
    ResourceType,
)
from kafkapy.config.throttle_keys import FOLLOWER_RATE, FOLLOWER_REPLICAS, LEADER_RATE, LEADER_REPLICAS, LOG_DIRS_RATE
from kafkapy.named_tuple import NamedTuple
from kafkapy.tools.reassignment_file import plural
from kafkapy.types import TopicPartition


class Move(NamedTuple):
    """The brokers that have the replicas of a partition before its reassignment, and the brokers that are added."""

    sources: frozenset[int]
    destinations: frozenset[int]


def moves_of(
    ongoing: Mapping[TopicPartition, Reassignment],
    wanted: Mapping[TopicPartition, Sequence[int]],
    current: Mapping[TopicPartition, Sequence[int]],
) -> dict[TopicPartition, Move]:
    """Returns the moves of all partitions that are in `ongoing` or in `wanted`.

    `ongoing` has the reassignments in progress. `wanted` has the new replicas of the partitions to reassign, and
    `current` their present replicas, both as broker ids. A partition that is in `ongoing` and in `wanted` moves from
    the sources of the ongoing reassignment to the replicas in `wanted`. Ongoing moves are included because the rate of
    a broker applies to all of its moves.
    """
    moves = {
        partition: Move(frozenset(each.replicas).difference(each.adding), frozenset(each.adding))
        for partition, each in ongoing.items()
    }
    for partition, replicas in wanted.items():
        sources = moves[partition].sources if partition in moves else frozenset(current[partition])
        moves[partition] = Move(sources, frozenset(replicas) - sources)
    return moves


def throttled_replicas(moves: Mapping[TopicPartition, Move]) -> dict[str, tuple[str, str]]:
    """Returns the values of two configuration keys for each topic: the throttled replicas of leaders, and of followers.

    Each value is a list in text, `PARTITION:BROKER,...`; leaders are the sources of moves, followers the destinations.
    """
    leaders: dict[str, set[str]] = {}
    followers: dict[str, set[str]] = {}
    for (topic, number), move in moves.items():
        leaders.setdefault(topic, set()).update(f"{number}:{broker}" for broker in move.sources)
        followers.setdefault(topic, set()).update(f"{number}:{broker}" for broker in move.destinations)
    return {topic: (",".join(sorted(leaders[topic])), ",".join(sorted(followers[topic]))) for topic in leaders}


def throttle_moves(admin: Admin, moves: Mapping[TopicPartition, Move], rate: int) -> None:
    """Limits the rate of moves between brokers to `rate` bytes/s.

    Lists the moving replicas in the configuration of their topics, and sets the rate on all brokers from or to which a
    replica moves.
    """
    listed = {
        topic: (ConfigChange(LEADER_REPLICAS, leaders), ConfigChange(FOLLOWER_REPLICAS, followers))
        for topic, (leaders, followers) in throttled_replicas(moves).items()
    }
    _alter(admin, ResourceType.TOPIC, listed)
    brokers = sorted({broker for move in moves.values() for broker in move.sources | move.destinations})
    rates = (ConfigChange(LEADER_RATE, str(rate)), ConfigChange(FOLLOWER_RATE, str(rate)))
    _alter(admin, ResourceType.BROKER, {str(broker): rates for broker in brokers})
    print(f"The inter-broker throttle limit was set to {rate} B/s")


def throttle_log_dirs(admin: Admin, moving: Iterable[Replica], rate: int) -> None:
    """Limits the rate of moves between log directories to `rate` bytes/s, on all brokers that have replicas in
    `moving`."""
    brokers = sorted({replica.broker for replica in moving})
    _alter(admin, ResourceType.BROKER, {str(broker): (ConfigChange(LOG_DIRS_RATE, str(rate)),) for broker in brokers})
    print(f"The replica-alter-dir throttle limit was set to {rate} B/s")


def clear_throttles(admin: Admin, topics: Iterable[str], targets: Iterable[int]) -> None:
    """Removes the throttles of the topics `topics`, of all live brokers, and of the brokers with the ids in `targets`.

    The brokers from which partitions were moved are no longer known, so the throttles of all brokers are removed.
    """
    brokers = sorted({*targets, *(node.node_id for node in admin.describe_cluster().brokers)})
    print(f"Clearing broker-level throttles on broker{plural(brokers)} {','.join(map(str, brokers))}")
    rates = [ConfigChange(name, None, ConfigOperation.DELETE) for name in (LEADER_RATE, FOLLOWER_RATE, LOG_DIRS_RATE)]
    _alter(admin, ResourceType.BROKER, {str(broker): rates for broker in brokers})
    names = sorted(topics)
    print(f"Clearing topic-level throttles on topic{plural(names)} {','.join(names)}")
    lists = [ConfigChange(name, None, ConfigOperation.DELETE) for name in (LEADER_REPLICAS, FOLLOWER_REPLICAS)]
    _alter(admin, ResourceType.TOPIC, dict.fromkeys(names, lists))


def _alter(admin: Admin, kind: ResourceType, changes: Mapping[str, Iterable[ConfigChange]]) -> None:
    if changes:
        admin.incremental_alter_configs({ConfigResource(kind, name): each for name, each in changes.items()}).check()
