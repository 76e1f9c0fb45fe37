"""DescribeConfigs 0 to 4, AlterConfigs 0 to 2, IncrementalAlterConfigs 0 and 1, ListConfigResources 0 and 1.

These APIs read and change the configuration of topics, brokers, groups, client metrics and this broker's loggers. The
controller commits all changes except the levels of loggers, which this node sets at once.

Permissions: DescribeConfigs or AlterConfigs on the topic or group, and on the cluster for the other resources. On a
controller the levels of loggers need ClusterAction instead. What a broker forwards is checked by the controller.

Version notes: version 0 of DescribeConfigs says whether a value is the default; later versions name its source. Version
0 of ListConfigResources lists client metrics only (KIP-1142).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping
from concurrent.futures import Future
from typing import Any, TypeVar

from kafkapy.config.cordoned_directories import check_cordoned
from kafkapy.config.describe import ConfigEntry, describe_broker, describe_broker_defaults, describe_topic
from kafkapy.config.row import ConfigSource
from kafkapy.config.table import BROKER_ROWS
from kafkapy.config.value import parse_value
from kafkapy.controller.configs import (
    ConfigChange,
    ConfigResource,
    OperationType,
    incremental_alter_configs,
    legacy_alter_configs,
    overrides_after,
)
from kafkapy.controller.result import ControllerResult, ErrorMessage
from kafkapy.controller.topic_name import validate_topic_name
from kafkapy.decimal_text import is_integer
from kafkapy.errors import ApiError, ConfigError, Error
from kafkapy.metadata.image import (
    BROKER_LOGGER_RESOURCE,
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
    MetadataImage,
)
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from kafkapy.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from kafkapy.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kafkapy.protocol.messages.list_config_resources import ListConfigResourcesRequest, ListConfigResourcesResponse
from kafkapy.security.acl import CLUSTER_NAME, Operation, ResourceType
from kafkapy.server.api_registry import serves
from kafkapy.server.authorization import check_cluster, is_allowed, is_cluster_allowed
from kafkapy.server.broker_loggers import alter_logger_levels, describe_loggers
from kafkapy.server.controller_answer import answer_when_done
from kafkapy.server.request_context import RequestContext
from kafkapy.server.request_log import follow_level
from kafkapy.server.resource_configs import describe_client_metrics, describe_group
from kafkapy.server.services import Services
from kafkapy.server.store_changes import check_store_changes

DescribedResource = DescribeConfigsResponse.DescribeConfigsResult
DescribedEntry = DescribeConfigsResponse.DescribeConfigsResourceResult
Results = dict[ConfigResource, ErrorMessage]
Changes = TypeVar("Changes")
_CORDONED = "cordoned.log.dirs"
# Type of configuration resource -> the type of the resource whose permissions protect it, and the error.
_SECURED_AS = {
    TOPIC_RESOURCE: (ResourceType.TOPIC, Error.TOPIC_AUTHORIZATION_FAILED),
    GROUP_RESOURCE: (ResourceType.GROUP, Error.GROUP_AUTHORIZATION_FAILED),
    BROKER_RESOURCE: (ResourceType.CLUSTER, Error.CLUSTER_AUTHORIZATION_FAILED),
    BROKER_LOGGER_RESOURCE: (ResourceType.CLUSTER, Error.CLUSTER_AUTHORIZATION_FAILED),
    CLIENT_METRICS_RESOURCE: (ResourceType.CLUSTER, Error.CLUSTER_AUTHORIZATION_FAILED),
}


# -- DescribeConfigs


def describe_configs_error(
    request: DescribeConfigsRequest, version: int, error: Error, message: str | None
) -> DescribeConfigsResponse:
    return DescribeConfigsResponse(results=[_failed(resource, error, message) for resource in request.resources])


@serves(ApiKey.DESCRIBE_CONFIGS, 0, 4, on_error=describe_configs_error)
def handle_describe_configs(context: RequestContext, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    results = []
    for resource in request.resources:
        try:
            _check_permission(context, Operation.DESCRIBE_CONFIGS, resource.resource_type, resource.resource_name)
            entries = _describe(context.services, resource.resource_type, resource.resource_name)
        except ApiError as error:
            results.append(_failed(resource, error.error, error.message))
            continue
        keys = resource.configuration_keys
        if keys:
            wanted = set(keys)
            entries = [entry for entry in entries if entry.name in wanted]
        results.append(
            DescribedResource(
                error_code=Error.NONE,
                error_message="",
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
                configs=[_entry(entry, request, context.api_version) for entry in entries],
            )
        )
    return DescribeConfigsResponse(results=results)


def _failed(
    resource: DescribeConfigsRequest.DescribeConfigsResource, error: Error, message: str | None
) -> DescribedResource:
    return DescribedResource(
        error_code=error,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=[],
    )


def _check_permission(context: RequestContext, operation: Operation, resource_type: int, name: str) -> None:
    """Raises ApiError if the client may not perform the operation on the configuration of the resource. Does nothing
    for a type that is not known."""
    if context.services.authorizer is None or resource_type not in _SECURED_AS:
        return
    kind, error = _SECURED_AS[resource_type]
    if not is_allowed(context, operation, kind, CLUSTER_NAME if kind is ResourceType.CLUSTER else name):
        raise ApiError(error)


def _describe(services: Services, resource_type: int, name: str) -> list[ConfigEntry]:
    image = services.metadata.image
    if resource_type == TOPIC_RESOURCE:
        validate_topic_name(name)
        if name not in image.topics.by_name:
            raise ApiError(Error.UNKNOWN_TOPIC_OR_PARTITION, "")
        return describe_topic(services.config, image.config(TOPIC_RESOURCE, name))
    if resource_type == BROKER_RESOURCE:
        if not name:
            return describe_broker_defaults(services.config)
        _check_broker_id(services, name, " or empty string")
        return describe_broker(services.config)
    if resource_type == BROKER_LOGGER_RESOURCE:
        if not name:
            raise ApiError(Error.INVALID_REQUEST, "Broker id must not be empty")
        _check_broker_id(services, name, "")
        return describe_loggers()
    if resource_type == CLIENT_METRICS_RESOURCE and name:
        return describe_client_metrics(image.config(resource_type, name))
    if resource_type == GROUP_RESOURCE and name:
        return describe_group(services.config, image.config(resource_type, name))
    if resource_type in (CLIENT_METRICS_RESOURCE, GROUP_RESOURCE):
        raise ApiError(Error.INVALID_REQUEST, "Resource name must not be empty")
    raise ApiError(Error.INVALID_REQUEST)


def _check_broker_id(services: Services, name: str, alternative: str) -> None:
    if not is_integer(name):
        raise ApiError(Error.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}")
    if int(name) != services.node_id:
        raise ApiError(
            Error.INVALID_REQUEST,
            f"Unexpected broker id, expected {services.node_id}{alternative}, but received {name}",
        )


def _entry(entry: ConfigEntry, request: DescribeConfigsRequest, version: int) -> DescribedEntry:
    synonyms = entry.synonyms if request.include_synonyms else ()
    return DescribedEntry(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        # Version 0 has this field instead of the source.
        is_default=version == 0 and entry.source == ConfigSource.DEFAULT,
        config_source=entry.source,
        is_sensitive=entry.sensitive,
        synonyms=[
            DescribeConfigsResponse.DescribeConfigsSynonym(
                name=synonym.name, value=synonym.value, source=synonym.source
            )
            for synonym in synonyms
        ],
        config_type=entry.type,
        documentation=entry.documentation if request.include_documentation else None,
    )


# -- ListConfigResources


def list_config_resources_error(
    request: ListConfigResourcesRequest, version: int, error: Error, message: str | None
) -> ListConfigResourcesResponse:
    return ListConfigResourcesResponse(error_code=error)


@serves(ApiKey.LIST_CONFIG_RESOURCES, 0, 1, on_error=list_config_resources_error)
def handle_list_config_resources(
    context: RequestContext, request: ListConfigResourcesRequest
) -> ListConfigResourcesResponse:
    """Lists the resources of the requested types, or of all types for an empty list. Version 0 lists client metrics
    only."""
    check_cluster(context, Operation.DESCRIBE_CONFIGS)
    image = context.services.metadata.image
    brokers = [str(broker_id) for broker_id in image.brokers]
    configured = {
        wanted: [name for resource_type, name in image.configs if resource_type == wanted]
        for wanted in (CLIENT_METRICS_RESOURCE, GROUP_RESOURCE)
    }
    names: dict[int, Iterable[str]] = {
        TOPIC_RESOURCE: image.topics.by_name,
        BROKER_RESOURCE: brokers,
        BROKER_LOGGER_RESOURCE: brokers,
        **configured,
    }
    types = [CLIENT_METRICS_RESOURCE] if context.api_version == 0 else request.resource_types or list(names)
    if not set(types) <= set(names):
        raise ApiError(Error.UNSUPPORTED_VERSION)
    return ListConfigResourcesResponse(
        config_resources=[
            ListConfigResourcesResponse.ConfigResource(resource_name=name, resource_type=resource_type)
            for resource_type in types
            for name in names[resource_type]
        ]
    )


# -- AlterConfigs and IncrementalAlterConfigs


def alter_configs_error(
    request: AlterConfigsRequest, version: int, error: Error, message: str | None
) -> AlterConfigsResponse:
    failed = ErrorMessage(error, message)
    return _altered(_keys(request.resources), {}, failed)


def incremental_alter_configs_error(
    request: IncrementalAlterConfigsRequest, version: int, error: Error, message: str | None
) -> IncrementalAlterConfigsResponse:
    failed = ErrorMessage(error, message)
    return _incrementally_altered(_keys(request.resources), {}, failed)


def _narrow(
    context: RequestContext,
    request: Any,
    wanted: Container[ConfigResource],
    answer: Callable[[dict[ConfigResource, ErrorMessage]], Any],
) -> bool:
    """Makes the request that will be forwarded contain only the resources in `wanted`, which the active controller has
    to handle. Does nothing and returns True if the request cannot be forwarded.

    Returns True if the caller has to continue. The response to the client will be `answer(results)`, with the active
    controller's results for these resources. Returns False if the request has no such resource: the response
    `answer({})` was sent then, because there is nothing to forward.
    """
    if context.payload is None:
        return True
    rest = [each for each in request.resources if (each.resource_type, each.resource_name) in wanted]
    if not rest:
        context.respond(answer({}))
        return False
    context.forward_only(
        type(request)(resources=rest, validate_only=request.validate_only),
        lambda response: answer(_results(response.responses)),
    )
    return True


@serves(ApiKey.ALTER_CONFIGS, 0, 2, on_error=alter_configs_error)
def handle_alter_configs(context: RequestContext, request: AlterConfigsRequest) -> None:
    services, version = context.services, context.api_version
    keys = _keys(request.resources)
    changes = {
        (resource.resource_type, resource.resource_name): [
            ConfigChange(config.name, OperationType.SET, config.value) for config in resource.configs
        ]
        for resource in request.resources
    }
    failed = _find_invalid(context, keys, changes, replaces_all=True)
    wanted = {
        resource: {change.name: change.value for change in changes[resource]}
        for resource in changes
        if resource not in failed
    }
    if not _narrow(context, request, wanted, lambda results: _altered(keys, failed | results, None)):
        return
    answer_when_done(
        context,
        lambda: _submit_permitted(
            context,
            wanted,
            failed,
            lambda image, permitted: legacy_alter_configs(
                image, services.config, permitted, validate_only=request.validate_only, policies=services.policies
            ),
        ),
        lambda results: _altered(keys, failed | results, None),
        lambda error, message: alter_configs_error(request, version, error, message),
    )


@serves(ApiKey.INCREMENTAL_ALTER_CONFIGS, 0, 1, on_error=incremental_alter_configs_error)
def handle_incremental_alter_configs(context: RequestContext, request: IncrementalAlterConfigsRequest) -> None:
    services, version = context.services, context.api_version
    keys = _keys(request.resources)
    changes = {
        (resource.resource_type, resource.resource_name): [
            ConfigChange(config.name, config.config_operation, config.value) for config in resource.configs
        ]
        for resource in request.resources
    }
    done = _find_invalid(context, keys, changes, replaces_all=False)
    for resource in changes:
        if resource[0] == BROKER_LOGGER_RESOURCE and resource not in done:
            done[resource] = _alter_loggers(context, changes[resource], validate_only=request.validate_only)
    wanted = {resource: changes[resource] for resource in changes if resource not in done}
    if not _narrow(context, request, wanted, lambda results: _incrementally_altered(keys, done | results, None)):
        return
    answer_when_done(
        context,
        lambda: _submit_permitted(
            context,
            wanted,
            done,
            lambda image, permitted: incremental_alter_configs(
                image, services.config, permitted, validate_only=request.validate_only, policies=services.policies
            ),
        ),
        lambda results: _incrementally_altered(keys, done | results, None),
        lambda error, message: incremental_alter_configs_error(request, version, error, message),
    )


def _alter_loggers(context: RequestContext, changes: list[ConfigChange], *, validate_only: bool) -> ErrorMessage:
    try:
        check_cluster(context, Operation.CLUSTER_ACTION if context.session.is_controller else Operation.ALTER_CONFIGS)
    except ApiError as error:
        return ErrorMessage(error.error, error.message)
    result = alter_logger_levels(changes, validate_only=validate_only)
    services = context.services
    if services.gate_rights is not None:
        services.gate_rights.follow_level()
    if isinstance(services, Services):  # a controller without the role broker has no compiled request path (the gate)
        gate = services.replica_manager.context.gate
        if gate is not None:
            follow_level(gate)
    return result


def _submit_permitted(
    context: RequestContext,
    wanted: Mapping[ConfigResource, Changes],
    failed: dict[ConfigResource, ErrorMessage],
    operation: Callable[[MetadataImage, Mapping[ConfigResource, Changes]], ControllerResult[Results]],
) -> Future[Results]:
    """Submits to this node's controller the changes that the client may make, and returns the Future of their results.

    Adds the error of each resource that the client may not change to `failed`. The controller calls
    `operation(image, changes)`, which returns the result of each resource. Called only if the request is not forwarded:
    the active controller checks forwarded requests.
    """
    for resource_type, name in wanted:
        if resource_type != BROKER_LOGGER_RESOURCE:
            try:
                _check_permission(context, Operation.ALTER_CONFIGS, resource_type, name)
            except ApiError as error:
                failed[resource_type, name] = ErrorMessage(error.error, error.message)
    permitted = {resource: changes for resource, changes in wanted.items() if resource not in failed}
    return context.services.controller.submit(lambda image: operation(image, permitted))


def _keys(resources: Iterable[object]) -> list[ConfigResource]:
    return [(each.resource_type, each.resource_name) for each in resources]  # type: ignore[attr-defined]


def _results(responses: Iterable[Any]) -> dict[ConfigResource, ErrorMessage]:
    """Returns the results in the active controller's response, by resource."""
    return {
        (each.resource_type, each.resource_name): ErrorMessage(each.error_code, each.error_message)
        for each in responses
    }


