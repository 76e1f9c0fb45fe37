"""What the log cleaner knows of transactions while it reads a log in order (KIP-98).

A marker stays as long as records of its transaction do; then, like a tombstone, it waits out the delete horizon.
"""

import heapq
from collections.abc import Iterable

from kafkapy._core.bytes.record_batch import RecordBatch
from kafkapy.storage.control_record import end_transaction_marker
from kafkapy.storage.transaction_index import AbortedTransaction


class CleanedTransactions:
    """Owns the transactions between their first batch and their marker. One pass, one thread; batches in order."""

    __slots__ = ("_aborted", "_committed", "_known", "_ongoing_aborted", "kept")

    def __init__(self) -> None:
        self.kept: list[AbortedTransaction] = []  # whose markers stay: they go into the cleaned transaction index
        self._known: set[AbortedTransaction] = set()
        self._aborted: list[tuple[int, AbortedTransaction]] = []
        self._ongoing_aborted: dict[int, tuple[AbortedTransaction, bool]] = {}  # producer -> (it, has it records)
        self._committed: set[int] = set()

    def add_aborted(self, transactions: Iterable[AbortedTransaction]) -> None:
        """Aborted transactions that touch what is read next; those known already are left out."""
        for transaction in transactions:
            if transaction not in self._known:
                self._known.add(transaction)
                heapq.heappush(self._aborted, (transaction.first_offset, transaction))

    def is_aborted(self, batch: RecordBatch) -> bool:
        """Whether a data batch belongs to an aborted transaction."""
        self._advance(batch.last_offset)
        if not batch.is_transactional:
            return False
        found = self._ongoing_aborted.get(batch.producer_id)
        if found is None:
            self._committed.add(batch.producer_id)
            return False
        self._ongoing_aborted[batch.producer_id] = (found[0], True)
        return True

    def is_useless(self, batch: RecordBatch) -> bool:
        """Whether no record is left of the transaction that a control batch ends."""
        self._advance(batch.last_offset)
        if batch.record_count == 0:
            return True  # cleaned already, and kept for the producer's sake
        marker = end_transaction_marker(batch)
        if marker is None:
            return False
        producer_id = batch.producer_id
        if marker.is_commit:
            was_seen = producer_id in self._committed
            self._committed.discard(producer_id)
            return not was_seen
        transaction, has_records = self._ongoing_aborted.pop(producer_id, (None, False))
        if transaction is not None and has_records:
            self.kept.append(transaction)
            return False
        return True

    def _advance(self, offset: int) -> None:
        while self._aborted and self._aborted[0][0] <= offset:
            _, transaction = heapq.heappop(self._aborted)
            self._ongoing_aborted.setdefault(transaction.producer_id, (transaction, False))
