"""Replays metadata records in order, but the records of a metadata transaction only when the transaction ends
(KIP-866)."""

from __future__ import annotations

from typing import Any

from kafkapy.metadata.delta import MetadataDelta
from kafkapy.metadata.image import MetadataImage


class MetadataLoader:
    """Replays the metadata records that follow an image (the metadata at one offset) into a delta. Not thread-safe.

    `replay` is called for each record, in log order; `delta` contains the changes of the records that have taken
    effect. Records after BeginTransaction take effect at EndTransaction, and are dropped at AbortTransaction.
    """

    __slots__ = ("_transaction", "delta")

    def __init__(self, image: MetadataImage) -> None:
        self.delta = MetadataDelta(image)
        self._transaction: list[Any] | None = None

    @property
    def in_transaction(self) -> bool:
        return self._transaction is not None

    def continued_on(self, image: MetadataImage) -> MetadataLoader:
        """Returns a loader for the records after those of this loader.

        `image` is the metadata after the records of this loader. If a metadata transaction is open, the new loader
        continues it.
        """
        loader = MetadataLoader(image)
        loader._transaction = self._transaction
        return loader

    def replay(self, record: Any) -> None:
        """Replays one record.

        Raises ValueError for an unknown record, or for a record that contradicts the records before it, such as the
        change of an unknown topic.
        """
        kind = type(record).__name__
        if kind == "BeginTransactionRecord":
            if self._transaction is not None:
                raise ValueError("a metadata transaction begins inside another one")
            self._transaction = []
        elif kind in ("EndTransactionRecord", "AbortTransactionRecord"):
            self._end_transaction(kind)
        elif self._transaction is not None:
            self._transaction.append(record)
        else:
            self.delta.replay(record)

    def _end_transaction(self, kind: str) -> None:
        if self._transaction is None:
            raise ValueError(f"{kind} outside of a metadata transaction")
        records, self._transaction = self._transaction, None
        if kind == "EndTransactionRecord":
            for record in records:
                self.delta.replay(record)