def _find_invalid(
    context: RequestContext,
    keys: list[ConfigResource],
    changes: Mapping[ConfigResource, list[ConfigChange]],
    *,
    replaces_all: bool,
) -> dict[ConfigResource, ErrorMessage]:
    """Returns the resources whose changes are invalid independently of the metadata, with their errors.

    `keys` are the resources of the request; a resource that the request names more than once is invalid. Changes of the
    logger levels of another node are invalid. Changes of the configuration of another broker are invalid except on a
    listener of the controller. If `replaces_all` is True, the changes replace all overrides of their resource.
    """
    own_only = (BROKER_LOGGER_RESOURCE,) if context.session.is_controller else (BROKER_RESOURCE, BROKER_LOGGER_RESOURCE)
    failed: dict[ConfigResource, ErrorMessage] = {}
    counts = Counter(keys)
    for resource, resource_changes in changes.items():
        try:
            if counts[resource] > 1:
                raise ApiError(Error.INVALID_REQUEST, "Each resource must appear at most once.")
            if resource[0] in own_only and resource[1]:
                _check_node_id(context.services, resource[1])
            _check_changes(resource_changes)
            _check_stores(context, resource, resource_changes, replaces_all=replaces_all)
            _check_cordoned(context.services, resource, resource_changes)
            if resource[0] == BROKER_RESOURCE and not context.session.is_controller:
                _check_contradictions(context.services, resource, resource_changes, replaces_all=replaces_all)
        except ApiError as error:
            failed[resource] = ErrorMessage(error.error, error.message)
    return failed


