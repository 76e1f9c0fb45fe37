"""Creation and deletion of ACLs in the metadata log, with the checks of Kafka's AclControlManager and AclApis."""

from __future__ import annotations

from collections.abc import Sequence

from kafkapy.controller.result import (
    MAX_RECORDS_PER_USER_OPERATION,
    SUCCESS,
    ControllerResult,
    ErrorMessage,
    check_record_count,
)
from kafkapy.errors import ApiError, Error
from kafkapy.metadata.image import MetadataImage
from kafkapy.metadata.image_writer import MessageAndVersion
from kafkapy.named_tuple import NamedTuple
from kafkapy.protocol.messages.metadata_records import AccessControlEntryRecord, RemoveAccessControlEntryRecord
from kafkapy.security.access_control_entry import AccessControlEntry
from kafkapy.security.acl import CLUSTER_NAME, Operation, PatternType, Permission, ResourceType
from kafkapy.security.acl_filter import AclFilter
from kafkapy.types import random_uuid

# The types of the patterns that ACLs have, as opposed to those of filters.
_PATTERNS = (PatternType.LITERAL, PatternType.PREFIXED)


class DeletedAcls(NamedTuple):
    """The result of one filter of a DeleteAcls request: an error, or the ACLs that the filter has selected."""

    error: ErrorMessage
    entries: Sequence[AccessControlEntry] = ()


def create_acls(image: MetadataImage, entries: Sequence[AccessControlEntry]) -> ControllerResult[list[ErrorMessage]]:
    """Creates ACLs. The response has a result for each of `entries`; an ACL that exists already succeeds without a
    record.

    Raises ApiError(POLICY_VIOLATION) if there are too many new ACLs.
    """
    existing = set(image.acls.values())
    created: dict[AccessControlEntry, MessageAndVersion] = {}
    results = []
    for entry in entries:
        try:
            check_new_acl(entry)
        except ApiError as error:
            results.append(ErrorMessage(error.error, error.message))
            continue
        if entry not in existing and entry not in created:
            created[entry] = AccessControlEntryRecord(id=_new_id(image), **entry._asdict()), 0
        results.append(SUCCESS)
    records = list(created.values())
    check_record_count(records)
    return ControllerResult(records, results)


def delete_acls(image: MetadataImage, filters: Sequence[AclFilter]) -> ControllerResult[list[DeletedAcls]]:
    """Deletes the ACLs that the filters select. The response has the result of each filter; an ACL that several filters
    select is in the result of each of these filters.

    Raises ApiError(INVALID_REQUEST) if more ACLs are selected than one batch can delete.
    """
    removed: dict[bytes, MessageAndVersion] = {}
    results = []
    by_pattern: dict[tuple[int, str | None, int], list[tuple[bytes, AccessControlEntry]]] = {}
    for acl_id, entry in image.acls.items():
        pattern = (entry.resource_type, entry.resource_name, entry.pattern_type)
        by_pattern.setdefault(pattern, []).append((acl_id, entry))
    for wanted in filters:
        error = _filter_error(wanted)
        if error is not None:
            results.append(DeletedAcls(error))
            continue
        selected = []
        names_one_pattern = wanted.resource_name is not None and wanted.pattern_type in _PATTERNS
        if names_one_pattern and wanted.resource_type != ResourceType.ANY:
            candidates = by_pattern.get(wanted[:3], [])
        else:
            candidates = list(image.acls.items())
        for acl_id, entry in candidates:
            if wanted.matches(entry):
                selected.append(entry)
                removed[acl_id] = RemoveAccessControlEntryRecord(id=acl_id), 0
        if len(removed) > MAX_RECORDS_PER_USER_OPERATION:
            raise ApiError(
                Error.INVALID_REQUEST,
                f"Cannot remove more than {MAX_RECORDS_PER_USER_OPERATION} acls in a single delete operation.",
            )
        results.append(DeletedAcls(SUCCESS, selected))
    return ControllerResult(list(removed.values()), results)


def check_new_acl(entry: AccessControlEntry) -> None:
    """Raises ApiError(INVALID_REQUEST) for an ACL that cannot exist.

    As in Kafka, the host is not checked, and every operation is accepted for every resource type.
    """
    if entry.resource_type == ResourceType.CLUSTER and entry.resource_name != CLUSTER_NAME:
        raise _invalid(f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
    if not entry.resource_name:
        raise _invalid("Invalid empty resource name")
    resource_type, pattern_type = ResourceType(entry.resource_type), PatternType(entry.pattern_type)
    operation, permission = Operation(entry.operation), Permission(entry.permission_type)
    if resource_type in (ResourceType.UNKNOWN, ResourceType.ANY):
        raise _invalid(f"Invalid resourceType {resource_type.name}")
    if pattern_type not in _PATTERNS:
        raise _invalid(f"Invalid patternType {pattern_type.name}")
    if operation in (Operation.UNKNOWN, Operation.ANY):
        raise _invalid(f"Invalid operation {operation.name}")
    if permission not in (Permission.DENY, Permission.ALLOW):
        raise _invalid(f"Invalid permissionType {permission.name}")
    if ":" not in entry.principal:
        raise _invalid(
            f"Could not parse principal from `{entry.principal}` (no colon is present separating the principal type "
            "from the principal name)"
        )


def _filter_error(wanted: AclFilter) -> ErrorMessage | None:
    if ResourceType(wanted.resource_type) is ResourceType.UNKNOWN:
        return ErrorMessage(Error.INVALID_REQUEST, "Unknown patternFilter.")
    if PatternType(wanted.pattern_type) is PatternType.UNKNOWN:
        return ErrorMessage(Error.INVALID_REQUEST, "Unknown patternFilter.")
    if Operation(wanted.operation) is Operation.UNKNOWN or Permission(wanted.permission_type) is Permission.UNKNOWN:
        return ErrorMessage(Error.INVALID_REQUEST, "Unknown entryFilter.")
    return None


def _new_id(image: MetadataImage) -> bytes:
    """Returns a random id that no ACL has."""
    while (acl_id := random_uuid()) in image.acls:
        pass
    return acl_id


def _invalid(message: str) -> ApiError:
    return ApiError(Error.INVALID_REQUEST, message)
