"""The leader epochs of a log with their start offsets (KIP-101), and the file `leader-epoch-checkpoint`.

Both numbers of the entries (epoch, start offset) rise strictly. The file may lack the newest entries, because recovery
can restore them: each batch contains its leader epoch as well. The log writes the file before its recovery point passes
the start offset of an entry.
"""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from threading import Lock

from kafkapy._core.broker_state.log_state import EpochsState
from kafkapy.storage.checkpoint import LEADER_EPOCH_CHECKPOINT, format_entries, read_entries
from kafkapy.storage.filesystem import Filesystem
from kafkapy.types import OffsetAndEpoch

UNDEFINED_EPOCH = -1
UNDEFINED_OFFSET = -1


class LeaderEpochCache(EpochsState):
    """The leader epochs of one log; owns the checkpoint file.

    Invariants: epochs and start offsets rise strictly and are not negative; the base class has a copy of the entries,
    for compiled code. Only the thread that owns the log changes the entries; other threads may use `entries` and
    `write` at the same time.
    """

    __slots__ = ("_entries", "_filesystem", "_write_lock", "_written", "directory")

    def __init__(self, directory: str, filesystem: Filesystem) -> None:
        self.directory = directory
        self._filesystem = filesystem
        self._entries: list[tuple[int, int]] = []
        self._written: tuple[tuple[int, int], ...] = ()
        self._write_lock = Lock()

    @property
    def path(self) -> str:
        return f"{self.directory}/{LEADER_EPOCH_CHECKPOINT}"

    def load(self) -> None:
        """Reads the checkpoint. Raises MalformedCheckpoint or OSError."""
        for epoch, start_offset in read_entries(self.path, 2):
            self.assign(int(epoch), int(start_offset))
        self._written = self.entries

    @property
    def entries(self) -> tuple[tuple[int, int], ...]:
        """The entries as pairs (epoch, start offset), oldest first."""
        return tuple(self._entries)

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Records that `epoch` begins at `start_offset`, and returns True.

        Removes the entries whose epoch is not below `epoch` or whose start offset is not below `start_offset`. Changes
        nothing and returns False if `epoch` is the newest epoch and begins at or before `start_offset` already. Raises
        ValueError if `epoch` or `start_offset` is negative.
        """
        if epoch < 0 or start_offset < 0:
            raise ValueError(f"epoch {epoch} at offset {start_offset} in {self.directory}")
        entries = self._entries
        if entries and entries[-1][0] == epoch and start_offset >= entries[-1][1]:
            return False
        while entries and (entries[-1][0] >= epoch or entries[-1][1] >= start_offset):
            entries.pop()
        entries.append((epoch, start_offset))
        self._set_epochs(entries)
        return True

    def confirm(self, epoch: int, first_offset: int, last_offset: int, previous_end_offset: int) -> None:
        """Corrects the entries after recovery has read a batch; a batch without an epoch (-1) changes nothing.

        If an entry contradicts the batch, the file is older than the last truncation of the log. In that case all
        entries that begin at or after `previous_end_offset`, the end of the previous batch, are removed.
        """
        newest = self._entries[-1] if self._entries else None
        if epoch < 0 or (newest is not None and newest[0] == epoch and newest[1] <= first_offset):
            return
        if self.epoch_for_offset(first_offset) == epoch == self.epoch_for_offset(last_offset):
            return
        self.truncate_from_end(previous_end_offset)
        if epoch > self.latest_epoch:
            self.assign(epoch, first_offset)

    def end_offset_for(self, epoch: int, log_end_offset: int) -> OffsetAndEpoch:
        """Returns the largest epoch <= `epoch` in the entries, with its end offset (exclusive).

        If `epoch` is below all entries, returns `epoch` itself with the start offset of the first entry. Epoch and
        offset are -1 if `epoch` is -1 or above the newest epoch, or if there are no entries.
        """
        if epoch == UNDEFINED_EPOCH:
            return OffsetAndEpoch(UNDEFINED_OFFSET, UNDEFINED_EPOCH)
        if epoch == self.latest_epoch:
            return OffsetAndEpoch(log_end_offset, epoch)
        higher = bisect_right(self._entries, epoch, key=epoch_of)
        if higher == len(self._entries):
            return OffsetAndEpoch(UNDEFINED_OFFSET, UNDEFINED_EPOCH)
        return OffsetAndEpoch(self._entries[higher][1], self._entries[higher - 1][0] if higher else epoch)

    def epoch_for_offset(self, offset: int) -> int:
        """Returns the epoch in which `offset` was written, or -1 if it is not known."""
        index = bisect_right(self._entries, offset, key=start_offset_of)
        return self._entries[index - 1][0] if index else UNDEFINED_EPOCH

    def truncate_from_end(self, end_offset: int) -> None:
        """Removes epochs that begin at or after `end_offset`."""
        while self._entries and self._entries[-1][1] >= end_offset:
            self._entries.pop()
        self._set_epochs(self._entries)

    def truncate_from_start(self, start_offset: int) -> None:
        """Removes the epochs that ended before `start_offset`. The epoch that contains `start_offset` then begins
        there."""
        covered = bisect_right(self._entries, start_offset, key=start_offset_of)
        if covered:
            self._entries[:covered] = [(self._entries[covered - 1][0], start_offset)]
            self._set_epochs(self._entries)

    def clear(self) -> None:
        """Removes all entries."""
        self._entries.clear()
        self._set_epochs(self._entries)

    def is_written(self, log_end_offset: int) -> bool:
        """Returns whether the file contains all entries that the log needs.

        The log does not need the last entry yet if the entry begins at `log_end_offset`, because no batch has its
        epoch.
        """
        entries = self.entries
        if entries == self._written:
            return True
        return bool(entries) and entries[:-1] == self._written and entries[-1][1] >= log_end_offset

    def write(self, log_end_offset: int, *, sync: bool = True) -> None:
        """Writes the entries to the file. If `sync` is True, the file is durable on return. Raises OSError.

        Does nothing if `is_written(log_end_offset)` is True: the file then has all entries that the log needs.
        """
        with self._write_lock:
            if self.is_written(log_end_offset):
                return
            entries = self.entries
            assert are_ascending(entries), (self.path, entries)
            content = format_entries(f"{epoch} {start_offset}" for epoch, start_offset in entries)
            self._filesystem.write_atomically(self.path, content, sync=sync)
            self._written = entries


def are_ascending(entries: Sequence[tuple[int, int]]) -> bool:
    """Returns whether both epochs and start offsets rise strictly."""
    return all(one[0] < next_one[0] and one[1] < next_one[1] for one, next_one in pairwise(entries))


def epoch_of(entry: tuple[int, int]) -> int:
    return entry[0]


def start_offset_of(entry: tuple[int, int]) -> int:
    return entry[1]
