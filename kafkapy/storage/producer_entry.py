"""What a log remembers of one idempotent producer (KIP-98): its epoch, its last five batches, its open transaction."""

from typing import NamedTuple

NO_PRODUCER_ID = -1
NO_EPOCH = -1
NO_SEQUENCE = -1
NO_OFFSET = -1
LARGEST_SEQUENCE = 2**31 - 1
BATCHES_TO_RETAIN = 5


def sequence_before(sequence: int, count: int) -> int:
    """`sequence` minus `count`, wrapping below 0 as sequence numbers do."""
    return sequence - count if sequence >= count else LARGEST_SEQUENCE - (count - sequence) + 1


def follows(last_sequence: int, sequence: int) -> bool:
    return sequence == last_sequence + 1 or (sequence == 0 and last_sequence == LARGEST_SEQUENCE)


class BatchMetadata(NamedTuple):
    """A batch that was appended; both ends inclusive."""

    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    timestamp: int


class ProducerStateEntry:
    """One producer of one log. Invariants: at most five batches, all of `producer_epoch`, oldest first.

    Changed by the log's owner thread only. `transaction_first_offset` is -1 outside a transaction.
    """

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "last_timestamp",
        "producer_epoch",
        "producer_id",
        "transaction_first_offset",
    )

    def __init__(
        self,
        producer_id: int,
        producer_epoch: int = NO_EPOCH,
        last_timestamp: int = -1,
        coordinator_epoch: int = NO_EPOCH,
        transaction_first_offset: int = NO_OFFSET,
    ) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.last_timestamp = last_timestamp
        self.coordinator_epoch = coordinator_epoch
        self.transaction_first_offset = transaction_first_offset
        self.batches: list[BatchMetadata] = []

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    def raise_epoch(self, producer_epoch: int) -> None:
        """A new epoch begins its sequences anew: batches of the old one are no duplicates of it."""
        if producer_epoch != self.producer_epoch:
            self.batches.clear()
            self.producer_epoch = producer_epoch

    def add(self, producer_epoch: int, batch: BatchMetadata) -> None:
        self.raise_epoch(producer_epoch)
        if len(self.batches) == BATCHES_TO_RETAIN:
            del self.batches[0]
        self.batches.append(batch)
        self.last_timestamp = batch.timestamp

    def find_duplicate(self, producer_epoch: int, first_sequence: int, last_sequence: int) -> BatchMetadata | None:
        if producer_epoch == self.producer_epoch:
            for batch in self.batches:
                if batch.first_sequence == first_sequence and batch.last_sequence == last_sequence:
                    return batch
        return None

    def __repr__(self) -> str:
        return f"ProducerStateEntry({self.producer_id}, epoch={self.producer_epoch}, batches={self.batches})"
