"""The errors of the registry's API, with the numbers of Confluent's registry."""

from __future__ import annotations

from collections.abc import Iterable

from kafkapy.http.json_api import RequestRefused


class RegistryError(RequestRefused):
    """A request that the registry refuses."""


class InvalidSchema(Exception):
    """A schema that cannot be parsed; the message is the reason."""


def subject_not_found(subject: str) -> RegistryError:
    return RegistryError(40401, f"Subject '{subject}' not found.")


def version_not_found(version: object) -> RegistryError:
    return RegistryError(40402, f"Version {version} not found.")


def schema_not_found(schema_id: object = "") -> RegistryError:
    return RegistryError(40403, f"Schema {schema_id} not found" if schema_id != "" else "Schema not found")


def subject_is_soft_deleted(subject: str) -> RegistryError:
    return RegistryError(40404, f"Subject '{subject}' was soft deleted. Set permanent=true to delete permanently")


def subject_is_not_soft_deleted(subject: str) -> RegistryError:
    return RegistryError(40405, f"Subject '{subject}' was not deleted first before being permanently deleted")


def version_is_soft_deleted(subject: str, version: int) -> RegistryError:
    return RegistryError(
        40406,
        f"Subject '{subject}' Version {version} was soft deleted. Set permanent=true to delete permanently",
    )


def version_is_not_soft_deleted(subject: str, version: int) -> RegistryError:
    return RegistryError(
        40407, f"Subject '{subject}' Version {version} was not deleted first before being permanently deleted"
    )


def no_compatibility_of_subject(subject: str) -> RegistryError:
    return RegistryError(40408, f"Subject '{subject}' does not have subject-level compatibility configured")


def no_mode_of_subject(subject: str) -> RegistryError:
    return RegistryError(40409, f"Subject '{subject}' does not have subject-level mode configured")


def incompatible(subject: str, messages: Iterable[str]) -> RegistryError:
    return RegistryError(
        409,
        f'Schema being registered is incompatible with an earlier schema for subject "{subject}", '
        f"details: [{', '.join(messages)}]",
    )


def invalid_schema(reason: str) -> RegistryError:
    return RegistryError(42201, f"Invalid schema: {reason}")


def invalid_version(version: object) -> RegistryError:
    return RegistryError(
        42202,
        f"The specified version '{version}' is not a valid version id. Allowed values are between [1, 2^31-1] and the "
        'string "latest"',
    )


def invalid_compatibility(level: object, levels: Iterable[str]) -> RegistryError:
    return RegistryError(42203, f"Invalid compatibility level {level}. Valid values are {', '.join(levels)}")


def invalid_mode(mode: object, modes: Iterable[str]) -> RegistryError:
    return RegistryError(42204, f"Invalid mode {mode}. Valid values are {', '.join(modes)}")


def not_permitted(reason: str) -> RegistryError:
    return RegistryError(42205, reason)


def is_referenced(subject: str, version: int) -> RegistryError:
    return RegistryError(
        42206,
        f"One or more references exist to the schema {{magic=1,keytype=SCHEMA,subject={subject},version={version}}}.",
    )


def invalid_subject(subject: str) -> RegistryError:
    return RegistryError(42208, f"The specified subject '{subject}' is not a valid.")


def unprocessable(reason: str) -> RegistryError:
    return RegistryError(422, reason)


def store_failed(reason: str) -> RegistryError:
    return RegistryError(50001, f"Error in the backend data store: {reason}")


def timed_out(reason: str) -> RegistryError:
    return RegistryError(50002, f"Operation timed out: {reason}")


def forwarding_failed(reason: str) -> RegistryError:
    return RegistryError(50003, f"Error while forwarding the request to the primary: {reason}")


def unknown_leader() -> RegistryError:
    return RegistryError(50004, "Error while forwarding the request: the primary is not known")
