"""DescribeAcls, CreateAcls, DeleteAcls, versions 0 to 3 (KIP-140).

This node describes the ACLs in its own metadata; the active controller changes ACLs, with Kafka's checks. Without an
authorizer that uses these ACLs, each creation and each filter gets SECURITY_DISABLED. A request in which a resource
type, pattern type, operation or permission is UNKNOWN closes the connection. A creation in which one of them is ANY
fails as a whole.

Version notes: version 0 has no pattern types; every name is literal. Apache Kafka 4 no longer serves version 0, which
3.9 serves.
"""

from __future__ import annotations

from collections.abc import Sequence

from kafkapy.controller.acls import DeletedAcls, create_acls, delete_acls
from kafkapy.controller.result import ErrorMessage
from kafkapy.errors import Error, ProtocolViolation
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.create_acls import CreateAclsRequest, CreateAclsResponse
from kafkapy.protocol.messages.delete_acls import DeleteAclsRequest, DeleteAclsResponse
from kafkapy.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from kafkapy.security.access_control_entry import AccessControlEntry
from kafkapy.security.acl import Operation, PatternType, Permission, ResourceType
from kafkapy.security.acl_filter import AclFilter
from kafkapy.security.standard_authorizer import StandardAuthorizer
from kafkapy.server.api_registry import serves
from kafkapy.server.authorization import check_cluster
from kafkapy.server.controller_answer import answer_when_committed
from kafkapy.server.request_context import RequestContext

DESCRIBE_REFUSAL = "No Authorizer is configured on the broker"
CHANGE_REFUSAL = "No Authorizer is configured."

# The code that resource types, pattern types, operations and permission types have in common.
UNKNOWN = 0
# The codes with which a filter matches everything, but which no ACL has.
_NOT_IN_ACLS = (
    frozenset({ResourceType.ANY}),
    frozenset({PatternType.ANY, PatternType.MATCH}),
    frozenset({Operation.ANY}),
    frozenset({Permission.ANY}),
)


# -- DescribeAcls


def describe_acls_error(
    request: DescribeAclsRequest, version: int, error: Error, message: str | None
) -> DescribeAclsResponse:
    return DescribeAclsResponse(error_code=error, error_message=message)


@serves(ApiKey.DESCRIBE_ACLS, 0, 3, on_error=describe_acls_error)
def handle_describe_acls(context: RequestContext, request: DescribeAclsRequest) -> DescribeAclsResponse:
    _check_known(request.resource_type_filter, request.pattern_type_filter, request.operation, request.permission_type)
    check_cluster(context, Operation.DESCRIBE)
    if not _has_acls(context):
        return describe_acls_error(request, context.api_version, Error.SECURITY_DISABLED, DESCRIBE_REFUSAL)
    wanted = AclFilter(
        request.resource_type_filter, request.resource_name_filter, request.pattern_type_filter,
        request.principal_filter, request.host_filter, request.operation, request.permission_type,
    )  # fmt: skip
    resources: dict[tuple[int, str, int], DescribeAclsResponse.DescribeAclsResource] = {}
    for entry in wanted.select(context.services.metadata.image.acls.values()):
        pattern = (entry.resource_type, entry.resource_name, entry.pattern_type)
        resource = resources.get(pattern)
        if resource is None:
            resource = resources[pattern] = DescribeAclsResponse.DescribeAclsResource(
                resource_type=entry.resource_type,
                resource_name=entry.resource_name,
                pattern_type=entry.pattern_type,
                acls=[],
            )
        resource.acls.append(
            DescribeAclsResponse.AclDescription(
                principal=entry.principal,
                host=entry.host,
                operation=entry.operation,
                permission_type=entry.permission_type,
            )
        )
    return DescribeAclsResponse(resources=list(resources.values()))


# -- CreateAcls


def create_acls_error(
    request: CreateAclsRequest, version: int, error: Error, message: str | None
) -> CreateAclsResponse:
    return _created([ErrorMessage(error, message)] * len(request.creations))


