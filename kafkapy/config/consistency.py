"""Rules between several broker keys, in Kafka's wording where Kafka has the rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkapy.config.listener import check_distinct
from kafkapy.errors import ConfigError

if TYPE_CHECKING:
    from kafkapy.config.broker_config import BrokerConfig

# Pairs of keys of which the first must not exceed the second.
_ORDERED = (
    ("replica.fetch.wait.max.ms", "replica.socket.timeout.ms"),
    ("replica.fetch.wait.max.ms", "replica.lag.time.max.ms"),
    ("replica.fetch.max.bytes", "replica.fetch.response.max.bytes"),
    ("group.min.session.timeout.ms", "group.max.session.timeout.ms"),
    ("group.consumer.min.heartbeat.interval.ms", "group.consumer.max.heartbeat.interval.ms"),
    ("group.consumer.min.session.timeout.ms", "group.consumer.max.session.timeout.ms"),
    ("group.consumer.min.assignment.interval.ms", "group.consumer.max.assignment.interval.ms"),
    ("log.cleaner.min.compaction.lag.ms", "log.cleaner.max.compaction.lag.ms"),
)
# Keys that must not be zero; a negative value means "never", as in Kafka.
_RETENTION = ("log.retention.ms", "log.retention.minutes", "log.retention.hours")
# The wildcard addresses, which no client can connect to.
_META_ADDRESSES = ("0.0.0.0", "::", "0:0:0:0:0:0:0:0")


def check(config: BrokerConfig) -> None:
    """Raises ConfigError for values that are valid by themselves but contradict each other."""
    for smaller, larger in _ORDERED:
        if config[smaller] > config[larger]:
            raise ConfigError(
                f"{smaller} ({config[smaller]}) must be less than or equal to {larger} ({config[larger]})"
            )
    for key in _RETENTION:
        if config[key] == 0:
            raise ConfigError(
                f"Invalid value 0 for configuration {key}: log.retention must be unlimited (-1) or, equal or greater "
                "than 1"
            )
    queued = config.queued_max_request_bytes
    if 0 < queued < config.socket_request_max_bytes:
        raise ConfigError(
            f"queued.max.request.bytes ({queued}) must be larger or equal to socket.request.max.bytes "
            f"({config['socket.request.max.bytes']})"
        )
    if config.max_connections_per_ip == 0 and not config.max_connections_per_ip_overrides:
        raise ConfigError(
            "max.connections.per.ip can be set to zero only if max.connections.per.ip.overrides property is set."
        )
    _check_listeners(config)


def _check_listeners(config: BrokerConfig) -> None:
    controllers = config.controller_listener_names
    if controllers and not config.controller_listeners:
        raise ConfigError(
            f"Invalid value {','.join(controllers)} for configuration controller.listener.names: it must contain at "
            "least one value appearing in the 'listeners' configuration when running the KRaft controller role"
        )
    if not config.broker_listeners:
        raise ConfigError("listeners must contain at least one listener that is not in controller.listener.names")
    advertised = config.declared_advertised_listeners
    check_distinct("advertised.listeners", advertised, ports=False)
    for listener in advertised:
        if listener.host in _META_ADDRESSES:
            raise ConfigError(
                f"Invalid value {listener} for configuration advertised.listeners: it cannot use the nonroutable "
                f"meta-address {listener.host}. Use a routable IP address."
            )
    names = [listener.name for listener in config.broker_listeners]
    unknown = [listener.name for listener in advertised if listener.name not in names]
    if unknown or not advertised:
        raise ConfigError(
            "advertised.listeners listener names must be equal to or a subset of the ones defined in listeners. "
            f"Found {','.join(unknown)}. The valid options based on the current configuration are {','.join(names)}"
        )
    if not config.is_default("inter.broker.listener.name"):
        if not config.is_default("security.inter.broker.protocol"):
            raise ConfigError(
                "Only one of inter.broker.listener.name and security.inter.broker.protocol should be set."
            )
        if config.inter_broker_listener_name not in [listener.name for listener in advertised]:
            raise ConfigError(
                f"inter.broker.listener.name ({config.inter_broker_listener_name}) must be a listener name defined in "
                "advertised.listeners. The valid options based on currently configured listeners are "
                f"{','.join(listener.name for listener in advertised)}"
            )
