"""ShareGroupHeartbeat 1 and ShareGroupDescribe 1: the members of share groups (KIP-932).

Both are refused with UNSUPPORTED_VERSION unless the feature share.version is finalized.

Permissions: Read on the group and Describe on each topic that a heartbeat names. ShareGroupDescribe needs Describe on
the group and on all topics assigned in it.
"""

from __future__ import annotations

from kafkapy.coordinator.group.consumer_member import LEAVE_EPOCH
from kafkapy.coordinator.group.share_membership import ShareHeartbeatCall
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.share_group_describe import ShareGroupDescribeRequest, ShareGroupDescribeResponse
from kafkapy.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from kafkapy.security.acl import Operation, ResourceType
from kafkapy.server.api_registry import serves
from kafkapy.server.authorization import denied_topics, is_allowed
from kafkapy.server.described_groups import described_groups, error_of_each_group
from kafkapy.server.handlers.consumer_groups import HIDDEN_TOPICS
from kafkapy.server.request_context import RequestContext

DescribedGroup = ShareGroupDescribeResponse.DescribedGroup
LONGEST_MEMBER_ID = 36


def check_member_id(member_id: str | None) -> str:
    """Returns the member id; raises ApiError INVALID_REQUEST unless it has 1 to 36 characters."""
    if not member_id or len(member_id) > LONGEST_MEMBER_ID:
        raise ApiError(Error.INVALID_REQUEST)
    return member_id


def check_share_groups(context: RequestContext) -> None:
    """Raises ApiError UNSUPPORTED_VERSION if this broker does not serve share groups."""
    if not context.services.shares.settings.is_enabled:
        raise ApiError(Error.UNSUPPORTED_VERSION)


# -- ShareGroupHeartbeat


def heartbeat_error(
    request: ShareGroupHeartbeatRequest, version: int, error: Error, message: str | None
) -> ShareGroupHeartbeatResponse:
    return ShareGroupHeartbeatResponse(error_code=error, error_message=message)


@serves(ApiKey.SHARE_GROUP_HEARTBEAT, 1, 1, on_error=heartbeat_error)
def handle_share_group_heartbeat(
    context: RequestContext, request: ShareGroupHeartbeatRequest
) -> ShareGroupHeartbeatResponse | None:
    check_share_groups(context)
    if not is_allowed(context, Operation.READ, ResourceType.GROUP, request.group_id):
        return heartbeat_error(request, context.api_version, Error.GROUP_AUTHORIZATION_FAILED, None)
    try:
        check_member_id(request.member_id)
    except ApiError as error:
        return heartbeat_error(request, context.api_version, error.error, None)
    if denied_topics(context, Operation.DESCRIBE, request.subscribed_topic_names or ()):
        return heartbeat_error(request, context.api_version, Error.TOPIC_AUTHORIZATION_FAILED, None)
    _validate(request)
    call = ShareHeartbeatCall(
        group_id=request.group_id,
        member_id=request.member_id,
        member_epoch=request.member_epoch,
        rack_id=request.rack_id,
        client_id=context.client_id or "",
        client_host=f"/{context.connection.peer_host}",
        subscribed_topic_names=request.subscribed_topic_names,
    )
    context.services.shares.groups.heartbeat(
        call,
        context.respond,
        lambda error, message: context.respond(heartbeat_error(request, context.api_version, error, message)),
    )
    return None


def _validate(request: ShareGroupHeartbeatRequest) -> None:
    """Raises ApiError INVALID_REQUEST if a required field of the heartbeat is empty or the member epoch is below -1."""
    is_join = request.member_epoch == 0
    for is_wrong, message in (
        (not request.member_id.strip(), "MemberId can't be empty."),
        (not request.group_id.strip(), "GroupId can't be empty."),
        (request.rack_id is not None and not request.rack_id.strip(), "RackId can't be empty."),
        (is_join and not request.subscribed_topic_names, "SubscribedTopicNames must be set in first request."),
        (request.member_epoch < LEAVE_EPOCH, "MemberEpoch is invalid."),
    ):
        if is_wrong:
            raise ApiError(Error.INVALID_REQUEST, message)


# -- ShareGroupDescribe


@serves(ApiKey.SHARE_GROUP_DESCRIBE, 1, 1, on_error=error_of_each_group(ShareGroupDescribeResponse))
def handle_share_group_describe(
    context: RequestContext, request: ShareGroupDescribeRequest
) -> ShareGroupDescribeResponse:
    check_share_groups(context)
    describe = context.services.shares.groups.describe
    response = ShareGroupDescribeResponse
    return described_groups(context, request, response, describe, _assigned_topics, HIDDEN_TOPICS)


def _assigned_topics(group: DescribedGroup) -> frozenset[str]:
    return frozenset(each.topic_name for member in group.members for each in member.assignment.topic_partitions)
