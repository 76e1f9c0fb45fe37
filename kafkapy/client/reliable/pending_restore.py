"""Reads the pending records of a partition of the delay service from the topic that stores them."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable

from kafkapy.client.reliable.delayed_records import offset_of_state_key, unpack
from kafkapy.client.reliable.pending_records import PendingRecords
from kafkapy.client.reliable.records import SourceRecord

# The changes after which `restore` commits them.
_MOST_UNCOMMITTED = 1000
_NO_ENTRY = (1 << 32) - 1


class _EntriesByOffset:
    """The entries of records without an id, by their offsets in the delay topic. Each takes twelve bytes of memory.

    An entry is the number by which PendingRecords names a record. Offsets are added in ascending order unless the delay
    topic was deleted and created again.
    """

    def __init__(self) -> None:
        self._offsets = array("q")
        self._entries = array("I")

    def add(self, offset: int, entry: int) -> None:
        if not self._offsets or offset > self._offsets[-1]:
            self._offsets.append(offset)
            self._entries.append(entry)
        else:
            index = bisect_left(self._offsets, offset)
            self._offsets.insert(index, offset)
            self._entries.insert(index, entry)

    def pop(self, offset: int) -> int | None:
        """Returns the entry of an offset and forgets it; returns None if there is none."""
        if not self._offsets or offset > self._offsets[-1]:
            return None
        index = bisect_left(self._offsets, offset)
        if self._offsets[index] != offset or self._entries[index] == _NO_ENTRY:
            return None
        entry, self._entries[index] = self._entries[index], _NO_ENTRY
        return entry


def restore(pending: PendingRecords, partition: int, records: Iterable[SourceRecord]) -> int:
    """Adds the records of a partition to `pending` and returns their number.

    `records` has the committed records of `partition` in the topic of pending records, from the first one on. Raises
    ValueError if one of them is not a pending record.
    """
    by_offset = _EntriesByOffset()
    before = pending.count
    for number, record in enumerate(records):
        if number % _MOST_UNCOMMITTED == 0:
            pending.commit()
        offset = offset_of_state_key(record.key)
        if offset is not None:
            earlier = by_offset.pop(offset)
            if earlier is not None:
                pending.remove(earlier)
            if record.value is not None:
                by_offset.add(offset, pending.add(partition, unpack(record.value).due_ms, record.value, None))
        elif record.value is not None:
            pending.add(partition, unpack(record.value).due_ms, record.value, record.key)
        else:
            pending.remove_key(partition, record.key)
    pending.commit()
    return pending.count - before
