"""The action `kafka-configs --describe`."""

from __future__ import annotations

from typing import Any

from kafkapy.client.admin import ANY_NAME, Admin, ConfigEntry, ConfigResource, QuotaEntity, ResourceType
from kafkapy.client.admin.principals import CLIENT_ID, IP, USER
from kafkapy.config.row import ConfigSource
from kafkapy.errors import ApiError, Error
from kafkapy.tools.config_entity import (
    BROKER_LOGGERS,
    BROKERS,
    CLIENT_METRICS,
    CLIENTS,
    GROUPS,
    IPS,
    TOPICS,
    USERS,
    Entities,
    InvalidConfig,
)
from kafkapy.tools.json_output import print_json
from kafkapy.tools.option import Arguments

RESOURCES = {
    TOPICS: ResourceType.TOPIC,
    BROKERS: ResourceType.BROKER,
    BROKER_LOGGERS: ResourceType.BROKER_LOGGER,
    CLIENT_METRICS: ResourceType.CLIENT_METRICS,
    GROUPS: ResourceType.GROUP,
}
QUOTA_TYPES = {USERS: USER, CLIENTS: CLIENT_ID, IPS: IP}
_DYNAMIC = {
    ResourceType.TOPIC: ConfigSource.TOPIC,
    ResourceType.BROKER: ConfigSource.DYNAMIC_BROKER,
    ResourceType.CLIENT_METRICS: ConfigSource.CLIENT_METRICS,
    ResourceType.GROUP: ConfigSource.GROUP,
}
# Apache Kafka's names of the sources.
_SOURCES = {
    ConfigSource.TOPIC: "DYNAMIC_TOPIC_CONFIG",
    ConfigSource.DYNAMIC_BROKER: "DYNAMIC_BROKER_CONFIG",
    ConfigSource.DYNAMIC_DEFAULT_BROKER: "DYNAMIC_DEFAULT_BROKER_CONFIG",
    ConfigSource.STATIC_BROKER: "STATIC_BROKER_CONFIG",
    ConfigSource.DEFAULT: "DEFAULT_CONFIG",
    ConfigSource.BROKER_LOGGER: "DYNAMIC_BROKER_LOGGER_CONFIG",
    ConfigSource.CLIENT_METRICS: "DYNAMIC_CLIENT_METRICS_CONFIG",
    ConfigSource.GROUP: "DYNAMIC_GROUP_CONFIG",
}
_LABELS = {USER: "user-principal", CLIENT_ID: "client-id", IP: "ip"}


def describe(admin: Admin, arguments: Arguments, entities: Entities) -> None:
    """Carries out `--describe`: prints the configuration, quotas or credentials of the entities."""
    if entities.types[0] in RESOURCES:
        _describe_resources(admin, arguments, entities)
    else:
        _describe_principals(admin, arguments, entities)


def resource_configs(
    admin: Admin, resource: ConfigResource, *, includes_all: bool = False, include_synonyms: bool = True
) -> dict[str, ConfigEntry]:
    """Returns the keys that are set dynamically for a resource, or all its keys if `includes_all`, sorted by name.

    If `include_synonyms` is True, each entry also has the values of the same key in other sources, such as the broker's
    configuration file and the built-in default.
    """
    source: ConfigSource | None = _DYNAMIC.get(resource.type)
    if resource.type is ResourceType.BROKER and not resource.name:
        source = ConfigSource.DYNAMIC_DEFAULT_BROKER
    entries = admin.describe_configs([resource], include_synonyms=include_synonyms)[resource]
    return {
        name: entries[name]
        for name in sorted(entries)
        if includes_all or source is None or entries[name].source == source
    }


