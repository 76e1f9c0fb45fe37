"""AllocateProducerIds, version 0 (KIP-730): a broker gets a block of producer ids from the active controller.

Behaviour: the response is sent when the allocation is committed, so that no other broker gets the same ids.
"""

from __future__ import annotations

from kafkapy.errors import Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from kafkapy.server.api_registry import serves
from kafkapy.server.controller_answer import answer_when_committed
from kafkapy.server.request_context import RequestContext


def allocate_producer_ids_error(
    request: AllocateProducerIdsRequest, version: int, error: Error, message: str | None
) -> AllocateProducerIdsResponse:
    return AllocateProducerIdsResponse(error_code=error)


@serves(ApiKey.ALLOCATE_PRODUCER_IDS, 0, 0, on_error=allocate_producer_ids_error)
def handle_allocate_producer_ids(context: RequestContext, request: AllocateProducerIdsRequest) -> None:
    operations = context.services.controller_operations
    answer_when_committed(
        context,
        operations.allocate_producer_ids(request.broker_id, request.broker_epoch),
        lambda block: AllocateProducerIdsResponse(
            producer_id_start=block.first_producer_id, producer_id_len=block.size
        ),
        lambda error, message: allocate_producer_ids_error(request, context.api_version, error, message),
    )
