"""The transactional ids of one partition of `__transaction_state`."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import TypeVar

from kafkapy.coordinator.record import EMPTY_RESULT, CoordinatorRecord, CoordinatorResult, StateChange
from kafkapy.coordinator.shard import ShardContext, in_parts
from kafkapy.coordinator.transaction.end_of_transaction import EndRequest, ends_transaction
from kafkapy.coordinator.transaction.marker_delivery import MarkerDelivery, MarkerWriter
from kafkapy.coordinator.transaction.transaction_config import TransactionConfig
from kafkapy.coordinator.transaction.transaction_metadata import (
    LAST_CLIENT_EPOCH,
    TRANSACTION_VERSION_2,
    TransactionMetadata,
    completed,
    fenced,
    initialized,
    prepared,
    takes_new_producer_id,
    with_partitions,
)
from kafkapy.coordinator.transaction.transaction_records import (
    transaction_metadata_from,
    transaction_record,
    transaction_tombstone,
    transactional_id_from,
)
from kafkapy.coordinator.transaction.transaction_requests import InitCall, ProducerIdAndEpoch, ProducerResponse
from kafkapy.coordinator.transaction.transaction_state import PREPARED_STATES, RESTING_STATES, TransactionState
from kafkapy.errors import ApiError, Error
from kafkapy.types import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, TopicPartition

logger = logging.getLogger("kafka.coordinator.transaction.TransactionCoordinator")

R = TypeVar("R")


class TransactionShard:
    """The transactional ids of one partition of `__transaction_state`, with their metadata. Only the thread that owns
    it may use it.

    The metadata of an id changes when its record is committed, not before. Until then the id is in `_uncommitted`, and
    other requests for it are refused with CONCURRENT_TRANSACTIONS.
    """

    def __init__(
        self,
        context: ShardContext,
        config: TransactionConfig,
        transaction_version: Callable[[], int],
        marker_writer: MarkerWriter,
    ) -> None:
        self._context = context
        self._config = config
        self._transaction_version = transaction_version
        self.transactions: dict[str, TransactionMetadata] = {}
        self._uncommitted: set[str] = set()
        self._markers = MarkerDelivery(context, marker_writer, self.complete)

    # -- the log

    def replay(self, offset: int, producer_id: int, key: bytes, value: bytes | None) -> None:
        transactional_id = transactional_id_from(key)
        if transactional_id is None:
            return  # Types newer than 4.3 are ignored.
        if value is None:
            self.transactions.pop(transactional_id, None)
        else:
            self.transactions[transactional_id] = transaction_metadata_from(value)

    def replay_end_of_transaction(self, offset: int, producer_id: int, committed: bool) -> None:
        """Does nothing: no record of this topic is written within a transaction."""

    def on_loaded(self) -> None:
        """Resumes the delivery of markers for transactions whose outcome was decided before the load."""
        for transactional_id, metadata in list(self.transactions.items()):
            if metadata.state in PREPARED_STATES:
                self._markers.deliver(transactional_id, metadata)

    def on_unloaded(self) -> None:
        self._markers.stop()

    @property
    def has_open_transactions(self) -> bool:
        return any(metadata.state is TransactionState.ONGOING for metadata in self.transactions.values())

    # -- producer ids

    def needs_producer_id(self, call: InitCall) -> bool:
        """Returns True if `init_producer_id` needs a new producer id as an argument for this call."""
        metadata = self.transactions.get(call.transactional_id)
        if metadata is None or metadata.producer_id == NO_PRODUCER_ID:
            return True
        expected_epoch = call.expected.producer_epoch if call.expected is not None else None
        return metadata.state in RESTING_STATES and takes_new_producer_id(metadata, expected_epoch)

    def init_producer_id(
        self, call: InitCall, new_producer_id: int = NO_PRODUCER_ID
    ) -> CoordinatorResult[ProducerResponse]:
        """Initializes the producer of a transactional id. If a transaction of the id is open, aborts it instead, and
        responds with CONCURRENT_TRANSACTIONS, so that the producer repeats the request.

        `new_producer_id` must be given if `needs_producer_id` returns True. Raises ApiError if the request is refused.
        """
        metadata = self.transactions.get(call.transactional_id) or TransactionMetadata(timeout_ms=call.timeout_ms)
        if call.transactional_id in self._uncommitted:
            raise ApiError(Error.CONCURRENT_TRANSACTIONS)
        if call.expected is not None and not _is_known_producer(metadata, call.expected):
            raise ApiError(Error.PRODUCER_FENCED)
        if metadata.state in PREPARED_STATES:
            raise ApiError(Error.CONCURRENT_TRANSACTIONS)
        wall_ms = self._context.clock.wall_ms()
        if metadata.state is TransactionState.ONGOING:
            # The open transaction of the previous producer is aborted first; the new producer retries.
            aborted = fenced(metadata, self._transaction_version(), wall_ms)
            return self._change(call.transactional_id, aborted, ProducerResponse(Error.CONCURRENT_TRANSACTIONS))
        expected_epoch = call.expected.producer_epoch if call.expected is not None else None
        changed = initialized(metadata, call.timeout_ms, expected_epoch, new_producer_id, wall_ms)
        response = ProducerResponse(producer=ProducerIdAndEpoch(changed.producer_id, changed.producer_epoch))
        return self._change(call.transactional_id, changed, response)

    # -- partitions

    def add_partitions(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: frozenset[TopicPartition],
        client_transaction_version: int,
    ) -> CoordinatorResult[Error]:
        """Adds partitions to the transaction, which begins if none is open. Raises ApiError for a refused request.

        `client_transaction_version` is 2 for clients that use KIP-890, otherwise 0.
        """
        metadata = self._owned(transactional_id, producer)
        if transactional_id in self._uncommitted or metadata.state in PREPARED_STATES:
            raise ApiError(Error.CONCURRENT_TRANSACTIONS)
        if metadata.state is TransactionState.ONGOING and partitions <= metadata.partitions:
            return CoordinatorResult(response=Error.NONE)
        changed = with_partitions(metadata, partitions, client_transaction_version, self._context.clock.wall_ms())
        return self._change(transactional_id, changed, Error.NONE)

    def missing_partitions(
        self, transactional_id: str, producer: ProducerIdAndEpoch, partitions: frozenset[TopicPartition]
    ) -> frozenset[TopicPartition]:
        """Returns the elements of `partitions` that are not in the producer's transaction.

        Raises ApiError if the transactional id does not belong to the producer, or its transaction is ending.
        """
        metadata = self._owned(transactional_id, producer)
        if metadata.state in PREPARED_STATES:
            raise ApiError(Error.CONCURRENT_TRANSACTIONS)
        return partitions - metadata.partitions

    def _owned(self, transactional_id: str, producer: ProducerIdAndEpoch) -> TransactionMetadata:
        """Returns the metadata of the transactional id. Raises ApiError unless `producer` has the current producer id
        and epoch of the transactional id."""
        metadata = self.transactions.get(transactional_id)
        if metadata is None or metadata.producer_id != producer.producer_id:
            raise ApiError(Error.INVALID_PRODUCER_ID_MAPPING)
        if metadata.producer_epoch != producer.producer_epoch:
            raise ApiError(Error.PRODUCER_FENCED)
        return metadata

    # -- EndTxn

    def needs_next_producer_id(self, transactional_id: str, request: EndRequest) -> bool:
        """Returns True if `end` for this request would use up the epochs of the producer id, so that the caller must
        pass a new producer id to `end`."""
        metadata = self.transactions.get(transactional_id)
        return (
            metadata is not None
            and request.client_transaction_version >= TRANSACTION_VERSION_2
            and metadata.is_epoch_exhausted
            and metadata.producer_id == request.producer_id
            and metadata.state not in PREPARED_STATES
        )

    def end(
        self, transactional_id: str, request: EndRequest, next_producer_id: int = NO_PRODUCER_ID
    ) -> CoordinatorResult[ProducerResponse]:
        """Commits or aborts a transaction, as the request says. The response is sent when the outcome is durable.

        The response contains the producer's id and epoch for the next transaction. `next_producer_id` has to be given
        if `needs_next_producer_id` returns True. Raises ApiError if the request is refused.
        """
        metadata = self.transactions.get(transactional_id)
        if metadata is None:
            raise ApiError(Error.INVALID_PRODUCER_ID_MAPPING)
        is_to_be_ended = ends_transaction(metadata, request)
        if transactional_id in self._uncommitted:
            raise ApiError(Error.CONCURRENT_TRANSACTIONS)
        if not is_to_be_ended:
            producer = ProducerIdAndEpoch(metadata.producer_id, metadata.producer_epoch)
            return CoordinatorResult(response=ProducerResponse(producer=producer))
        wall_ms = self._context.clock.wall_ms()
        changed = prepared(
            metadata,
            commit=request.commit,
            client_transaction_version=request.client_transaction_version,
            next_producer_id=next_producer_id,
            wall_ms=wall_ms,
        )
        after = completed(changed, wall_ms)
        response = ProducerResponse(producer=ProducerIdAndEpoch(after.producer_id, after.producer_epoch))
        return self._change(transactional_id, changed, response)

    def complete(self, transactional_id: str) -> CoordinatorResult[None]:
        """Returns the record that completes a transaction after all its markers have been written.

        Returns no record if the transaction is not prepared, or if another change of the transactional id is being
        written.
        """
        metadata = self.transactions.get(transactional_id)
        if metadata is None or metadata.state not in PREPARED_STATES or transactional_id in self._uncommitted:
            return EMPTY_RESULT
        return self._change(
            transactional_id,
            completed(metadata, self._context.clock.wall_ms()),
            None,
            on_failure=lambda: self._markers.retry_completion(transactional_id),
        )

    # -- time

    def timed_out_transactions(self) -> list[str]:
        """Returns the transactional ids whose transactions have been open for longer than their timeout."""
        wall_ms = self._context.clock.wall_ms()
        return [
            transactional_id
            for transactional_id, metadata in self.transactions.items()
            if metadata.state is TransactionState.ONGOING
            and metadata.start_ms + metadata.timeout_ms < wall_ms
            and transactional_id not in self._uncommitted
        ]

    def abort_timed_out(self, transactional_id: str) -> CoordinatorResult[None]:
        """Returns the record that aborts the open transaction of `transactional_id`. The id must be one that
        `timed_out_transactions` has just returned."""
        logger.info("Completed rollback of ongoing transaction for transactionalId %s due to timeout", transactional_id)
        metadata = self.transactions[transactional_id]
        aborted = fenced(metadata, self._transaction_version(), self._context.clock.wall_ms())
        return self._change(transactional_id, aborted, None)

    def expire(self) -> CoordinatorResult[None]:
        """Removes the transactional ids that have had no transaction for `transactional.id.expiration.ms`."""
        oldest_ms = self._context.clock.wall_ms() - self._config.expiration_ms
        expired = [
            transactional_id
            for transactional_id, metadata in self.transactions.items()
            if metadata.state in RESTING_STATES
            and metadata.last_update_ms <= oldest_ms
            and transactional_id not in self._uncommitted
        ]
        remaining = iter(expired)
        for part in in_parts([transaction_tombstone(transactional_id) for transactional_id in expired]):
            self._context.run(partial(self._remove, list(islice(remaining, len(part))), part))
        return EMPTY_RESULT

    def _remove(self, expired: list[str], tombstones: list[CoordinatorRecord]) -> CoordinatorResult[None]:
        """Returns the tombstones of the transactional ids `expired`, which are removed when these are committed."""
        self._uncommitted.update(expired)

        def on_committed(error: Error) -> None:
            self._uncommitted.difference_update(expired)
            if error is Error.NONE:
                for transactional_id in expired:
                    self.transactions.pop(transactional_id, None)

        return CoordinatorResult(tombstones, None, on_committed, StateChange.ON_COMMIT)

    # -- changes

    def _change(
        self,
        transactional_id: str,
        changed: TransactionMetadata,
        response: R | None,
        on_failure: Callable[[], None] = lambda: None,
    ) -> CoordinatorResult[R]:
        """Returns the result that writes `changed` as the metadata of the transactional id.

        When the record is committed, `changed` takes effect and `response` is sent. If the record cannot be written,
        `on_failure` is called instead.
        """
        assert transactional_id not in self._uncommitted, f"two changes of {transactional_id} at once"
        current = self.transactions.get(transactional_id)
        assert current is None or not _decreases_epoch(current, changed), f"{transactional_id}: {current} -> {changed}"
        self._uncommitted.add(transactional_id)

        def on_committed(error: Error) -> None:
            self._uncommitted.discard(transactional_id)
            if error is not Error.NONE:
                on_failure()
                return
            self.transactions[transactional_id] = changed
            if changed.state in PREPARED_STATES:
                self._markers.deliver(transactional_id, changed)

        version = 1 if self._transaction_version() >= 1 else 0
        record = transaction_record(transactional_id, changed, version)
        return CoordinatorResult([record], response, on_committed, StateChange.ON_COMMIT)


def _decreases_epoch(current: TransactionMetadata, changed: TransactionMetadata) -> bool:
    """Returns True if the change would decrease the epoch of the producer id; a fenced producer could then write
    again."""
    return changed.producer_id == current.producer_id and changed.producer_epoch < current.producer_epoch


def _is_known_producer(metadata: TransactionMetadata, producer: ProducerIdAndEpoch) -> bool:
    """Returns True if `producer`, the producer id and epoch in an InitProducerId request, may belong to the
    transactional id. This is the case in each of three situations:

    - The transactional id has no producer epoch yet.
    - The producer id is the current one. As in Apache Kafka, the epoch is not checked here. If no transaction is open,
      `initialized` checks it. If a transaction is open, InitProducerId aborts the transaction, whatever the epoch is.
    - The producer id is the previous one, and the epoch is the last one that a client may use (LAST_CLIENT_EPOCH).
    """
    if metadata.producer_epoch == NO_PRODUCER_EPOCH or producer.producer_id == metadata.producer_id:
        return True
    return producer.producer_id == metadata.previous_producer_id and producer.producer_epoch >= LAST_CLIENT_EPOCH
