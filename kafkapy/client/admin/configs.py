"""Operations on the configurations of topics, brokers, loggers, groups and client metrics."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from enum import IntEnum
from typing import Any

from kafkapy.client.admin.lookups import AdminLookups
from kafkapy.client.admin.requests import AdminRequest, Target, constant, error_of, top_level_error
from kafkapy.client.admin.results import Results
from kafkapy.config.row import ConfigSource
from kafkapy.errors import ApiError, Error
from kafkapy.named_tuple import NamedTuple
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.describe_configs import DescribeConfigsRequest
from kafkapy.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from kafkapy.protocol.messages.list_config_resources import ListConfigResourcesRequest


class ResourceType(IntEnum):
    """The kinds of resources that have a configuration; the values are the protocol's numbers."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigResource(NamedTuple):
    """A resource that has a configuration. The defaults of all brokers have type BROKER and the name ""."""

    type: ResourceType
    name: str


class ConfigSynonym(NamedTuple):
    """The value of a key in one source, such as the topic or the defaults.

    `source` is a number of `kafkapy.config.row.ConfigSource`, 0 if it is unknown.
    """

    name: str
    value: str | None
    source: int


class ConfigEntry(NamedTuple):
    """A key and its value, which is None if it is unset or sensitive.

    `synonyms` are the values of all sources in the order of precedence, if they were requested. `source` is a number of
    `kafkapy.config.row.ConfigSource`, and `type` one of `kafkapy.config.row.ConfigType`; 0 means unknown.
    """

    name: str
    value: str | None
    source: int
    is_sensitive: bool
    is_read_only: bool
    synonyms: tuple[ConfigSynonym, ...] = ()
    type: int = 0
    documentation: str | None = None


