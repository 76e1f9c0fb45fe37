"""Handlers for tests of the dispatcher; the topic names in a request determine their behaviour."""

from __future__ import annotations

import threading
from typing import Any

from kafkapy.errors import ApiError, Error, ProtocolViolation, StorageError
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kafkapy.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafkapy.server.api_registry import serves
from kafkapy.server.request_context import RequestContext

SCRIPTED_VERSIONS = {ApiKey.FIND_COORDINATOR: (0, 2), ApiKey.HEARTBEAT: (0, 3)}


def heartbeat_error(request: HeartbeatRequest, version: int, error: Error, message: str | None) -> HeartbeatResponse:
    return HeartbeatResponse(error_code=error)


@serves(ApiKey.HEARTBEAT, 0, 3, on_error=heartbeat_error)
def heartbeat(context: RequestContext, request: HeartbeatRequest) -> Any:
    wish = request.group_id
    if wish == "later":
        context.services.reactor.post(lambda: context.respond(HeartbeatResponse(throttle_time_ms=1)))
        return None
    if wish == "never":
        context.respond(None)
        return None
    if wish == "twice":
        context.respond(HeartbeatResponse(throttle_time_ms=2))
        context.respond(HeartbeatResponse(throttle_time_ms=3))
    if wish == "api error":
        raise ApiError(Error.UNKNOWN_MEMBER_ID)
    if wish == "violation":
        raise ProtocolViolation("these bytes are no records")
    if wish == "storage":
        raise StorageError("/data", "no space left")
    if wish == "bug":
        raise KeyError("bug")
    if wish == "not encodable":
        return HeartbeatResponse(error_code=1 << 40)
    return HeartbeatResponse(throttle_time_ms=len(context.client_id or ""))


def no_coordinator(
    request: FindCoordinatorRequest, version: int, error: Error, message: str | None
) -> FindCoordinatorResponse:
    return FindCoordinatorResponse(error_code=error, error_message=message)


@serves(ApiKey.FIND_COORDINATOR, 0, 2, on_error=no_coordinator, blocking=True)
def find_coordinator(context: RequestContext, request: FindCoordinatorRequest) -> FindCoordinatorResponse | None:
    if request.key == "fail":
        raise ApiError(Error.COORDINATOR_NOT_AVAILABLE, "not yet")
    if request.key == "later":
        reactor = context.services.reactor
        reactor.post(lambda: context.respond(FindCoordinatorResponse(host="posted")))
        return None
    return FindCoordinatorResponse(host=threading.current_thread().name, node_id=5)
