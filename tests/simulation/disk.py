"""The disk of a simulated node: a log of batches, snapshots, and quorum-state."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from kafkapy.quorum.raft.effects import ElectionState, LeaderChange
from kafkapy.quorum.raft.log_view import LogView
from kafkapy.quorum.raft.messages import FetchedBatch, VoterChange
from kafkapy.quorum.voters import VoterSet
from kafkapy.types import OffsetAndEpoch


class Batch(NamedTuple):
    """A batch of the log, which counts as one byte. `digest` depends on this batch and on everything before it."""

    base_offset: int
    last_offset: int
    epoch: int
    digest: int
    changes: tuple[VoterChange, ...] = ()

    @property
    def fetched(self) -> FetchedBatch:
        return FetchedBatch(self.base_offset, self.last_offset, self.epoch, 1)


class Snapshot(NamedTuple):
    """The digest of the log up to the end offset of a snapshot, and the voters at that offset."""

    digest: int
    voters: VoterSet | None
    kraft_version: int


class Disk:
    """The files of a node. A kill keeps `batches` up to `flushed`, and a random part of the rest."""

    def __init__(self, formatted: VoterSet | None) -> None:
        self.start_offset = 0
        self.batches: list[Batch] = []
        self.flushed = 0
        # Batches that a truncation removed, which return with a crash before the next flush.
        self.removed: list[Batch] = []
        self.election: ElectionState | None = None
        self.snapshots: dict[OffsetAndEpoch, Snapshot] = {}
        if formatted is not None:
            self.snapshots[OffsetAndEpoch(0, 0)] = Snapshot(0, formatted, 1)

    @property
    def end_offset(self) -> int:
        return self.batches[-1].last_offset + 1 if self.batches else self.start_offset

    def digest_at(self, offset: int) -> int | None:
        """Returns the digest of the log before `offset`; None if that is not the end of a batch of this log."""
        if offset == self.start_offset:
            return self._start_digest()
        index = self.index_at(offset)
        return (
            self.batches[index - 1].digest if index > 0 and self.batches[index - 1].last_offset + 1 == offset else None
        )

    def _start_digest(self) -> int:
        return next((each.digest for key, each in self.snapshots.items() if key.offset == self.start_offset), 0)

    def index_at(self, offset: int) -> int:
        """Returns the index of the first batch at or after `offset`."""
        low, high = 0, len(self.batches)
        while low < high:
            middle = (low + high) // 2
            if self.batches[middle].base_offset < offset:
                low = middle + 1
            else:
                high = middle
        return low

    def append(self, records: int, epoch: int, value: object, changes: tuple[VoterChange, ...] = ()) -> Batch:
        """Appends a batch with `records` records; it is not yet flushed."""
        base = self.end_offset
        before = self.digest_at(base)
        digest = hash((before, base, records, epoch, value))
        batch = Batch(base, base + records - 1, epoch, digest, changes)
        self.batches.append(batch)
        return batch

    def append_control(self, epoch: int, records: tuple[LeaderChange | int | VoterSet, ...]) -> None:
        """Appends a control batch of the leader."""
        base = self.end_offset
        changes = tuple(
            VoterChange(base + index, record)
            if isinstance(record, VoterSet)
            else VoterChange(base + index, None, record)
            for index, record in enumerate(records)
            if not isinstance(record, LeaderChange)
        )
        self.append(len(records), epoch, records, changes)

    def flush(self) -> None:
        self.flushed = len(self.batches)
        self.removed = []

    def truncate(self, offset: int) -> None:
        """Removes the batches from `offset` on."""
        index = self.index_at(offset)
        self.removed = self.batches[index : self.flushed] + self.removed
        del self.batches[index:]
        self.flushed = min(self.flushed, len(self.batches))

    def start_at(self, snapshot_id: OffsetAndEpoch, snapshot: Snapshot) -> None:
        """Replaces the log by a snapshot."""
        self.batches = []
        self.removed = []
        self.flushed = 0
        self.start_offset = snapshot_id.offset
        self.snapshots = {snapshot_id: snapshot}

    def clean(self, oldest: OffsetAndEpoch) -> None:
        """Removes the snapshots older than `oldest`, and the batches of the log before the end of that snapshot."""
        index = self.index_at(oldest.offset)
        self.batches = self.batches[index:]
        self.flushed -= index
        self.start_offset = oldest.offset
        self.snapshots = {key: each for key, each in self.snapshots.items() if key >= oldest}

    def crash(self, random: Random) -> None:
        """Loses a random part of what was not flushed."""
        kept = random.randint(self.flushed, len(self.batches))
        del self.batches[kept:]
        if self.removed and self.removed[0].base_offset == self.end_offset and random.random() < 0.5:
            self.batches += self.removed
        self.flush()
        if self.snapshots and max(self.snapshots).offset > self.end_offset:
            newest = max(self.snapshots)
            self.start_at(newest, self.snapshots[newest])

    def view(self) -> LogView:
        """Returns the log as a start of the machine finds it."""
        epochs: list[tuple[int, int]] = []
        changes: list[VoterChange] = []
        before = [key for key in self.snapshots if key.offset <= self.start_offset]
        if before:
            snapshot = self.snapshots[max(before)]
            at = max(before).offset - 1
            if snapshot.voters is not None:
                changes.append(VoterChange(at, snapshot.voters))
            changes.append(VoterChange(at, None, snapshot.kraft_version))
        for batch in self.batches:
            if not epochs or batch.epoch > epochs[-1][0]:
                epochs.append((batch.epoch, batch.base_offset))
            changes += batch.changes
        return LogView(self.start_offset, self.end_offset, epochs, sorted(self.snapshots), changes)
