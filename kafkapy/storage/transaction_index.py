"""`.txnindex`: the aborted transactions that ended in a segment (KIP-98). The file is created with its first entry.

0 version int16 (0) | 2 producer id int64 | 10 first offset int64 | 18 last offset int64 | 26 last stable offset int64
"""

import os
import struct

from kafkapy.named_tuple import NamedTuple
from kafkapy.storage.filesystem import Filesystem

ENTRY = struct.Struct(">hqqqq")
VERSION = 0


class AbortedTransaction(NamedTuple):
    """An entry of the transaction index. Offsets are inclusive; `last_offset` is the offset of the marker."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class CorruptTransactionIndex(ValueError):
    """A damaged transaction index; the message names the file."""


class TransactionIndex:
    """The transaction index of one segment. Last offsets rise strictly.

    The file is opened for each use, because aborted transactions are rare. Only the thread that owns the log changes
    it.
    """

    __slots__ = ("_filesystem", "path")

    def __init__(self, path: str, filesystem: Filesystem) -> None:
        self.path = path
        self._filesystem = filesystem

    def entries(self) -> list[AbortedTransaction]:
        """Returns all entries, or [] if there is no file. Raises CorruptTransactionIndex or OSError."""
        try:
            with open(self.path, "rb") as file:
                content = file.read()
        except FileNotFoundError:
            return []
        if len(content) % ENTRY.size:
            raise CorruptTransactionIndex(f"{self.path}: {len(content)} bytes are not a number of entries")
        entries = []
        for version, *fields in ENTRY.iter_unpack(content):
            if version != VERSION:
                raise CorruptTransactionIndex(f"{self.path}: unknown version {version}")
            entries.append(AbortedTransaction(*fields))
        return entries

    def is_absent(self) -> bool:
        """Returns whether there is no file, and therefore no entry."""
        return not os.path.exists(self.path)

    def append(self, aborted: AbortedTransaction) -> None:
        """Appends an entry, which is not durable on return. Raises OSError, and ValueError if the entry's last offset
        is not above that of the previous entry."""
        entries = self.entries()
        if entries and entries[-1].last_offset >= aborted.last_offset:
            raise ValueError(f"{self.path}: last offset {aborted.last_offset} is not greater than the last entry's")
        self._filesystem.append_file(self.path, ENTRY.pack(VERSION, *aborted))

    def collect(self, fetch_offset: int, upper_bound_offset: int) -> tuple[list[AbortedTransaction], bool]:
        """Returns the transactions that overlap [fetch_offset, upper_bound_offset), and whether the list is complete.

        If the second value is False, the indexes of later segments may contain further transactions. Raises
        CorruptTransactionIndex or OSError.
        """
        found = []
        for aborted in self.entries():
            if aborted.last_offset >= fetch_offset and aborted.first_offset < upper_bound_offset:
                found.append(aborted)
            if aborted.last_stable_offset >= upper_bound_offset:
                return found, True
        return found, False

    def truncate_to(self, offset: int) -> None:
        """Removes entries whose last offset is at or after `offset`. Raises CorruptTransactionIndex or OSError."""
        entries = self.entries()
        kept = [aborted for aborted in entries if aborted.last_offset < offset]
        if len(kept) != len(entries):
            self._filesystem.truncate_file(self.path, len(kept) * ENTRY.size)

    def flush(self) -> None:
        """Makes the file durable, if there is one. Raises OSError."""
        if os.path.exists(self.path):
            self._filesystem.sync_path(self.path)

    def delete(self) -> None:
        self._filesystem.unlink(self.path)
