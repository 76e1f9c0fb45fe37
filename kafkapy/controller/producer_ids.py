"""The allocation of producer ids in blocks, so that a record is needed only for each block, not for each producer."""

from __future__ import annotations

from kafkapy.controller.broker_registration import check_broker_epoch
from kafkapy.controller.result import ControllerResult
from kafkapy.errors import ApiError, Error
from kafkapy.metadata.image import MetadataImage
from kafkapy.named_tuple import NamedTuple
from kafkapy.protocol.messages.metadata_records import ProducerIdsRecord

PRODUCER_ID_BLOCK_SIZE = 1000
MAX_PRODUCER_ID = 2**63 - 1


class ProducerIdsBlock(NamedTuple):
    """The producer ids from `first_producer_id` to `first_producer_id` + `size` - 1, which are allocated to one
    broker."""

    first_producer_id: int
    size: int


def allocate_producer_ids(
    image: MetadataImage, broker_id: int, broker_epoch: int | None = None
) -> ControllerResult[ProducerIdsBlock]:
    """Allocates the next block of producer ids for a registered broker.

    `broker_epoch` is compared with the epoch of the broker's registration; None means no comparison, for the broker in
    the controller's own process. Raises ApiError: STALE_BROKER_EPOCH for another epoch, BROKER_ID_NOT_REGISTERED, and
    UNKNOWN_SERVER_ERROR if all producer ids have been allocated.
    """
    if broker_epoch is not None:
        check_broker_epoch(image, broker_id, broker_epoch)
    broker = image.brokers.get(broker_id)
    if broker is None:
        raise ApiError(Error.BROKER_ID_NOT_REGISTERED, f"Broker ID {broker_id} is not currently registered")
    first = image.next_producer_id
    if first > MAX_PRODUCER_ID - PRODUCER_ID_BLOCK_SIZE:
        raise ApiError(Error.UNKNOWN_SERVER_ERROR, f"Exhausted all producer ids as the next block would be {first}.")
    record = ProducerIdsRecord(
        broker_id=broker_id, broker_epoch=broker.epoch, next_producer_id=first + PRODUCER_ID_BLOCK_SIZE
    )
    return ControllerResult([(record, 0)], ProducerIdsBlock(first, PRODUCER_ID_BLOCK_SIZE))
