"""FindCoordinator 0-6: the broker that coordinates a group or a transactional id.

Creates the internal topic when it is first needed, and names no coordinator before the broker can serve its partition.

Versions:
    1   transactional ids.
    4   several keys in one request (KIP-699).
    6   share partitions (KIP-932), with keys of the form group:topic id:partition.
Permissions: Describe on the group or the transactional id; ClusterAction on the cluster for share partitions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kafkapy.coordinator.partitioning import coordinator_partition
from kafkapy.errors import ApiError, Error
from kafkapy.metadata.internal_topics import GROUP_METADATA_TOPIC, SHARE_GROUP_STATE_TOPIC, TRANSACTION_STATE_TOPIC
from kafkapy.named_tuple import NamedTuple
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kafkapy.security.acl import Operation
from kafkapy.server.api_registry import serves
from kafkapy.server.authorization import check_cluster, check_group, check_transactional_id
from kafkapy.server.internal_topics import create_internal_topic
from kafkapy.server.request_context import RequestContext
from kafkapy.types import uuid_from_string

if TYPE_CHECKING:
    from kafkapy.coordinator.group.group_coordinator import GroupCoordinator
    from kafkapy.coordinator.share.share_coordinator import ShareCoordinator
    from kafkapy.coordinator.transaction.transaction_coordinator import TransactionCoordinator
    from kafkapy.server.services import Services

_GROUP, _TRANSACTION, _SHARE = 0, 1, 2
_TOPICS = (GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC, SHARE_GROUP_STATE_TOPIC)


class _Coordinator(NamedTuple):
    error: Error
    node_id: int = -1
    host: str = ""
    port: int = -1
    message: str | None = None


def find_coordinator_error(
    request: FindCoordinatorRequest, version: int, error: Error, message: str | None
) -> FindCoordinatorResponse:
    return _response(request, version, lambda key: _Coordinator(error, message=message))


@serves(ApiKey.FIND_COORDINATOR, 0, 6, on_error=find_coordinator_error)
def handle_find_coordinator(context: RequestContext, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    if request.key_type not in (_GROUP, _TRANSACTION, _SHARE):
        raise ApiError(Error.INVALID_REQUEST)
    return _response(request, context.api_version, lambda key: _find_permitted(context, request.key_type, key))


def _find_permitted(context: RequestContext, key_type: int, key: str) -> _Coordinator:
    """Returns the coordinator of `key`; the result has an error instead of a broker if the client may not find it."""
    try:
        if key_type == _GROUP:
            check_group(context, Operation.DESCRIBE, key)
        elif key_type == _TRANSACTION:
            check_transactional_id(context, Operation.DESCRIBE, key)
    except ApiError as error:
        return _Coordinator(error.error)
    return _find(context, key_type, key)


def _find(context: RequestContext, key_type: int, key: str) -> _Coordinator:
    if key_type == _SHARE and context.api_version < FindCoordinatorRequest.FIRST_VERSION_WITH_SHARE_GROUPS:
        return _Coordinator(Error.INVALID_REQUEST)
    if key_type == _SHARE:
        check_cluster(context, Operation.CLUSTER_ACTION)
        if not _is_share_key(key):
            return _Coordinator(Error.INVALID_REQUEST)
    name = _TOPICS[key_type]
    services = context.services
    image = services.metadata.image
    topic = image.topics.by_name.get(name)
    if topic is None:
        create_internal_topic(services, name)
        return _Coordinator(Error.COORDINATOR_NOT_AVAILABLE)
    # The topic's own number of partitions is used, because the number in the configuration may differ.
    number = coordinator_partition(key, len(topic.partitions))
    partition = topic.partitions.get(number)
    broker = None if partition is None else image.brokers.get(partition.leader)
    endpoint = None if broker is None or broker.fenced else broker.endpoints.get(context.listener.name)
    if broker is None or endpoint is None:
        return _Coordinator(Error.COORDINATOR_NOT_AVAILABLE)
    if broker.broker_id == services.node_id and not _coordinator(services, key_type).is_coordinator_of(number):
        # The metadata is ahead of the coordinator, which would refuse each request with NOT_COORDINATOR. Clients of
        # 0.10 look for the coordinator again after COORDINATOR_NOT_AVAILABLE, but give up after NOT_COORDINATOR.
        return _Coordinator(Error.COORDINATOR_NOT_AVAILABLE)
    return _Coordinator(Error.NONE, broker.broker_id, endpoint.host, endpoint.port)


def _coordinator(services: Services, key_type: int) -> GroupCoordinator | TransactionCoordinator | ShareCoordinator:
    if key_type == _SHARE:
        return services.shares.coordinator
    return services.group_coordinator if key_type == _GROUP else services.transaction_coordinator


def _is_share_key(key: str) -> bool:
    """Returns whether the key has the form group:topic id:partition."""
    group_id, _, rest = key.partition(":")
    topic_id, _, number = rest.partition(":")
    try:
        return bool(group_id) and len(uuid_from_string(topic_id)) > 0 and int(number) >= 0
    except ValueError:
        return False


def _response(
    request: FindCoordinatorRequest, version: int, find: Callable[[str], _Coordinator]
) -> FindCoordinatorResponse:
    if version < FindCoordinatorRequest.FIRST_VERSION_WITH_COORDINATOR_KEYS:
        found = find(request.key)
        message = found.message or (found.error.message if found.error else "NONE")
        return FindCoordinatorResponse(
            error_code=found.error,
            error_message=message,
            node_id=found.node_id,
            host=found.host,
            port=found.port,
        )
    coordinators = []
    for key in request.coordinator_keys:
        found = find(key)
        coordinators.append(
            FindCoordinatorResponse.Coordinator(
                key=key,
                node_id=found.node_id,
                host=found.host,
                port=found.port,
                error_code=found.error,
                error_message=found.message or "",
            )
        )
    return FindCoordinatorResponse(coordinators=coordinators)
