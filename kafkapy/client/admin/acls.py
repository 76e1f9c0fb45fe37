"""Operations on ACLs (KIP-140)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kafkapy.client.admin.lookups import AdminLookups
from kafkapy.client.admin.requests import error_of, top_level_error
from kafkapy.client.admin.results import Results
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.create_acls import CreateAclsRequest
from kafkapy.protocol.messages.delete_acls import DeleteAclsRequest
from kafkapy.protocol.messages.describe_acls import DescribeAclsRequest
from kafkapy.security.access_control_entry import AccessControlEntry
from kafkapy.security.acl import Operation, PatternType, Permission, ResourceType
from kafkapy.security.acl_filter import AclFilter


class AclOperations(AdminLookups):
    """Operations on ACLs."""

    def describe_acls(
        self, wanted: AclFilter | None = None, *, timeout: float | None = None
    ) -> list[AccessControlEntry]:
        """Returns the ACLs that a filter selects, by default all. Blocks."""
        chosen = wanted or AclFilter()
        response = self._request(
            self._any_broker,
            ApiKey.DESCRIBE_ACLS,
            lambda version: DescribeAclsRequest(
                resource_type_filter=chosen.resource_type,
                resource_name_filter=chosen.resource_name,
                pattern_type_filter=_pattern_type(chosen.pattern_type, version),
                principal_filter=chosen.principal,
                host_filter=chosen.host,
                operation=chosen.operation,
                permission_type=chosen.permission_type,
            ),
            top_level_error,
            deadline_ms=self._deadline_ms(timeout),
        )
        return [_entry(resource, each) for resource in response.resources for each in resource.acls]

    def create_acls(
        self, entries: Sequence[AccessControlEntry], *, timeout: float | None = None
    ) -> Results[AccessControlEntry, None]:
        """Creates ACLs. The result of each ACL is None, or its error. An ACL that exists already is not an error.
        Blocks.
        """
        wanted = list(dict.fromkeys(entries))
        response = self._request(
            self._controller,
            ApiKey.CREATE_ACLS,
            lambda version: CreateAclsRequest(
                creations=[
                    CreateAclsRequest.AclCreation(
                        resource_type=each.resource_type,
                        resource_name=each.resource_name,
                        resource_pattern_type=_pattern_type(each.pattern_type, version),
                        principal=each.principal,
                        host=each.host,
                        operation=each.operation,
                        permission_type=each.permission_type,
                    )
                    for each in wanted
                ]
            ),
            deadline_ms=self._deadline_ms(timeout),
        )
        results: Results[AccessControlEntry, None] = Results()
        for entry, result in zip(wanted, response.results, strict=True):
            results.put(entry, error_of(result))
        return results

    def delete_acls(
        self, filters: Sequence[AclFilter], *, timeout: float | None = None
    ) -> Results[AclFilter, list[AccessControlEntry]]:
        """Deletes the ACLs that the filters select. Blocks.

        The result of each filter is the list of the ACLs that it has selected.
        """
        wanted = list(dict.fromkeys(filters))
        response = self._request(
            self._controller,
            ApiKey.DELETE_ACLS,
            lambda version: DeleteAclsRequest(
                filters=[
                    DeleteAclsRequest.DeleteAclsFilter(
                        resource_type_filter=each.resource_type,
                        resource_name_filter=each.resource_name,
                        pattern_type_filter=_pattern_type(each.pattern_type, version),
                        principal_filter=each.principal,
                        host_filter=each.host,
                        operation=each.operation,
                        permission_type=each.permission_type,
                    )
                    for each in wanted
                ]
            ),
            deadline_ms=self._deadline_ms(timeout),
        )
        results: Results[AclFilter, list[AccessControlEntry]] = Results()
        for each, result in zip(wanted, response.filter_results, strict=True):
            errors = (error_of(part) for part in (result, *result.matching_acls))
            error = next((error for error in errors if error is not None), None)
            results.put(each, error or [_entry(acl, acl) for acl in result.matching_acls])
        return results


def _entry(resource: Any, acl: Any) -> AccessControlEntry:
    """Returns an ACL of a response: `resource` has the fields of the resource, and `acl` has the fields of the
    permission.

    In a response to DeleteAcls one struct has all these fields, and is passed as both arguments.
    """
    return AccessControlEntry(
        ResourceType(resource.resource_type),
        resource.resource_name,
        PatternType(resource.pattern_type),
        acl.principal,
        acl.host,
        Operation(acl.operation),
        Permission(acl.permission_type),
    )


def _pattern_type(pattern_type: int, version: int) -> int:
    """Returns the value that stands for a pattern type in a request of this version.

    Version 0 supports only literal names, and has LITERAL instead of ANY. Raises ApiError(UNSUPPORTED_VERSION) for
    other pattern types in version 0.
    """
    if version > 0 or pattern_type == PatternType.LITERAL:
        return pattern_type
    if pattern_type == PatternType.ANY:
        return PatternType.LITERAL
    raise ApiError(Error.UNSUPPORTED_VERSION, "Version 0 only supports literal resource pattern types")
