"""The settings of the listener, from the keys `zookeeper.*` of this project."""

from __future__ import annotations

from kafkapy.config.broker_config import BrokerConfig
from kafkapy.named_tuple import NamedTuple

WRITES_KEY = "zookeeper.listener.view.writes.enable"


class ZooKeeperSettings(NamedTuple):
    """The limits of the listener, the path below which Kafka's znodes are ("" for the root), whether clients may write
    them, and whether the broker has an authorizer. Immutable."""

    min_session_timeout_ms: int
    max_session_timeout_ms: int
    max_connections_per_address: int
    max_request_bytes: int
    view_chroot: str
    is_view_writable: bool
    has_acls: bool

    @classmethod
    def from_config(cls, config: BrokerConfig) -> ZooKeeperSettings:
        # Requests are made in the name of the broker, past its authorizer: only if the operator says so.
        is_set = WRITES_KEY in config.originals
        return cls(
            config.zookeeper_listener_min_session_timeout_ms,
            config.zookeeper_listener_max_session_timeout_ms,
            config.zookeeper_listener_max_connections_per_address,
            config.zookeeper_listener_max_request_bytes,
            config.zookeeper_listener_view_chroot.rstrip("/"),
            config.zookeeper_listener_view_writes_enable and (not config.authorizer_class_name or is_set),
            bool(config.authorizer_class_name),
        )
