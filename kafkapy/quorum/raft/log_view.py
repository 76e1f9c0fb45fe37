"""The Raft machine's view of the metadata log: offsets, epochs, snapshots and the history of voter sets."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from kafkapy.quorum.raft.messages import FetchedBatch, VoterChange
from kafkapy.quorum.voters import VoterSet
from kafkapy.types import OffsetAndEpoch


def _epoch_of(entry: tuple[int, int]) -> int:
    return entry[0]


class LogView:
    """The offsets, epochs, snapshots and voter sets of the metadata log. The Raft machine needs nothing else of the
    log: only its driver (`MetadataQuorum`) reads the records.

    The newest snapshot is never ahead of the log. The log on disk may end before its newest snapshot: in an earlier
    epoch, or in the same epoch at a lower offset. When the driver opens such a log, it first replaces the log with an
    empty one that begins at the end of the snapshot.

    epochs     (epoch, start offset) pairs in ascending order, as in leader-epoch-checkpoint
    snapshots  ids of the complete snapshots, in ascending order; includes the snapshot 0-0 that formatting wrote
    changes    KRaftVoters and KRaftVersion records in ascending order of offset: those of the log, and those of the
               newest snapshot before the log start, whose offset is the end offset of the snapshot minus 1
    """

    __slots__ = ("_versions", "_voter_sets", "end_offset", "epochs", "flushed_offset", "snapshots", "start_offset")

    def __init__(
        self,
        start_offset: int = 0,
        end_offset: int = 0,
        epochs: Iterable[tuple[int, int]] = (),
        snapshots: Iterable[OffsetAndEpoch] = (),
        changes: Iterable[VoterChange] = (),
    ) -> None:
        self.start_offset = start_offset
        self.end_offset = end_offset
        self.flushed_offset = end_offset
        self.epochs = list(epochs)
        self.snapshots = list(snapshots)
        self._voter_sets: list[tuple[int, VoterSet]] = []
        self._versions: list[tuple[int, int]] = []
        for change in changes:
            self._add_change(change)

    # -- epochs

    @property
    def last_epoch(self) -> int:
        """The epoch of the last record, or of the newest snapshot if the log is empty, or 0."""
        if self.epochs:
            return self.epochs[-1][0]
        return self.snapshots[-1].epoch if self.snapshots else 0

    @property
    def end(self) -> OffsetAndEpoch:
        """The end offset and the epoch of the last record."""
        return OffsetAndEpoch(self.end_offset, self.last_epoch)

    def end_of_epoch(self, epoch: int) -> OffsetAndEpoch:
        """Returns the largest epoch of the log that is at most `epoch`, and the offset at which the records of that
        epoch end.

        If `epoch` is the last epoch or a later one, the result is the last epoch and the end of the log. If `epoch` is
        older than all records, the result has the offset of the first record. Its epoch is then the epoch of the oldest
        snapshot if the snapshot ends at this offset, and otherwise `epoch` itself.
        """
        if not self.epochs or epoch >= self.epochs[-1][0]:
            return OffsetAndEpoch(self.end_offset, self.last_epoch)
        index = bisect_right(self.epochs, epoch, key=_epoch_of)
        if index == 0:
            start = self.epochs[0][1]
            is_snapshot = bool(self.snapshots) and self.snapshots[0].offset == start
            return OffsetAndEpoch(start, self.snapshots[0].epoch if is_snapshot else epoch)
        return OffsetAndEpoch(self.epochs[index][1], self.epochs[index - 1][0])

    # -- voters

    def voters(self) -> VoterSet | None:
        """Returns the newest voter set of the log, None if it contains none."""
        return self._voter_sets[-1][1] if self._voter_sets else None

    def voters_offset(self) -> int:
        """Returns the offset of the newest KRaftVoters record; -1 if there is none, or if it is in the snapshot 0-0,
        which formatting wrote.
        """
        return self._voter_sets[-1][0] if self._voter_sets else -1

    def former_voters(self) -> VoterSet | None:
        """Returns the voter set that the newest one replaced, None if the log does not contain the replaced set."""
        return self._voter_sets[-2][1] if len(self._voter_sets) > 1 else None

    def kraft_version(self) -> int:
        """Returns the newest kraft.version of the log, 0 if the log contains no KRaftVersion record."""
        return self._versions[-1][1] if self._versions else 0

    def voters_before(self, offset: int) -> tuple[VoterSet | None, int]:
        """Returns the voter set (None if there is none) and the kraft.version of the records before `offset`."""
        voters = next((voters for at, voters in reversed(self._voter_sets) if at < offset), None)
        version = next((version for at, version in reversed(self._versions) if at < offset), 0)
        return voters, version

    def _add_change(self, change: VoterChange) -> None:
        if change.voters is not None:
            self._voter_sets.append((change.offset, change.voters))
        if change.kraft_version is not None:
            self._versions.append((change.offset, change.kraft_version))

    # -- changes

    def append(self, batches: Iterable[FetchedBatch], changes: Iterable[VoterChange]) -> None:
        """Adds batches at the end of the log. Does not change `flushed_offset`, the end of the durable part, because
        the batches are not durable yet."""
        for batch in batches:
            if not self.epochs or batch.epoch > self.epochs[-1][0]:
                self.epochs.append((batch.epoch, batch.base_offset))
            self.end_offset = batch.last_offset + 1
        for change in changes:
            self._add_change(change)

    def truncate(self, offset: int) -> None:
        """Removes the epochs, voter sets and kraft.versions from `offset` on, which becomes the end of the log."""
        self.end_offset = offset
        self.flushed_offset = min(self.flushed_offset, offset)
        while self.epochs and self.epochs[-1][1] >= offset:
            self.epochs.pop()
        while self._voter_sets and self._voter_sets[-1][0] >= offset:
            self._voter_sets.pop()
        while self._versions and self._versions[-1][0] >= offset:
            self._versions.pop()

    def start_at(self, snapshot_id: OffsetAndEpoch, voters: VoterSet | None, kraft_version: int) -> None:
        """Replaces the log with an empty one that begins at the end of a snapshot. `voters` is the voter set in the
        snapshot, or None if the snapshot has no voter set; `kraft_version` is the kraft.version in the snapshot.
        """
        self.start_offset = self.end_offset = self.flushed_offset = snapshot_id.offset
        self.epochs = []
        self.snapshots = [snapshot_id]
        self._voter_sets = [] if voters is None else [(snapshot_id.offset - 1, voters)]
        self._versions = [(snapshot_id.offset - 1, kraft_version)]

    def add_snapshot(self, snapshot_id: OffsetAndEpoch) -> None:
        """Adds a snapshot that this node wrote, unless a newer one exists."""
        if not self.snapshots or snapshot_id > self.snapshots[-1]:
            self.snapshots.append(snapshot_id)

    def clean(self, start_offset: int, snapshots: list[OffsetAndEpoch]) -> None:
        """Removes the log before `start_offset`, and all snapshots except `snapshots`. A snapshot ends at
        `start_offset`."""
        self.start_offset = start_offset
        self.snapshots = snapshots
        while len(self.epochs) > 1 and self.epochs[1][1] <= start_offset:
            self.epochs.pop(0)
        if self.epochs and self.epochs[0][1] < start_offset:
            if start_offset == self.end_offset:
                self.epochs.pop(0)
            else:
                self.epochs[0] = (self.epochs[0][0], start_offset)
        while len(self._voter_sets) > 1 and self._voter_sets[1][0] < start_offset:
            self._voter_sets.pop(0)
        while len(self._versions) > 1 and self._versions[1][0] < start_offset:
            self._versions.pop(0)
