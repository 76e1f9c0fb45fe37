"""DescribeAcls, CreateAcls, DeleteAcls, versions 0 to 3 (KIP-140).

Behaviour: without an authorizer Apache Kafka offers these APIs and responds with SECURITY_DISABLED to each creation
and each filter. A request with an UNKNOWN element closes the connection.

Version notes: version 0 has no pattern types; every name is literal. Apache Kafka 4 no longer serves version 0,
which 3.9 serves.

Not done: there is no authorizer, so no ACL is ever stored; the configuration refuses `authorizer.class.name`.
"""

from __future__ import annotations

from kafkapy.errors import Error, ProtocolViolation
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.create_acls import CreateAclsRequest, CreateAclsResponse
from kafkapy.protocol.messages.delete_acls import DeleteAclsRequest, DeleteAclsResponse
from kafkapy.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from kafkapy.server.api_registry import serves
from kafkapy.server.request_context import RequestContext

DESCRIBE_REFUSAL = "No Authorizer is configured on the broker"
CHANGE_REFUSAL = "No Authorizer is configured."

# The code that resource types, pattern types, operations and permission types have in common.
UNKNOWN = 0


def describe_acls_error(
    request: DescribeAclsRequest, version: int, error: Error, message: str | None
) -> DescribeAclsResponse:
    return DescribeAclsResponse(error_code=error, error_message=message)


@serves(ApiKey.DESCRIBE_ACLS, 0, 3, on_error=describe_acls_error)
def handle_describe_acls(context: RequestContext, request: DescribeAclsRequest) -> DescribeAclsResponse:
    _check_known(request.resource_type_filter, request.pattern_type_filter, request.operation, request.permission_type)
    return describe_acls_error(request, context.api_version, Error.SECURITY_DISABLED, DESCRIBE_REFUSAL)


def create_acls_error(
    request: CreateAclsRequest, version: int, error: Error, message: str | None
) -> CreateAclsResponse:
    result = CreateAclsResponse.AclCreationResult(error_code=error, error_message=message)
    return CreateAclsResponse(results=[result] * len(request.creations))


@serves(ApiKey.CREATE_ACLS, 0, 3, on_error=create_acls_error)
def handle_create_acls(context: RequestContext, request: CreateAclsRequest) -> CreateAclsResponse:
    for each in request.creations:
        _check_known(each.resource_type, each.resource_pattern_type, each.operation, each.permission_type)
    return create_acls_error(request, context.api_version, Error.SECURITY_DISABLED, CHANGE_REFUSAL)


def delete_acls_error(
    request: DeleteAclsRequest, version: int, error: Error, message: str | None
) -> DeleteAclsResponse:
    result = DeleteAclsResponse.DeleteAclsFilterResult(error_code=error, error_message=message)
    return DeleteAclsResponse(filter_results=[result] * len(request.filters))


@serves(ApiKey.DELETE_ACLS, 0, 3, on_error=delete_acls_error)
def handle_delete_acls(context: RequestContext, request: DeleteAclsRequest) -> DeleteAclsResponse:
    for each in request.filters:
        _check_known(each.resource_type_filter, each.pattern_type_filter, each.operation, each.permission_type)
    return delete_acls_error(request, context.api_version, Error.SECURITY_DISABLED, CHANGE_REFUSAL)


def _check_known(*elements: int) -> None:
    """Raises ProtocolViolation if an element is UNKNOWN; Apache Kafka fails to parse such a request."""
    if UNKNOWN in elements:
        raise ProtocolViolation("the request contains UNKNOWN elements")
