"""Markers for partitions on several brokers: batches, errors, and the choice between direct calls and requests."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import pytest

from kafkapy.coordinator.transaction.transaction_requests import TransactionMarker
from kafkapy.errors import Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from kafkapy.server.remote_markers import RemoteMarkers
from kafkapy.server.transaction_markers import ClusterMarkerWriter
from kafkapy.types import TopicPartition
from tests.harness.recorded_requests import RecordedRequests

T0, T1, T2 = (TopicPartition("t", number) for number in range(3))
Written = Mapping[TopicPartition, Error]


def marker(producer_id: int) -> TransactionMarker:
    return TransactionMarker(producer_id, 7, 3, True, 2)


def respond(request: WriteTxnMarkersRequest, errors: Mapping[int, Error] | None = None) -> WriteTxnMarkersResponse:
    """Returns a response with the markers in reverse order. `errors` has errors by number of the partition."""
    response = WriteTxnMarkersResponse
    return response(
        markers=[
            response.WritableTxnMarkerResult(
                producer_id=each.producer_id,
                topics=[
                    response.WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            response.WritableTxnMarkerPartitionResult(
                                partition_index=number, error_code=(errors or {}).get(number, Error.NONE)
                            )
                            for number in topic.partition_indexes
                        ],
                    )
                    for topic in each.topics
                ],
            )
            for each in reversed(request.markers)
        ]
    )


class LocalWriter:
    """The writer of a broker's own partitions."""

    def __init__(self) -> None:
        self.written: list[tuple[TopicPartition, ...]] = []

    def write(self, marker: TransactionMarker, partitions: Collection[TopicPartition], on_written: Any) -> None:
        self.written.append(tuple(partitions))
        on_written(dict.fromkeys(partitions, Error.NONE))


@pytest.fixture
def requests() -> RecordedRequests:
    return RecordedRequests()


@pytest.fixture
def remote(requests: RecordedRequests) -> RemoteMarkers:
    return RemoteMarkers(requests)  # type: ignore[arg-type]


def test_markers_that_wait_for_a_response_share_the_next_request(
    requests: RecordedRequests, remote: RemoteMarkers
) -> None:
    written: list[Written] = []
    for producer_id in (1, 2, 3):
        remote.write(9, marker(producer_id), [T0, T1], written.append)
    first = requests.only(9, ApiKey.WRITE_TXN_MARKERS)
    (wire,) = first.body.markers
    assert (wire.producer_id, wire.producer_epoch, wire.coordinator_epoch, wire.transaction_version) == (1, 7, 3, 2)
    assert wire.transaction_result
    assert [(topic.name, topic.partition_indexes) for topic in wire.topics] == [("t", [0, 1])]
    first.on_answer(respond(first.body, {1: Error.NOT_ENOUGH_REPLICAS}), Error.NONE)
    assert written == [{T0: Error.NONE, T1: Error.NOT_ENOUGH_REPLICAS}]
    second = requests.only(9, ApiKey.WRITE_TXN_MARKERS)
    assert [each.producer_id for each in second.body.markers] == [2, 3]
    second.on_answer(respond(second.body), Error.NONE)
    assert len(written) == 3
    assert not requests.sent


def test_brokers_do_not_wait_for_each_other(requests: RecordedRequests, remote: RemoteMarkers) -> None:
    remote.write(8, marker(1), [T0], lambda errors: None)
    remote.write(9, marker(1), [T1], lambda errors: None)
    assert [each.broker_id for each in requests.sent] == [8, 9]


def test_two_markers_of_a_producer_are_in_different_requests(requests: RecordedRequests, remote: RemoteMarkers) -> None:
    for producer_id in (1, 2, 2):
        remote.write(9, marker(producer_id), [T0], lambda errors: None)
    sent = []
    while requests.sent:
        request = requests.only(9, ApiKey.WRITE_TXN_MARKERS)
        sent.append([each.producer_id for each in request.body.markers])
        request.on_answer(respond(request.body), Error.NONE)
    assert sent == [[1], [2], [2]]


@pytest.mark.parametrize(
    ("errors", "failure", "expected"),
    [
        ({0: Error.UNKNOWN_TOPIC_OR_PARTITION}, Error.NONE, Error.NOT_LEADER_OR_FOLLOWER),
        ({0: Error.TRANSACTION_COORDINATOR_FENCED}, Error.NONE, Error.TRANSACTION_COORDINATOR_FENCED),
        (None, Error.NETWORK_EXCEPTION, Error.NETWORK_EXCEPTION),
    ],
)
def test_each_partition_gets_an_error(
    requests: RecordedRequests,
    remote: RemoteMarkers,
    errors: Mapping[int, Error] | None,
    failure: Error,
    expected: Error,
) -> None:
    written: list[Written] = []
    remote.write(9, marker(1), [T0], written.append)
    request = requests.only(9, ApiKey.WRITE_TXN_MARKERS)
    request.on_answer(None if failure else respond(request.body, errors), failure)
    assert written == [{T0: expected}]


def test_a_marker_is_written_here_and_sent_to_the_other_leaders(
    requests: RecordedRequests, remote: RemoteMarkers
) -> None:
    local, written = LocalWriter(), list[Written]()
    leaders = {T0: None, T1: 9, T2: 8}
    writer = ClusterMarkerWriter(local, leaders.__getitem__, lambda: remote)  # type: ignore[arg-type]
    writer.write(marker(1), [T0, T1, T2], written.append)
    assert local.written == [(T0,)]
    assert not written
    for request in requests.take():
        request.on_answer(respond(request.body), Error.NONE)
    assert written == [{T0: Error.NONE, T1: Error.NONE, T2: Error.NONE}]


def test_a_broker_that_leads_all_partitions_sends_no_request() -> None:
    local, written = LocalWriter(), list[Written]()

    def fail() -> RemoteMarkers:
        raise AssertionError("no other broker is needed")

    writer = ClusterMarkerWriter(local, lambda partition: None, fail)  # type: ignore[arg-type]
    writer.write(marker(1), [T0, T1], written.append)
    writer.write(marker(1), [], written.append)
    assert written == [{T0: Error.NONE, T1: Error.NONE}, {}]
