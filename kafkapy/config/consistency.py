"""Rules between several broker keys, in Kafka's wording where Kafka has the rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkapy.config import role_rules
from kafkapy.config.address_limits import split_address_limits
from kafkapy.config.cordoned_directories import check_cordoned
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


def check(config: BrokerConfig) -> None:
    """Raises ConfigError for values that are valid by themselves but contradict each other or the node's roles."""
    check_values(config)
    role_rules.check(config)


def check_values(config: BrokerConfig) -> None:
    """Raises ConfigError for values that are valid by themselves but contradict each other.

    These are the rules that also apply to changes while the broker runs.
    """
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
    split_address_limits(config.max_connections_per_ip_overrides)
    if config.max_connections_per_ip == 0 and not config.max_connections_per_ip_overrides:
        raise ConfigError(
            "max.connections.per.ip can be set to zero only if max.connections.per.ip.overrides property is set."
        )
    if bool(config.kafkapy_metrics_username) != (config.kafkapy_metrics_password is not None):
        raise ConfigError("kafkapy.metrics.username and kafkapy.metrics.password must be set together")
    delay_ms, idle_ms = config.connection_failed_authentication_delay_ms, config.connections_max_idle_ms
    if 0 <= idle_ms <= delay_ms:
        raise ConfigError(
            f"connection.failed.authentication.delay.ms={delay_ms} should always be less than "
            f"connections.max.idle.ms={idle_ms} to prevent failed authentication responses from timing out"
        )
    check_cordoned(config.cordoned_log_dirs, config["log.dirs"] or config["log.dir"])
