"""The operations that describe, list, alter and reset configurations of topics, brokers and other resources."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Any

from kafkapy.compat.kafka.admin.requests import AdminRequests, as_dict, error_text, raise_error
from kafkapy.compat.kafka.enum_helper import EnumHelper
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.alter_configs import AlterConfigsRequest
from kafkapy.protocol.messages.describe_configs import DescribeConfigsRequest
from kafkapy.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from kafkapy.protocol.messages.list_config_resources import ListConfigResourcesRequest


class AlterConfigOp(EnumHelper, IntEnum):
    """The kinds of changes of a configuration key."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigResourceType(EnumHelper, IntEnum):
    """The types of resources that have a configuration."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigType(EnumHelper, IntEnum):
    """The data types of configuration values, with the numbers that DescribeConfigs has for them."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class ConfigSourceType(EnumHelper, IntEnum):
    """The sources from which a configuration key gets its value, with the numbers that DescribeConfigs has for them."""

    UNKNOWN = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    DYNAMIC_CLIENT_METRICS_CONFIG = 7
    DYNAMIC_GROUP_CONFIG = 8

    def is_modified(self) -> bool:
        """Returns whether the value was set for the resource itself."""
        return self not in (
            ConfigSourceType.DYNAMIC_DEFAULT_BROKER_CONFIG,
            ConfigSourceType.STATIC_BROKER_CONFIG,
            ConfigSourceType.DEFAULT_CONFIG,
        )

    @classmethod
    def dynamic_for_resource_type(cls, resource_type: ConfigResourceType) -> ConfigSourceType:
        """Returns the source of values that were set for resources of this type."""
        if resource_type is ConfigResourceType.UNKNOWN:
            return cls.UNKNOWN
        return cls[f"DYNAMIC_{resource_type.name}_CONFIG"]


class ConfigFilterType(EnumHelper, IntEnum):
    """The kinds of keys that `describe_configs` returns."""

    ALL = 0
    DYNAMIC = 1
    MODIFIED = 2
    DEFAULT = 3
    STATIC = 4

    def should_skip(self, config_source: ConfigSourceType) -> bool:
        """Returns whether this filter excludes a value with the source `config_source` from `describe_configs`."""
        if self is ConfigFilterType.MODIFIED:
            return not config_source.is_modified()
        if self is ConfigFilterType.DEFAULT:
            return config_source.is_modified()
        return self is ConfigFilterType.STATIC and config_source is not ConfigSourceType.STATIC_BROKER_CONFIG


class ConfigResource:
    """A resource and its configuration keys, for a request.

    `configs` is a list of keys for `describe_configs`, a dictionary of values or changes for `alter_configs`, or None
    for all keys.
    """

    def __init__(self, resource_type: Any, name: str, configs: Any = None) -> None:
        if not isinstance(resource_type, ConfigResourceType):
            resource_type = ConfigResourceType[str(resource_type).upper()]
        self.resource_type: ConfigResourceType = resource_type
        self.name = name
        self.configs = configs

    def __str__(self) -> str:
        return f"ConfigResource {self.name}={self.resource_type}"

    def __repr__(self) -> str:
        return f"ConfigResource({self.resource_type}, {self.name}, {self.configs})"


Described = dict[str, dict[str, dict[str, Any]]]


