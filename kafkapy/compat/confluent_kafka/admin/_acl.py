"""Permissions: the operations, and bindings and their filters."""

from __future__ import annotations

import functools
from enum import Enum
from typing import Any

from kafkapy.compat.confluent_kafka import _constants as numbers
from kafkapy.compat.confluent_kafka._model import OrderedEnum, to_enum
from kafkapy.compat.confluent_kafka.admin._resource import ResourcePatternType, ResourceType


class AclOperation(OrderedEnum):
    """The operations that a permission allows or denies."""

    UNKNOWN = numbers.ACL_OPERATION_UNKNOWN
    ANY = numbers.ACL_OPERATION_ANY
    ALL = numbers.ACL_OPERATION_ALL
    READ = numbers.ACL_OPERATION_READ
    WRITE = numbers.ACL_OPERATION_WRITE
    CREATE = numbers.ACL_OPERATION_CREATE
    DELETE = numbers.ACL_OPERATION_DELETE
    ALTER = numbers.ACL_OPERATION_ALTER
    DESCRIBE = numbers.ACL_OPERATION_DESCRIBE
    CLUSTER_ACTION = numbers.ACL_OPERATION_CLUSTER_ACTION
    DESCRIBE_CONFIGS = numbers.ACL_OPERATION_DESCRIBE_CONFIGS
    ALTER_CONFIGS = numbers.ACL_OPERATION_ALTER_CONFIGS
    IDEMPOTENT_WRITE = numbers.ACL_OPERATION_IDEMPOTENT_WRITE


class AclPermissionType(OrderedEnum):
    """The effects of a permission."""

    UNKNOWN = numbers.ACL_PERMISSION_TYPE_UNKNOWN
    ANY = numbers.ACL_PERMISSION_TYPE_ANY
    DENY = numbers.ACL_PERMISSION_TYPE_DENY
    ALLOW = numbers.ACL_PERMISSION_TYPE_ALLOW


_KINDS: dict[str, type[Enum]] = {
    "restype": ResourceType,
    "resource_pattern_type": ResourcePatternType,
    "operation": AclOperation,
    "permission_type": AclPermissionType,
}


@functools.total_ordering
class AclBinding:
    """A permission: who may do what, from which host, with which resource. Immutable and hashable.

    Enumerations may be given as members, names or numbers. Raises ValueError and TypeError for invalid arguments.
    """

    _REQUIRED: tuple[str, ...] = ("restype", "name", "resource_pattern_type", "principal", "host", "operation",
                                  "permission_type")  # fmt: skip
    _FORBIDDEN: dict[str, tuple[Enum, ...]] = {
        "restype": (ResourceType.ANY,),
        "resource_pattern_type": (ResourcePatternType.ANY, ResourcePatternType.MATCH),
        "operation": (AclOperation.ANY,),
        "permission_type": (AclPermissionType.ANY,),
    }

    def __init__(
        self,
        restype: ResourceType | str | int,
        name: str | None,
        resource_pattern_type: ResourcePatternType | str | int,
        principal: str | None,
        host: str | None,
        operation: AclOperation | str | int,
        permission_type: AclPermissionType | str | int,
    ) -> None:
        self.restype: Any = restype
        self.name = name
        self.resource_pattern_type: Any = resource_pattern_type
        self.principal = principal
        self.host = host
        self.operation: Any = operation
        self.permission_type: Any = permission_type
        for field in self._REQUIRED:
            if getattr(self, field) is None:
                raise ValueError(f"Expected {field} to be not None")
        for field in ("name", "principal", "host"):
            value = getattr(self, field)
            if value is not None and not isinstance(value, str):
                raise TypeError(f"Expected {field} to be a string")
        for field, kind in _KINDS.items():
            member = to_enum(getattr(self, field), kind)
            setattr(self, field, member)
            if member in self._FORBIDDEN[field]:
                raise ValueError(f"Cannot use enum {field}, value {member.name} in this class")
            setattr(self, f"{field}_int", int(member.value))

    def _to_tuple(self) -> tuple[Any, ...]:
        place = (self.restype, self.name, self.resource_pattern_type)
        return (*place, self.principal, self.host, self.operation, self.permission_type)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({','.join(str(each) for each in self._to_tuple())})"

    def __hash__(self) -> int:
        return hash(self._to_tuple())

    def __lt__(self, other: object) -> bool:
        return self._to_tuple() < other._to_tuple() if isinstance(other, AclBinding) else NotImplemented

    def __eq__(self, other: object) -> bool:
        return self._to_tuple() == other._to_tuple() if isinstance(other, AclBinding) else NotImplemented


class AclBindingFilter(AclBinding):
    """A filter of permissions; None and ANY match all values."""

    _REQUIRED = ("restype", "resource_pattern_type", "operation", "permission_type")
    _FORBIDDEN = {
        "restype": (ResourceType.UNKNOWN,),
        "resource_pattern_type": (ResourcePatternType.UNKNOWN,),
        "operation": (AclOperation.UNKNOWN,),
        "permission_type": (AclPermissionType.UNKNOWN,),
    }


def operations_of(values: list[Any] | None) -> list[AclOperation] | None:
    """Converts operations, given as members, names or numbers, to members of AclOperation.

    Returns None for None or an empty list.
    """
    return [to_enum(each, AclOperation) for each in values] if values else None
