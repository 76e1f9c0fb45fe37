"""The settings of the transaction coordinator, read once from the broker's configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol


class _Settings(Protocol):
    def __getitem__(self, name: str, /) -> Any: ...


class TransactionConfig(NamedTuple):
    partition_count: int
    load_buffer_bytes: int
    max_timeout_ms: int
    timeout_check_interval_ms: int
    expiration_ms: int
    expiration_check_interval_ms: int

    @classmethod
    def from_broker_config(cls, config: _Settings | Mapping[str, Any]) -> TransactionConfig:
        return cls(
            partition_count=config["transaction.state.log.num.partitions"],
            load_buffer_bytes=config["transaction.state.log.load.buffer.size"],
            max_timeout_ms=config["transaction.max.timeout.ms"],
            timeout_check_interval_ms=config["transaction.abort.timed.out.transaction.cleanup.interval.ms"],
            expiration_ms=config["transactional.id.expiration.ms"],
            expiration_check_interval_ms=config["transaction.remove.expired.transaction.cleanup.interval.ms"],
        )
