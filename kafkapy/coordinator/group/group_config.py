"""The settings of the group coordinator, read once from the broker's configuration."""

from __future__ import annotations

from kafkapy.config.broker_keys import BrokerKeys
from kafkapy.named_tuple import NamedTuple


class GroupConfig(NamedTuple):
    partition_count: int
    load_buffer_bytes: int
    max_group_size: int
    min_session_timeout_ms: int
    max_session_timeout_ms: int
    initial_rebalance_delay_ms: int
    new_member_join_timeout_ms: int
    max_metadata_length: int
    offsets_retention_ms: int
    offsets_retention_check_interval_ms: int

    @classmethod
    def from_broker_config(cls, config: BrokerKeys) -> GroupConfig:
        return cls(
            partition_count=config.offsets_topic_num_partitions,
            load_buffer_bytes=config.offsets_load_buffer_size,
            max_group_size=config.group_max_size,
            min_session_timeout_ms=config.group_min_session_timeout_ms,
            max_session_timeout_ms=config.group_max_session_timeout_ms,
            initial_rebalance_delay_ms=config.group_initial_rebalance_delay_ms,
            # The time that a new member's JoinGroup may wait. Apache Kafka has no configuration key for it either.
            new_member_join_timeout_ms=5 * 60 * 1000,
            max_metadata_length=config.offset_metadata_max_bytes,
            offsets_retention_ms=config.offsets_retention_minutes * 60 * 1000,
            offsets_retention_check_interval_ms=config.offsets_retention_check_interval_ms,
        )
