"""The common part of ConsumerGroupDescribe, ShareGroupDescribe and StreamsGroupDescribe.

Permissions: Describe on each group, and on all topics that its description names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from kafkapy.errors import ApiError, Error
from kafkapy.security.acl import Operation, ResourceType
from kafkapy.server.api_registry import OnError
from kafkapy.server.authorization import authorized_operations, denied_names, denied_topics
from kafkapy.server.request_context import RequestContext

R = TypeVar("R")


def error_of_each_group(response_class: Any) -> OnError:
    """Returns an `on_error` function whose response has the error for every group of the request."""

    def failed(request: Any, version: int, error: Error, message: str | None) -> Any:
        return response_class(groups=[_failed(response_class, each, error, message) for each in request.group_ids])

    return failed


def described_groups(
    context: RequestContext,
    request: Any,
    response_class: Callable[..., R],
    describe: Callable[[str], Any],
    topics_of: Callable[[Any], Iterable[str]],
    hidden_message: str,
) -> R:
    """Returns the response with the descriptions, or errors, of the groups that the request names.

    `describe` returns the description of one group or raises ApiError; `topics_of` returns the topics that a
    description names. A group with topics that the client may not describe gets an error with `hidden_message`.
    """
    denied = denied_names(context, Operation.DESCRIBE, ResourceType.GROUP, request.group_ids)
    allowed = [each for each in request.group_ids if each not in denied]
    # Apache Kafka also puts the denied and then the invalid ids first.
    groups = [
        _failed(response_class, each, Error.GROUP_AUTHORIZATION_FAILED, None)
        for each in request.group_ids
        if each in denied
    ]
    groups += [_failed(response_class, "", Error.INVALID_GROUP_ID, None) for group_id in allowed if not group_id]
    for group_id in filter(None, allowed):
        try:
            described = describe(group_id)
            if request.include_authorized_operations:
                described.authorized_operations = authorized_operations(context, ResourceType.GROUP, group_id)
        except ApiError as error:
            described = _failed(response_class, group_id, error.error, error.message)
        groups.append(described)
    if context.services.authorizer is not None:
        topics = [frozenset(topics_of(group)) for group in groups]
        hidden = denied_topics(context, Operation.DESCRIBE, frozenset().union(*topics))
        groups = [
            group
            if hidden.isdisjoint(names)
            else _failed(response_class, group.group_id, Error.TOPIC_AUTHORIZATION_FAILED, hidden_message)
            for group, names in zip(groups, topics, strict=True)
        ]
    return response_class(groups=groups)


def _failed(response_class: Any, group_id: str, error: Error, message: str | None) -> Any:
    return response_class.DescribedGroup(group_id=group_id, error_code=error, error_message=message)