def _check_stores(
    context: RequestContext, resource: ConfigResource, changes: list[ConfigChange], *, replaces_all: bool
) -> None:
    """Raises ApiError if the changes set key or trust stores that a TLS listener of this broker cannot use.

    If `replaces_all` is True, the changes replace all overrides of the resource. Does nothing if the client may not
    change the configuration.
    """
    services = context.services
    if services.tls_listeners is None or resource != (BROKER_RESOURCE, str(services.node_id)):
        return
    # The check reads the files that the client names. A client that may not change them is refused later, by the
    # controller, whose decision is the one in the audit log.
    if not is_cluster_allowed(context, Operation.ALTER_CONFIGS, log_if_allowed=False, log_if_denied=False):
        return
    names = {change.name for change in changes}
    if replaces_all:
        names |= services.metadata.image.config(*resource).keys()
    overrides = _overrides_after(services, resource, changes, replaces_all=replaces_all)
    check_store_changes(services.tls_listeners, overrides, names)


def _overrides_after(
    services: Services, resource: ConfigResource, changes: list[ConfigChange], *, replaces_all: bool
) -> dict[str, str]:
    """Returns the overrides of a resource after the changes. If `replaces_all` is True, the changes replace all
    overrides. Raises ApiError for a change that is invalid by itself."""
    if replaces_all:
        return {change.name: change.value for change in changes if change.value is not None}
    return overrides_after(services.metadata.image, services.config, resource, changes)