class ConfigOperations(AdminRequests):
    """The methods of KafkaAdminClient for configurations."""

    def describe_configs(
        self,
        config_resources: Iterable[ConfigResource],
        include_synonyms: bool = False,
        config_filter: Any = "modified",
    ) -> Described:
        """Returns the configurations as nested dictionaries: type of resource -> name of resource -> key -> fields.

        The fields are those of the response: the value, its source, whether it is sensitive and so on; enumerations are
        given by name. `config_filter` is a ConfigFilterType or its name, and selects the keys, such as only the
        modified ones.
        """
        chosen = ConfigFilterType.build_from(config_filter)
        found: Described = {}
        for node, resources in _by_broker(config_resources):
            response = self._ask(ApiKey.DESCRIBE_CONFIGS, _describe_request(resources, include_synonyms), node)
            for result in response.results:
                raise_error(result.error_code, result.error_message)
                kind = ConfigResourceType(result.resource_type)
                configs: dict[str, Any] = {}
                for each in result.configs:
                    config = as_dict(each)
                    name = take_config(config, kind)
                    source = ConfigSourceType[config["config_source"]]
                    is_fixed = chosen is ConfigFilterType.DYNAMIC and config["read_only"]
                    if not is_fixed and not chosen.should_skip(source):
                        configs[name] = config
                found.setdefault(kind.name.lower(), {})[result.resource_name] = configs
        return found

    def list_config_resources(self, resource_types: Iterable[Any] | None = None) -> dict[str, list[str]]:
        """Returns the names of the resources with a configuration, by type; None for `resource_types` means all types.

        A broker before version 1 of the request ignores `resource_types`, and returns client metrics only.
        """
        wanted = [ConfigResourceType.value_for(each) for each in resource_types or ()]
        response = self._ask(
            ApiKey.LIST_CONFIG_RESOURCES,
            lambda version: (
                ListConfigResourcesRequest(resource_types=wanted)
                if version >= ListConfigResourcesRequest.FIRST_VERSION_WITH_RESOURCE_TYPES
                else ListConfigResourcesRequest()
            ),
        )
        raise_error(response.error_code, None)
        found: dict[str, list[str]] = {}
        for each in response.config_resources:
            found.setdefault(ConfigResourceType(each.resource_type).name.lower(), []).append(each.resource_name)
        return found

    def alter_configs(
        self,
        config_resources: Sequence[ConfigResource],
        validate_only: bool = False,
        raise_on_unknown: bool = True,
        incremental: bool | None = None,
    ) -> dict[str, dict[str, str]]:
        """Changes configurations; returns "OK" or the error's text for each resource, by its type and its name.

        The attribute `configs` of a resource maps each key to a new value or to a pair (AlterConfigOp, value). Other
        keys do not change. The request is IncrementalAlterConfigs or, if `incremental` is False, AlterConfigs, for old
        brokers. Because AlterConfigs replaces all keys of a resource, the request then also contains the present values
        of the other keys. Raises ValueError for unknown keys, unless `raise_on_unknown` is False.
        """
        if raise_on_unknown:
            self._check_known(config_resources)
        if incremental is False:
            for resource, present in zip(config_resources, self._modified(config_resources), strict=True):
                resource.configs = {**present, **resource.configs}
        return self._alter(config_resources, validate_only, incremental is not False)

    def reset_configs(
        self,
        config_resources: Sequence[ConfigResource],
        validate_only: bool = False,
        raise_on_unknown: bool = True,
        incremental: bool | None = None,
    ) -> dict[str, dict[str, str]]:
        """Resets keys to their defaults, and returns "OK" or the error's text by type and name of the resources.

        If a resource names no keys, all its keys are reset. The request is IncrementalAlterConfigs or, if `incremental`
        is False, the AlterConfigs of old brokers, with the present values of the keys that are not reset. Raises
        ValueError for unknown keys, unless `raise_on_unknown` is False.
        """
        if raise_on_unknown:
            self._check_known(config_resources)
        for resource, present in zip(config_resources, self._modified(config_resources), strict=True):
            wanted = list(resource.configs or present)
            if incremental is False:
                resource.configs = {key: value for key, value in present.items() if key not in wanted}
            else:
                resource.configs = dict.fromkeys(wanted, (AlterConfigOp.DELETE, None))
        return self._alter(config_resources, validate_only, incremental is not False)

    def _check_known(self, resources: Sequence[ConfigResource]) -> None:
        for resource, known in zip(resources, self._described(resources, "dynamic"), strict=True):
            unknown = set(resource.configs or ()) - set(known)
            if unknown:
                raise ValueError(f"Unrecognized configs: {unknown}")

    def _modified(self, resources: Sequence[ConfigResource]) -> list[dict[str, str]]:
        """Returns for each resource, in the same order, the keys that were set for the resource and their values."""
        described = self._described(resources, "modified")
        return [
            {key: each["value"] for key, each in configs.items() if each["value"] is not None} for configs in described
        ]

    def _described(self, resources: Sequence[ConfigResource], config_filter: str) -> list[dict[str, Any]]:
        wanted = [ConfigResource(each.resource_type, each.name) for each in resources]
        found = self.describe_configs(wanted, config_filter=config_filter)
        return [found[each.resource_type.name.lower()][str(each.name)] for each in resources]

    def _alter(
        self, resources: Sequence[ConfigResource], validate_only: bool, incremental: bool
    ) -> dict[str, dict[str, str]]:
        found: dict[str, dict[str, str]] = {}
        key = ApiKey.INCREMENTAL_ALTER_CONFIGS if incremental else ApiKey.ALTER_CONFIGS
        make = _incremental_request if incremental else _replacing_request
        for node, grouped in _by_broker(resources):
            for each in self._ask(key, make(grouped, validate_only), node).responses:
                kind = ConfigResourceType(each.resource_type).name.lower()
                found.setdefault(kind, {})[each.resource_name] = error_text(each.error_code, each.error_message) or "OK"
        return found


