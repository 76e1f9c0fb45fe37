"""Requests to the transaction coordinator and its responses, independent of API versions."""

from __future__ import annotations

from kafkapy.errors import Error
from kafkapy.named_tuple import NamedTuple
from kafkapy.types import NO_PRODUCER_EPOCH, NO_PRODUCER_ID


class ProducerIdAndEpoch(NamedTuple):
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH


class InitCall(NamedTuple):
    """An InitProducerId request. `expected` is the producer's current id and epoch, or None for a new producer."""

    transactional_id: str
    timeout_ms: int
    expected: ProducerIdAndEpoch | None


class ProducerResponse(NamedTuple):
    error: Error = Error.NONE
    producer: ProducerIdAndEpoch = ProducerIdAndEpoch()


class TransactionMarker(NamedTuple):
    """The marker that ends a transaction in each of its partitions.

    `transaction_version` is the level of transaction.version that the client uses.
    """

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    is_commit: bool
    transaction_version: int = 0


class ListFilter(NamedTuple):
    """The filter of ListTransactions. An empty set and a `duration_ms` of -1 match all transactions."""

    states: frozenset[str] = frozenset()
    producer_ids: frozenset[int] = frozenset()
    duration_ms: int = -1
