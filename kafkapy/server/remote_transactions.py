"""Asks transaction coordinators on other brokers to add partitions to transactions, or to verify them
(AddPartitionsToTxn from version 4 on)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from kafkapy.coordinator.transaction.transaction_requests import ProducerIdAndEpoch
from kafkapy.errors import Error
from kafkapy.named_tuple import NamedTuple
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from kafkapy.server.broker_requests import BrokerRequests
from kafkapy.types import TopicPartition, by_topic


class TransactionPartitions(NamedTuple):
    """The partitions that a coordinator has to add to a producer's transaction. If `verify_only` is True, the
    coordinator only verifies that they are in the transaction. The object does not change after its construction.
    """

    transactional_id: str
    producer: ProducerIdAndEpoch
    partitions: frozenset[TopicPartition]
    verify_only: bool


OnResult = Callable[[Mapping[TopicPartition, Error]], None]


class RemoteTransactionCoordinators:
    """Sends AddPartitionsToTxn to transaction coordinators on other brokers. Only the reactor's thread may use it.

    Each broker has at most one request in flight; calls made before its response are sent together in the next request.
    A request has at most one entry for a transactional id, because the response identifies an entry by the id. The
    results for an id arrive in the order of the calls.
    """

    def __init__(self, requests: BrokerRequests) -> None:
        self._requests = requests
        self._unsent: dict[int, list[tuple[TransactionPartitions, OnResult]]] = {}
        self._in_flight: set[int] = set()  # brokers

    def ask(self, broker_id: int, partitions: TransactionPartitions, on_result: OnResult) -> None:
        """Sends `partitions` to the coordinator on a broker; calls `on_result` once, with the error of each partition.

        In addition to the coordinator's errors, these may be BROKER_NOT_AVAILABLE, NETWORK_EXCEPTION, REQUEST_TIMED_OUT
        or UNSUPPORTED_VERSION, and INVALID_TXN_STATE if this broker may not send such requests.
        """
        self._unsent.setdefault(broker_id, []).append((partitions, on_result))
        self._send(broker_id)

    def _send(self, broker_id: int) -> None:
        if broker_id in self._in_flight or broker_id not in self._unsent:
            return
        asked: dict[str, tuple[TransactionPartitions, OnResult]] = {}  # by transactional id
        left = []
        for each in self._unsent.pop(broker_id):
            if each[0].transactional_id in asked:
                left.append(each)
            else:
                asked[each[0].transactional_id] = each
        if left:
            self._unsent[broker_id] = left
        self._in_flight.add(broker_id)
        request = AddPartitionsToTxnRequest(transactions=[_on_wire(partitions) for partitions, _ in asked.values()])

        def answered(response: AddPartitionsToTxnResponse | None, error: Error) -> None:
            self._in_flight.discard(broker_id)
            found: dict[tuple[str, TopicPartition], Error] = {}
            if response is not None:
                error = Error.of(response.error_code)
                found.update(_results(response))
            for transactional_id, (partitions, on_result) in asked.items():
                missing = _without_result(error, verify_only=partitions.verify_only)
                on_result({each: found.get((transactional_id, each), missing) for each in partitions.partitions})
            self._send(broker_id)

        self._requests.send(broker_id, request, ApiKey.ADD_PARTITIONS_TO_TXN, answered)


def _without_result(error: Error, *, verify_only: bool) -> Error:
    """Returns the error to report for a partition for which the coordinator's response has no result.

    `error` is the error of the whole request. If `verify_only` is True, the request only verified that the partitions
    are in the transaction. If the coordinator does not support such requests, the result is NONE, and the write is
    permitted.
    """
    if error is Error.NONE:
        return Error.UNKNOWN_SERVER_ERROR
    if error is Error.UNSUPPORTED_VERSION and verify_only:
        return Error.NONE  # a release before KIP-890, whose producers are not verified either
    return Error.INVALID_TXN_STATE if error is Error.CLUSTER_AUTHORIZATION_FAILED else error


def _on_wire(asked: TransactionPartitions) -> AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction:
    return AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction(
        transactional_id=asked.transactional_id,
        producer_id=asked.producer.producer_id,
        producer_epoch=asked.producer.producer_epoch,
        verify_only=asked.verify_only,
        topics=[
            AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=topic, partitions=partitions)
            for topic, partitions in by_topic(asked.partitions).items()
        ],
    )


def _results(response: AddPartitionsToTxnResponse) -> Iterator[tuple[tuple[str, TopicPartition], Error]]:
    """Yields ((transactional id, partition), error) of each partition in the response."""
    for transaction in response.results_by_transaction:
        for topic in transaction.topic_results:
            for each in topic.results_by_partition:
                partition = TopicPartition(topic.name, each.partition_index)
                yield (transaction.transactional_id, partition), Error.of(each.partition_error_code)
