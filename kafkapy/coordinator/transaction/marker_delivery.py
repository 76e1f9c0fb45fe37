"""Delivers the commit and abort markers of transactions to the partitions of the transactions."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from kafkapy.coordinator.record import EMPTY_RESULT, CoordinatorResult
from kafkapy.coordinator.shard import ShardContext
from kafkapy.coordinator.transaction.transaction_metadata import TransactionMetadata
from kafkapy.coordinator.transaction.transaction_requests import TransactionMarker
from kafkapy.coordinator.transaction.transaction_state import TransactionState
from kafkapy.errors import Error
from kafkapy.types import TopicPartition

logger = logging.getLogger("kafka.coordinator.transaction.TransactionMarkerChannelManager")

RETRY_MS = 100
# A partition that no longer exists needs no marker.
_GONE = frozenset({Error.UNKNOWN_TOPIC_OR_PARTITION})
# A newer coordinator or a newer producer has written to the partition: this coordinator must stop.
_FENCED = frozenset({Error.INVALID_PRODUCER_EPOCH, Error.TRANSACTION_COORDINATOR_FENCED})

MarkerResults = Mapping[TopicPartition, Error]


class MarkerWriter(Protocol):
    def write(
        self,
        marker: TransactionMarker,
        partitions: Collection[TopicPartition],
        on_written: Callable[[MarkerResults], None],
    ) -> None:
        """Writes the marker to each partition.

        Calls `on_written` once, perhaps before this method returns. The argument maps each partition to its error,
        which is NONE after success.
        """


class MarkerDelivery:
    """Writes transaction markers to partitions, and stores which partitions of each transaction have no marker yet.
    Only the thread that owns it may use it."""

    def __init__(
        self, context: ShardContext, writer: MarkerWriter, complete: Callable[[str], CoordinatorResult[None]]
    ) -> None:
        self._context = context
        self._writer = writer
        self._complete = complete
        self._waiting: dict[str, tuple[TransactionMarker, set[TopicPartition]]] = {}
        self._is_stopped = False

    def deliver(self, transactional_id: str, metadata: TransactionMetadata) -> None:
        """Begins to write the markers of a prepared transaction. The transaction is completed when all markers are
        written."""
        marker = TransactionMarker(
            metadata.producer_id,
            metadata.producer_epoch,
            self._context.leader_epoch,
            metadata.state is TransactionState.PREPARE_COMMIT,
            metadata.client_transaction_version,
        )
        self._waiting[transactional_id] = (marker, set(metadata.partitions))
        self._write(transactional_id)

    def stop(self) -> None:
        """Stops the delivery of markers. Called when another broker has become the coordinator of these
        transactions."""
        self._is_stopped = True
        self._waiting.clear()

    def retry_completion(self, transactional_id: str) -> None:
        """Schedules another attempt to write the record that completes the transaction, because the last attempt
        failed."""
        if not self._is_stopped:
            self._context.schedule(f"complete {transactional_id}", RETRY_MS, lambda: self._complete(transactional_id))

    def _write(self, transactional_id: str) -> CoordinatorResult[None]:
        found = self._waiting.get(transactional_id)
        if found is not None:
            marker, remaining = found
            if remaining:
                self._writer.write(marker, tuple(remaining), lambda results: self._written(transactional_id, results))
            else:
                self._finish(transactional_id)
        return EMPTY_RESULT

    def _written(self, transactional_id: str, results: MarkerResults) -> None:
        """Handles the outcome of one write of a transaction's markers; `results` has an error for each partition.

        Writes the markers of failed partitions again later. If a partition reports that the producer or the coordinator
        is fenced, the markers of the transaction are not written again.
        """
        found = self._waiting.get(transactional_id)
        if found is None or self._is_stopped:
            return
        remaining = found[1]
        for partition, error in results.items():
            if error is Error.NONE or error in _GONE:
                remaining.discard(partition)
            elif error in _FENCED:
                logger.warning("The marker of %s for %s was refused: %s", transactional_id, partition, error.name)
                del self._waiting[transactional_id]
                return
        if not remaining:
            self._finish(transactional_id)
            return
        self._context.schedule(f"markers {transactional_id}", RETRY_MS, lambda: self._write(transactional_id))

    def _finish(self, transactional_id: str) -> None:
        del self._waiting[transactional_id]
        self._context.run(lambda: self._complete(transactional_id))
