"""Throttles of replication between brokers (KIP-73).

A broker limits the bytes per second that it sends as a leader, and that it fetches as a follower, for the replicas that
the configuration of their topics lists as throttled. Replicas in the ISR are counted too, but only replicas outside of
the ISR have to wait. While the leader's limit is exceeded, the leader sends these replicas no records. While the
follower's limit is exceeded, the follower does not ask for their records.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from kafkapy._core.broker_state.quota_sensor import QuotaSensor
from kafkapy.config.broker_config import BrokerConfig
from kafkapy.config.throttle_keys import FOLLOWER_REPLICAS, LEADER_REPLICAS
from kafkapy.replica.partition import Partition

_EVERY_REPLICA = frozenset(["*"])


def lists_replica(value: str | None, partition: int, broker: int) -> bool:
    """Returns True if `value`, a topic's list of throttled replicas such as `0:101,1:102` or `*`, contains the replica
    of `partition` on `broker`.
    """
    if not value:
        return False
    listed = _replicas_in(value)
    return listed == _EVERY_REPLICA or f"{partition}:{broker}" in listed


@lru_cache(maxsize=2)
def _replicas_in(value: str) -> frozenset[str]:
    """Splits the configured list `value` into its elements, such as "0:101" for the replica of partition 0 on broker
    101.

    The results for the last two lists are cached, because a list may name thousands of replicas, and this function is
    called with the same list for each partition of a topic.
    """
    return frozenset(each.strip() for each in value.split(","))


class ReplicationThrottles:
    """The limits of a broker's replication rates, one as leader and one as follower, and the choice of the partitions
    to which they apply. Only the thread that owns it may use it.
    """

    def __init__(self, config: BrokerConfig) -> None:
        self._config = config
        limit, sample_ms = config.replication_quota_window_num, config.replication_quota_window_size_seconds * 1000
        self.leader = QuotaSensor(config.leader_replication_throttled_rate, limit, sample_ms, is_simple=True)
        self.follower = QuotaSensor(config.follower_replication_throttled_rate, limit, sample_ms, is_simple=True)

    def follow_broker_config(self) -> None:
        """Applies the rates of the broker's configuration, after it has changed."""
        self.leader.bound = self._config.leader_replication_throttled_rate
        self.follower.bound = self._config.follower_replication_throttled_rate

    def apply_to(self, partition: Partition, overrides: Mapping[str, str]) -> None:
        """Applies to the partition the throttles in `overrides`, the configuration of its topic."""
        index, broker = partition.topic_partition.partition, self._config.node_id
        is_throttled = lists_replica(overrides.get(LEADER_REPLICAS), index, broker)
        partition.leader_throttle = self.leader if is_throttled else None
        is_throttled = lists_replica(overrides.get(FOLLOWER_REPLICAS), index, broker)
        partition.follower_throttle = self.follower if is_throttled else None
