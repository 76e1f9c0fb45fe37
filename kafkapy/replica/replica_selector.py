"""The choice of the replica that a consumer should read from (KIP-392, `replica.selector.class`).

The leader makes the choice, with the rack that the consumer sends. If the consumer should read from a follower, the
response names this follower and has no records. A follower serves consumers up to its own high watermark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kafkapy.config.broker_config import BrokerConfig
from kafkapy.config.startup_rules import RACK_AWARE_SELECTOR
from kafkapy.metadata.cluster_image import BrokerRegistration
from kafkapy.replica.fetch import NO_REPLICA, FetchParams
from kafkapy.replica.partition import Partition

# Returns the follower that the consumer should read from, or NO_REPLICA for the leader. Its arguments are a partition
# that this broker leads, the consumer's fetch and its offset, and the registered brokers.
ReplicaSelector = Callable[[Partition, FetchParams, int, Mapping[int, BrokerRegistration]], int]


def own_rack(config: BrokerConfig) -> bytes | None:
    """Returns this broker's rack, or b"" if it has none; None if the rack-aware selector is not configured.

    The result decides which consumers the compiled request path (the gate) may serve. If it is None, these are all
    consumers. Otherwise they are the consumers that name this rack or no rack; other consumers may have to read from a
    follower.
    """
    return (config.broker_rack or "").encode() if config.replica_selector_class == RACK_AWARE_SELECTOR else None


def replica_selector(class_name: str | None) -> ReplicaSelector | None:
    """Returns the selector that Kafka's class name denotes, or None if consumers always read from the leader."""
    return select_in_rack if class_name == RACK_AWARE_SELECTOR else None


def select_in_rack(
    partition: Partition, params: FetchParams, fetch_offset: int, brokers: Mapping[int, BrokerRegistration]
) -> int:
    """Returns the id of the replica from which a consumer should read, NO_REPLICA if it should read from the leader.

    It is the most caught-up in-sync replica in the consumer's rack, unless the leader is in this rack. Replicas without
    the requested offset, and brokers without the consumer's listener, are not considered.
    """
    if not params.client_rack:
        return NO_REPLICA

    def is_in_rack(broker_id: int) -> bool:
        broker = brokers.get(broker_id)
        return (
            broker is not None
            and not broker.fenced
            and broker.rack == params.client_rack
            and params.listener in broker.endpoints
        )

    if is_in_rack(partition.leader_id):
        return NO_REPLICA
    candidates = [
        (replica.log_end_offset, replica.last_caught_up_ms, replica.broker_id)
        for replica in partition.remote_replicas.values()
        if replica.broker_id in partition.isr_state.isr
        and replica.log_start_offset <= fetch_offset <= replica.log_end_offset
        and is_in_rack(replica.broker_id)
    ]
    return max(candidates)[2] if candidates else NO_REPLICA
