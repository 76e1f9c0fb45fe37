"""The questions that handlers ask about a request's permissions. Without an authorizer everything is allowed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kafkapy.errors import ApiError, Error
from kafkapy.security.acl import CLUSTER_NAME, Operation, ResourceType
from kafkapy.security.authorizer import Action, Requester

if TYPE_CHECKING:
    from kafkapy.server.request_context import RequestContext


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
    """Returns whether the client may perform the operation on the resource. `count` and the flags are for the audit
    log, as in Action."""
    authorizer = context.services.authorizer
    if authorizer is None:
        return True
    action = Action(operation, resource_type, name, count, log_if_allowed, log_if_denied)
    return authorizer.authorize(_requester(context), [action])[0]


def check_cluster(context: RequestContext, operation: Operation) -> None:
    """Raises ApiError with CLUSTER_AUTHORIZATION_FAILED if the client may not perform the operation on the cluster."""
    if not is_allowed(context, operation, ResourceType.CLUSTER, CLUSTER_NAME):
        raise ApiError(Error.CLUSTER_AUTHORIZATION_FAILED)


def allowed_names(
    context: RequestContext,
    operation: Operation,
    resource_type: ResourceType,
    names: Iterable[str],
    *,
    log_if_allowed: bool = True,
    log_if_denied: bool = True,
) -> set[str]:
    """Returns those of the resources on which the client may perform the operation; each name is asked once."""
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    authorizer = context.services.authorizer
    if authorizer is None or not counts:
        return set(counts)
    actions = [
        Action(operation, resource_type, name, count, log_if_allowed, log_if_denied) for name, count in counts.items()
    ]
    answers = authorizer.authorize(_requester(context), actions)
    return {action.resource_name for action, allowed in zip(actions, answers, strict=True) if allowed}


def _requester(context: RequestContext) -> Requester:
    connection = context.connection
    return Requester(context.principal, connection.peer_host, connection.listener.name, context.api_key)
