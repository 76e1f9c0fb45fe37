"""AllocateProducerIds, version 0 (KIP-730): a broker gets a block of producer ids from the active controller.

The response is sent when the allocation is committed, so that no other broker gets the same ids.

Permissions: ClusterAction on the cluster.
"""

from __future__ import annotations

from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from kafkapy.security.acl import Operation
from kafkapy.server.api_registry import error_without_message, serves
from kafkapy.server.authorization import check_cluster
from kafkapy.server.controller_answer import answer_when_committed
from kafkapy.server.request_context import RequestContext


@serves(ApiKey.ALLOCATE_PRODUCER_IDS, 0, 0, on_error=error_without_message(AllocateProducerIdsResponse))
def handle_allocate_producer_ids(context: RequestContext, request: AllocateProducerIdsRequest) -> None:
    check_cluster(context, Operation.CLUSTER_ACTION)
    operations = context.services.controller_operations
    answer_when_committed(
        context,
        operations.allocate_producer_ids(request.broker_id, request.broker_epoch),
        lambda block: AllocateProducerIdsResponse(
            producer_id_start=block.first_producer_id, producer_id_len=block.size
        ),
        lambda error, message: AllocateProducerIdsResponse(error_code=error),
    )