def _describe_resources(admin: Admin, arguments: Arguments, entities: Entities) -> None:
    kind, includes_all = entities.types[0], arguments.has("all")
    shown: list[dict[str, Any]] = []
    if not includes_all and entities.names and not _exists(admin, kind, entities.names[0]):
        print(f"The {kind[:-1]} '{entities.names[0]}' doesn't exist and doesn't have dynamic config.")
        return
    for name in entities.names or _all_of(admin, kind):
        entries = resource_configs(admin, ConfigResource(RESOURCES[kind], name), includes_all=includes_all)
        if arguments["json"]:
            configs = {each.name: {"value": each.value, "source": _source(each.source)} for each in entries.values()}
            shown.append({"entity_type": kind, "entity_name": name, "configs": configs})
            continue
        if kind in (BROKERS, BROKER_LOGGERS) and not name:
            print(f"Default configs for {kind} in the cluster are:")
        else:
            print(f"{'All' if includes_all else 'Dynamic'} configs for {kind[:-1]} {name} are:")
        for entry in entries.values():
            synonyms = ", ".join(f"{_source(each.source)}:{each.name}={_text(each.value)}" for each in entry.synonyms)
            sensitive = str(entry.is_sensitive).lower()
            print(f"  {entry.name}={_text(entry.value)} sensitive={sensitive} synonyms={{{synonyms}}}")
    if arguments["json"]:
        print_json(shown)


def _exists(admin: Admin, kind: str, name: str) -> bool:
    if kind == TOPICS:
        return name in admin.list_topics(include_internal=True)
    if kind in (BROKERS, BROKER_LOGGERS):
        return not name or name in {str(each.node_id) for each in admin.describe_cluster().brokers}
    return name in _all_of(admin, kind)


def _all_of(admin: Admin, kind: str) -> list[str]:
    """Returns the names of all entities of a type.

    For brokers the names include "", which stands for the defaults of all brokers.
    """
    if kind == TOPICS:
        return sorted(admin.list_topics(include_internal=True))
    if kind in (BROKERS, BROKER_LOGGERS):
        return [*(str(each.node_id) for each in admin.describe_cluster().brokers), ""]
    configured = [each.name for each in admin.list_config_resources([RESOURCES[kind]])]
    groups = [each.group_id for each in admin.list_groups()] if kind == GROUPS else []
    return list(dict.fromkeys([*groups, *configured]))


def quotas_of(admin: Admin, entities: Entities) -> dict[QuotaEntity, dict[str, float]]:
    """Returns the quotas whose entity has exactly the types and names in `entities`.

    A type without a name matches all names. Raises InvalidConfig if there are more names than types.
    """
    if len(entities.names) > len(entities.types):
        raise InvalidConfig("More entity names specified than entity types")
    components: list[tuple[str, Any]] = []
    for index, kind in enumerate(entities.types):
        name = (entities.names[index] or None) if index < len(entities.names) else ANY_NAME
        components.append((QUOTA_TYPES[kind], name))
    return admin.describe_client_quotas(components, strict=True)


def _describe_principals(admin: Admin, arguments: Arguments, entities: Entities) -> None:
    quotas = quotas_of(admin, entities)
    credentials = []
    if IPS not in entities.types and CLIENTS not in entities.types and not entities.has_default:
        credentials = _credentials(admin, entities)
    if arguments["json"]:
        found = [{"entity": dict(entity), "quotas": values} for entity, values in quotas.items()]
        print_json({"quotas": found, "credentials": credentials})
        return
    for entity, values in quotas.items():
        names = dict(entity)
        parts = [
            f"{label} '{names[kind]}'" if names[kind] is not None else f"the default {label}"
            for kind, label in _LABELS.items()
            if kind in names
        ]
        shown = ", ".join(f"{key}={value}" for key, value in sorted(values.items()))
        print(f"Quota configs for {', '.join(parts)} are {shown}")
    for line in credentials:
        print(line)


def _credentials(admin: Admin, entities: Entities) -> list[str]:
    found = admin.describe_user_scram_credentials(list(entities.names) or None)
    lines = []
    for user in found:
        try:
            mechanisms = ", ".join(
                f"{each.mechanism.name.replace('_', '-')}=iterations={each.iterations}" for each in found[user]
            )
            lines.append(f"SCRAM credential configs for user-principal '{user}' are {mechanisms}")
        except ApiError as error:
            if error.error is Error.RESOURCE_NOT_FOUND:
                continue
            what = f"{error.error.name}: {error.message}"
            lines.append(f"Error retrieving SCRAM credential configs for user-principal '{user}': {what}")
    return lines


def _source(number: int) -> str:
    return _SOURCES.get(ConfigSource(number), "UNKNOWN") if number in list(ConfigSource) else "UNKNOWN"


def _text(value: str | None) -> str:
    return "null" if value is None else value
