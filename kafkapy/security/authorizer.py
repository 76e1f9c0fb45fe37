"""The interface of an authorizer, which the classes of `authorizer.class.name` implement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from kafkapy.named_tuple import NamedTuple
from kafkapy.security.acl import Operation, ResourceType
from kafkapy.security.principal import Principal


class Requester(NamedTuple):
    """The sender of a request: the facts that an authorizer may use."""

    principal: Principal
    host: str  # the client's textual IP address
    listener: str
    api_key: int


class Action(NamedTuple):
    """An operation on one resource, whose name is literal: never a prefix or a pattern."""

    operation: Operation
    resource_type: ResourceType
    resource_name: str
    resource_count: int = 1  # how often the request refers to the resource; for the audit log
    log_if_allowed: bool = True  # False logs a permission at TRACE instead of DEBUG
    log_if_denied: bool = True  # False logs a denial at TRACE instead of INFO


class Authorizer(Protocol):
    """Decides what principals may do. Any thread may call the methods, which do not wait."""

    @property
    def generation(self) -> int:
        """A number that changes whenever ACLs or super users change. A decision that was stored under an earlier number
        must not be used any more.
        """

    def authorize(self, requester: Requester, actions: Sequence[Action]) -> list[bool]:
        """Returns for each action whether it is allowed. Raises ApiError while the ACLs are not loaded."""

    def authorize_by_type(self, requester: Requester, operation: Operation, resource_type: ResourceType) -> bool:
        """Returns whether the requester may perform the operation on at least one resource of the type."""
