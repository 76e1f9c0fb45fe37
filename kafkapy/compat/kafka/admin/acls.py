"""The classes of ACLs, and the operations that describe, create and delete ACLs."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any

from kafkapy.compat.kafka.admin.requests import AT_CONTROLLER, AdminRequests, NoError, error_class, raise_error
from kafkapy.compat.kafka.errors import IllegalArgumentError, for_code
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.create_acls import CreateAclsRequest
from kafkapy.protocol.messages.delete_acls import DeleteAclsRequest
from kafkapy.protocol.messages.describe_acls import DescribeAclsRequest


class ResourceType(IntEnum):
    """The types of resources; ANY is for filters."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class ACLOperation(IntEnum):
    """The operations that ACLs allow or deny; ANY is for filters."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14


class ACLPermissionType(IntEnum):
    """The effects of ACLs; ANY is for filters."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


class ACLResourcePatternType(IntEnum):
    """The ways to compare the name in an ACL with the name of a resource (KIP-290); ANY and MATCH are for filters."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class ResourcePatternFilter:
    """Selects resources by type and name."""

    def __init__(
        self, resource_type: ResourceType, resource_name: str | None, pattern_type: ACLResourcePatternType
    ) -> None:
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.pattern_type = pattern_type
        self.validate()

    def validate(self) -> None:
        """Raises IllegalArgumentError for values of wrong types."""
        if not isinstance(self.resource_type, ResourceType):
            raise IllegalArgumentError("resource_type must be a ResourceType object")
        if not isinstance(self.pattern_type, ACLResourcePatternType):
            raise IllegalArgumentError("pattern_type must be an ACLResourcePatternType object")

    def __repr__(self) -> str:
        return (
            f"<ResourcePattern type={self.resource_type.name}, name={self.resource_name}, "
            f"pattern={self.pattern_type.name}>"
        )

    def _values(self) -> tuple[Any, ...]:
        return self.resource_type, self.resource_name, self.pattern_type

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ResourcePatternFilter) and self._values() == other._values()

    def __hash__(self) -> int:
        return hash(self._values())


class ResourcePattern(ResourcePatternFilter):
    """The resources that an ACL is for."""

    def __init__(
        self,
        resource_type: ResourceType,
        resource_name: str,
        pattern_type: ACLResourcePatternType = ACLResourcePatternType.LITERAL,
    ) -> None:
        super().__init__(resource_type, resource_name, pattern_type)

    def validate(self) -> None:
        """Raises IllegalArgumentError for a value of a wrong type, or a value that is only for filters, such as ANY."""
        super().validate()
        if self.resource_type == ResourceType.ANY:
            raise IllegalArgumentError("resource_type cannot be ANY")
        if self.pattern_type in (ACLResourcePatternType.ANY, ACLResourcePatternType.MATCH):
            raise IllegalArgumentError(f"pattern_type cannot be {self.pattern_type.name} on a concrete ResourcePattern")


class ACLFilter:
    """Selects ACLs. A `principal` of None selects all principals, and a `host` of None all hosts."""

    def __init__(
        self,
        principal: str | None,
        host: str | None,
        operation: ACLOperation,
        permission_type: ACLPermissionType,
        resource_pattern: ResourcePatternFilter,
    ) -> None:
        self.principal = principal
        self.host = host
        self.operation = operation
        self.permission_type = permission_type
        self.resource_pattern = resource_pattern
        self.validate()

    def validate(self) -> None:
        """Raises IllegalArgumentError for values of wrong types."""
        if not isinstance(self.operation, ACLOperation):
            raise IllegalArgumentError("operation must be an ACLOperation object")
        if not isinstance(self.permission_type, ACLPermissionType):
            raise IllegalArgumentError("permission_type must be an ACLPermissionType object")
        if not isinstance(self.resource_pattern, ResourcePatternFilter):
            raise IllegalArgumentError("resource_pattern must be a ResourcePatternFilter object")

    def __repr__(self) -> str:
        return (
            f"<ACL principal={self.principal}, resource={self.resource_pattern}, operation={self.operation.name}, "
            f"type={self.permission_type.name}, host={self.host}>"
        )

    def _values(self) -> tuple[Any, ...]:
        return self.principal, self.host, self.operation, self.permission_type, self.resource_pattern

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ACLFilter) and self._values() == other._values()

    def __hash__(self) -> int:
        return hash(self._values())


class ACL(ACLFilter):
    """An ACL, which allows or denies an operation on resources to a principal that connects from a host."""

    def validate(self) -> None:
        """Raises IllegalArgumentError for a value of a wrong type, or a value that is only for filters, such as ANY."""
        super().validate()
        if self.operation == ACLOperation.ANY:
            raise IllegalArgumentError("operation cannot be ANY")
        if self.permission_type == ACLPermissionType.ANY:
            raise IllegalArgumentError("permission_type cannot be ANY")
        if not isinstance(self.resource_pattern, ResourcePattern):
            raise IllegalArgumentError("resource_pattern must be a ResourcePattern object")


class AclOperations(AdminRequests):
    """The methods of KafkaAdminClient for ACLs."""

    def describe_acls(self, acl_filter: ACLFilter) -> tuple[list[ACL], Any]:
        """Returns a pair: the list of the ACLs that a filter selects, and the class NoError, as in kafka-python.

        If the broker refuses the request, raises the exception of its error code.
        """
        request = DescribeAclsRequest(**_filter_fields(acl_filter))
        response = self._ask(ApiKey.DESCRIBE_ACLS, lambda version: _of_version(request, version))
        raise_error(response.error_code, response.error_message)
        return [_acl(resource, each) for resource in response.resources for each in resource.acls], NoError

    def create_acls(self, acls: Sequence[ACL]) -> dict[str, list[Any]]:
        """Creates ACLs.

        Returns a dictionary: `succeeded` has the created ACLs, `failed` the error classes of all others.
        """
        if not all(isinstance(each, ACL) for each in acls):
            raise IllegalArgumentError("acls must contain ACL objects")
        request = CreateAclsRequest(
            creations=[
                CreateAclsRequest.AclCreation(
                    resource_type=each.resource_pattern.resource_type,
                    resource_name=each.resource_pattern.resource_name or "",
                    resource_pattern_type=each.resource_pattern.pattern_type,
                    principal=each.principal or "",
                    host=each.host or "",
                    operation=each.operation,
                    permission_type=each.permission_type,
                )
                for each in acls
            ]
        )
        response = self._ask(ApiKey.CREATE_ACLS, request, AT_CONTROLLER)
        found: dict[str, list[Any]] = {"succeeded": [], "failed": []}
        for acl, result in zip(acls, response.results, strict=True):
            if result.error_code:
                found["failed"].append(for_code(result.error_code))
            else:
                found["succeeded"].append(acl)
        return found

    def delete_acls(self, acl_filters: Sequence[ACLFilter]) -> list[tuple[ACLFilter, list[ACL], Any]]:
        """Deletes the ACLs that filters select. Returns (filter, deleted ACLs, error class) for each filter.

        The error class is NoError if the filter was applied.
        """
        if not all(isinstance(each, ACLFilter) for each in acl_filters):
            raise IllegalArgumentError("acl_filters must contain ACLFilter type objects")
        request = DeleteAclsRequest(
            filters=[DeleteAclsRequest.DeleteAclsFilter(**_filter_fields(each, "resource_")) for each in acl_filters]
        )
        response = self._ask(ApiKey.DELETE_ACLS, request, AT_CONTROLLER)
        return [
            (each, [_acl(acl, acl) for acl in result.matching_acls], error_class(result.error_code))
            for each, result in zip(acl_filters, response.filter_results, strict=True)
        ]


def _filter_fields(acl_filter: ACLFilter, prefix: str = "resource_") -> dict[str, Any]:
    pattern = acl_filter.resource_pattern
    return {
        f"{prefix}type_filter": pattern.resource_type,
        f"{prefix}name_filter": pattern.resource_name,
        "pattern_type_filter": pattern.pattern_type,
        "principal_filter": acl_filter.principal,
        "host_filter": acl_filter.host,
        "operation": acl_filter.operation,
        "permission_type": acl_filter.permission_type,
    }


def _of_version(request: DescribeAclsRequest, version: int) -> DescribeAclsRequest:
    """Returns the request unchanged if version `version` of DescribeAcls can express the pattern type of its filter.

    Otherwise raises ApiError.
    """
    if version == 0 and request.pattern_type_filter not in (
        ACLResourcePatternType.ANY,
        ACLResourcePatternType.LITERAL,
    ):
        raise ApiError(Error.UNSUPPORTED_VERSION, "The broker compares the names of resources literally only.")
    return request


def _acl(resource: Any, acl: Any) -> ACL:
    return ACL(
        acl.principal,
        acl.host,
        ACLOperation(acl.operation),
        ACLPermissionType(acl.permission_type),
        ResourcePattern(
            ResourceType(resource.resource_type),
            resource.resource_name,
            ACLResourcePatternType(resource.pattern_type),
        ),
    )


def with_operation_names(fields: dict[str, Any], name: str) -> None:
    """Replaces the bit field `name` in `fields` by a list of the names of the permitted operations.

    The name of the new field is `authorized_operations`. Its value is None if the broker has not returned the permitted
    operations.
    """
    bits = fields.pop(name, None)
    if bits is None or bits < 0:
        fields["authorized_operations"] = None
    else:
        fields["authorized_operations"] = [
            each.name for each in ACLOperation if each > ACLOperation.ANY and bits >> each & 1
        ]
