"""The pending records of the delay service: times and places in memory, contents in a temporary file.

A pending record takes about 32 bytes of memory, and another 150 or so if it has an id. The file is a cache: the topic
of pending records is the durable form, from which the file is written again at a start.
"""

from __future__ import annotations

import os
import tempfile
from array import array
from collections.abc import Iterator
from typing import BinaryIO

from kafkapy.client.closing import Closing
from kafkapy.client.reliable.timing_wheel import TimingWheel

# Space of removed records is given back once it exceeds this size and that of the present records.
_LEAST_GARBAGE = 64 << 20
_LEAST_DEAD = 10_000


class PendingRecords(Closing):
    """The pending records by due time, each with its partition and its stored content. Not thread-safe.

    The methods name a record by its entry: a number that is used for another record after `release`.
    """

    def __init__(self, now_ms: int, tick_ms: int = 8) -> None:
        self._tick_ms = tick_ms
        self._due = array("q")
        self._positions = array("q")
        self._sizes = array("I")  # 0 for an entry that was removed
        self._partitions = array("I")
        self._free = array("I")
        self._by_key: dict[tuple[int, bytes], int] = {}
        self._wheel = self._new_wheel(now_ms)
        self._file = _new_file()
        self._end = 0
        self._live_bytes = 0
        self._dead = 0
        self.count = 0

    def close(self) -> None:
        """Closes the temporary file, which removes it."""
        self._file.close()

    def add(self, partition: int, due_ms: int, content: bytes, state_key: bytes | None) -> int:
        """Adds a record and returns its entry.

        `due_ms` is in ms since 1970. A record with a `state_key` replaces the earlier record of the partition with this
        key, and `remove_key` can remove it. Raises OSError if the content cannot be written.
        """
        if state_key is not None:
            self.remove_key(partition, state_key)
        os.pwrite(self._file.fileno(), content, self._end)
        if self._free:
            entry = self._free.pop()
            self._due[entry], self._positions[entry] = due_ms, self._end
            self._sizes[entry], self._partitions[entry] = len(content), partition
        else:
            entry = len(self._due)
            self._due.append(due_ms)
            self._positions.append(self._end)
            self._sizes.append(len(content))
            self._partitions.append(partition)
        self._end += len(content)
        self._live_bytes += len(content)
        self.count += 1
        if state_key is not None:
            self._by_key[partition, state_key] = entry
        self._wheel.add(entry)
        return entry

    def remove_key(self, partition: int, state_key: bytes) -> bool:
        """Removes the record with this key; returns whether there was one."""
        entry = self._by_key.pop((partition, state_key), None)
        if entry is None:
            return False
        self.remove(entry)
        return True

    def remove(self, entry: int) -> None:
        """Removes a record.

        If `advance` has yielded the entry already, the caller must `release` it. Otherwise the entry is used for
        another record as soon as `advance` reaches the record's due time.
        """
        self._live_bytes -= self._sizes[entry]
        self._sizes[entry] = 0
        self.count -= 1
        self._dead += 1

    def forget_key(self, partition: int, state_key: bytes) -> None:
        """Removes the key of a record, but not the record: the key no longer finds it. Does nothing if no record has
        the key.
        """
        self._by_key.pop((partition, state_key), None)

    def advance(self, now_ms: int) -> Iterator[tuple[int, int]]:
        """Yields the partition and the entry of each record that is due at `now_ms` (ms since 1970).

        An entry is a number that names a pending record; the caller must pass each to `release`.
        """
        for entry in self._wheel.advance(now_ms):
            if self._sizes[entry] == 0:
                self._dead -= 1
                self._free.append(entry)
            else:
                yield self._partitions[entry], entry

    def is_live(self, entry: int) -> bool:
        """Returns False if a due record, which `advance` has yielded, was removed or replaced afterwards; otherwise
        True.
        """
        return self._sizes[entry] > 0

    def content(self, entry: int) -> bytes:
        """Returns the stored content of a record. Raises OSError if it cannot be read."""
        content = os.pread(self._file.fileno(), self._sizes[entry], self._positions[entry])
        if len(content) != self._sizes[entry]:
            raise OSError("The temporary file of the delay service is shorter than it was")
        return content

    def release(self, entry: int) -> None:
        """Ends a due record: its entry can be used again."""
        if self._sizes[entry]:
            self._live_bytes -= self._sizes[entry]
            self._sizes[entry] = 0
            self.count -= 1
        else:
            self._dead -= 1
        self._free.append(entry)

    def next_ms(self) -> int | None:
        """Returns the latest time (ms since 1970) at which `advance` must be called again; None if there are no
        records.
        """
        return self._wheel.next_ms()

    def tidy(self, now_ms: int) -> None:
        """Frees the space of removed records if it is large; otherwise does nothing.

        It is large if the removed records are more than the remaining ones and more than _LEAST_DEAD, or if their bytes
        are more than those of the remaining ones and more than _LEAST_GARBAGE.

        The remaining records then get other entries, as after `keep_only`. `now_ms` is in ms since 1970.
        """
        garbage = self._end - self._live_bytes
        if self._dead > max(self.count, _LEAST_DEAD) or garbage > max(self._live_bytes, _LEAST_GARBAGE):
            self.keep_only(None, now_ms)

    def keep_only(self, partitions: frozenset[int] | None, now_ms: int) -> None:
        """Removes the records of all partitions but `partitions`, and frees all unused space.

        If `partitions` is None, no record is removed. The remaining records get other entries. Those that are due but
        were not released become pending again: `advance` will yield them a second time. `now_ms` is in ms since 1970.
        """
        keys = {entry: key for key, entry in self._by_key.items()}
        old_file, fields = self._file, (self._due, self._positions, self._sizes, self._partitions)
        self._file = _new_file()
        self._due, self._positions, self._sizes, self._partitions = array("q"), array("q"), array("I"), array("I")
        self._free = array("I")
        self._by_key = {}
        self._wheel = self._new_wheel(now_ms)
        self._end = self._live_bytes = self._dead = self.count = 0
        with old_file:
            for entry, (due_ms, position, size, partition) in enumerate(zip(*fields, strict=True)):
                if size and (partitions is None or partition in partitions):
                    key = keys.get(entry)
                    content = os.pread(old_file.fileno(), size, position)
                    self.add(partition, due_ms, content, None if key is None else key[1])

    def _new_wheel(self, now_ms: int) -> TimingWheel:
        return TimingWheel(now_ms, lambda entry: self._due[entry], self._tick_ms)


def _new_file() -> BinaryIO:
    """Returns a file without a name, whose space is freed when it is closed or the process ends."""
    return tempfile.TemporaryFile(prefix="kafkapy-delay-", buffering=0)
