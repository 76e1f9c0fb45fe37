"""The configuration of follower fetchers."""

from __future__ import annotations

from kafkapy.config.broker_config import BrokerConfig
from kafkapy.named_tuple import NamedTuple


class FetchSettings(NamedTuple):
    """The limits of fetch requests to leaders. The times are in milliseconds."""

    node_id: int
    fetchers: int
    max_wait_ms: int
    min_bytes: int
    response_max_bytes: int
    partition_max_bytes: int
    backoff_ms: int
    connect_timeout_ms: int
    request_timeout_ms: int

    @classmethod
    def from_config(cls, config: BrokerConfig) -> FetchSettings:
        return cls(
            node_id=config.node_id,
            fetchers=config.num_replica_fetchers,
            max_wait_ms=config.replica_fetch_wait_max_ms,
            min_bytes=config.replica_fetch_min_bytes,
            response_max_bytes=config.replica_fetch_response_max_bytes,
            partition_max_bytes=config.replica_fetch_max_bytes,
            backoff_ms=config.replica_fetch_backoff_ms,
            connect_timeout_ms=config.replica_socket_timeout_ms,
            request_timeout_ms=config.request_timeout_ms,
        )
