"""The transactions of the batches that a pass of the log cleaner has read, in the order of offsets (KIP-98).

A marker is kept until no record of its transaction is left and then, like a tombstone, until its delete horizon.
"""

import heapq
from collections.abc import Iterable

from kafkapy._core.bytes.record_batch import RecordBatch
from kafkapy.storage.control_record import end_transaction_marker
from kafkapy.storage.transaction_index import AbortedTransaction


class CleanedTransactions:
    """The transactions of which the pass has read a batch, but not yet the marker.

    Used for one pass, by one thread. The pass must present every batch once, in the order of offsets.
    """

    __slots__ = ("_aborted", "_committed", "_known", "_ongoing_aborted", "kept")

    def __init__(self) -> None:
        self.kept: list[AbortedTransaction] = []  # to be indexed again, because their markers are kept
        self._known: set[AbortedTransaction] = set()
        self._aborted: list[tuple[int, AbortedTransaction]] = []
        self._ongoing_aborted: dict[int, tuple[AbortedTransaction, bool]] = {}  # by producer; True: has records
        self._committed: set[int] = set()

    def add_aborted(self, transactions: Iterable[AbortedTransaction]) -> None:
        """Adds aborted transactions that overlap the batches to be read; transactions that were added before are
        ignored."""
        for transaction in transactions:
            if transaction not in self._known:
                self._known.add(transaction)
                heapq.heappush(self._aborted, (transaction.first_offset, transaction))

    def is_aborted(self, batch: RecordBatch) -> bool:
        """Returns whether a data batch belongs to an aborted transaction.

        Also records that the transaction has records. The pass calls this method once for each data batch.
        """
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
        """Returns whether a control batch is empty, or ends a transaction of which the pass has read no record.

        Also records that the transaction has ended. The pass calls this method once for each control batch.
        """
        self._advance(batch.last_offset)
        if batch.record_count == 0:
            return True  # an earlier pass has removed the marker and kept the batch for its producer
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