def _check_contradictions(
    services: Services, resource: ConfigResource, changes: list[ConfigChange], *, replaces_all: bool
) -> None:
    """Raises ApiError if this broker's values would contradict each other after the changes.

    For example, max.connections.per.ip=0 without max.connections.per.ip.overrides would refuse every client, also the
    client that could change the value back. The resource is this broker or, with an empty name, all brokers.
    """
    overrides = _overrides_after(services, resource, changes, replaces_all=replaces_all)
    image, own = services.metadata.image, str(services.node_id)
    of_all = image.config(BROKER_RESOURCE, "") if resource[1] else overrides
    of_this = overrides if resource[1] else image.config(BROKER_RESOURCE, own)
    try:
        services.config.check_dynamic(of_all, of_this)
    except ConfigError as error:
        raise ApiError(Error.INVALID_REQUEST, str(error)) from error


def _check_cordoned(services: Services, resource: ConfigResource, changes: list[ConfigChange]) -> None:
    """Raises ApiError if the changes cordon a directory that is not a log directory of this broker."""
    own = resource == (BROKER_RESOURCE, str(services.node_id))
    if not own or all(change.name != _CORDONED for change in changes):
        return
    config = services.config
    text = overrides_after(services.metadata.image, config, resource, changes).get(_CORDONED, "")
    try:
        check_cordoned(parse_value(BROKER_ROWS[_CORDONED], text), config["log.dirs"] or config["log.dir"])
    except ConfigError as error:
        raise ApiError(Error.INVALID_REQUEST, f"requirement failed: {error}") from error


