"""ConsumerGroupHeartbeat 0-1 and ConsumerGroupDescribe 0-1: consumer groups (KIP-848).

Both are refused with UNSUPPORTED_VERSION unless the protocol is configured and the feature group.version finalized.

Versions:
    ConsumerGroupHeartbeat 1   a member chooses its own id and may subscribe by a regular expression.
    ConsumerGroupDescribe 1    has the type of each member.
Permissions: Read on the group and Describe on each topic that a heartbeat names; a regular expression matches only the
topics that the client may describe. ConsumerGroupDescribe needs Describe on the group and on all topics assigned in it.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from functools import partial

from kafkapy.coordinator.group.consumer_member import LEAVE_EPOCH, STATIC_LEAVE_EPOCH
from kafkapy.coordinator.group.consumer_membership import ConsumerHeartbeatCall
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from kafkapy.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kafkapy.security.acl import Operation, ResourceType
from kafkapy.server.api_registry import serves
from kafkapy.server.authorization import denied_names, denied_topics, is_allowed
from kafkapy.server.described_groups import described_groups, error_of_each_group
from kafkapy.server.request_context import RequestContext
from kafkapy.types import random_uuid, uuid_to_string

DescribedGroup = ConsumerGroupDescribeResponse.DescribedGroup
HIDDEN_TOPICS = "The group has described topic(s) that the client is not authorized to describe."


# -- ConsumerGroupHeartbeat


def heartbeat_error(
    request: ConsumerGroupHeartbeatRequest, version: int, error: Error, message: str | None
) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=error, error_message=message)


@serves(ApiKey.CONSUMER_GROUP_HEARTBEAT, 0, 1, on_error=heartbeat_error)
def handle_consumer_group_heartbeat(
    context: RequestContext, request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroupHeartbeatResponse | None:
    coordinator = context.services.group_coordinator
    if not coordinator.settings.is_enabled:
        raise ApiError(Error.UNSUPPORTED_VERSION)
    if not is_allowed(context, Operation.READ, ResourceType.GROUP, request.group_id):
        return heartbeat_error(request, context.api_version, Error.GROUP_AUTHORIZATION_FAILED, None)
    if denied_topics(context, Operation.DESCRIBE, request.subscribed_topic_names or ()):
        return heartbeat_error(request, context.api_version, Error.TOPIC_AUTHORIZATION_FAILED, None)
    _validate(request, context.api_version, coordinator.settings.assignors)
    owned = None
    if request.topic_partitions is not None:
        owned = {entry.topic_id: frozenset(entry.partitions) for entry in request.topic_partitions}
    call = ConsumerHeartbeatCall(
        group_id=request.group_id,
        member_id=request.member_id or uuid_to_string(random_uuid()),
        member_epoch=request.member_epoch,
        instance_id=request.instance_id,
        rack_id=request.rack_id,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        client_id=context.client_id or "",
        client_host=f"/{context.connection.peer_host}",
        subscribed_topic_names=request.subscribed_topic_names,
        subscribed_topic_regex=request.subscribed_topic_regex,
        server_assignor=request.server_assignor,
        owned=owned,
        denied_topics=None if context.services.authorizer is None else partial(_not_describable, context),
    )
    coordinator.consumer_group_heartbeat(
        call,
        context.respond,
        lambda error, message: context.respond(heartbeat_error(request, context.api_version, error, message)),
    )
    return None


def _not_describable(context: RequestContext, topics: AbstractSet[str]) -> AbstractSet[str]:
    """Returns the topics among `topics` that the client may not describe.

    These topics match the regular expression of a subscription. The client has not named them itself, so that the
    denials are written to the audit log only at TRACE.
    """
    return denied_names(context, Operation.DESCRIBE, ResourceType.TOPIC, topics, log_if_denied=False)


def _validate(request: ConsumerGroupHeartbeatRequest, version: int, assignors: list[str]) -> None:
    """Raises ApiError INVALID_REQUEST or UNSUPPORTED_ASSIGNOR for an invalid request."""
    epoch = request.member_epoch
    needs_member_id = version >= ConsumerGroupHeartbeatRequest.FIRST_VERSION_WITH_OWN_MEMBER_IDS or epoch != 0
    for is_wrong, message in (
        (not request.group_id.strip(), "GroupId can't be empty."),
        (needs_member_id and not request.member_id.strip(), "MemberId can't be empty."),
        (request.instance_id is not None and not request.instance_id.strip(), "InstanceId can't be empty."),
        (request.rack_id is not None and not request.rack_id.strip(), "RackId can't be empty."),
        (epoch < STATIC_LEAVE_EPOCH, "MemberEpoch is invalid."),
        (epoch == STATIC_LEAVE_EPOCH and request.instance_id is None, "InstanceId can't be null."),
    ):
        if is_wrong:
            raise ApiError(Error.INVALID_REQUEST, message)
    if epoch == 0:
        _validate_join(request)
    if epoch > LEAVE_EPOCH and request.server_assignor is not None and request.server_assignor not in assignors:
        message = f"ServerAssignor {request.server_assignor} is not supported. "
        raise ApiError(Error.UNSUPPORTED_ASSIGNOR, f"{message}Supported assignors: {', '.join(assignors)}.")


def _validate_join(request: ConsumerGroupHeartbeatRequest) -> None:
    if request.rebalance_timeout_ms == -1:
        raise ApiError(Error.INVALID_REQUEST, "RebalanceTimeoutMs must be provided in first request.")
    if request.topic_partitions is None or request.topic_partitions:
        raise ApiError(Error.INVALID_REQUEST, "TopicPartitions must be empty when (re-)joining.")
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        raise ApiError(
            Error.INVALID_REQUEST,
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
        )


# -- ConsumerGroupDescribe


@serves(ApiKey.CONSUMER_GROUP_DESCRIBE, 0, 1, on_error=error_of_each_group(ConsumerGroupDescribeResponse))
def handle_consumer_group_describe(
    context: RequestContext, request: ConsumerGroupDescribeRequest
) -> ConsumerGroupDescribeResponse:
    coordinator = context.services.group_coordinator
    if not coordinator.settings.is_enabled:
        raise ApiError(Error.UNSUPPORTED_VERSION)
    describe = coordinator.describe_consumer_group
    response = ConsumerGroupDescribeResponse
    return described_groups(context, request, response, describe, _assigned_topics, HIDDEN_TOPICS)


def _assigned_topics(group: DescribedGroup) -> frozenset[str]:
    return frozenset(
        each.topic_name
        for member in group.members
        for assignment in (member.assignment, member.target_assignment)
        for each in assignment.topic_partitions
    )
