"""The operations that list, describe and abort transactions, and list the producers of partitions (KIP-664)."""

from __future__ import annotations

import time
from collections.abc import Iterable
from enum import Enum
from typing import Any, NamedTuple

from kafkapy.client.coordinator import TRANSACTION
from kafkapy.compat.kafka.admin.requests import AdminRequests, raise_error
from kafkapy.compat.kafka.enum_helper import EnumHelper
from kafkapy.compat.kafka.structs import TopicPartition
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.describe_producers import DescribeProducersRequest
from kafkapy.protocol.messages.describe_transactions import DescribeTransactionsRequest
from kafkapy.protocol.messages.list_transactions import ListTransactionsRequest
from kafkapy.protocol.messages.write_txn_markers import WriteTxnMarkersRequest
from kafkapy.types import TopicPartition as ClientPartition
from kafkapy.types import by_topic

# What is added to the longest time-out of a transaction before it counts as hanging, as in Kafka's tool.
_GRACE_MS = 5 * 60 * 1000


class TransactionState(EnumHelper, str, Enum):  # noqa: UP042  # as the original, whose str() has the class's name
    """The states of transactions."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"
    DEAD = "Dead"
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"
    UNKNOWN = "Unknown"


_ENDED = frozenset(
    {TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT, TransactionState.DEAD}
)


class TransactionListing(NamedTuple):
    """A transactional id with its producer id and state."""

    transactional_id: str
    producer_id: int
    state: TransactionState


class TransactionDescription(NamedTuple):
    """A transaction and its coordinator; times are in ms."""

    coordinator_id: int
    state: TransactionState
    producer_id: int
    producer_epoch: int
    transaction_timeout_ms: int
    transaction_start_time_ms: int
    topic_partitions: set[TopicPartition]


class ProducerState(NamedTuple):
    """A producer that is active in a partition."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    current_transaction_start_offset: int


class PartitionProducerState(NamedTuple):
    """The producers that are active in a partition."""

    active_producers: list[ProducerState]


class AbortTransactionSpec(NamedTuple):
    """A partition and the producer whose transaction is to be aborted there."""

    topic_partition: TopicPartition
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int = -1


