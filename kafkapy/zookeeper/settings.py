"""The settings of the listener for ZooKeeper's clients, from kafkapy's own keys `zookeeper.*`."""

from __future__ import annotations

from kafkapy.config.broker_config import BrokerConfig
from kafkapy.config.listener import PROTOCOLS_WITH_TLS
from kafkapy.config.listener_security import SASL_PROTOCOLS
from kafkapy.named_tuple import NamedTuple
from kafkapy.zookeeper.acl import PLAIN_SCHEMES

WRITES_KEY = "zookeeper.listener.view.writes.enable"


class ZooKeeperSettings(NamedTuple):
    """The settings of the listener for ZooKeeper's clients. The object does not change after its construction.

    `view_chroot` is the path below which Kafka's znodes are ("" for the root), and `is_view_writable` is True if
    clients may write them. `has_acls` is True if the broker has an authorizer, so that znodes with Kafka's ACLs have an
    effect. `acl_schemes` are the schemes that the ACL of a znode may have.
    """

    min_session_timeout_ms: int
    max_session_timeout_ms: int
    max_connections_per_address: int
    max_request_bytes: int
    view_chroot: str
    is_view_writable: bool
    has_acls: bool
    acl_schemes: frozenset[str]
    is_sasl_required: bool

    @classmethod
    def from_config(cls, config: BrokerConfig) -> ZooKeeperSettings:
        # Requests are made in the name of the broker, past its authorizer: only if the operator says so.
        is_set = WRITES_KEY in config.originals
        protocol = config.zookeeper_listener_security_protocol
        has_sasl = protocol in SASL_PROTOCOLS
        return cls(
            config.zookeeper_listener_min_session_timeout_ms,
            config.zookeeper_listener_max_session_timeout_ms,
            config.zookeeper_listener_max_connections_per_address,
            config.zookeeper_listener_max_request_bytes,
            config.zookeeper_listener_view_chroot.rstrip("/"),
            config.zookeeper_listener_view_writes_enable and (not config.authorizer_class_name or is_set),
            bool(config.authorizer_class_name),
            PLAIN_SCHEMES.union(("x509",) * (protocol in PROTOCOLS_WITH_TLS), ("sasl",) * has_sasl),
            has_sasl and config.zookeeper_listener_sasl_required,
        )
