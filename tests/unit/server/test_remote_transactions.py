"""Partitions that a coordinator on another broker adds to transactions, or verifies."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kafkapy.coordinator.transaction.transaction_requests import ProducerIdAndEpoch, TransactionMarker
from kafkapy.errors import Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from kafkapy.server.remote_transactions import RemoteTransactionCoordinators, TransactionPartitions
from kafkapy.server.transaction_verification import TransactionVerification
from kafkapy.types import TopicPartition
from tests.harness.recorded_requests import RecordedRequests, SentRequest
from tests.harness.transaction_handler import TransactionHandlerHarness

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
PRODUCER = ProducerIdAndEpoch(1000, 0)
COORDINATOR = 9


def respond(request: AddPartitionsToTxnRequest, error: Error = Error.NONE) -> AddPartitionsToTxnResponse:
    """Returns the response with the same error for each partition, in reverse order."""
    response = AddPartitionsToTxnResponse
    return response(
        results_by_transaction=[
            response.AddPartitionsToTxnResult(
                transactional_id=each.transactional_id,
                topic_results=[
                    response.AddPartitionsToTxnTopicResult(
                        name=topic.name,
                        results_by_partition=[
                            response.AddPartitionsToTxnPartitionResult(
                                partition_index=number, partition_error_code=error
                            )
                            for number in topic.partitions
                        ],
                    )
                    for topic in each.topics
                ],
            )
            for each in reversed(request.transactions)
        ]
    )


def answer(request: SentRequest, error: Error = Error.NONE) -> None:
    request.on_answer(respond(request.body, error), Error.NONE)


@pytest.fixture
def requests() -> RecordedRequests:
    return RecordedRequests()


@pytest.fixture
def remote(requests: RecordedRequests) -> RemoteTransactionCoordinators:
    return RemoteTransactionCoordinators(requests)  # type: ignore[arg-type]


def asked(transactional_id: str, *partitions: TopicPartition, verify_only: bool = False) -> TransactionPartitions:
    return TransactionPartitions(transactional_id, PRODUCER, frozenset(partitions), verify_only)


def test_an_id_has_one_entry_in_a_request_and_its_answers_come_in_order(
    requests: RecordedRequests, remote: RemoteTransactionCoordinators
) -> None:
    results: list[tuple[str, Mapping[TopicPartition, Error]]] = []
    for name, id_ in [("first", "a"), ("second", "a"), ("third", "b"), ("fourth", "a")]:
        remote.ask(COORDINATOR, asked(id_, T0), lambda errors, name=name: results.append((name, errors)))  # type: ignore[misc]
    sent = []
    while requests.sent:
        request = requests.only(COORDINATOR, ApiKey.ADD_PARTITIONS_TO_TXN)
        sent.append([each.transactional_id for each in request.body.transactions])
        answer(request)
    assert sent == [["a"], ["a", "b"], ["a"]]
    assert [name for name, _ in results] == ["first", "second", "third", "fourth"]
    assert all(errors == {T0: Error.NONE} for _, errors in results)


def test_the_request_names_the_producer_and_its_partitions(
    requests: RecordedRequests, remote: RemoteTransactionCoordinators
) -> None:
    remote.ask(COORDINATOR, asked("a", T0, T1, verify_only=True), lambda errors: None)
    (wire,) = requests.only(COORDINATOR, ApiKey.ADD_PARTITIONS_TO_TXN).body.transactions
    assert (wire.transactional_id, wire.producer_id, wire.producer_epoch, wire.verify_only) == ("a", 1000, 0, True)
    (topic,) = wire.topics
    assert (topic.name, sorted(topic.partitions)) == ("t", [0, 1])


@pytest.mark.parametrize(
    ("failure", "verify_only", "expected"),
    [
        (Error.NETWORK_EXCEPTION, False, Error.NETWORK_EXCEPTION),
        (Error.CLUSTER_AUTHORIZATION_FAILED, False, Error.INVALID_TXN_STATE),
        (Error.UNSUPPORTED_VERSION, False, Error.UNSUPPORTED_VERSION),
        (Error.UNSUPPORTED_VERSION, True, Error.NONE),
    ],
)
def test_a_failed_request_fails_each_partition(
    requests: RecordedRequests,
    remote: RemoteTransactionCoordinators,
    failure: Error,
    verify_only: bool,
    expected: Error,
) -> None:
    results: list[Mapping[TopicPartition, Error]] = []
    remote.ask(COORDINATOR, asked("a", T0, T1, verify_only=verify_only), results.append)
    requests.only(COORDINATOR, ApiKey.ADD_PARTITIONS_TO_TXN).on_answer(None, failure)
    assert results == [{T0: expected, T1: expected}]


class TestProduce:
    """Produce requests on a broker whose transactions are coordinated by another one."""

    @pytest.fixture
    def harness(self, tmp_path: Path, remote: RemoteTransactionCoordinators) -> TransactionHandlerHarness:
        harness = TransactionHandlerHarness(tmp_path)
        harness.services.transaction_verification = TransactionVerification(
            harness.transactions,
            harness.manager,
            harness.scheduler.schedule,
            harness.clock,
            lambda: True,
            retry_backoff_ms=20,
            retry_backoff_max_ms=100,
            find_coordinator=lambda transactional_id: COORDINATOR,
            make_remote=lambda: remote,
        )
        return harness

    def errors(self, pending: Any) -> list[Error]:
        (topic,) = pending.response.responses
        return [Error(each.error_code) for each in topic.partition_responses]

    @pytest.mark.parametrize("version", [11, 12])
    def test_the_first_write_is_verified_or_added(
        self, harness: TransactionHandlerHarness, requests: RecordedRequests, version: int
    ) -> None:
        pending = harness.produce(PRODUCER, 0, 1, version=version)
        request = requests.only(COORDINATOR, ApiKey.ADD_PARTITIONS_TO_TXN)
        assert request.body.transactions[0].verify_only is (version == 11)
        answer(request)
        assert self.errors(pending) == [Error.NONE, Error.NONE]
        assert self.errors(harness.produce(PRODUCER, 0, version=version, sequence=1)) == [Error.NONE]
        assert not requests.sent  # the transaction is open in the partition

    @pytest.mark.parametrize(
        ("version", "error", "expected"),
        [
            (12, Error.PRODUCER_FENCED, Error.INVALID_PRODUCER_EPOCH),
            (12, Error.NOT_COORDINATOR, Error.NOT_ENOUGH_REPLICAS),
            (12, Error.TRANSACTION_ABORTABLE, Error.TRANSACTION_ABORTABLE),
            (11, Error.CONCURRENT_TRANSACTIONS, Error.NOT_ENOUGH_REPLICAS),
            (10, Error.TRANSACTION_ABORTABLE, Error.INVALID_TXN_STATE),
        ],
    )
    def test_errors_are_translated_for_the_producer(
        self,
        harness: TransactionHandlerHarness,
        requests: RecordedRequests,
        version: int,
        error: Error,
        expected: Error,
    ) -> None:
        pending = harness.produce(PRODUCER, 0, version=version)
        answer(requests.only(COORDINATOR, ApiKey.ADD_PARTITIONS_TO_TXN), error)
        assert self.errors(pending) == [expected]

    def test_a_coordinator_out_of_reach_makes_the_producer_try_again(
        self, harness: TransactionHandlerHarness, requests: RecordedRequests
    ) -> None:
        pending = harness.produce(PRODUCER, 0)
        requests.only(COORDINATOR, ApiKey.ADD_PARTITIONS_TO_TXN).on_answer(None, Error.NETWORK_EXCEPTION)
        assert self.errors(pending) == [Error.NOT_ENOUGH_REPLICAS]

    def test_a_broker_adds_again_while_the_transaction_before_is_completed(
        self, harness: TransactionHandlerHarness, requests: RecordedRequests
    ) -> None:
        pending = harness.produce(PRODUCER, 0)
        answer(requests.only(COORDINATOR, ApiKey.ADD_PARTITIONS_TO_TXN), Error.CONCURRENT_TRANSACTIONS)
        harness.scheduler.advance(20)
        answer(requests.only(COORDINATOR, ApiKey.ADD_PARTITIONS_TO_TXN))
        assert self.errors(pending) == [Error.NONE]

    def test_a_write_after_the_marker_of_its_transaction_is_refused(
        self, harness: TransactionHandlerHarness, requests: RecordedRequests
    ) -> None:
        pending = harness.produce(PRODUCER, 0, version=11)
        written: list[Any] = []
        marker = TransactionMarker(*PRODUCER, coordinator_epoch=0, is_commit=True)
        harness.services.local_marker_writer.write(marker, [T0], written.append)
        assert written == [{T0: Error.NONE}]
        answer(requests.only(COORDINATOR, ApiKey.ADD_PARTITIONS_TO_TXN))
        assert self.errors(pending) == [Error.INVALID_TXN_STATE]

    @pytest.mark.parametrize("version", [11, 12])
    def test_a_second_write_does_not_take_the_place_of_the_first_that_was_refused(
        self, harness: TransactionHandlerHarness, requests: RecordedRequests, version: int
    ) -> None:
        first = harness.produce(PRODUCER, 0, version=version)
        requests.only(COORDINATOR, ApiKey.ADD_PARTITIONS_TO_TXN).on_answer(None, Error.NETWORK_EXCEPTION)
        assert self.errors(first) == [Error.NOT_ENOUGH_REPLICAS]
        for sequence, expected in [(1, Error.OUT_OF_ORDER_SEQUENCE_NUMBER), (0, Error.NONE)]:
            pending = harness.produce(PRODUCER, 0, version=version, sequence=sequence)
            answer(requests.only(COORDINATOR, ApiKey.ADD_PARTITIONS_TO_TXN))
            assert self.errors(pending) == [expected]
        assert self.errors(harness.produce(PRODUCER, 0, version=version, sequence=1)) == [Error.NONE]

    def test_a_producer_that_begins_again_with_a_higher_epoch_may_begin_with_its_sequence(
        self, harness: TransactionHandlerHarness, requests: RecordedRequests
    ) -> None:
        pending = harness.produce(PRODUCER, 0)
        requests.only(COORDINATOR, ApiKey.ADD_PARTITIONS_TO_TXN).on_answer(None, Error.NETWORK_EXCEPTION)
        assert self.errors(pending) == [Error.NOT_ENOUGH_REPLICAS]
        pending = harness.produce(PRODUCER._replace(producer_epoch=1), 0, sequence=3)
        answer(requests.only(COORDINATOR, ApiKey.ADD_PARTITIONS_TO_TXN))
        assert self.errors(pending) == [Error.NONE]
