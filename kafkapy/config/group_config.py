"""The configuration of single groups (resource type GROUP): its keys, and which overrides a group may have."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from kafkapy.config.broker_config import BrokerConfig
from kafkapy.config.row import CLUSTER_WIDE, MEDIUM, ConfigType, Row
from kafkapy.config.table import BROKER_ROWS
from kafkapy.config.validator import ANY, invalid_value, one_of
from kafkapy.config.value import parse_value
from kafkapy.errors import ApiError, ConfigError, Error

# A group's key K is described and checked as the broker's key "group." + K.
_INHERITED = (
    "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms", "consumer.assignment.interval.ms",
    "share.session.timeout.ms", "share.heartbeat.interval.ms", "share.record.lock.duration.ms",
    "share.delivery.count.limit", "share.partition.max.record.locks", "share.assignment.interval.ms",
    "streams.session.timeout.ms", "streams.heartbeat.interval.ms", "streams.num.standby.replicas",
    "streams.initial.rebalance.delay.ms", "streams.assignment.interval.ms",
)  # fmt: skip
# Patterns are compiled at their first use, which most starts do not reach.
_DURATION = r"by_duration:P(?!$)(\d+D)?(T(?=\d)(\d+H)?(\d+M)?(\d+(\.\d{1,9})?S)?)?"


def _offset_reset(name: str, value: str) -> None:
    if value not in ("earliest", "latest") and not re.fullmatch(_DURATION, value, re.IGNORECASE):
        reason = (
            f"Invalid value `{value}` for configuration {name}. The value must be either 'earliest', 'latest' or of "
            "the format 'by_duration:<PnDTnHnMn.nS>'."
        )
        raise invalid_value(name, value, reason)


def _own(name: str, type: ConfigType, default: Any, validator: Any) -> Row:
    return Row(name, type, default, validator, MEDIUM, CLUSTER_WIDE, "")


def _inherited(name: str) -> Row:
    row = BROKER_ROWS["group." + name]
    return _own(name, row.type, row.default, row.validator)


GROUP_ROWS: dict[str, Row] = {
    **{name: _inherited(name) for name in _INHERITED},
    "share.auto.offset.reset": _own("share.auto.offset.reset", ConfigType.STRING, "latest", _offset_reset),
    "share.isolation.level": _own(
        "share.isolation.level",
        ConfigType.STRING,
        "read_uncommitted",
        one_of("read_committed", "read_uncommitted"),
    ),
    "share.renew.acknowledge.enable": _own("share.renew.acknowledge.enable", ConfigType.BOOLEAN, True, ANY),
}


def validate_group_overrides(broker_config: BrokerConfig, overrides: Mapping[str, str]) -> None:
    """Raises ApiError(INVALID_CONFIG), in Kafka's wording, for overrides that a group cannot have."""
    values: dict[str, Any] = {}
    for name, text in overrides.items():
        row = GROUP_ROWS.get(name)
        if row is None:
            raise ApiError(Error.INVALID_CONFIG, f"Unknown group config name: {name}")
        try:
            values[name] = parse_value(row, text)
        except ConfigError as error:
            raise ApiError(Error.INVALID_CONFIG, str(error)) from error
    for name, value in values.items():
        _check_limits(broker_config, name, value)
    for kind in ("consumer", "share", "streams"):
        session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
        if session in values or heartbeat in values:
            session_ms = values.get(session, broker_config["group." + session])
            if session_ms <= values.get(heartbeat, broker_config["group." + heartbeat]):
                raise ApiError(Error.INVALID_CONFIG, f"{session} must be greater than {heartbeat}")


def _check_limits(broker_config: BrokerConfig, name: str, value: Any) -> None:
    """Raises ApiError for a value outside of the broker's limits for groups.

    The limits are the broker keys group.<kind>.min.<key> and group.<kind>.max.<key>, where they exist.
    """
    kind, _, rest = name.partition(".")
    lowest, highest = f"group.{kind}.min.{rest}", f"group.{kind}.max.{rest.removeprefix('num.')}"
    if lowest in BROKER_ROWS and value < broker_config[lowest]:
        raise ApiError(Error.INVALID_CONFIG, f"{name} must be greater than or equal to {lowest}")
    if highest in BROKER_ROWS and value > broker_config[highest]:
        raise ApiError(Error.INVALID_CONFIG, f"{name} must be less than or equal to {highest}")
