"""Descriptions of the configuration of brokers and topics: values, their sources and their synonyms.

The functions return plain tuples, which the handler of DescribeConfigs puts into the response (KIP-226, KIP-569).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import dropwhile

from kafkapy.config.broker_config import BrokerConfig
from kafkapy.config.dynamic import dynamic_row
from kafkapy.config.row import READ_ONLY, REQUIRED, ConfigSource, Row
from kafkapy.config.table import BROKER_ROWS, OWN_ROWS, TOPIC_ROWS, TOPIC_SYNONYMS, broker_synonyms
from kafkapy.config.topic_config import TopicConfig
from kafkapy.config.value import default_value, format_value
from kafkapy.named_tuple import NamedTuple


class ConfigSynonym(NamedTuple):
    """A source that sets a key or one of its synonyms.

    `name` is the key or the synonym, and `value` its value in the source; None if the value is hidden.
    """

    name: str
    value: str | None
    source: ConfigSource


class ConfigEntry(NamedTuple):
    """One key of a DescribeConfigs response.

    `type` is the number of the key's ConfigType, or 0 for an unknown key.
    """

    name: str
    value: str | None
    read_only: bool
    source: ConfigSource
    sensitive: bool
    synonyms: list[ConfigSynonym]
    type: int
    documentation: str


def describe_broker(config: BrokerConfig) -> list[ConfigEntry]:
    """Returns every key that brokers of Kafka have, and the other keys that are set for this broker.

    The other keys are kafkapy's own keys and unknown ones. The values of unknown keys are hidden, because they may be
    secrets.
    """
    names = [*BROKER_ROWS, *(name for name in _texts_of(config) if name not in BROKER_ROWS)]
    return [_broker_entry(config, name, lambda source: True) for name in names]


def describe_broker_defaults(config: BrokerConfig) -> list[ConfigEntry]:
    """Returns the keys that are set dynamically for all brokers, with their texts; sensitive texts are hidden.

    In requests, these settings belong to the broker resource with an empty name.
    """
    entries = []
    for name, text in config.dynamic_default.items():
        entry = _broker_entry(config, name, lambda source: source is ConfigSource.DYNAMIC_DEFAULT_BROKER)
        entries.append(entry._replace(value=None if entry.sensitive else text))
    return entries


def describe_topic(config: BrokerConfig, overrides: Mapping[str, str]) -> list[ConfigEntry]:
    """Returns an entry for every topic key, for a topic that has these overrides."""
    topic_config = TopicConfig(config, overrides)
    entries = []
    for name, row in TOPIC_ROWS.items():
        synonyms = []
        if name in overrides:
            synonyms.append(ConfigSynonym(name, overrides[name], ConfigSource.TOPIC))
        if name in TOPIC_SYNONYMS:
            synonyms += _synonyms(config, TOPIC_SYNONYMS[name][0][0], hidden=False)
        source = synonyms[0].source if synonyms else ConfigSource.DEFAULT
        value = format_value(row.type, topic_config[name])
        entries.append(ConfigEntry(name, value, False, source, False, synonyms, int(row.type), row.documentation))
    return entries


def _broker_entry(config: BrokerConfig, name: str, shown: Callable[[ConfigSource], bool]) -> ConfigEntry:
    row = dynamic_row(name) or OWN_ROWS.get(name)
    sensitive = row is None or row.sensitive
    found = _synonyms(config, name, hidden=sensitive)
    synonyms = [synonym for synonym in found if shown(synonym.source)]
    return ConfigEntry(
        name,
        None if sensitive else _broker_value(config, name, row),
        row is None or row.name != name or row.mode is READ_ONLY,  # Kafka calls a listener's own key read-only
        synonyms[0].source if synonyms else ConfigSource.DEFAULT,
        sensitive,
        synonyms,
        0 if row is None else int(row.type),
        "" if row is None else row.documentation,
    )


def _broker_value(config: BrokerConfig, name: str, row: Row | None) -> str | None:
    if row is not None and (name in BROKER_ROWS or name in OWN_ROWS):
        return format_value(row.type, config[name])
    for texts in (config.dynamic_broker, config.dynamic_default, config.originals):
        if name in texts:
            return texts[name]
    return None


def _synonyms(config: BrokerConfig, key: str, *, hidden: bool) -> list[ConfigSynonym]:
    """Returns an entry for each source that sets the key or one of its synonyms, the strongest source first.

    The sources are the dynamic configuration of this broker, the dynamic configuration of all brokers, the file, and
    the defaults. As in Kafka, entries of synonyms before the first entry of the key itself are left out: if no source
    sets log.retention.ms, its list is empty, even if log.retention.hours is set. If `hidden` is True, the values are
    None.
    """
    names = broker_synonyms(key)
    layers = (
        (config.dynamic_broker, ConfigSource.DYNAMIC_BROKER),
        (config.dynamic_default, ConfigSource.DYNAMIC_DEFAULT_BROKER),
        (config.originals, ConfigSource.STATIC_BROKER),
    )
    found = [
        ConfigSynonym(name, None if hidden else texts[name], source)
        for texts, source in layers
        for name in names
        if name in texts
    ]
    for name in names:
        row = BROKER_ROWS.get(name) or OWN_ROWS.get(name)
        if row is not None and row.default is not None and row.default is not REQUIRED:
            value = None if hidden else format_value(row.type, default_value(row))
            found.append(ConfigSynonym(name, value, ConfigSource.DEFAULT))
    return list(dropwhile(lambda synonym: synonym.name != key, found))


def _texts_of(config: BrokerConfig) -> dict[str, None]:
    return dict.fromkeys([*config.originals, *config.dynamic_default, *config.dynamic_broker])
