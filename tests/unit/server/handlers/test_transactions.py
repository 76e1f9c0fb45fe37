"""A transaction through the handlers: permission to write, the state after its end, codes by version."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafkapy.coordinator.group.offset_requests import FetchCall
from kafkapy.errors import Error
from kafkapy.metadata.internal_topics import GROUP_METADATA_TOPIC
from kafkapy.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from kafkapy.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from kafkapy.protocol.messages.describe_producers import DescribeProducersRequest
from kafkapy.protocol.messages.describe_transactions import DescribeTransactionsRequest
from kafkapy.protocol.messages.list_transactions import ListTransactionsRequest
from kafkapy.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from kafkapy.protocol.messages.write_txn_markers import WriteTxnMarkersRequest
from kafkapy.server.handlers.transaction_admin import (
    handle_describe_producers,
    handle_describe_transactions,
    handle_list_transactions,
)
from kafkapy.server.handlers.transactional_offsets import handle_txn_offset_commit
from kafkapy.server.handlers.transactions import (
    handle_add_offsets_to_txn,
    handle_add_partitions_to_txn,
    handle_write_txn_markers,
)
from tests.harness.transaction_handler import Producer, TransactionHandlerHarness


@pytest.fixture
def harness(tmp_path: Path) -> TransactionHandlerHarness:
    return TransactionHandlerHarness(tmp_path)


def log_of(harness: TransactionHandlerHarness, number: int = 0) -> Any:
    return harness.partition("t", number).log


@pytest.mark.parametrize("version", range(6))
def test_init_producer_id(harness: TransactionHandlerHarness, version: int) -> None:
    assert (harness.init(version).producer_id, harness.init(version).producer_epoch) == (1000, 1)
    assert harness.init(version, transactional_id="").error_code == Error.INVALID_REQUEST
    assert harness.init(version, transaction_timeout_ms=900001).error_code == Error.INVALID_TRANSACTION_TIMEOUT
    if version >= 3:
        fenced = Error.PRODUCER_FENCED if version >= 4 else Error.INVALID_PRODUCER_EPOCH
        assert harness.init(version, producer_id=1000, producer_epoch=5).error_code == fenced


@pytest.mark.parametrize("version", range(6))
def test_a_commit_moves_the_last_stable_offset(harness: TransactionHandlerHarness, version: int) -> None:
    producer = harness.producer()
    assert harness.add(producer, 0) == [Error.NONE]
    assert harness.produced(producer, 0, version=11) == [Error.NONE]
    assert (log_of(harness).high_watermark, log_of(harness).last_stable_offset) == (1, 0)
    found = harness.end(producer, commit=True, version=version)
    assert (found.error_code, found.producer_id) == (0, 1000 if version >= 5 else -1)
    assert found.producer_epoch == (1 if version >= 5 else -1)
    assert (log_of(harness).high_watermark, log_of(harness).last_stable_offset) == (2, 2)
    assert log_of(harness).collect_aborted_transactions(0, 2) == []


def test_an_abort_is_indexed(harness: TransactionHandlerHarness) -> None:
    producer = harness.producer()
    assert harness.produced(producer, 0) == [Error.NONE]
    assert harness.end(producer, commit=False).producer_epoch == 1
    assert log_of(harness).collect_aborted_transactions(0, 2) == [(1000, 0, 1, 2)]
    assert harness.produced((1000, 0), 0, sequence=1) == [Error.INVALID_PRODUCER_EPOCH]
    assert harness.produced((1000, 1), 0) == [Error.NONE]


@pytest.mark.parametrize("version", [3, 10, 11, 12])
def test_a_write_outside_the_transaction(harness: TransactionHandlerHarness, version: int) -> None:
    producer = harness.producer()
    harness.add(producer, 0)
    other = {11: Error.TRANSACTION_ABORTABLE, 12: Error.NONE}.get(version, Error.INVALID_TXN_STATE)
    assert harness.produced(producer, 0, 1, version=version) == [Error.NONE, other]
    assert log_of(harness, 1).log_end_offset == (1 if version >= 12 else 0)


def test_verification_may_be_switched_off(harness: TransactionHandlerHarness) -> None:
    harness.verifies = False
    assert harness.produced(harness.producer(), 0, version=10) == [Error.NONE]


def test_who_may_not_write(harness: TransactionHandlerHarness) -> None:
    producer_id, epoch = harness.producer()
    for version in (11, 12):
        assert harness.produced((producer_id + 1, epoch), 0, version=version) == [Error.INVALID_PRODUCER_ID_MAPPING]
        assert harness.produced((producer_id, epoch + 1), 0, version=version) == [Error.INVALID_PRODUCER_EPOCH]
    assert harness.produced((producer_id, epoch), 0, transactional_id=None) == [
        Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    ]
    assert harness.produced((producer_id, epoch), 0) == [Error.NONE]
    assert harness.produced((producer_id, epoch), 0, sequence=1, is_transactional=False) == [Error.INVALID_TXN_STATE]
    harness.transactions.resign(0)
    assert harness.produced((producer_id, epoch), 1) == [Error.NOT_ENOUGH_REPLICAS]
    assert log_of(harness).log_end_offset == 1


def test_adding_partitions(harness: TransactionHandlerHarness) -> None:
    producer = harness.producer()
    assert harness.add(producer, 0, 9) == [Error.OPERATION_NOT_ATTEMPTED, Error.UNKNOWN_TOPIC_OR_PARTITION]
    assert harness.add(producer, 0, topic="__transaction_state") == [Error.TOPIC_AUTHORIZATION_FAILED]
    assert harness.add((1000, 7), 0) == [Error.PRODUCER_FENCED]
    assert harness.add((1000, 7), 0, version=1) == [Error.INVALID_PRODUCER_EPOCH]
    assert harness.end((1000, 7), commit=True, version=1).error_code == Error.INVALID_PRODUCER_EPOCH


@pytest.mark.parametrize("version", [4, 5])
def test_brokers_add_and_verify_in_batches(harness: TransactionHandlerHarness, version: int) -> None:
    producer_id, epoch = harness.producer()

    def transaction(transactional_id: str, *partitions: int, verify: bool) -> Any:
        return AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction(
            transactional_id=transactional_id,
            producer_id=producer_id,
            producer_epoch=epoch,
            verify_only=verify,
            topics=[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name="t", partitions=list(partitions))],
        )

    request = AddPartitionsToTxnRequest(
        transactions=[
            transaction("tx", 0, verify=False),
            transaction("tx", 0, 1, verify=True),
            transaction("nobody", 0, verify=True),
        ]
    )
    found = harness.send(handle_add_partitions_to_txn, request, version).response.results_by_transaction
    errors = [[Error(each.partition_error_code) for each in one.topic_results[0].results_by_partition] for one in found]
    assert errors == [
        [Error.NONE],
        [Error.NONE, Error.TRANSACTION_ABORTABLE],
        [Error.INVALID_PRODUCER_ID_MAPPING],
    ]


def test_brokers_add_partitions_of_consumer_offsets(harness: TransactionHandlerHarness) -> None:
    """TxnOffsetCommit from version 5 on adds them; no client may do so."""
    producer = harness.producer()
    topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=GROUP_METADATA_TOPIC, partitions=[0])
    transaction = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction(
        transactional_id="tx", producer_id=producer[0], producer_epoch=producer[1], topics=[topic]
    )
    request = AddPartitionsToTxnRequest(transactions=[transaction])
    (found,) = harness.send(handle_add_partitions_to_txn, request, 5).response.results_by_transaction
    assert found.topic_results[0].results_by_partition[0].partition_error_code == Error.NONE
    assert harness.add(producer, 0, topic=GROUP_METADATA_TOPIC) == [Error.TOPIC_AUTHORIZATION_FAILED]


def commit_offset(harness: TransactionHandlerHarness, producer: Producer, version: int, **fields: Any) -> list[Error]:
    partitions = [
        TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(partition_index=number, committed_offset=5)
        for number in (9, 0)
    ]
    topic = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(name="t", partitions=partitions)
    request = TxnOffsetCommitRequest(
        **{
            "transactional_id": "tx",
            "group_id": "g",
            "producer_id": producer[0],
            "producer_epoch": producer[1],
            "topics": [topic],
            **fields,
        }
    )
    (found,) = harness.send(handle_txn_offset_commit, request, version).response.topics
    return [Error(each.error_code) for each in found.partitions]


def stable_offset(harness: TransactionHandlerHarness) -> int | Error:
    (found,) = harness.coordinator.fetch_offsets(FetchCall("g", [("t", 0, bytes(16))], require_stable=True))
    return found.error or found.offset


@pytest.mark.parametrize("version", range(6))
def test_offsets_count_with_the_marker(harness: TransactionHandlerHarness, version: int) -> None:
    unknown = Error.UNKNOWN_TOPIC_OR_PARTITION
    producer = harness.producer()
    if version < 5:
        refused = Error.TRANSACTION_ABORTABLE if version == 4 else Error.INVALID_TXN_STATE
        assert commit_offset(harness, producer, version) == [unknown, refused]
        request = AddOffsetsToTxnRequest(
            transactional_id="tx", producer_id=producer[0], producer_epoch=producer[1], group_id="g"
        )
        assert harness.send(handle_add_offsets_to_txn, request, min(version, 4)).response.error_code == 0
    assert commit_offset(harness, producer, version) == [unknown, Error.NONE]
    assert stable_offset(harness) is Error.UNSTABLE_OFFSET_COMMIT
    harness.end(producer, commit=True)
    assert stable_offset(harness) == 5


def test_an_abort_forgets_offsets(harness: TransactionHandlerHarness) -> None:
    producer = harness.producer()
    commit_offset(harness, producer, 5)
    harness.end(producer, commit=False)
    assert stable_offset(harness) == -1


def test_offsets_that_are_refused(harness: TransactionHandlerHarness) -> None:
    producer = harness.producer()
    unknown = Error.UNKNOWN_TOPIC_OR_PARTITION
    assert commit_offset(harness, producer, 5, group_id="") == [Error.INVALID_GROUP_ID] * 2
    assert commit_offset(harness, (1000, 4), 5) == [unknown, Error.INVALID_PRODUCER_EPOCH]
    assert commit_offset(harness, (1, 0), 5) == [unknown, Error.INVALID_PRODUCER_ID_MAPPING]
    assert commit_offset(harness, producer, 5, generation_id=3, member_id="m") == [unknown, Error.ILLEGAL_GENERATION]
    commit_offset(harness, producer, 5)
    assert commit_offset(harness, producer, 5, generation_id=3, member_id="m") == [unknown, Error.UNKNOWN_MEMBER_ID]


def mark(
    harness: TransactionHandlerHarness,
    epoch: int,
    coordinator_epoch: int,
    *partitions: int,
    level: int = 0,
    topic: str = "t",
) -> Any:
    marker = WriteTxnMarkersRequest.WritableTxnMarker(
        producer_id=1000,
        producer_epoch=epoch,
        transaction_result=True,
        coordinator_epoch=coordinator_epoch,
        transaction_version=level,
        topics=[WriteTxnMarkersRequest.WritableTxnMarkerTopic(name=topic, partition_indexes=list(partitions))],
    )
    (found,) = harness.send(handle_write_txn_markers, WriteTxnMarkersRequest(markers=[marker]), 2).response.markers
    return [Error(each.error_code) for each in found.topics[0].partitions]


def test_markers_of_others(harness: TransactionHandlerHarness) -> None:
    producer = harness.producer()
    harness.produced(producer, 0)
    assert mark(harness, 0, 3, 0, 9, level=2) == [Error.INVALID_PRODUCER_EPOCH, Error.UNKNOWN_TOPIC_OR_PARTITION]
    assert mark(harness, 1, 3, 0, level=2) == [Error.NONE]
    assert mark(harness, 1, 3, 0, level=2) == [Error.NONE]  # a repeated marker is accepted
    assert mark(harness, 1, 2, 0) == [Error.TRANSACTION_COORDINATOR_FENCED]
    assert mark(harness, 0, 4, 0) == [Error.INVALID_PRODUCER_EPOCH]


def test_a_marker_for_offsets_that_another_broker_coordinates_has_a_leader_error(
    harness: TransactionHandlerHarness,
) -> None:
    harness.coordinator.resign(0)
    assert mark(harness, 0, 3, 0, topic=GROUP_METADATA_TOPIC) == [Error.NOT_LEADER_OR_FOLLOWER]


def test_what_administrators_see(harness: TransactionHandlerHarness) -> None:
    producer = harness.producer()
    harness.produced(producer, 0, 1)
    request: Any = DescribeTransactionsRequest(transactional_ids=["tx", "nobody", ""])
    first, *others = harness.send(handle_describe_transactions, request, 0).response.transaction_states
    assert (first.transaction_state, first.producer_id, first.transaction_timeout_ms) == ("Ongoing", 1000, 60000)
    assert [(topic.topic, topic.partitions) for topic in first.topics] == [("t", [0, 1])]
    assert [each.error_code for each in others] == [Error.TRANSACTIONAL_ID_NOT_FOUND, Error.INVALID_REQUEST]
    topic = DescribeProducersRequest.TopicRequest(name="t", partition_indexes=[0, 9])
    (found,) = harness.send(handle_describe_producers, DescribeProducersRequest(topics=[topic]), 0).response.topics
    known, missing = found.partitions
    assert missing.error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
    (active,) = known.active_producers
    assert (active.producer_id, active.last_sequence, active.current_txn_start_offset) == (1000, 0, 0)


@pytest.mark.parametrize(
    ("fields", "count"),
    [
        ({}, 1),
        ({"state_filters": ["Ongoing"]}, 1),
        ({"state_filters": ["Empty"]}, 0),
        ({"producer_id_filters": [1]}, 0),
        ({"duration_filter": 500}, 1),
        ({"duration_filter": 5000}, 0),
        ({"transactional_id_pattern": "t."}, 1),
        ({"transactional_id_pattern": "t"}, 0),
    ],
)
def test_transactions_are_filtered(harness: TransactionHandlerHarness, fields: dict[str, Any], count: int) -> None:
    harness.produced(harness.producer(), 0)
    harness.clock.advance(1000)
    found = harness.send(handle_list_transactions, ListTransactionsRequest(**fields), 2).response
    assert (found.error_code, len(found.transaction_states)) == (0, count)


class BrokenAuthorizer:
    def authorize(self, *arguments: Any) -> Any:
        raise RuntimeError("the database of permissions is unreachable")


@pytest.mark.parametrize("pattern", [None, "t."])
def test_a_failing_authorizer_leaves_no_request_without_an_answer(
    harness: TransactionHandlerHarness, pattern: str | None
) -> None:
    harness.produced(harness.producer(), 0)
    harness.services.authorizer = BrokenAuthorizer()
    request = ListTransactionsRequest(transactional_id_pattern=pattern)
    if pattern is None:  # the dispatcher answers
        with pytest.raises(RuntimeError):
            harness.send(handle_list_transactions, request, 2)
    else:
        found = harness.send(handle_list_transactions, request, 2).response
        assert (found.error_code, found.transaction_states) == (Error.UNKNOWN_SERVER_ERROR, [])


def test_filters_that_mean_nothing(harness: TransactionHandlerHarness) -> None:
    found = harness.send(handle_list_transactions, ListTransactionsRequest(state_filters=["Bogus"]), 0).response
    assert (found.unknown_state_filters, found.transaction_states) == (["Bogus"], [])
    request = ListTransactionsRequest(transactional_id_pattern="(")
    assert harness.send(handle_list_transactions, request, 2).response.error_code == Error.INVALID_REGULAR_EXPRESSION
