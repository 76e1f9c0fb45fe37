"""Configuration of topics, brokers, groups and client metrics: the records of a change, or the reason for a refusal."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import IntEnum

from kafkapy.config.broker_config import BrokerConfig
from kafkapy.config.dynamic import dynamic_row, validate_broker_overrides
from kafkapy.config.group_config import validate_group_overrides
from kafkapy.config.row import ConfigType
from kafkapy.config.table import TOPIC_ROWS
from kafkapy.config.topic_config import topic_defaults, validate_topic_overrides
from kafkapy.config.value import default_value, format_value
from kafkapy.controller.client_metrics import ClientMetricsSubscription
from kafkapy.controller.policy import NO_POLICIES, AlterConfigRequest, Policies
from kafkapy.controller.result import SUCCESS, ControllerResult, ErrorMessage, check_record_count
from kafkapy.controller.settings import MIN_ISR
from kafkapy.errors import ApiError, Error
from kafkapy.metadata.image import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
    MetadataImage,
)
from kafkapy.metadata.image_writer import MessageAndVersion
from kafkapy.named_tuple import NamedTuple
from kafkapy.protocol.messages.metadata_records import ClearElrRecord, ConfigRecord

ConfigResource = tuple[int, str]


class OperationType(IntEnum):
    """The operations of IncrementalAlterConfigs on one key."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigChange(NamedTuple):
    """The change of one key. `operation` is the number of an OperationType; `value` is None for DELETE."""

    name: str
    operation: int
    value: str | None


def incremental_alter_configs(
    image: MetadataImage,
    broker_config: BrokerConfig,
    changes: Mapping[ConfigResource, Sequence[ConfigChange]],
    *,
    validate_only: bool = False,
    policies: Policies = NO_POLICIES,
) -> ControllerResult[dict[ConfigResource, ErrorMessage]]:
    """Changes single keys of resources (KIP-339). The response has a result for each resource.

    An error of one resource does not affect the others. If `validate_only` is True, the changes are only checked, and
    the result has no records.
    """
    requested = {resource: [change.name for change in each] for resource, each in changes.items()}
    return _alter_configs(image, broker_config, changes, requested, policies, validate_only=validate_only)


def _alter_configs(
    image: MetadataImage,
    broker_config: BrokerConfig,
    changes: Mapping[ConfigResource, Sequence[ConfigChange]],
    requested: Mapping[ConfigResource, Collection[str]],
    policies: Policies,
    *,
    validate_only: bool,
) -> ControllerResult[dict[ConfigResource, ErrorMessage]]:
    """Changes the configuration of resources. The response has a result for each resource.

    `requested` has the keys that the request names; the administrator's policy receives only these keys. `changes` has
    all changes, including the removal of overrides that AlterConfigs does not name. Raises ApiError(POLICY_VIOLATION)
    if the changes need more records than one batch can have.
    """
    records: list[MessageAndVersion] = []
    response: dict[ConfigResource, ErrorMessage] = {}
    for resource, resource_changes in changes.items():
        try:
            _check_resource(image, resource)
            overrides = overrides_after(image, broker_config, resource, resource_changes)
            validate_overrides(broker_config, resource, overrides)
            _check_min_isr(image, resource, resource_changes)
            shown = {name: overrides.get(name) for name in requested[resource]}
            policies.check_config_change(AlterConfigRequest(*resource, shown))
        except ApiError as error:
            response[resource] = ErrorMessage(error.error, error.message)
            continue
        records += _config_records(image, resource, overrides, resource_changes)
        response[resource] = SUCCESS
    records += _clear_elr_records(image, records)
    check_record_count(records)
    return ControllerResult([] if validate_only else records, response)


def legacy_alter_configs(
    image: MetadataImage,
    broker_config: BrokerConfig,
    configs: Mapping[ConfigResource, Mapping[str, str | None]],
    *,
    validate_only: bool = False,
    policies: Policies = NO_POLICIES,
) -> ControllerResult[dict[ConfigResource, ErrorMessage]]:
    """Handles AlterConfigs: the values in `configs` replace all overrides of each resource.

    The response has a result for each resource. If `validate_only` is True, the changes are only checked, and the
    result has no records.
    """
    changes: dict[ConfigResource, list[ConfigChange]] = {}
    for resource, entries in configs.items():
        gone = [name for name in image.config(*resource) if name not in entries]
        changes[resource] = [ConfigChange(name, OperationType.SET, value) for name, value in entries.items()]
        changes[resource] += [ConfigChange(name, OperationType.DELETE, None) for name in gone]
    return _alter_configs(image, broker_config, changes, configs, policies, validate_only=validate_only)


def validate_overrides(broker_config: BrokerConfig, resource: ConfigResource, overrides: Mapping[str, str]) -> None:
    """Raises ApiError(INVALID_CONFIG) if one of the overrides is invalid for the type of the resource."""
    resource_type, name = resource
    if resource_type == TOPIC_RESOURCE:
        validate_topic_overrides(broker_config, overrides)
    elif resource_type == BROKER_RESOURCE:
        validate_broker_overrides(overrides, per_broker=bool(name))
    elif resource_type == CLIENT_METRICS_RESOURCE:
        ClientMetricsSubscription.from_overrides(overrides)
    elif resource_type == GROUP_RESOURCE:
        validate_group_overrides(broker_config, overrides)


