"""JoinGroup 0-9, SyncGroup 0-5, Heartbeat 0-4, LeaveGroup 0-5, DescribeGroups 0-6, ListGroups 0-5, DeleteGroups 0-2.

These APIs serve members of the classic protocol and the administration of groups. Requests go to the group coordinator,
which responds to JoinGroup and SyncGroup when the group's next generation begins or its assignment is committed.

Versions:
    JoinGroup 1        has a rebalance timeout; in version 0 the session timeout is used instead.
    JoinGroup 4        a new member joins twice: the first response gives it its id (KIP-394).
    JoinGroup 7        the protocol name may be null, and is null in errors.
    JoinGroup 9        the leader may be told to skip the assignment (KIP-814).
    SyncGroup 5        requires the protocol's type and name.
    LeaveGroup 3       several members leave at once, with an error for each.
    DescribeGroups 6   reports a missing group as an error; older versions report it as a dead group.
    ListGroups 4       filters by state; version 5 also filters by type.
Permissions: Read on the group for its members; Describe on the group, or on the cluster for ListGroups; Delete on the
group. ListGroups leaves out groups that the client may not describe.
"""

from __future__ import annotations

from collections.abc import Mapping

from kafkapy.coordinator.group.classic.classic_responses import join_error
from kafkapy.coordinator.group.classic.join_call import JoinCall
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from kafkapy.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from kafkapy.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafkapy.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from kafkapy.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from kafkapy.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from kafkapy.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from kafkapy.security.acl import Operation, ResourceType
from kafkapy.server.api_registry import serves
from kafkapy.server.authorization import authorized_operations, check_group, denied_names, is_cluster_allowed
from kafkapy.server.request_context import RequestContext


def join_group_error(request: JoinGroupRequest, version: int, error: Error, message: str | None) -> JoinGroupResponse:
    response = join_error(request.member_id, error)
    if version >= JoinGroupRequest.FIRST_VERSION_WITH_NULLABLE_PROTOCOL_NAME:
        response.protocol_name = None
    return response


@serves(ApiKey.JOIN_GROUP, 0, 9, on_error=join_group_error)
def handle_join_group(context: RequestContext, request: JoinGroupRequest) -> None:
    check_group(context, Operation.READ, request.group_id)

    def respond(response: JoinGroupResponse) -> None:
        if context.api_version < JoinGroupRequest.FIRST_VERSION_WITH_NULLABLE_PROTOCOL_NAME:
            response.protocol_name = response.protocol_name or ""
        elif response.error_code:
            response.protocol_name = None
        context.respond(response)

    rebalance_timeout_ms = request.rebalance_timeout_ms
    context.services.group_coordinator.join_group(
        JoinCall(
            group_id=request.group_id,
            member_id=request.member_id,
            group_instance_id=request.group_instance_id,
            client_id=context.client_id or "",
            client_host=f"/{context.connection.peer_host}",
            session_timeout_ms=request.session_timeout_ms,
            # Version 0 has no rebalance timeout: the session timeout is used.
            rebalance_timeout_ms=rebalance_timeout_ms if rebalance_timeout_ms >= 0 else request.session_timeout_ms,
            protocol_type=request.protocol_type,
            protocols=[(protocol.name, bytes(protocol.metadata)) for protocol in request.protocols],
            reason=request.reason or "not provided",
            api_version=context.api_version,
            respond=respond,
        )
    )


def sync_group_error(request: SyncGroupRequest, version: int, error: Error, message: str | None) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=error)


@serves(ApiKey.SYNC_GROUP, 0, 5, on_error=sync_group_error)
def handle_sync_group(context: RequestContext, request: SyncGroupRequest) -> None:
    if context.api_version >= SyncGroupRequest.FIRST_VERSION_WITH_PROTOCOL_NAME and (
        request.protocol_type is None or request.protocol_name is None
    ):
        raise ApiError(Error.INCONSISTENT_GROUP_PROTOCOL)
    check_group(context, Operation.READ, request.group_id)
    context.services.group_coordinator.sync_group(request, context.respond)


def heartbeat_error(request: HeartbeatRequest, version: int, error: Error, message: str | None) -> HeartbeatResponse:
    return HeartbeatResponse(error_code=error)


@serves(ApiKey.HEARTBEAT, 0, 4, on_error=heartbeat_error)
def handle_heartbeat(context: RequestContext, request: HeartbeatRequest) -> None:
    check_group(context, Operation.READ, request.group_id)
    context.services.group_coordinator.heartbeat(request, context.respond)