def _check_node_id(services: Services, name: str) -> None:
    if not is_integer(name):
        raise ApiError(Error.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}")
    if int(name) != services.node_id:
        raise ApiError(Error.INVALID_REQUEST, f"Unexpected broker id, expected {services.node_id}, but received {name}")


def _check_changes(changes: list[ConfigChange]) -> None:
    if len({change.name for change in changes}) != len(changes):
        raise ApiError(Error.INVALID_REQUEST, "Error due to duplicate config keys")
    missing = [change.name for change in changes if change.value is None and change.operation != OperationType.DELETE]
    if missing:
        raise ApiError(Error.INVALID_REQUEST, "Null value not supported for : " + ", ".join(missing))


def _altered(
    keys: list[ConfigResource], results: Mapping[ConfigResource, ErrorMessage], default: ErrorMessage | None
) -> AlterConfigsResponse:
    return AlterConfigsResponse(
        responses=[
            AlterConfigsResponse.AlterConfigsResourceResponse(
                error_code=result.error,
                error_message=result.message,
                resource_type=resource_type,
                resource_name=resource_name,
            )
            for (resource_type, resource_name), result in _in_order(keys, results, default)
        ]
    )


def _incrementally_altered(
    keys: list[ConfigResource], results: Mapping[ConfigResource, ErrorMessage], default: ErrorMessage | None
) -> IncrementalAlterConfigsResponse:
    return IncrementalAlterConfigsResponse(
        responses=[
            IncrementalAlterConfigsResponse.AlterConfigsResourceResponse(
                error_code=result.error,
                error_message=result.message,
                resource_type=resource_type,
                resource_name=resource_name,
            )
            for (resource_type, resource_name), result in _in_order(keys, results, default)
        ]
    )


def _in_order(
    keys: list[ConfigResource], results: Mapping[ConfigResource, ErrorMessage], default: ErrorMessage | None
) -> list[tuple[ConfigResource, ErrorMessage]]:
    """Returns (resource, result) of each resource of the request, once, in the order of the request.

    `keys` are the resources of the request. The result is `default` for every resource, or the resource's entry in
    `results` if `default` is None.
    """
    return [(key, results[key] if default is None else default) for key in dict.fromkeys(keys)]
