"""BrokerRegistration, versions 0 to 4 (KIP-631, KIP-858, KIP-966), BrokerHeartbeat, versions 0 to 2, and
UnregisterBroker, version 0.

The active controller registers, fences and unfences brokers, and responds when the change is committed. Any other
controller responds with NOT_CONTROLLER.

Permissions: ClusterAction on the cluster; Alter for UnregisterBroker.

Version notes: version 3 of the registration adds the previous broker epoch (KIP-966). Version 1 of the heartbeat adds
the failed log directories, and version 2 the cordoned ones.
"""

from __future__ import annotations

from kafkapy.controller.broker_sessions import HeartbeatResponse
from kafkapy.errors import Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from kafkapy.protocol.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from kafkapy.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from kafkapy.security.acl import Operation
from kafkapy.server.api_registry import error_without_message, serves
from kafkapy.server.authorization import check_cluster
from kafkapy.server.controller_answer import answer_when_committed
from kafkapy.server.request_context import RequestContext


@serves(ApiKey.BROKER_REGISTRATION, 0, 4, on_error=error_without_message(BrokerRegistrationResponse))
def handle_broker_registration(context: RequestContext, request: BrokerRegistrationRequest) -> None:
    check_cluster(context, Operation.CLUSTER_ACTION)
    answer_when_committed(
        context,
        context.services.controller_operations.register_broker(request),
        lambda epoch: BrokerRegistrationResponse(broker_epoch=epoch),
        lambda error, message: BrokerRegistrationResponse(error_code=error),
    )


@serves(ApiKey.BROKER_HEARTBEAT, 0, 2, on_error=error_without_message(BrokerHeartbeatResponse))
def handle_broker_heartbeat(context: RequestContext, request: BrokerHeartbeatRequest) -> None:
    check_cluster(context, Operation.CLUSTER_ACTION)
    operations = context.services.controller_operations
    operations.contact(request.broker_id, request.broker_epoch)
    context.session.broker = (request.broker_id, request.broker_epoch)
    answer_when_committed(
        context,
        operations.heartbeat(request),
        _heartbeat_response,
        lambda error, message: BrokerHeartbeatResponse(error_code=error),
    )


def _heartbeat_response(response: HeartbeatResponse) -> BrokerHeartbeatResponse:
    return BrokerHeartbeatResponse(
        is_caught_up=response.is_caught_up,
        is_fenced=response.is_fenced,
        should_shut_down=response.should_shut_down,
    )


def unregister_broker_error(
    request: UnregisterBrokerRequest, version: int, error: Error, message: str | None
) -> UnregisterBrokerResponse:
    return UnregisterBrokerResponse(error_code=error, error_message=message)


@serves(ApiKey.UNREGISTER_BROKER, 0, 0, on_error=unregister_broker_error)
def handle_unregister_broker(context: RequestContext, request: UnregisterBrokerRequest) -> None:
    check_cluster(context, Operation.ALTER)
    answer_when_committed(
        context,
        context.services.controller_operations.unregister_broker(request.broker_id),
        lambda _: UnregisterBrokerResponse(error_message=None),
        lambda error, message: unregister_broker_error(request, context.api_version, error, message),
    )
