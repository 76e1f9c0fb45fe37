"""A repeated EndTxn, whose first response was lost."""

from __future__ import annotations

import pytest

from kafkapy.coordinator.transaction.end_of_transaction import EndRequest, ends_transaction
from kafkapy.coordinator.transaction.transaction_metadata import LAST_CLIENT_EPOCH, TransactionMetadata
from kafkapy.coordinator.transaction.transaction_state import TransactionState
from kafkapy.errors import ApiError, Error

OLD_ID, NEW_ID = 7, 8
RETRY = EndRequest(OLD_ID, LAST_CLIENT_EPOCH, commit=True, client_transaction_version=2)


def completed_in_epoch(epoch: int) -> TransactionMetadata:
    """Returns a completed transaction whose producer id was replaced because its epochs were used up."""
    return TransactionMetadata(
        producer_id=NEW_ID,
        previous_producer_id=OLD_ID,
        producer_epoch=epoch,
        last_producer_epoch=LAST_CLIENT_EPOCH,
        state=TransactionState.COMPLETE_COMMIT,
    )


def test_a_retry_with_the_old_producer_id_is_recognised_in_the_first_epoch_of_the_new_one() -> None:
    assert not ends_transaction(completed_in_epoch(0), RETRY)


@pytest.mark.parametrize(
    ("epoch", "request_"),
    [(1, RETRY), (0, RETRY._replace(producer_epoch=LAST_CLIENT_EPOCH - 1)), (0, RETRY._replace(producer_id=6))],
    ids=["the new id is in use", "an epoch before the last", "another producer id"],
)
def test_other_requests_with_another_producer_id_are_refused(epoch: int, request_: EndRequest) -> None:
    with pytest.raises(ApiError) as raised:
        ends_transaction(completed_in_epoch(epoch), request_)
    assert raised.value.error is Error.INVALID_PRODUCER_ID_MAPPING
