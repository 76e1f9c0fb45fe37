"""What the transaction coordinator is asked and what it answers, whatever the version of the request."""

from __future__ import annotations

from typing import NamedTuple

from kafkapy.coordinator.transaction.transaction_metadata import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from kafkapy.errors import Error


class ProducerIdAndEpoch(NamedTuple):
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH


class InitCall(NamedTuple):
    """`expected`: the id and epoch that the producer has, None if it is new."""

    transactional_id: str
    timeout_ms: int
    expected: ProducerIdAndEpoch | None


class ProducerAnswer(NamedTuple):
    error: Error = Error.NONE
    producer: ProducerIdAndEpoch = ProducerIdAndEpoch()


class TransactionMarker(NamedTuple):
    """What ends a transaction in each of its partitions. `transaction_version` is the one its client goes by."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    is_commit: bool
    transaction_version: int = 0


class ListFilter(NamedTuple):
    """Which transactions are listed; an empty set and -1 let all pass."""

    states: frozenset[str] = frozenset()
    producer_ids: frozenset[int] = frozenset()
    duration_ms: int = -1
