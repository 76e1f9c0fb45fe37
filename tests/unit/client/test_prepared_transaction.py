"""Another process ends prepared transactions: requests that can be repeated, retries, and fenced producers."""

from __future__ import annotations

import pytest

from kafkapy.client import prepared_transaction
from kafkapy.client.prepared_transaction import PreparedTransaction, end_transactions
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.end_txn import EndTxnResponse
from tests.harness.client import MemoryBrokers, client_settings

FIRST, SECOND = PreparedTransaction("first", 7, 3), PreparedTransaction("second", 8, 0)


@pytest.fixture
def brokers(monkeypatch):
    harness = MemoryBrokers()
    monkeypatch.setattr(prepared_transaction, "Network", lambda config, in_flight_limit: harness.network(config))
    yield harness
    harness.close()


def answers(brokers, *errors):
    """Lets the coordinator answer EndTxn with these errors, and without an error afterwards."""
    left = list(errors)
    brokers.answers[ApiKey.END_TXN] = lambda request, version: EndTxnResponse(
        error_code=int(left.pop(0) if left else Error.NONE)
    )


def sent(brokers):
    return [
        (each.request.transactional_id, each.request.producer_id, each.request.producer_epoch, each.request.committed)
        for each in brokers.asked
        if each.key == ApiKey.END_TXN
    ]


@pytest.mark.parametrize("committed", [True, False])
def test_each_transaction_is_ended_in_a_version_that_keeps_its_epoch(brokers, committed):
    answers(brokers)
    end_transactions(client_settings(), [FIRST, SECOND], committed=committed)
    assert sent(brokers) == [("first", 7, 3, committed), ("second", 8, 0, committed)]
    assert {each.version for each in brokers.asked if each.key == ApiKey.END_TXN} == {
        4
    }  # version 5 raises the epoch (KIP-890)


def test_without_transactions_no_broker_is_asked(brokers):
    end_transactions(client_settings(), [], committed=True)
    assert brokers.attempts == []


def test_a_coordinator_that_loads_is_asked_again(brokers):
    answers(brokers, Error.COORDINATOR_LOAD_IN_PROGRESS, Error.CONCURRENT_TRANSACTIONS)
    end_transactions(client_settings(), [FIRST], committed=True)
    assert len(sent(brokers)) == 3


@pytest.mark.parametrize("error", [Error.INVALID_PRODUCER_EPOCH, Error.PRODUCER_FENCED])
def test_a_transaction_of_another_producer_is_fenced(brokers, error):
    answers(brokers, error)
    with pytest.raises(ApiError) as raised:
        end_transactions(client_settings(), [FIRST, SECOND], committed=True)
    assert raised.value.error is Error.PRODUCER_FENCED
    assert sent(brokers) == [("first", 7, 3, True)]
