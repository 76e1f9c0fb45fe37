"""ControllerRegistration, version 0 (KIP-919): a controller registers its listeners and features.

The response is sent when the active controller has committed the registration.

Permissions: ClusterAction on the cluster.
"""

from __future__ import annotations

from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)
from kafkapy.security.acl import Operation
from kafkapy.server.api_registry import error_with_message, serves
from kafkapy.server.authorization import check_cluster
from kafkapy.server.controller_answer import answer_when_committed
from kafkapy.server.request_context import RequestContext


@serves(ApiKey.CONTROLLER_REGISTRATION, 0, 0, on_error=error_with_message(ControllerRegistrationResponse))
def handle_controller_registration(context: RequestContext, request: ControllerRegistrationRequest) -> None:
    check_cluster(context, Operation.CLUSTER_ACTION)
    answer_when_committed(
        context,
        context.services.controller_operations.register_controller(request),
        lambda _: ControllerRegistrationResponse(error_message=None),
        lambda error, message: ControllerRegistrationResponse(error_code=error, error_message=message),
    )
