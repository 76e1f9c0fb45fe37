"""The rules of EndTxn for each state: for old clients, and for clients whose epoch rises with each transaction
(KIP-890)."""

from __future__ import annotations

from kafkapy.coordinator.transaction.transaction_metadata import (
    LAST_CLIENT_EPOCH,
    TRANSACTION_VERSION_2,
    TransactionMetadata,
)
from kafkapy.coordinator.transaction.transaction_state import COMPLETED_BY, PREPARED_STATES, TransactionState
from kafkapy.errors import ApiError, Error
from kafkapy.named_tuple import NamedTuple

_S = TransactionState


class EndRequest(NamedTuple):
    """An EndTxn request.

    `client_transaction_version` is 2 from EndTxn version 5 on, whose clients use KIP-890; otherwise it is 0.
    """

    producer_id: int
    producer_epoch: int
    commit: bool
    client_transaction_version: int


def ends_transaction(metadata: TransactionMetadata, request: EndRequest) -> bool:
    """Returns True if the request ends the open transaction, and False if it repeats a request that has succeeded
    already.

    Raises ApiError if the request is refused.
    """
    if request.client_transaction_version >= TRANSACTION_VERSION_2:
        return _ends_bumping_epoch(metadata, request)
    if metadata.producer_id != request.producer_id:
        raise ApiError(Error.INVALID_PRODUCER_ID_MAPPING)
    if metadata.producer_epoch != request.producer_epoch:
        raise ApiError(Error.PRODUCER_FENCED)
    if metadata.state is _S.ONGOING:
        return True
    _refuse_while_prepared(metadata, request)
    if metadata.state is _completed_state(request):
        return False
    raise ApiError(Error.INVALID_TXN_STATE)


def _ends_bumping_epoch(metadata: TransactionMetadata, request: EndRequest) -> bool:
    """Returns True if the request of a KIP-890 client ends the open transaction, and False if it repeats a request that
    has succeeded already. Raises ApiError if the request is refused.

    Each end of a transaction increases the epoch of these clients, so a repeated request has the previous epoch.
    """
    # The response to the first request moved the client to a new producer id.
    follows_overflow = (
        metadata.previous_producer_id == request.producer_id != metadata.producer_id
        and request.producer_epoch == LAST_CLIENT_EPOCH
        and metadata.producer_epoch == 0
    )
    is_retry = follows_overflow or metadata.producer_epoch == request.producer_epoch + 1
    if metadata.producer_id != request.producer_id and not follows_overflow:
        raise ApiError(Error.INVALID_PRODUCER_ID_MAPPING)
    is_current = metadata.producer_epoch == request.producer_epoch
    if metadata.state in PREPARED_STATES:
        is_valid = is_retry
    elif metadata.state in (_S.COMPLETE_COMMIT, _S.COMPLETE_ABORT):
        is_valid = is_retry or is_current
    else:
        is_valid = is_current
    if not is_valid:
        raise ApiError(Error.PRODUCER_FENCED)
    if metadata.state is _S.ONGOING:
        return True
    _refuse_while_prepared(metadata, request)
    if is_retry and metadata.state is _completed_state(request):
        return False
    if is_retry or request.commit:
        raise ApiError(Error.INVALID_TXN_STATE)
    return True  # The client aborts without an open transaction in order to get a new epoch.


def _completed_state(request: EndRequest) -> TransactionState:
    return _S.COMPLETE_COMMIT if request.commit else _S.COMPLETE_ABORT


def _refuse_while_prepared(metadata: TransactionMetadata, request: EndRequest) -> None:
    if metadata.state in PREPARED_STATES:
        is_same_outcome = COMPLETED_BY[metadata.state] is _completed_state(request)
        raise ApiError(Error.CONCURRENT_TRANSACTIONS if is_same_outcome else Error.INVALID_TXN_STATE)
