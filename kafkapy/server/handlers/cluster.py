"""DescribeCluster, versions 0 to 2 (KIP-700, KIP-919, KIP-1073).

Behaviour: responds with the cluster id, the controller and the brokers that the client's listener reaches.

Version notes: from version 2 on the client may ask for fenced brokers too.

Not done: endpoints of controllers are refused, because clients cannot connect to the controller.
"""

from __future__ import annotations

from kafkapy.errors import ApiError, Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from kafkapy.server.api_registry import serves
from kafkapy.server.request_context import RequestContext
from kafkapy.server.topic_metadata import ALL_CLUSTER_OPERATIONS, OPERATIONS_NOT_ASKED_FOR

BROKERS, CONTROLLERS = 1, 2


def describe_cluster_error(
    request: DescribeClusterRequest, version: int, error: Error, message: str | None
) -> DescribeClusterResponse:
    return DescribeClusterResponse(error_code=error, error_message=message)


@serves(ApiKey.DESCRIBE_CLUSTER, 0, 2, on_error=describe_cluster_error)
def handle_describe_cluster(context: RequestContext, request: DescribeClusterRequest) -> DescribeClusterResponse:
    if request.endpoint_type == CONTROLLERS:
        raise ApiError(
            Error.MISMATCHED_ENDPOINT_TYPE,
            "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER",
        )
    if request.endpoint_type != BROKERS:
        raise ApiError(Error.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {request.endpoint_type}")
    services = context.services
    brokers = [
        DescribeClusterResponse.DescribeClusterBroker(
            broker_id=broker.broker_id,
            host=broker.endpoints[context.listener.name].host,
            port=broker.endpoints[context.listener.name].port,
            rack=broker.rack,
            is_fenced=broker.fenced,
        )
        for broker in services.metadata.image.brokers.values()
        if context.listener.name in broker.endpoints and (request.include_fenced_brokers or not broker.fenced)
    ]
    is_requested = request.include_cluster_authorized_operations
    return DescribeClusterResponse(
        cluster_id=services.cluster_id,
        controller_id=services.node_id,
        brokers=brokers,
        cluster_authorized_operations=ALL_CLUSTER_OPERATIONS if is_requested else OPERATIONS_NOT_ASKED_FOR,
    )
