"""Resources with a configuration, and their entries."""

from __future__ import annotations

import functools
from enum import Enum

from kafkapy.compat.confluent_kafka import _constants as numbers
from kafkapy.compat.confluent_kafka._errors import KafkaError
from kafkapy.compat.confluent_kafka.admin._resource import ResourceType


class AlterConfigOpType(Enum):
    """The kinds of changes of a configuration entry; APPEND and SUBTRACT apply to lists."""

    SET = numbers.ALTER_CONFIG_OP_TYPE_SET
    DELETE = numbers.ALTER_CONFIG_OP_TYPE_DELETE
    APPEND = numbers.ALTER_CONFIG_OP_TYPE_APPEND
    SUBTRACT = numbers.ALTER_CONFIG_OP_TYPE_SUBTRACT


class ConfigSource(Enum):
    """The sources of the value of a configuration entry."""

    UNKNOWN_CONFIG = numbers.CONFIG_SOURCE_UNKNOWN_CONFIG
    DYNAMIC_TOPIC_CONFIG = numbers.CONFIG_SOURCE_DYNAMIC_TOPIC_CONFIG
    DYNAMIC_BROKER_CONFIG = numbers.CONFIG_SOURCE_DYNAMIC_BROKER_CONFIG
    DYNAMIC_DEFAULT_BROKER_CONFIG = numbers.CONFIG_SOURCE_DYNAMIC_DEFAULT_BROKER_CONFIG
    STATIC_BROKER_CONFIG = numbers.CONFIG_SOURCE_STATIC_BROKER_CONFIG
    DEFAULT_CONFIG = numbers.CONFIG_SOURCE_DEFAULT_CONFIG
    GROUP_CONFIG = numbers.CONFIG_SOURCE_GROUP_CONFIG


class ConfigEntry:
    """A configuration key and its value, or a change of the value if `incremental_operation` is set."""

    def __init__(
        self,
        name: str,
        value: str | None,
        source: ConfigSource = ConfigSource.UNKNOWN_CONFIG,
        is_read_only: bool = False,
        is_default: bool = False,
        is_sensitive: bool = False,
        is_synonym: bool = False,
        synonyms: dict[str, ConfigEntry] | None = None,
        incremental_operation: AlterConfigOpType | None = None,
    ) -> None:
        self.name = name
        self.value = value
        self.source = source
        self.is_read_only = bool(is_read_only)
        self.is_default = bool(is_default)
        self.is_sensitive = bool(is_sensitive)
        self.is_synonym = bool(is_synonym)
        self.synonyms = {} if synonyms is None else synonyms
        self.incremental_operation = incremental_operation

    def __repr__(self) -> str:
        return f'ConfigEntry({self.name}="{self.value}")'

    def __str__(self) -> str:
        return f'{self.name}="{self.value}"'


@functools.total_ordering
class ConfigResource:
    """A resource with a configuration; hashable by its kind and name. Raises ValueError for an unknown kind."""

    Type = ResourceType

    def __init__(
        self,
        restype: ResourceType | str | int,
        name: str,
        set_config: dict[str, str] | None = None,
        described_configs: dict[str, ConfigEntry] | None = None,
        error: KafkaError | None = None,
        incremental_configs: list[ConfigEntry] | None = None,
    ) -> None:
        if name is None:
            raise ValueError("Expected resource name to be a string")
        if isinstance(restype, str):
            try:
                restype = ResourceType[restype.upper()]
            except KeyError:
                raise ValueError(f'Unknown resource type "{restype}": should be a ConfigResource.Type') from None
        elif isinstance(restype, int):
            restype = ResourceType(restype)
        self.restype = restype
        self.restype_int = int(restype.value)
        self.name = name
        self.set_config_dict = dict(set_config or {})
        self.incremental_configs = list(incremental_configs or [])
        self.configs = described_configs
        self.error = error

    def __repr__(self) -> str:
        error = "" if self.error is None else f",{self.error!r}"
        return f"ConfigResource({self.restype},{self.name}{error})"

    def __hash__(self) -> int:
        return hash((self.restype, self.name))

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, ConfigResource):
            return NotImplemented
        return (self.restype, self.name) < (other.restype, other.name)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ConfigResource):
            return NotImplemented
        return (self.restype, self.name) == (other.restype, other.name)

    def __len__(self) -> int:
        return len(self.set_config_dict)

    def set_config(self, name: str, value: str, overwrite: bool = True) -> None:
        """Sets the value of a key for `alter_configs`. If `overwrite` is False, an existing value is not changed."""
        if overwrite or name not in self.set_config_dict:
            self.set_config_dict[name] = value

    def add_incremental_config(self, config_entry: ConfigEntry) -> None:
        """Adds a change for `incremental_alter_configs`."""
        self.incremental_configs.append(config_entry)
