"""The records that the brokers have refused: their errors are kept until they are dead letters."""

from __future__ import annotations

import pytest

from kafkapy.client.reliable.refusals import Refusals
from kafkapy.client.reliable.relay import RefusedRecords
from kafkapy.errors import ApiError, Error

REFUSAL = ApiError(Error.MESSAGE_TOO_LARGE)


@pytest.fixture
def refusals() -> Refusals:
    """Returns the Refusals after the brokers have refused the record "large" in a transaction of its own."""
    found = Refusals()
    found.begin()
    found.tries("large")
    found.aborted(REFUSAL)
    return found


def test_a_step_without_a_transaction_keeps_the_error(refusals: Refusals) -> None:
    refusals.begin()
    refusals.committed()  # the step has read no records
    refusals.begin()
    refusals.tries("large")
    assert refusals.error_of("large") is REFUSAL


def test_the_transaction_of_another_record_keeps_the_error(refusals: Refusals) -> None:
    refusals.begin()
    refusals.tries("small")
    assert refusals.error_of("small") is None
    refusals.committed()
    refusals.begin()
    assert refusals.error_of("large") is REFUSAL


def test_an_aborted_dead_letter_keeps_the_error(refusals: Refusals) -> None:
    refusals.begin()
    assert refusals.error_of("large") is REFUSAL
    refusals.aborted(ApiError(Error.NETWORK_EXCEPTION))
    refusals.begin()
    refusals.committed()
    assert refusals.error_of("large") is REFUSAL


def test_a_committed_dead_letter_forgets_the_error(refusals: Refusals) -> None:
    refusals.begin()
    refusals.tries("large")
    assert refusals.error_of("large") is REFUSAL
    refusals.committed()
    refusals.begin()
    assert refusals.error_of("large") is None


def test_a_refused_dead_letter_ends_the_service(refusals: Refusals) -> None:
    refusals.begin()
    refusals.tries("large")
    assert refusals.error_of("large") is REFUSAL
    with pytest.raises(RefusedRecords, match="large"):
        refusals.aborted(REFUSAL)
