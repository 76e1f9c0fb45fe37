"""The metadata of one transactional id, and the pure functions that compute its next state."""

from __future__ import annotations

from kafkapy.coordinator.transaction.transaction_state import (
    COMPLETED_BY,
    RESTING_STATES,
    VALID_PREVIOUS_STATES,
    TransactionState,
)
from kafkapy.errors import ApiError, Error
from kafkapy.named_tuple import NamedTuple
from kafkapy.types import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_TIMESTAMP, TopicPartition

# The last epoch that a client may use. One more is reserved for fencing the client.
LAST_CLIENT_EPOCH = (1 << 15) - 2
# Levels of the feature transaction.version. From 2 on, each end of a transaction increases the producer's epoch
# (KIP-890).
TRANSACTION_VERSION_0 = 0
TRANSACTION_VERSION_2 = 2


class TransactionMetadata(NamedTuple):
    """The metadata of one transactional id, as of its newest record. The object does not change; `_replace` returns a
    changed copy.

    `last_producer_epoch` is the producer epoch before its last increment. It is not written to the log.
    `previous_producer_id` is the producer id before the last change of the metadata. It differs from `producer_id` if
    this change replaced the producer id because its epochs were used up. The last epoch and the previous id are stored
    because a client that retries a request still sends them. `next_producer_id` is the id that will replace
    `producer_id` when the prepared transaction is complete, or -1 if the epochs of `producer_id` are not used up.
    """

    producer_id: int = NO_PRODUCER_ID
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH
    last_producer_epoch: int = NO_PRODUCER_EPOCH
    timeout_ms: int = 0
    state: TransactionState = TransactionState.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    start_ms: int = NO_TIMESTAMP
    last_update_ms: int = NO_TIMESTAMP
    client_transaction_version: int = TRANSACTION_VERSION_0

    @property
    def is_epoch_exhausted(self) -> bool:
        return self.producer_epoch >= LAST_CLIENT_EPOCH

    def moved_to(self, state: TransactionState, **changes: object) -> TransactionMetadata:
        """Returns the metadata in `state` and with the fields `changes`. Raises ValueError if the present state does
        not permit the transition."""
        if self.state not in VALID_PREVIOUS_STATES[state]:
            raise ValueError(f"a transaction does not go from {self.state.title} to {state.title}")
        return self._replace(state=state, previous_producer_id=self.producer_id, **changes)  # type: ignore[arg-type]


def initialized(
    metadata: TransactionMetadata, timeout_ms: int, expected_epoch: int | None, new_producer_id: int, wall_ms: int
) -> TransactionMetadata:
    """Returns the metadata after InitProducerId, with no transaction open.

    `expected_epoch` is the epoch that the producer sent, None for a new producer. `new_producer_id` is used if the
    transactional id is new, or if the epochs of its producer id are used up. Raises ApiError PRODUCER_FENCED if
    `expected_epoch` is neither None nor the producer epoch nor the last producer epoch in `metadata`; a transactional
    id that has no producer epoch yet accepts every epoch.
    """
    current, last = metadata.producer_epoch, metadata.last_producer_epoch
    producer_id, previous = metadata.producer_id, metadata.producer_id
    if producer_id == NO_PRODUCER_ID:
        producer_id = previous = new_producer_id
    if takes_new_producer_id(metadata, expected_epoch):
        producer_id, epoch = new_producer_id, 0
        last = current if expected_epoch is not None else NO_PRODUCER_EPOCH
    elif expected_epoch is None:
        epoch, last = current + 1, NO_PRODUCER_EPOCH
    elif current in (NO_PRODUCER_EPOCH, expected_epoch):
        epoch, last = current + 1, current
    elif expected_epoch == last:
        epoch = current  # The request is repeated because its response was lost.
    else:
        raise ApiError(Error.PRODUCER_FENCED)
    return metadata.moved_to(
        TransactionState.EMPTY,
        producer_id=producer_id,
        producer_epoch=epoch,
        last_producer_epoch=last,
        timeout_ms=timeout_ms,
        partitions=frozenset(),
        start_ms=NO_TIMESTAMP,
        last_update_ms=wall_ms,
    )._replace(previous_producer_id=previous)