class ConfigOperation(IntEnum):
    """The kinds of changes of a key; APPEND and SUBTRACT apply to lists."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigChange(NamedTuple):
    """A change of one key; `value` is None for DELETE."""

    name: str
    value: str | None
    operation: ConfigOperation = ConfigOperation.SET


_KINDS_OF_BROKERS = (ResourceType.BROKER, ResourceType.BROKER_LOGGER)


class ConfigOperations(AdminLookups):
    """Operations on configurations."""

    def describe_configs(
        self,
        resources: Iterable[ConfigResource],
        *,
        include_synonyms: bool = False,
        include_documentation: bool = False,
        timeout: float | None = None,
    ) -> Results[ConfigResource, dict[str, ConfigEntry]]:
        """Returns the configuration entries of each resource by key, in the broker's order. Blocks.

        Raises ValueError if a resource is a broker whose name is not a broker id.
        """
        groups = _by_target(resources)
        requests = []
        for node_id, wanted in groups.items():

            def build(version: int, wanted: Collection[ConfigResource] = wanted) -> DescribeConfigsRequest:
                named = [
                    DescribeConfigsRequest.DescribeConfigsResource(
                        resource_type=each.type, resource_name=each.name, configuration_keys=None
                    )
                    for each in wanted
                ]
                return DescribeConfigsRequest(
                    resources=named,
                    include_synonyms=include_synonyms and version >= 1,
                    include_documentation=include_documentation and version >= 3,
                )

            requests.append(AdminRequest(self._resource_target(node_id), ApiKey.DESCRIBE_CONFIGS, build))
        self._send_all(requests, self._deadline_ms(timeout))
        results: Results[ConfigResource, dict[str, ConfigEntry]] = Results()
        for request, wanted in zip(requests, groups.values(), strict=True):
            if request.error is not None:
                results.errors.update(dict.fromkeys(wanted, request.error))
                continue
            for result in request.response.results:
                resource = ConfigResource(ResourceType(result.resource_type), result.resource_name)
                results.put(resource, error_of(result) or {each.name: _entry(each) for each in result.configs})
        return results

    def incremental_alter_configs(
        self,
        changes: Mapping[ConfigResource, Iterable[ConfigChange]],
        *,
        validate_only: bool = False,
        timeout: float | None = None,
    ) -> Results[ConfigResource, None]:
        """Changes single configuration keys. For each resource either all changes are made or none. Blocks.

        With `validate_only` the broker only checks the changes. An invalid value has the error INVALID_CONFIG.
        """
        groups = _by_target(changes)
        requests = []
        for node_id, wanted in groups.items():
            altered = [_alteration(resource, changes[resource]) for resource in wanted]
            message = IncrementalAlterConfigsRequest(resources=altered, validate_only=validate_only)
            requests.append(
                AdminRequest(
                    self._resource_target(node_id),
                    ApiKey.INCREMENTAL_ALTER_CONFIGS,
                    constant(message),
                )
            )
        self._send_all(requests, self._deadline_ms(timeout))
        results: Results[ConfigResource, None] = Results()
        for request, wanted in zip(requests, groups.values(), strict=True):
            if request.error is not None:
                results.errors.update(dict.fromkeys(wanted, request.error))
                continue
            for result in request.response.responses:
                results.put(ConfigResource(ResourceType(result.resource_type), result.resource_name), error_of(result))
        return results

    def list_config_resources(
        self, types: Iterable[ResourceType] = (), *, timeout: float | None = None
    ) -> list[ConfigResource]:
        """Returns the resources that have a configuration. Blocks.

        `types` are the kinds to return; without any, all kinds are returned. Before Apache Kafka 4.1 only
        CLIENT_METRICS can be listed.
        """
        wanted = sorted(set(types))

        def build(version: int) -> ListConfigResourcesRequest:
            if version == 0 and wanted != [ResourceType.CLIENT_METRICS]:
                raise ApiError(Error.UNSUPPORTED_VERSION, "The broker lists the resources of client metrics only.")
            return ListConfigResourcesRequest(resource_types=[int(each) for each in wanted] if version >= 1 else [])

        response = self._request(
            self._any_broker,
            ApiKey.LIST_CONFIG_RESOURCES,
            build,
            top_level_error,
            deadline_ms=self._deadline_ms(timeout),
        )
        return [
            ConfigResource(ResourceType(result.resource_type), result.resource_name)
            for result in response.config_resources
        ]

    def _resource_target(self, node_id: int | None) -> Target:
        return self._any_broker if node_id is None else self._broker(node_id)


def _by_target(resources: Iterable[ConfigResource]) -> dict[int | None, list[ConfigResource]]:
    """Groups resources by the broker that the request about them is sent to.

    The key is the broker's id for the resources of one broker and its loggers, and None for all other resources, which
    any broker can describe or change.
    """
    groups: dict[int | None, list[ConfigResource]] = {}
    for kind, name in dict.fromkeys(resources):
        resource = ConfigResource(ResourceType(kind), name)
        is_of_a_broker = resource.type in _KINDS_OF_BROKERS and name != ""
        if is_of_a_broker and not (name.isascii() and name.isdigit()):
            raise ValueError(f"{name!r} is not the id of a broker")
        groups.setdefault(int(name) if is_of_a_broker else None, []).append(resource)
    return groups


def _alteration(
    resource: ConfigResource, changes: Iterable[ConfigChange]
) -> IncrementalAlterConfigsRequest.AlterConfigsResource:
    return IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=resource.type,
        resource_name=resource.name,
        configs=[
            IncrementalAlterConfigsRequest.AlterableConfig(
                name=each.name, config_operation=each.operation, value=each.value
            )
            for each in changes
        ],
    )


def _entry(result: Any) -> ConfigEntry:
    source = result.config_source
    if source < 0:  # version 0 has only the field `is_default`
        source = ConfigSource.DEFAULT if result.is_default else 0
    return ConfigEntry(
        result.name,
        result.value,
        source,
        result.is_sensitive,
        result.read_only,
        tuple(ConfigSynonym(each.name, each.value, each.source) for each in result.synonyms),
        result.config_type,
        result.documentation,
    )