def take_config(config: dict[str, Any], resource_type: ConfigResourceType) -> str:
    """Converts `config`, a key in a DescribeConfigs response, to the form that `describe_configs` returns, in place.

    Replaces the numbers of the source and the type by names. Removes the key's name from `config` and returns the name.
    """
    config.pop("is_default", None)  # of version 0 only
    source = config.get("config_source", -1)
    config["config_source"] = (
        ConfigSourceType(source).name if source >= 0 else ConfigSourceType.dynamic_for_resource_type(resource_type).name
    )
    for synonym in config.get("synonyms", ()):
        synonym["source"] = ConfigSourceType(synonym["source"]).name
    if "config_type" in config:
        config["config_type"] = ConfigType(config["config_type"]).name
    return str(config.pop("name"))


def _by_broker(resources: Iterable[ConfigResource]) -> list[tuple[int | None, list[ConfigResource]]]:
    """Returns pairs (node, resources): the resources that have to be requested from the broker with the id `node`.

    None for `node` means that any broker can be asked. Raises ValueError if the name of a resource of type BROKER or
    BROKER_LOGGER is not the id of a broker.
    """
    found: dict[int | None, list[ConfigResource]] = {}
    for each in resources:
        node = None
        if each.resource_type in (ConfigResourceType.BROKER, ConfigResourceType.BROKER_LOGGER):
            try:
                node = int(each.name)
            except ValueError:
                raise ValueError("Broker resource names must be an integer or a string represented integer") from None
        found.setdefault(node, []).append(each)
    return list(found.items())


def _describe_request(resources: Iterable[ConfigResource], include_synonyms: bool) -> DescribeConfigsRequest:
    return DescribeConfigsRequest(
        resources=[
            DescribeConfigsRequest.DescribeConfigsResource(
                resource_type=each.resource_type,
                resource_name=str(each.name),
                configuration_keys=None if each.configs is None else list(each.configs),
            )
            for each in resources
        ],
        include_synonyms=include_synonyms,
    )


def _changes(configs: Any) -> list[tuple[str, int, str | None]]:
    """Returns (key, number of the AlterConfigOp, new value) for each key in `configs`; the value is None for DELETE.

    A value without an operation is SET. Raises TypeError if `configs` is not a mapping.
    """
    if not configs:
        return []
    if not isinstance(configs, Mapping):
        raise TypeError("alter_configs requires configs as a dict of {key: (op, value)} or {key: value}")
    found = []
    for name, change in configs.items():
        op, value = change if isinstance(change, tuple) else (AlterConfigOp.SET, change)
        code = AlterConfigOp.value_for(op)
        text = None if code == AlterConfigOp.DELETE or value is None else str(value)
        found.append((name, code, text))
    return found


def _incremental_request(resources: Iterable[ConfigResource], validate_only: bool) -> IncrementalAlterConfigsRequest:
    request = IncrementalAlterConfigsRequest
    return request(
        resources=[
            request.AlterConfigsResource(
                resource_type=each.resource_type,
                resource_name=str(each.name),
                configs=[
                    request.AlterableConfig(name=name, config_operation=op, value=value)
                    for name, op, value in _changes(each.configs)
                ],
            )
            for each in resources
        ],
        validate_only=validate_only,
    )


def _replacing_request(resources: Iterable[ConfigResource], validate_only: bool) -> AlterConfigsRequest:
    """Returns the AlterConfigs request that replaces the whole configurations of the resources.

    Raises ValueError for a change that is not SET.
    """
    request = AlterConfigsRequest
    made = request(resources=[], validate_only=validate_only)
    for each in resources:
        resource = request.AlterConfigsResource(
            resource_type=each.resource_type, resource_name=str(each.name), configs=[]
        )
        for name, op, value in _changes(each.configs):
            if op != AlterConfigOp.SET:
                raise ValueError(f"AlterConfigs does not support {AlterConfigOp(op).name} (SET only)")
            resource.configs.append(request.AlterableConfig(name=name, value=value))
        made.resources.append(resource)
    return made