def takes_new_producer_id(metadata: TransactionMetadata, expected_epoch: int | None) -> bool:
    """Returns True if InitProducerId needs a new producer id because the epochs of the current id are used up.

    `expected_epoch` is the epoch that the producer sent, None for a new producer. Returns False for a repeated request,
    which has the previous epoch.
    """
    return metadata.is_epoch_exhausted and expected_epoch in (None, metadata.producer_epoch)


def with_partitions(
    metadata: TransactionMetadata, partitions: frozenset[TopicPartition], client_transaction_version: int, wall_ms: int
) -> TransactionMetadata:
    """Returns the metadata with `partitions` added to the transaction, which begins if it was not open.

    `client_transaction_version` is 2 for clients that use KIP-890, otherwise 0.
    """
    return metadata.moved_to(
        TransactionState.ONGOING,
        partitions=metadata.partitions | partitions,
        start_ms=wall_ms if metadata.state in RESTING_STATES else metadata.start_ms,
        last_update_ms=wall_ms,
        client_transaction_version=client_transaction_version,
    )


def prepared(
    metadata: TransactionMetadata, *, commit: bool, client_transaction_version: int, next_producer_id: int, wall_ms: int
) -> TransactionMetadata:
    """Returns the metadata after the outcome of the transaction has been decided: commit if `commit` is True, otherwise
    abort.

    From `client_transaction_version` 2 on, the producer epoch is increased and the markers have the new epoch, so that
    late writes are refused. `next_producer_id` will replace a producer id whose epochs are used up; otherwise it is -1.
    """
    epoch, last = metadata.producer_epoch, metadata.last_producer_epoch
    if client_transaction_version >= TRANSACTION_VERSION_2:
        epoch, last = epoch + 1, epoch
    return metadata.moved_to(
        TransactionState.PREPARE_COMMIT if commit else TransactionState.PREPARE_ABORT,
        next_producer_id=next_producer_id,
        producer_epoch=epoch,
        last_producer_epoch=last,
        # An abort without a transaction counts as one that began now.
        start_ms=wall_ms if metadata.state in RESTING_STATES else metadata.start_ms,
        last_update_ms=wall_ms,
        client_transaction_version=client_transaction_version,
    )


def fenced(metadata: TransactionMetadata, server_version: int, wall_ms: int) -> TransactionMetadata:
    """Returns the metadata after the coordinator has decided to abort the open transaction, with a higher producer
    epoch.

    The higher epoch fences the producer. `server_version` is the finalized level of transaction.version.
    """
    aborted = prepared(
        metadata,
        commit=False,
        client_transaction_version=server_version,
        next_producer_id=NO_PRODUCER_ID,
        wall_ms=wall_ms,
    )
    if server_version >= TRANSACTION_VERSION_2:
        return aborted
    return aborted._replace(producer_epoch=metadata.producer_epoch + 1, last_producer_epoch=NO_PRODUCER_EPOCH)


def completed(metadata: TransactionMetadata, wall_ms: int) -> TransactionMetadata:
    """Returns the metadata after all markers have been written, which ends the transaction.

    If the client uses KIP-890 and `next_producer_id` is not -1, this id becomes the producer id, with epoch 0.
    """
    changes: dict[str, object] = {}
    if metadata.client_transaction_version >= TRANSACTION_VERSION_2 and metadata.next_producer_id != NO_PRODUCER_ID:
        # The client knows LAST_CLIENT_EPOCH as its last epoch; the epoch above it was only in the markers.
        changes = {"producer_id": metadata.next_producer_id, "producer_epoch": 0}
    return metadata.moved_to(
        COMPLETED_BY[metadata.state],
        next_producer_id=NO_PRODUCER_ID,
        partitions=frozenset(),
        last_update_ms=wall_ms,
        **changes,
    )
