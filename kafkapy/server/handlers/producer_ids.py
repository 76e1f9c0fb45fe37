"""InitProducerId 0-5: the id and epoch of an idempotent or a transactional producer (KIP-98, KIP-360).

Without a transactional id every request gets a new id with epoch 0, whatever id and epoch it names.

Versions:
    3   a producer names its current id and epoch.
    4   has the error PRODUCER_FENCED; in older versions it is INVALID_PRODUCER_EPOCH.
Permissions: Write on the transactional id; without one, IdempotentWrite on the cluster or Write on any topic.
Not implemented: version 6 (two-phase commit, KIP-939), which is unstable in Apache Kafka 4.3 and not announced there
either.
"""

from __future__ import annotations

from kafkapy.coordinator.transaction.transaction_requests import InitCall, ProducerIdAndEpoch, ProducerResponse
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kafkapy.security.acl import Operation, ResourceType
from kafkapy.server.api_registry import serves
from kafkapy.server.authorization import check_transactional_id, is_any_allowed, is_cluster_allowed
from kafkapy.server.request_context import RequestContext
from kafkapy.types import NO_PRODUCER_EPOCH, NO_PRODUCER_ID


def init_producer_id_error(
    request: InitProducerIdRequest, version: int, error: Error, message: str | None
) -> InitProducerIdResponse:
    if error is Error.PRODUCER_FENCED and version < InitProducerIdRequest.FIRST_VERSION_WITH_PRODUCER_FENCED:
        error = Error.INVALID_PRODUCER_EPOCH
    return InitProducerIdResponse(error_code=error, producer_id=NO_PRODUCER_ID, producer_epoch=NO_PRODUCER_EPOCH)


@serves(ApiKey.INIT_PRODUCER_ID, 0, 5, on_error=init_producer_id_error)
def handle_init_producer_id(context: RequestContext, request: InitProducerIdRequest) -> None:
    version = context.api_version
    _check_permissions(context, request.transactional_id)
    if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_PRODUCER_EPOCH):
        raise ApiError(Error.INVALID_REQUEST)
    if request.transactional_id is not None:
        _init_transactional(context, request, request.transactional_id)
        return

    def respond(producer_id: int | Error) -> None:
        if isinstance(producer_id, Error):
            response = init_producer_id_error(request, version, producer_id, None)
        else:
            response = InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)
        context.respond(response)

    context.services.producer_ids.generate(respond)


def _check_permissions(context: RequestContext, transactional_id: str | None) -> None:
    """Raises ApiError if the client may not become a producer, transactional or idempotent."""
    if transactional_id is not None:
        check_transactional_id(context, Operation.WRITE, transactional_id)
    elif not (
        is_cluster_allowed(context, Operation.IDEMPOTENT_WRITE, log_if_denied=False)
        or is_any_allowed(context, Operation.WRITE, ResourceType.TOPIC)
    ):
        raise ApiError(Error.CLUSTER_AUTHORIZATION_FAILED)


def _init_transactional(context: RequestContext, request: InitProducerIdRequest, transactional_id: str) -> None:
    expected = None
    if request.producer_id != NO_PRODUCER_ID:
        expected = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)

    def respond(found: ProducerResponse) -> None:
        if found.error:
            context.respond(init_producer_id_error(request, context.api_version, found.error, None))
            return
        producer_id, producer_epoch = found.producer
        context.respond(InitProducerIdResponse(producer_id=producer_id, producer_epoch=producer_epoch))

    call = InitCall(transactional_id, request.transaction_timeout_ms, expected)
    context.services.transaction_coordinator.init_producer_id(call, respond)
