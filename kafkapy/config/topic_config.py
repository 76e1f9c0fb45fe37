"""A topic's configuration: its own overrides on top of the broker's keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafkapy.config.broker_config import BrokerConfig
from kafkapy.config.table import TOPIC_ROWS, TOPIC_SYNONYMS
from kafkapy.config.topic_keys import TopicKeys
from kafkapy.config.value import default_value, parse_value
from kafkapy.errors import ApiError, ConfigError, Error

REMOTE_STORAGE = "remote.storage.enable"


class TopicConfig(TopicKeys):
    """The typed values of every topic key for one topic: `topic_config.segment_bytes`, or `topic_config[name]`.

    The object does not change: after a change of the broker's configuration or of the topic's overrides, the caller
    constructs another object. The constructor raises ConfigError for an override that is unknown or cannot be parsed.
    """

    __slots__ = ("_values", "overrides")

    def __init__(self, broker_config: BrokerConfig, overrides: Mapping[str, str]) -> None:
        self.overrides: dict[str, str] = dict(overrides)
        self._values: dict[str, Any] = topic_defaults(broker_config)
        for name, text in overrides.items():
            row = TOPIC_ROWS.get(name)
            if row is None:
                raise ConfigError(f"Unknown topic config name: {name}")
            self._values[name] = parse_value(row, text)

    def is_default(self, key: str) -> bool:
        """Returns whether the topic has no override of the key, so that the broker's value applies."""
        return key not in self.overrides


def topic_defaults(broker_config: BrokerConfig) -> dict[str, Any]:
    """Returns the typed value of every topic key for a topic without overrides."""
    return {name: _inherited(name, broker_config) for name in TOPIC_ROWS}


def _inherited(name: str, broker_config: BrokerConfig) -> Any:
    for key, factor in TOPIC_SYNONYMS.get(name, ()):
        value = broker_config[key]
        if value is None:
            continue
        if name == "retention.ms" and value < 0:
            return -1
        return value if factor == 1 else value * factor
    return default_value(TOPIC_ROWS[name])


def validate_topic_override(name: str, value: str | None) -> None:
    """Raises ApiError(INVALID_CONFIG), in Kafka's wording, if a topic cannot have the override `name`=`value`."""
    row = TOPIC_ROWS.get(name)
    if row is None:
        raise ApiError(Error.INVALID_CONFIG, f"Unknown topic config name: {name}")
    if value is None:
        raise ApiError(Error.INVALID_CONFIG, f"Null value not supported for topic configs: {name}")
    try:
        typed = parse_value(row, value)
    except ConfigError as error:
        raise ApiError(Error.INVALID_CONFIG, str(error)) from error
    if name == REMOTE_STORAGE and typed:
        raise ApiError(
            Error.INVALID_CONFIG,
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage.",
        )


def validate_topic_overrides(broker_config: BrokerConfig, overrides: Mapping[str, str | None]) -> None:
    """Raises ApiError(INVALID_CONFIG) if one of a topic's overrides is invalid or two contradict each other."""
    for name, value in overrides.items():
        validate_topic_override(name, value)
    config = TopicConfig(broker_config, {name: value for name, value in overrides.items() if value is not None})
    lowest, highest = config.min_compaction_lag_ms, config.max_compaction_lag_ms
    if lowest > highest:
        raise ApiError(
            Error.INVALID_CONFIG,
            f"conflict topic config setting min.compaction.lag.ms ({lowest}) > max.compaction.lag.ms ({highest})",
        )
