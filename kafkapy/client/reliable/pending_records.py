"""The pending records of the delay service: times and places in memory, contents in a temporary file.

A pending record takes about 32 bytes of memory, and another 150 or so if it has an id. The file is a cache: the topic
of pending records is the durable form, from which the file is written again at a start.

The changes since the last `commit` are stored, so that `roll_back` undoes them when their transaction is aborted.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection
from enum import Enum, auto

from kafkapy.client.closing import Closing
from kafkapy.client.reliable.pending_contents import PendingContents
from kafkapy.client.reliable.timing_wheel import TimingWheel


class _Kind(Enum):
    """The kinds of changes that `roll_back` undoes."""

    ADDED = auto()
    REMOVED = auto()
    TAKEN = auto()
    KEY_FORGOTTEN = auto()


_Key = tuple[int, bytes]  # the partition and the state key of a record
_Change = tuple[_Kind, int, _Key | None]  # the kind, the entry and the key, if the record has one


class PendingRecords(Closing):
    """The pending records by due time, each with its partition and its stored content. Not thread-safe.

    The methods name a record by its entry: a number that is used for another record once the removal of the record is
    committed.
    """

    def __init__(self, now_ms: int, tick_ms: int = 8) -> None:
        self._due = array("q")
        self._positions = array("q")
        self._sizes = array("I")  # 0 for an entry without a record
        self._partitions = array("I")
        self._free = array("I")
        self._by_key: dict[_Key, int] = {}
        self._wheel = TimingWheel(now_ms, self._due.__getitem__, tick_ms)
        self._contents = PendingContents()
        self._changes: list[_Change] = []
        self.count = 0

    @property
    def file_size(self) -> int:
        """The size of the temporary file in bytes."""
        return self._contents.file_size

    def close(self) -> None:
        """Closes the temporary file, which removes it."""
        self._contents.close()

    def add(self, partition: int, due_ms: int, content: bytes, state_key: bytes | None) -> int:
        """Adds a record and returns its entry.

        `due_ms` is in ms since 1970. A record with a `state_key` replaces the earlier record of the partition with this
        key, and `remove_key` can remove it. Raises OSError if the content cannot be written.
        """
        key = None if state_key is None else (partition, state_key)
        if state_key is not None:
            self.remove_key(partition, state_key)
        position = self._contents.add(content)
        if self._free:
            entry = self._free.pop()
            self._due[entry], self._positions[entry] = due_ms, position
            self._sizes[entry], self._partitions[entry] = len(content), partition
        else:
            entry = len(self._due)
            self._due.append(due_ms)
            self._positions.append(position)
            self._sizes.append(len(content))
            self._partitions.append(partition)
        if key is not None:
            self._by_key[key] = entry
        self._wheel.add(entry)
        self._changes.append((_Kind.ADDED, entry, key))
        self.count += 1
        return entry

    def remove_key(self, partition: int, state_key: bytes) -> bool:
        """Removes the pending record with this key; returns whether there was one."""
        key = (partition, state_key)
        entry = self._by_key.pop(key, None)
        if entry is None:
            return False
        self._wheel.remove(entry)
        self._changes.append((_Kind.REMOVED, entry, key))
        self.count -= 1
        return True

    def remove(self, entry: int) -> None:
        """Removes a pending record without a key."""
        self._wheel.remove(entry)
        self._changes.append((_Kind.REMOVED, entry, None))
        self.count -= 1

    def take_due(self, now_ms: int, most: int) -> list[int]:
        """Removes the records that are due at `now_ms` (ms since 1970), at most `most`, and returns their entries.

        Their partitions and contents are available until `commit` is called. If a record has a key, the caller passes
        the key to `forget_key`.
        """
        self._wheel.advance(now_ms)
        found = self._wheel.take(most)
        self._changes += [(_Kind.TAKEN, entry, None) for entry in found]
        self.count -= len(found)
        return found

    def forget_key(self, partition: int, state_key: bytes) -> None:
        """Removes the key of a record that `take_due` has returned: the key no longer finds it."""
        key = (partition, state_key)
        entry = self._by_key.pop(key)
        self._changes.append((_Kind.KEY_FORGOTTEN, entry, key))

    def partition(self, entry: int) -> int:
        """Returns the partition of a record."""
        return self._partitions[entry]

    def content(self, entry: int) -> bytes:
        """Returns the stored content of a record. Raises OSError if it cannot be read."""
        return self._contents.read(self._positions[entry], self._sizes[entry])

    def next_ms(self) -> int | None:
        """Returns the time (ms since 1970) at which `take_due` must be called again at the latest; None if there are no
        records.
        """
        return self._wheel.next_ms()

    def commit(self) -> None:
        """Makes the changes since the last call final, and frees the space of the removed records."""
        for kind, entry, _ in self._changes:
            if kind in (_Kind.REMOVED, _Kind.TAKEN):
                self._release(entry)
        self._changes.clear()

    def roll_back(self) -> None:
        """Undoes the changes since the last `commit`. The records that `take_due` has returned are due again."""
        for kind, entry, key in reversed(self._changes):
            if kind is _Kind.ADDED:
                self._wheel.remove(entry)
                self._release(entry)
                self.count -= 1
                if key is not None:
                    del self._by_key[key]
                continue
            if key is not None:
                self._by_key[key] = entry
            if kind is _Kind.REMOVED:
                self._wheel.add(entry)
                self.count += 1
            elif kind is _Kind.TAKEN:
                self._wheel.put_back(entry)
                self.count += 1
        self._changes.clear()

    def drop(self, partitions: Collection[int]) -> None:
        """Removes all records of these partitions, without the possibility to undo it. Raises AssertionError if there
        are changes that were neither committed nor rolled back.
        """
        assert not self._changes
        if not partitions:
            return
        for entry, partition in enumerate(self._partitions):
            if partition in partitions and self._sizes[entry]:
                self._wheel.remove(entry)
                self._release(entry)
                self.count -= 1
        self._by_key = {key: entry for key, entry in self._by_key.items() if key[0] not in partitions}

    def _release(self, entry: int) -> None:
        self._contents.remove(self._positions[entry], self._sizes[entry])
        self._sizes[entry] = 0
        self._free.append(entry)