class TransactionOperations(AdminRequests):
    """The methods of KafkaAdminClient for transactions and producers."""

    def list_transactions(
        self,
        broker_ids: Iterable[int] | None = None,
        producer_id_filters: Iterable[int] | None = None,
        state_filters: Iterable[str] | None = None,
        duration_filter_ms: int | None = None,
        transactional_id_pattern: str | None = None,
    ) -> dict[int, list[TransactionListing]]:
        """Returns the transactions by the id of the broker that coordinates them.

        The arguments select brokers, producers, states, transactions that have been open for at least
        `duration_filter_ms`, and transactional ids by a regular expression; None selects all. Raises
        UnsupportedVersionError if a broker is too old for a filter.
        """
        states = [TransactionState.value_for(each) for each in state_filters or ()]
        producers = list(producer_id_filters or ())

        def build(version: int) -> ListTransactionsRequest:
            request = ListTransactionsRequest(state_filters=states, producer_id_filters=producers)
            if duration_filter_ms is not None:
                _need(version, ListTransactionsRequest.FIRST_VERSION_WITH_DURATION_FILTER, "duration_filter_ms")
                request.duration_filter = int(duration_filter_ms)
            if transactional_id_pattern is not None:
                _need(
                    version,
                    ListTransactionsRequest.FIRST_VERSION_WITH_TRANSACTIONAL_ID_PATTERN,
                    "transactional_id_pattern",
                )
                request.transactional_id_pattern = transactional_id_pattern
            return request

        found = {}
        for broker in self._broker_ids() if broker_ids is None else broker_ids:
            response = self._ask(ApiKey.LIST_TRANSACTIONS, build, broker)
            raise_error(response.error_code, None)
            found[broker] = [
                TransactionListing(each.transactional_id, each.producer_id, TransactionState(each.transaction_state))
                for each in response.transaction_states
            ]
        return found

    def describe_transactions(self, transactional_ids: Iterable[str]) -> dict[str, TransactionDescription]:
        """Returns the description of each transactional id.

        If the response has an error for an id, such as an unknown id, raises the exception of the first such error.
        """
        found = {}
        for coordinator, ids in self._coordinators(list(transactional_ids), TRANSACTION).items():
            request = DescribeTransactionsRequest(transactional_ids=ids)
            for each in self._ask(ApiKey.DESCRIBE_TRANSACTIONS, request, coordinator).transaction_states:
                raise_error(each.error_code, each.transactional_id)
                found[each.transactional_id] = TransactionDescription(
                    coordinator,
                    TransactionState(each.transaction_state),
                    each.producer_id,
                    each.producer_epoch,
                    each.transaction_timeout_ms,
                    each.transaction_start_time_ms,
                    {TopicPartition(topic.topic, number) for topic in each.topics for number in topic.partitions},
                )
        return found

    def describe_producers(
        self, partitions: Iterable[TopicPartition], broker_id: int | None = None
    ) -> dict[TopicPartition, PartitionProducerState]:
        """Returns the active producers of partitions, as reported by their leaders or by the broker `broker_id`."""
        wanted = list(partitions)
        if not wanted:
            return {}
        leaders = self._leaders(wanted) if broker_id is None else {broker_id: wanted}
        found = {}
        for node, led in leaders.items():
            request = DescribeProducersRequest(
                topics=[
                    DescribeProducersRequest.TopicRequest(name=name, partition_indexes=numbers)
                    for name, numbers in by_topic(ClientPartition(*each) for each in led).items()
                ]
            )
            for topic in self._ask(ApiKey.DESCRIBE_PRODUCERS, request, node).topics:
                for partition in topic.partitions:
                    raise_error(partition.error_code, partition.error_message)
                    found[TopicPartition(topic.name, partition.partition_index)] = _producers(partition)
        return found

    def abort_transaction(self, spec: AbortTransactionSpec) -> None:
        """Aborts an open transaction in one partition."""
        topic, number = spec.topic_partition
        marker = WriteTxnMarkersRequest.WritableTxnMarker(
            producer_id=spec.producer_id,
            producer_epoch=spec.producer_epoch,
            transaction_result=False,
            topics=[WriteTxnMarkersRequest.WritableTxnMarkerTopic(name=topic, partition_indexes=[number])],
            coordinator_epoch=spec.coordinator_epoch,
        )
        leader = next(iter(self._leaders([spec.topic_partition])))
        response = self._ask(ApiKey.WRITE_TXN_MARKERS, WriteTxnMarkersRequest(markers=[marker]), leader)
        for result in response.markers:
            for each in result.topics:
                for partition in each.partitions:
                    raise_error(partition.error_code, f"The transaction in {spec.topic_partition} was not aborted")

    def find_hanging_transactions(
        self, broker_ids: Iterable[int] | None = None, max_transaction_timeout_ms: int = 900000
    ) -> list[dict[str, Any]]:
        """Returns the transactions that have been open for `max_transaction_timeout_ms` plus five minutes, or longer.

        They are dictionaries with the transaction's ids, state and times. Only transactions whose coordinator is one of
        the brokers `broker_ids` (None: all brokers) are returned.
        """
        listed = self.list_transactions(broker_ids)
        ids = sorted({each.transactional_id for found in listed.values() for each in found})
        now_ms = int(time.time() * 1000)
        hanging = []
        for transactional_id, each in self.describe_transactions(ids).items():
            age_ms = now_ms - each.transaction_start_time_ms
            if (
                each.state in _ENDED
                or each.transaction_start_time_ms < 0
                or age_ms < max_transaction_timeout_ms + _GRACE_MS
            ):
                continue
            hanging.append(
                {
                    "transactional_id": transactional_id,
                    "producer_id": each.producer_id,
                    "producer_epoch": each.producer_epoch,
                    "state": each.state.value,
                    "age_ms": age_ms,
                    "coordinator_id": each.coordinator_id,
                    "topic_partitions": sorted(each.topic_partitions),
                }
            )
        return hanging


def _need(version: int, least: int, name: str) -> None:
    if version < least:
        raise ApiError(Error.UNSUPPORTED_VERSION, f"The broker is too old for {name}.")


def _producers(partition: Any) -> PartitionProducerState:
    return PartitionProducerState(
        [
            ProducerState(
                each.producer_id,
                each.producer_epoch,
                each.last_sequence,
                each.last_timestamp,
                each.coordinator_epoch,
                each.current_txn_start_offset,
            )
            for each in partition.active_producers
        ]
    )
