"""The settings of the group coordinator, read once from the broker's configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol


class _Settings(Protocol):
    def __getitem__(self, name: str, /) -> Any: ...


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
    def from_broker_config(cls, config: _Settings | Mapping[str, Any]) -> GroupConfig:
        return cls(
            partition_count=config["offsets.topic.num.partitions"],
            load_buffer_bytes=config["offsets.load.buffer.size"],
            max_group_size=config["group.max.size"],
            min_session_timeout_ms=config["group.min.session.timeout.ms"],
            max_session_timeout_ms=config["group.max.session.timeout.ms"],
            initial_rebalance_delay_ms=config["group.initial.rebalance.delay.ms"],
            # Not configurable in Kafka: a new member's JoinGroup waits this long at most.
            new_member_join_timeout_ms=5 * 60 * 1000,
            max_metadata_length=config["offset.metadata.max.bytes"],
            offsets_retention_ms=config["offsets.retention.minutes"] * 60 * 1000,
            offsets_retention_check_interval_ms=config["offsets.retention.check.interval.ms"],
        )
