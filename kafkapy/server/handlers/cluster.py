"""DescribeCluster, versions 0 to 2 (KIP-700, KIP-919, KIP-1073).

On a broker's listener, the response has the cluster id, the controller, and the brokers that have this listener. On a
controller's listener, it has the registered controllers instead of the brokers (KIP-919), and the active controller. A
client that expects the other kind of listener gets MISMATCHED_ENDPOINT_TYPE.

Permissions: none on a broker; the response has the operations that the client may perform on the cluster only if the
client has Describe on the cluster. On a controller, Alter on the cluster.

Version notes: from version 1 on the client names the kind of listener; from version 2 on it may ask for fenced brokers.
"""

from __future__ import annotations

from kafkapy.errors import ApiError, Error
from kafkapy.metadata.features import supports_controller_registration
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from kafkapy.security.acl import Operation
from kafkapy.server.api_registry import serves
from kafkapy.server.authorization import OPERATIONS_NOT_ASKED_FOR, authorized_cluster_operations, check_cluster
from kafkapy.server.request_context import RequestContext

BROKERS, CONTROLLERS = 1, 2
DescribedNode = DescribeClusterResponse.DescribeClusterBroker


def describe_cluster_error(
    request: DescribeClusterRequest, version: int, error: Error, message: str | None
) -> DescribeClusterResponse:
    return DescribeClusterResponse(error_code=error, error_message=message)


@serves(ApiKey.DESCRIBE_CLUSTER, 0, 2, on_error=describe_cluster_error)
def handle_describe_cluster(context: RequestContext, request: DescribeClusterRequest) -> DescribeClusterResponse:
    is_controller = context.session.is_controller
    if is_controller:
        check_cluster(context, Operation.ALTER)
    served = CONTROLLERS if is_controller else BROKERS
    if request.endpoint_type not in (BROKERS, CONTROLLERS):
        raise ApiError(Error.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {request.endpoint_type}")
    if request.endpoint_type != served:
        names = {BROKERS: "BROKER", CONTROLLERS: "CONTROLLER"}
        raise ApiError(
            Error.MISMATCHED_ENDPOINT_TYPE,
            f"The request was sent to an endpoint of type {names[served]}, but we wanted an endpoint of type "
            f"{names[request.endpoint_type]}",
        )
    services = context.services
    is_requested = request.include_cluster_authorized_operations
    return DescribeClusterResponse(
        endpoint_type=served,
        cluster_id=services.cluster_id,
        controller_id=services.active_controller_id() if is_controller else services.node_id,
        brokers=_controllers(context) if is_controller else _brokers(context, request),
        cluster_authorized_operations=authorized_cluster_operations(context)
        if is_requested
        else OPERATIONS_NOT_ASKED_FOR,
    )


def _brokers(context: RequestContext, request: DescribeClusterRequest) -> list[DescribedNode]:
    name = context.listener.name
    return [
        DescribedNode(
            broker_id=broker.broker_id,
            host=broker.endpoints[name].host,
            port=broker.endpoints[name].port,
            rack=broker.rack,
            is_fenced=broker.fenced,
        )
        for broker in context.services.metadata.image.brokers.values()
        if name in broker.endpoints and (request.include_fenced_brokers or not broker.fenced)
    ]


def _controllers(context: RequestContext) -> list[DescribedNode]:
    """Returns the registered controllers that are reachable on the client's listener."""
    image, name = context.services.metadata.image, context.listener.name
    if not supports_controller_registration(image.metadata_version):
        raise ApiError(
            Error.UNSUPPORTED_VERSION,
            "Direct-to-controller communication is not supported with the current MetadataVersion.",
        )
    return [
        DescribedNode(
            broker_id=controller.controller_id,
            host=controller.endpoints[name].host,
            port=controller.endpoints[name].port,
        )
        for controller in image.controllers.values()
        if name in controller.endpoints
    ]
