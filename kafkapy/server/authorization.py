"""The questions that handlers ask about a request's permissions. Without an authorizer everything is allowed.

The handler of a request that names several resources first asks which of these names are denied. The response has an
error for each denied resource. A denied resource is not looked up, so that the error does not show whether it exists.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

from kafkapy.errors import ApiError, Error
from kafkapy.security.acl import CLUSTER_NAME, SUPPORTED_OPERATIONS, Operation, ResourceType
from kafkapy.security.authorizer import Action, Authorizer, Requester

if TYPE_CHECKING:
    from kafkapy.server.request_context import RequestContext

NO_NAMES: AbstractSet[str] = frozenset()
# All operations on a resource of each type, as bits.
ALL_OPERATIONS = {
    resource_type: sum(1 << operation for operation in operations)
    for resource_type, operations in SUPPORTED_OPERATIONS.items()
}
OPERATIONS_NOT_ASKED_FOR = -(2**31)


def is_allowed(
    context: RequestContext,
    operation: Operation,
    resource_type: ResourceType,
    name: str,
    *,
    count: int = 1,
    log_if_allowed: bool = True,
    log_if_denied: bool = True,
) -> bool:
    """Returns whether the client may perform the operation on the resource.

    The decision is written to the audit log: at DEBUG if the operation is allowed, or at TRACE if `log_if_allowed` is
    False; at INFO if it is denied, or at TRACE if `log_if_denied` is False. The line shows `count`, the number of times
    that the request refers to the resource.
    """
    authorizer = context.services.authorizer
    if authorizer is None:
        return True
    action = Action(operation, resource_type, name, count, log_if_allowed, log_if_denied)
    return _ask(context, authorizer, [action])[0]


def is_cluster_allowed(
    context: RequestContext, operation: Operation, *, log_if_allowed: bool = True, log_if_denied: bool = True
) -> bool:
    """Returns whether the client may perform the operation on the cluster.

    The decision is written to the audit log as by `is_allowed`.
    """
    return is_allowed(
        context,
        operation,
        ResourceType.CLUSTER,
        CLUSTER_NAME,
        log_if_allowed=log_if_allowed,
        log_if_denied=log_if_denied,
    )


def is_any_allowed(context: RequestContext, operation: Operation, resource_type: ResourceType) -> bool:
    """Returns whether the client may perform the operation on at least one resource of the type."""
    authorizer = context.services.authorizer
    return authorizer is None or authorizer.authorize_by_type(_requester(context), operation, resource_type)


def check_cluster(context: RequestContext, operation: Operation) -> None:
    """Raises ApiError with CLUSTER_AUTHORIZATION_FAILED if the client may not perform the operation on the cluster."""
    if not is_cluster_allowed(context, operation):
        raise ApiError(Error.CLUSTER_AUTHORIZATION_FAILED)


def check_group(context: RequestContext, operation: Operation, group_id: str) -> None:
    """Raises ApiError with GROUP_AUTHORIZATION_FAILED if the client may not perform the operation on the group."""
    if not is_allowed(context, operation, ResourceType.GROUP, group_id):
        raise ApiError(Error.GROUP_AUTHORIZATION_FAILED)


def check_transactional_id(context: RequestContext, operation: Operation, transactional_id: str) -> None:
    """Raises ApiError with TRANSACTIONAL_ID_AUTHORIZATION_FAILED if the client may not perform the operation on the
    transactional id."""
    if not is_allowed(context, operation, ResourceType.TRANSACTIONAL_ID, transactional_id):
        raise ApiError(Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)


def denied_names(
    context: RequestContext,
    operation: Operation,
    resource_type: ResourceType,
    names: Iterable[str],
    *,
    log_if_allowed: bool = True,
    log_if_denied: bool = True,
) -> AbstractSet[str]:
    """Returns the names of the resources on which the client may not perform the operation.

    The authorizer is asked once for each distinct name. Without an authorizer `names` is not read, and the result is
    empty. The decisions are written to the audit log: at DEBUG if the operation is allowed, or at TRACE if
    `log_if_allowed` is False; at INFO if it is denied, or at TRACE if `log_if_denied` is False.
    """
    authorizer = context.services.authorizer
    if authorizer is None:
        return NO_NAMES
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    if not counts:
        return NO_NAMES
    actions = [
        Action(operation, resource_type, name, count, log_if_allowed, log_if_denied) for name, count in counts.items()
    ]
    answers = _ask(context, authorizer, actions)
    return {action.resource_name for action, allowed in zip(actions, answers, strict=True) if not allowed}


def denied_topics(context: RequestContext, operation: Operation, names: Iterable[str]) -> AbstractSet[str]:
    """Returns the topics on which the client may not perform the operation. Without an authorizer the result
    is empty."""
    return denied_names(context, operation, ResourceType.TOPIC, names)


def authorized_operations(context: RequestContext, resource_type: ResourceType, name: str) -> int:
    """Returns the operations that the client may perform on the resource: bit n stands for the Operation n."""
    authorizer = context.services.authorizer
    if authorizer is None:
        return ALL_OPERATIONS[resource_type]
    actions = [
        Action(operation, resource_type, name, log_if_allowed=False, log_if_denied=False)
        for operation in SUPPORTED_OPERATIONS[resource_type]
    ]
    answers: Sequence[bool] = authorizer.authorize(_requester(context), actions)
    return sum(1 << action.operation for action, allowed in zip(actions, answers, strict=True) if allowed)


def authorized_cluster_operations(context: RequestContext) -> int:
    """Returns the operations that the client may perform on the cluster: bit n stands for the Operation n.

    Returns 0 if the client may not describe the cluster.
    """
    if not is_cluster_allowed(context, Operation.DESCRIBE):
        return 0
    return authorized_operations(context, ResourceType.CLUSTER, CLUSTER_NAME)


def _ask(context: RequestContext, authorizer: Authorizer, actions: list[Action]) -> list[bool]:
    """Asks the authorizer which of the actions are allowed, and returns its answers in the order of the actions.

    If the compiled request path (the gate) also serves requests of this API, stores the permissions for it.
    """
    gate_rights = context.services.gate_rights
    if gate_rights is None or not gate_rights.concerns(context.api_key):
        return authorizer.authorize(_requester(context), actions)
    requester = _requester(context)
    generation = gate_rights.begin()
    answers = authorizer.authorize(requester, actions)
    gate_rights.learn(context.connection, requester, actions, answers, generation)
    return answers


def _requester(context: RequestContext) -> Requester:
    connection = context.connection
    return Requester(context.principal, connection.peer_host, connection.listener.name, context.api_key)