def _check_resource(image: MetadataImage, resource: ConfigResource) -> None:
    resource_type, name = resource
    if resource_type == TOPIC_RESOURCE:
        if name not in image.topics.by_name:
            raise ApiError(Error.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
    elif resource_type == BROKER_RESOURCE:
        if name and (not name.isdigit() or int(name) not in image.brokers):
            raise ApiError(Error.BROKER_ID_NOT_REGISTERED, f"Broker ID {name} is not registered.")
    elif resource_type not in (CLIENT_METRICS_RESOURCE, GROUP_RESOURCE):
        raise ApiError(Error.INVALID_REQUEST, f"Unexpected resource type {resource_type}.")
    elif not name:
        kind = "client metrics" if resource_type == CLIENT_METRICS_RESOURCE else "group"
        raise ApiError(Error.INVALID_REQUEST, f"Default {kind} resources are not allowed.")


def _check_min_isr(image: MetadataImage, resource: ConfigResource, changes: Sequence[ConfigChange]) -> None:
    """Raises ApiError for a change of min.insync.replicas that is forbidden while eligible leader replicas are enabled.

    Forbidden are the removal of the cluster's value and a value for one broker (KIP-966).
    """
    if not image.elr_enabled or resource[0] != BROKER_RESOURCE:
        return
    change = next((each for each in changes if each.name == MIN_ISR), None)
    if change is None:
        return
    if resource[1]:
        raise ApiError(Error.INVALID_CONFIG, "Broker-level min.insync.replicas cannot be altered while ELR is enabled.")
    if change.operation == OperationType.DELETE:
        raise ApiError(
            Error.INVALID_CONFIG, "Cluster-level min.insync.replicas cannot be removed while ELR is enabled."
        )


def overrides_after(
    image: MetadataImage, broker_config: BrokerConfig, resource: ConfigResource, changes: Sequence[ConfigChange]
) -> dict[str, str]:
    """Returns the overrides of a resource after the changes. Raises ApiError for a change that is invalid by itself.

    Combinations of overrides are not checked.
    """
    overrides = dict(image.config(*resource))
    for change in changes:
        if change.operation == OperationType.DELETE:
            overrides.pop(change.name, None)
        elif change.value is None:
            raise ApiError(Error.INVALID_CONFIG, f"Null value not supported for topic configs: {change.name}")
        elif change.operation == OperationType.SET:
            overrides[change.name] = change.value
        elif change.operation in (OperationType.APPEND, OperationType.SUBTRACT):
            overrides[change.name] = _changed_list(broker_config, resource, overrides.get(change.name), change)
        else:
            raise ApiError(Error.INVALID_REQUEST, f"Unknown AlterConfigOp op type {change.operation}")
    return overrides


def _changed_list(
    broker_config: BrokerConfig, resource: ConfigResource, current: str | None, change: ConfigChange
) -> str:
    """Returns the value of a list key after the change has added elements to it or removed elements from it.

    `current` is the present override. If `current` is None, the change is applied to the default value.
    """
    row = TOPIC_ROWS.get(change.name) if resource[0] == TOPIC_RESOURCE else dynamic_row(change.name)
    if row is None or row.type is not ConfigType.LIST:
        name = OperationType(change.operation).name
        raise ApiError(Error.INVALID_CONFIG, f"Can't {name} to key {change.name} because its type is not LIST.")
    if current is None:
        is_topic = resource[0] == TOPIC_RESOURCE
        value = topic_defaults(broker_config)[change.name] if is_topic else default_value(row)
        current = format_value(row.type, value)
    parts = current.split(",") if current else []
    for part in (change.value or "").split(","):
        if change.operation == OperationType.APPEND and part not in parts:
            parts.append(part)
        elif change.operation == OperationType.SUBTRACT and part in parts:
            parts.remove(part)
    return ",".join(parts)


def _config_records(
    image: MetadataImage, resource: ConfigResource, overrides: Mapping[str, str], changes: Sequence[ConfigChange]
) -> list[MessageAndVersion]:
    """Returns a record for each key in `changes` whose value differs from the current one.

    A broker resource gets a record for every key in `changes`. This makes brokers read again the files that values
    name, such as keystores.
    """
    current = image.config(*resource)
    records: list[MessageAndVersion] = []
    for name in dict.fromkeys(change.name for change in changes):
        value = overrides.get(name)
        if value != current.get(name) or resource[0] == BROKER_RESOURCE:
            records.append(
                (ConfigRecord(resource_type=resource[0], resource_name=resource[1], name=name, value=value), 0)
            )
    return records


def _clear_elr_records(image: MetadataImage, records: Sequence[MessageAndVersion]) -> list[MessageAndVersion]:
    """Returns the records that remove eligible leader replicas (KIP-966). They concern the topics for which `records`
    change min.insync.replicas.

    A replica that left the ISR under the old minimum may lack records that were committed under the new minimum, and
    must therefore no longer be eligible. If the cluster's or a broker's value changes, one record without a topic name
    applies to all topics.
    """
    if not image.elr_enabled:
        return []
    cleared: list[MessageAndVersion] = []
    for message, _ in records:
        if message.name == MIN_ISR:
            is_topic = message.resource_type == TOPIC_RESOURCE
            cleared.append((ClearElrRecord(topic_name=message.resource_name if is_topic else ""), 0))
    return cleared
