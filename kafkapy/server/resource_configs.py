"""Descriptions of the configuration of groups and client metrics: their overrides and the broker's defaults."""

from __future__ import annotations

from collections.abc import Mapping

from kafkapy.config.broker_config import BrokerConfig
from kafkapy.config.describe import ConfigEntry, ConfigSynonym, describe_broker
from kafkapy.config.group_config import GROUP_ROWS
from kafkapy.config.row import ConfigSource, ConfigType
from kafkapy.controller.client_metrics import CLIENT_METRICS_KEYS

# Keys with a default of their own; any other key K of a group has the default of the broker's key "group." + K.
GROUP_DEFAULTS = {
    "share.auto.offset.reset": ("latest", ConfigType.STRING),
    "share.isolation.level": ("read_uncommitted", ConfigType.STRING),
    "share.renew.acknowledge.enable": ("true", ConfigType.BOOLEAN),
}
CLIENT_METRICS_DEFAULTS = {"interval.ms": "300000"}
CLIENT_METRICS_TYPES = {"interval.ms": ConfigType.INT, "match": ConfigType.LIST, "metrics": ConfigType.LIST}


def describe_group(config: BrokerConfig, overrides: Mapping[str, str]) -> list[ConfigEntry]:
    """Returns an entry for every configuration key of a group, with its override or the broker's value."""
    inherited = {entry.name: entry for entry in describe_broker(config)}
    entries = []
    for name in sorted(GROUP_ROWS):
        if name in GROUP_DEFAULTS:
            value, kind = GROUP_DEFAULTS[name]
            synonym = ConfigSynonym(name, value, ConfigSource.DEFAULT)
            base = ConfigEntry(name, value, False, ConfigSource.DEFAULT, False, [synonym], kind, "")
        else:
            base = inherited["group." + name]._replace(name=name, read_only=False)
        entries.append(_overridden(base, overrides, ConfigSource.GROUP))
    return entries


def describe_client_metrics(overrides: Mapping[str, str]) -> list[ConfigEntry]:
    """Returns an entry for every configuration key of a client metrics subscription, with its override or default."""
    entries = []
    for name in sorted(CLIENT_METRICS_KEYS):
        value = CLIENT_METRICS_DEFAULTS.get(name, "")
        base = ConfigEntry(name, value, False, ConfigSource.DEFAULT, False, [], CLIENT_METRICS_TYPES[name], "")
        entries.append(_overridden(base, overrides, ConfigSource.CLIENT_METRICS))
    return entries


def _overridden(entry: ConfigEntry, overrides: Mapping[str, str], source: ConfigSource) -> ConfigEntry:
    if entry.name not in overrides:
        return entry
    value = overrides[entry.name]
    synonyms = [ConfigSynonym(entry.name, value, source), *entry.synonyms]
    return entry._replace(value=value, source=source, synonyms=synonyms)
