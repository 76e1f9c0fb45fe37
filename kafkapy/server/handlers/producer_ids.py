"""InitProducerId: an id for an idempotent producer (KIP-98). Transactional ids need a transaction coordinator."""

from __future__ import annotations

from kafkapy.errors import ApiError, Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kafkapy.server.api_registry import serves
from kafkapy.server.request_context import RequestContext

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1


def init_producer_id_error(
    request: InitProducerIdRequest, version: int, error: Error, message: str | None
) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error, producer_id=NO_PRODUCER_ID, producer_epoch=NO_PRODUCER_EPOCH)


@serves(ApiKey.INIT_PRODUCER_ID, 0, 6, on_error=init_producer_id_error)
def init_producer_id(context: RequestContext, request: InitProducerIdRequest) -> None:
    """Without a transactional id every request gets a new id with epoch 0, whatever id and epoch it names."""
    if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_PRODUCER_EPOCH):
        raise ApiError(Error.INVALID_REQUEST)
    if request.transactional_id is not None:
        if not request.transactional_id:
            raise ApiError(Error.INVALID_REQUEST)
        raise ApiError(Error.COORDINATOR_NOT_AVAILABLE)

    def answer(producer_id: int | Error) -> None:
        if isinstance(producer_id, Error):
            response = init_producer_id_error(request, context.api_version, producer_id, None)
        else:
            response = InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)
        context.respond(response)

    context.services.producer_ids.generate(answer)
