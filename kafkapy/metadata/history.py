"""The metadata of a cluster at any offset or time that its metadata log still contains.

The module makes images from records and has no side effects. Readers of files and of live controllers fill a
MetadataHistory; `partition_history` explains the changes of one partition.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import Any

from kafkapy.metadata.image import EMPTY_IMAGE, MetadataImage
from kafkapy.metadata.loader import MetadataLoader
from kafkapy.named_tuple import NamedTuple

# The number of records after which the next image is stored. Images share all parts that are equal.
_RECORDS_PER_IMAGE = 1000
_BEGIN, _END, _ABORT = "BeginTransactionRecord", "EndTransactionRecord", "AbortTransactionRecord"


class LoggedRecord(NamedTuple):
    """A record of the metadata log, or a control record of the quorum.

    `base_offset` is the first offset of the record's batch, `wall_ms` the batch's time in ms since 1970, set by the
    active controller.
    """

    offset: int
    base_offset: int
    epoch: int
    wall_ms: int
    message: Any
    is_control: bool = False


class MetadataHistory:
    """The records of a metadata log in order, which follow the image of a snapshot. Not thread-safe.

    The history begins at the offset of `base`, the image before the first record. The image at an offset contains the
    effects of the records before this offset, except the records of a metadata transaction that has not ended by then.
    """

    def __init__(self, base: MetadataImage = EMPTY_IMAGE) -> None:
        self.base = base
        self.records: list[LoggedRecord] = []
        self._images = [base]  # in order of their offsets
        self._loader = MetadataLoader(base)
        self._since_image = 0

    @property
    def end_offset(self) -> int:
        """The offset after the last record."""
        return self.records[-1].offset + 1 if self.records else self.base.offset

    def append(self, record: LoggedRecord) -> None:
        """Adds the next record. Raises ValueError if its offset is before the end of the history, or if it contradicts
        the earlier records, such as a change of an unknown topic."""
        if record.offset < self.end_offset:
            raise ValueError(f"record at offset {record.offset} after the end of the history, {self.end_offset}")
        if not record.is_control:
            self._loader.replay(record.message)
        self.records.append(record)
        self._since_image += 1
        if self._since_image >= _RECORDS_PER_IMAGE and not self._loader.in_transaction:
            image = self._loader.delta.to_image(record.offset + 1, record.epoch)
            self._images.append(image)
            self._loader = MetadataLoader(image)
            self._since_image = 0

    def image_at(self, offset: int) -> MetadataImage:
        """Returns the metadata after the records before `offset`. Returns `base`, the image of the snapshot, for an
        earlier offset."""
        nearest = self._images[max(bisect_right(self._images, offset, key=lambda image: image.offset) - 1, 0)]
        loader = MetadataLoader(nearest)
        epoch = nearest.epoch
        for record in self.between(nearest.offset, offset):
            epoch = record.epoch
            if not record.is_control:
                loader.replay(record.message)
        return loader.delta.to_image(max(offset, nearest.offset), epoch)

    def offset_at(self, wall_ms: int) -> int:
        """Returns the offset after the last record that was written at the time `wall_ms` (ms since 1970) or before it;
        the first offset of the history if there is no such record."""
        at = bisect_right(self.records, wall_ms, key=lambda record: record.wall_ms)
        return self.records[at - 1].offset + 1 if at else self.base.offset

    def between(self, start: int, end: int) -> list[LoggedRecord]:
        """Returns the records from offset `start` (inclusive) to `end` (exclusive)."""
        low = bisect_right(self.records, start - 1, key=lambda record: record.offset)
        high = bisect_right(self.records, end - 1, key=lambda record: record.offset)
        return self.records[low:high]

    def effective(self) -> Iterator[LoggedRecord]:
        """Yields the records in the order in which they take effect.

        The records of a metadata transaction take effect at its end. The records of an aborted or unfinished
        transaction are left out. The records that begin, end and abort transactions are left out, too.
        """
        transaction: list[LoggedRecord] | None = None
        for record in self.records:
            kind = type(record.message).__name__
            if kind == _BEGIN:
                transaction = []
            elif kind == _END and transaction is not None:
                yield from transaction
                transaction = None
            elif kind == _ABORT:
                transaction = None
            elif transaction is not None and not record.is_control:
                transaction.append(record)
            else:
                yield record