def leave_group_error(
    request: LeaveGroupRequest, version: int, error: Error, message: str | None
) -> LeaveGroupResponse:
    return LeaveGroupResponse(error_code=error)


@serves(ApiKey.LEAVE_GROUP, 0, 5, on_error=leave_group_error)
def handle_leave_group(context: RequestContext, request: LeaveGroupRequest) -> None:
    check_group(context, Operation.READ, request.group_id)
    is_batched = context.api_version >= LeaveGroupRequest.FIRST_VERSION_WITH_MEMBERS
    members = request.members if is_batched else [LeaveGroupRequest.MemberIdentity(member_id=request.member_id)]

    def respond(response: LeaveGroupResponse) -> None:
        if not is_batched and response.members:
            response = LeaveGroupResponse(error_code=response.error_code or response.members[0].error_code)
        context.respond(response)

    context.services.group_coordinator.leave_group(request.group_id, members, respond)


def describe_groups_error(
    request: DescribeGroupsRequest, version: int, error: Error, message: str | None
) -> DescribeGroupsResponse:
    return DescribeGroupsResponse(
        groups=[DescribeGroupsResponse.DescribedGroup(group_id=group, error_code=error) for group in request.groups]
    )


@serves(ApiKey.DESCRIBE_GROUPS, 0, 6, on_error=describe_groups_error)
def handle_describe_groups(context: RequestContext, request: DescribeGroupsRequest) -> DescribeGroupsResponse:
    coordinator = context.services.group_coordinator
    denied = denied_names(context, Operation.DESCRIBE, ResourceType.GROUP, request.groups)
    described = [
        DescribeGroupsResponse.DescribedGroup(group_id=group_id, error_code=Error.GROUP_AUTHORIZATION_FAILED)
        if group_id in denied
        else coordinator.describe_group(group_id, context.api_version)
        for group_id in request.groups
    ]
    if request.include_authorized_operations:
        for group in described:
            if group.error_code == Error.NONE:
                group.authorized_operations = authorized_operations(context, ResourceType.GROUP, group.group_id)
    return DescribeGroupsResponse(groups=described)


def list_groups_error(
    request: ListGroupsRequest, version: int, error: Error, message: str | None
) -> ListGroupsResponse:
    return ListGroupsResponse(error_code=error)


@serves(ApiKey.LIST_GROUPS, 0, 5, on_error=list_groups_error)
def handle_list_groups(context: RequestContext, request: ListGroupsRequest) -> ListGroupsResponse:
    response: ListGroupsResponse = context.services.group_coordinator.list_groups(
        request.states_filter, request.types_filter
    )
    if context.services.authorizer is not None and not is_cluster_allowed(
        context, Operation.DESCRIBE, log_if_denied=False
    ):
        names = [group.group_id for group in response.groups]
        denied = denied_names(context, Operation.DESCRIBE, ResourceType.GROUP, names, log_if_denied=False)
        response.groups = [group for group in response.groups if group.group_id not in denied]
    return response


def delete_groups_error(
    request: DeleteGroupsRequest, version: int, error: Error, message: str | None
) -> DeleteGroupsResponse:
    return _delete_groups_response(dict.fromkeys(request.groups_names, error))


@serves(ApiKey.DELETE_GROUPS, 0, 2, on_error=delete_groups_error)
def handle_delete_groups(context: RequestContext, request: DeleteGroupsRequest) -> None:
    names = request.groups_names
    denied = denied_names(context, Operation.DELETE, ResourceType.GROUP, names)
    refused = dict.fromkeys(denied, Error.GROUP_AUTHORIZATION_FAILED)
    coordinator = context.services.group_coordinator
    permitted = [name for name in names if name not in denied] if denied else names

    def delete(failed: Mapping[str, Error]) -> None:
        coordinator.delete_groups(
            [name for name in permitted if name not in failed],
            lambda errors: context.respond(_delete_groups_response({**errors, **failed, **refused})),
        )

    shares = [name for name in permitted if coordinator.is_share_group(name)]
    if shares:
        context.services.shares.offsets.delete_all(shares, delete)
    else:
        delete({})


def _delete_groups_response(errors: Mapping[str, Error]) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(
        results=[
            DeleteGroupsResponse.DeletableGroupResult(group_id=group_id, error_code=error)
            for group_id, error in errors.items()
        ]
    )