@serves(ApiKey.CREATE_ACLS, 0, 3, on_error=create_acls_error)
def handle_create_acls(context: RequestContext, request: CreateAclsRequest) -> CreateAclsResponse | None:
    version = context.api_version
    for each in request.creations:
        _check_known(each.resource_type, each.resource_pattern_type, each.operation, each.permission_type)
    check_cluster(context, Operation.ALTER)
    if not _has_acls(context):
        return create_acls_error(request, version, Error.SECURITY_DISABLED, CHANGE_REFUSAL)
    entries = [
        AccessControlEntry(
            each.resource_type, each.resource_name, each.resource_pattern_type, each.principal, each.host,
            each.operation, each.permission_type,
        )
        for each in request.creations
    ]  # fmt: skip
    if any(_is_filter(entry) for entry in entries):
        return create_acls_error(request, version, Error.UNKNOWN_SERVER_ERROR, None)
    answer_when_committed(
        context,
        lambda image: create_acls(image, entries),
        _created,
        lambda error, message: create_acls_error(request, version, error, message),
    )
    return None


def _created(results: Sequence[ErrorMessage]) -> CreateAclsResponse:
    return CreateAclsResponse(
        results=[
            CreateAclsResponse.AclCreationResult(
                error_code=result.error, error_message=result.message if result.error else ""
            )
            for result in results
        ]
    )


def _is_filter(entry: AccessControlEntry) -> bool:
    """Returns True if a field of the ACL has a code such as ANY, which only filters may have."""
    codes = (entry.resource_type, entry.pattern_type, entry.operation, entry.permission_type)
    return any(code in refused for code, refused in zip(codes, _NOT_IN_ACLS, strict=True))


# -- DeleteAcls


def delete_acls_error(
    request: DeleteAclsRequest, version: int, error: Error, message: str | None
) -> DeleteAclsResponse:
    return _deleted([DeletedAcls(ErrorMessage(error, message))] * len(request.filters))


@serves(ApiKey.DELETE_ACLS, 0, 3, on_error=delete_acls_error)
def handle_delete_acls(context: RequestContext, request: DeleteAclsRequest) -> DeleteAclsResponse | None:
    version = context.api_version
    for each in request.filters:
        _check_known(each.resource_type_filter, each.pattern_type_filter, each.operation, each.permission_type)
    check_cluster(context, Operation.ALTER)
    if not _has_acls(context):
        return delete_acls_error(request, version, Error.SECURITY_DISABLED, CHANGE_REFUSAL)
    filters = [
        AclFilter(
            each.resource_type_filter, each.resource_name_filter, each.pattern_type_filter, each.principal_filter,
            each.host_filter, each.operation, each.permission_type,
        )
        for each in request.filters
    ]  # fmt: skip
    answer_when_committed(
        context,
        lambda image: delete_acls(image, filters),
        _deleted,
        lambda error, message: delete_acls_error(request, version, error, message),
    )
    return None


def _deleted(results: Sequence[DeletedAcls]) -> DeleteAclsResponse:
    def removed(entry: AccessControlEntry) -> DeleteAclsResponse.DeleteAclsMatchingAcl:
        return DeleteAclsResponse.DeleteAclsMatchingAcl(error_message=None, **entry._asdict())

    return DeleteAclsResponse(
        filter_results=[
            DeleteAclsResponse.DeleteAclsFilterResult(
                error_code=result.error.error,
                error_message=result.error.message,
                matching_acls=list(map(removed, result.entries)),
            )
            for result in results
        ]
    )


# -- helpers of the three APIs


def _has_acls(context: RequestContext) -> bool:
    """Returns whether the authorizer is the StandardAuthorizer, which uses the ACLs of the metadata."""
    return isinstance(context.services.authorizer, StandardAuthorizer)


def _check_known(*elements: int) -> None:
    """Raises ProtocolViolation if an element is UNKNOWN; Apache Kafka fails to parse such a request."""
    if UNKNOWN in elements:
        raise ProtocolViolation("the request contains UNKNOWN elements")
