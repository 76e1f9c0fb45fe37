"""Operations on transactions: list, describe, abort hanging ones, and fence producers."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from kafkapy.client.admin.lookups import AdminLookups
from kafkapy.client.admin.requests import AdminRequest, constant, error_of, top_level_error
from kafkapy.client.admin.results import Results
from kafkapy.client.coordinator import TRANSACTION
from kafkapy.client.sequences import ProducerIdentity
from kafkapy.errors import ApiError, Error
from kafkapy.named_tuple import NamedTuple
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.describe_transactions import DescribeTransactionsRequest
from kafkapy.protocol.messages.init_producer_id import InitProducerIdRequest
from kafkapy.protocol.messages.list_transactions import ListTransactionsRequest
from kafkapy.protocol.messages.write_txn_markers import WriteTxnMarkersRequest
from kafkapy.types import TopicPartition


class TransactionListing(NamedTuple):
    """A transactional id and the broker that coordinates it. `state` is Kafka's name: Empty, Ongoing and so on."""

    transactional_id: str
    coordinator: int
    producer_id: int
    state: str


class TransactionDescription(NamedTuple):
    """The state of a transactional id; `start_time_ms` is in ms since 1970, or -1 without an open transaction."""

    coordinator: int
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    start_time_ms: int
    partitions: frozenset[TopicPartition]


class HangingTransaction(NamedTuple):
    """A transaction that is open in one partition although its coordinator does not know it."""

    partition: TopicPartition
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int


class TransactionOperations(AdminLookups):
    """Operations on transactions."""

    def list_transactions(
        self,
        *,
        states: Iterable[str] = (),
        producer_ids: Iterable[int] = (),
        longer_than_ms: int = -1,
        pattern: str | None = None,
        timeout: float | None = None,
    ) -> list[TransactionListing]:
        """Returns the transactional ids of all brokers that pass the filters, each of which is optional. Blocks.

        `states` and `producer_ids` are the accepted ones, `longer_than_ms` is the time for which a transaction must
        have been open (-1 accepts all), and `pattern` is a regular expression (RE2) for the transactional id.
        """
        deadline_ms = self._deadline_ms(timeout)
        wanted_states, wanted_ids = list(states), list(producer_ids)

        def build(version: int) -> ListTransactionsRequest:
            if (longer_than_ms >= 0 and version < 1) or (pattern and version < 2):
                raise ApiError(Error.UNSUPPORTED_VERSION, "The broker cannot filter by duration or expression.")
            return ListTransactionsRequest(
                state_filters=wanted_states,
                producer_id_filters=wanted_ids,
                duration_filter=longer_than_ms if longer_than_ms >= 0 else -1,
                transactional_id_pattern=pattern or None,
            )

        requests = {
            node_id: AdminRequest(self._broker(node_id), ApiKey.LIST_TRANSACTIONS, build, top_level_error)
            for node_id in self._brokers(deadline_ms)
        }
        self._send_all(list(requests.values()), deadline_ms)
        return [
            TransactionListing(result.transactional_id, node_id, result.producer_id, result.transaction_state)
            for node_id, request in requests.items()
            for result in request.result().transaction_states
        ]

    def describe_transactions(
        self, transactional_ids: Iterable[str], *, timeout: float | None = None
    ) -> Results[str, TransactionDescription]:
        """Describes transactional ids. An unknown id has the error TRANSACTIONAL_ID_NOT_FOUND. Blocks."""
        coordinators: dict[str, int] = {}

        def make_request(node_id: int, keys: list[str]) -> AdminRequest:
            coordinators.update(dict.fromkeys(keys, node_id))
            request = DescribeTransactionsRequest(transactional_ids=keys)
            return AdminRequest(self._broker(node_id), ApiKey.DESCRIBE_TRANSACTIONS, constant(request))

        def read_response(response: Any, keys: Collection[str]) -> Results[str, TransactionDescription]:
            results: Results[str, TransactionDescription] = Results()
            for result in response.transaction_states:
                described = _described(result, coordinators[result.transactional_id])
                results.put(result.transactional_id, error_of(result) or described)
            return results

        find = self._find_coordinators(TRANSACTION)
        return self._request_by_key(
            list(transactional_ids), find, make_request, read_response, self._deadline_ms(timeout)
        )

    def abort_transaction(self, hanging: HangingTransaction, *, timeout: float | None = None) -> None:
        """Writes an abort marker for a hanging transaction (KIP-664). Blocks."""
        topic = WriteTxnMarkersRequest.WritableTxnMarkerTopic(
            name=hanging.partition.topic, partition_indexes=[hanging.partition.partition]
        )
        marker = WriteTxnMarkersRequest.WritableTxnMarker(
            producer_id=hanging.producer_id,
            producer_epoch=hanging.producer_epoch,
            coordinator_epoch=hanging.coordinator_epoch,
            transaction_result=False,
            topics=[topic],
        )

        def make_request(node_id: int, keys: list[TopicPartition]) -> AdminRequest:
            request = WriteTxnMarkersRequest(markers=[marker])
            return AdminRequest(self._broker(node_id), ApiKey.WRITE_TXN_MARKERS, constant(request))

        def read_response(response: Any, keys: Collection[TopicPartition]) -> Results[TopicPartition, None]:
            results: Results[TopicPartition, None] = Results()
            for each in response.markers:
                for told_topic in each.topics:
                    for result in told_topic.partitions:
                        results.put(TopicPartition(told_topic.name, result.partition_index), error_of(result))
            return results

        deadline_ms = self._deadline_ms(timeout)
        self._request_by_key([hanging.partition], self._find_leaders, make_request, read_response, deadline_ms).check()

    def fence_producers(
        self, transactional_ids: Iterable[str], *, timeout: float | None = None
    ) -> Results[str, ProducerIdentity]:
        """Increases the epochs of transactional ids, which fences their producers and aborts open transactions. Blocks.

        The results are the producer ids with their new epochs.
        """

        def make_request(node_id: int, keys: list[str]) -> AdminRequest:
            (transactional_id,) = keys
            request = InitProducerIdRequest(
                transactional_id=transactional_id, transaction_timeout_ms=self._network.request_timeout_ms
            )
            return AdminRequest(self._broker(node_id), ApiKey.INIT_PRODUCER_ID, constant(request), top_level_error)

        def read_response(response: Any, keys: Collection[str]) -> Results[str, ProducerIdentity]:
            (transactional_id,) = keys
            results: Results[str, ProducerIdentity] = Results()
            results.put(transactional_id, ProducerIdentity(response.producer_id, response.producer_epoch))
            return results

        find = self._find_coordinators(TRANSACTION)
        deadline_ms = self._deadline_ms(timeout)
        return self._request_by_key(
            list(transactional_ids), find, make_request, read_response, deadline_ms, one_key_each=True
        )


def _described(result: Any, coordinator: int) -> TransactionDescription:
    return TransactionDescription(
        coordinator,
        result.transaction_state,
        result.producer_id,
        result.producer_epoch,
        result.transaction_timeout_ms,
        result.transaction_start_time_ms,
        frozenset(TopicPartition(topic.topic, number) for topic in result.topics for number in topic.partitions),
    )
