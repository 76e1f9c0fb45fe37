"""The action `kafka-configs --alter`."""

from __future__ import annotations

import re

from kafkapy.client.admin import (
    Admin,
    ConfigChange,
    ConfigOperation,
    ConfigResource,
    NewScramCredential,
    QuotaEntity,
)
from kafkapy.config.properties import read_properties
from kafkapy.protocol.scram_mechanism import MECHANISMS_BY_NAME, MIN_ITERATIONS
from kafkapy.tools.config_description import QUOTA_TYPES, RESOURCES, quotas_of, resource_configs
from kafkapy.tools.config_entity import BROKER_LOGGERS, CLIENTS, IPS, USERS, Entities, InvalidConfig
from kafkapy.tools.option import Arguments

QUOTAS = frozenset(("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate"))
IP_QUOTAS = frozenset(("connection_creation_rate",))
# Matches outside brackets only, which enclose values that contain commas.
_OUTSIDE = r"(?=[^\]]*(?:\[|$))"
_KEY = re.compile(r"[$a-zA-Z0-9._-]*")
_CREDENTIAL = re.compile(r"(?:iterations=(-?[0-9]*),)?password=(.*)")


def parse_additions(text: str) -> dict[str, str]:
    """Parses `k1=v1,k2=[v1,v2]` into keys and values. Raises InvalidConfig for an invalid text."""
    pairs = [re.split(r"\s*=\s*" + _OUTSIDE, part) for part in re.split("," + _OUTSIDE, text)]
    if any(len(pair) != 2 for pair in pairs):
        raise InvalidConfig(
            'requirement failed: Invalid entity config: all configs to be added must be in the format "key=val" or  '
            '"key=[val1,val2]" to group values which contain commas.'
        )
    return {key.strip(): re.sub(r"\[?\]?", "", value).strip() for key, value in pairs}


def alter(admin: Admin, arguments: Arguments, entities: Entities) -> None:
    """Carries out `--alter`: changes the configuration, quotas or credentials of the entities."""
    added: dict[str, str] = {}
    if arguments.has("add-config-file"):
        added.update(read_properties(arguments["add-config-file"]))
    if arguments.has("add-config"):
        added.update(parse_additions(arguments["add-config"]))
    deleted = list(dict.fromkeys(each.strip() for each in arguments.values("delete-config")))
    for key in (*added, *deleted):
        if not _KEY.fullmatch(key):
            raise InvalidConfig(f"Invalid character found for config key: {key}")
    kind, name = entities.types[0], entities.names[0]
    if kind in RESOURCES:
        _alter_resource(admin, kind, ConfigResource(RESOURCES[kind], name), added, deleted)
    elif kind == IPS:
        unknown = [key for key in (*added, *deleted) if key not in IP_QUOTAS]
        if unknown:
            raise InvalidConfig(
                f"Only connection quota configs can be added for '{IPS}' using --bootstrap-server. Unexpected config "
                f"names: {','.join(unknown)}"
            )
        _alter_quotas(admin, entities, added, deleted)
    else:
        _alter_principal(admin, entities, added, deleted)
    if name:
        print(f"Completed updating config for {kind[:-1]} {name}.")
    else:
        print(f"Completed updating default config for {kind} in the cluster.")


def _alter_resource(
    admin: Admin, kind: str, resource: ConfigResource, added: dict[str, str], deleted: list[str]
) -> None:
    if kind == BROKER_LOGGERS:
        known = resource_configs(admin, resource, include_synonyms=False)
        unknown = [key for key in (*deleted, *added) if key not in known]
        if unknown:
            raise InvalidConfig(f"Invalid broker logger(s): {','.join(unknown)}")
    changes = [ConfigChange(key, None, ConfigOperation.DELETE) for key in deleted]
    changes += [ConfigChange(key, value) for key, value in added.items()]
    admin.incremental_alter_configs({resource: changes}).check()


def _alter_principal(admin: Admin, entities: Entities, added: dict[str, str], deleted: list[str]) -> None:
    is_client = CLIENTS in entities.types
    kind, what = (CLIENTS, "quota") if is_client else (USERS, "quota and SCRAM credential")
    accepted = QUOTAS if is_client else QUOTAS | set(MECHANISMS_BY_NAME)
    for keys, verb in ((list(added), "added"), (deleted, "deleted")):
        unknown = [key for key in keys if key not in accepted]
        if unknown:
            raise InvalidConfig(
                f"Only {what} configs can be {verb} for '{kind}' using --bootstrap-server. Unexpected config names: "
                f"{_scala_list(unknown, verb == 'added')}"
            )
    has_quotas = any(key in QUOTAS for key in (*added, *deleted))
    if any(key in MECHANISMS_BY_NAME for key in (*added, *deleted)):
        if entities.has_default:
            raise InvalidConfig(
                "The use of --entity-default or --user-defaults is not allowed with User SCRAM Credentials using "
                "--bootstrap-server."
            )
        if has_quotas:
            raise InvalidConfig(
                f"Cannot alter both quota and SCRAM credential configs simultaneously for '{USERS}' using "
                "--bootstrap-server."
            )
        upserts = [_credential(entities.names[0], key, value) for key, value in added.items()]
        deletions = [(entities.names[0], MECHANISMS_BY_NAME[key]) for key in deleted]
        admin.alter_user_scram_credentials(upserts, deletions).check()
    elif has_quotas:
        _alter_quotas(admin, entities, added, deleted)


def _alter_quotas(admin: Admin, entities: Entities, added: dict[str, str], deleted: list[str]) -> None:
    known = next(iter(quotas_of(admin, entities).values()), {})
    unset = [key for key in deleted if key not in known]
    if unset:
        raise InvalidConfig(f"Invalid config(s): {','.join(unset)}")
    values: dict[str, float | None] = {}
    for key, text in added.items():
        try:
            values[key] = float(text)
        except ValueError:
            raise InvalidConfig(f"Cannot parse quota configuration value for {key}: {text}") from None
    values.update(dict.fromkeys(deleted))
    pairs = zip(entities.types, entities.names, strict=True)
    entity: QuotaEntity = tuple(sorted((QUOTA_TYPES[kind], name or None) for kind, name in pairs))
    admin.alter_client_quotas({entity: values}).check()


def _credential(user: str, mechanism: str, text: str) -> NewScramCredential:
    matched = _CREDENTIAL.fullmatch(text)
    if matched is None:
        raise InvalidConfig(f"Invalid credential property {MECHANISMS_BY_NAME[mechanism].name}={text}")
    iterations = MIN_ITERATIONS if matched[1] in (None, "-1") else int(matched[1])
    if iterations < MIN_ITERATIONS:
        raise InvalidConfig(
            f"Iterations {iterations} is less than the minimum {MIN_ITERATIONS} required for {mechanism}"
        )
    return NewScramCredential(user, MECHANISMS_BY_NAME[mechanism], matched[2], iterations)


def _scala_list(names: list[str], is_set: bool) -> str:
    """Returns the names as Scala prints a collection: `Set(a, b)` if `is_set`, otherwise `ArrayBuffer(a, b)`."""
    return f"{'Set' if is_set else 'ArrayBuffer'}({', '.join(names)})"
