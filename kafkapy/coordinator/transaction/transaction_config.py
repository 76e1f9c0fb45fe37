"""The settings of the transaction coordinator, read once from the broker's configuration."""

from __future__ import annotations

from kafkapy.config.broker_keys import BrokerKeys
from kafkapy.named_tuple import NamedTuple


class TransactionConfig(NamedTuple):
    partition_count: int
    load_buffer_bytes: int
    max_timeout_ms: int
    timeout_check_interval_ms: int
    expiration_ms: int
    expiration_check_interval_ms: int

    @classmethod
    def from_broker_config(cls, config: BrokerKeys) -> TransactionConfig:
        return cls(
            partition_count=config.transaction_state_log_num_partitions,
            load_buffer_bytes=config.transaction_state_log_load_buffer_size,
            max_timeout_ms=config.transaction_max_timeout_ms,
            timeout_check_interval_ms=config.transaction_abort_timed_out_transaction_cleanup_interval_ms,
            expiration_ms=config.transactional_id_expiration_ms,
            expiration_check_interval_ms=config.transaction_remove_expired_transaction_cleanup_interval_ms,
        )
