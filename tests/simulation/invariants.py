"""The invariants of Raft, which the simulated nodes report every event to."""

from __future__ import annotations

from tests.simulation.disk import Disk


class InvariantBroken(AssertionError):
    """A schedule that broke an invariant of Raft."""


class Invariants:
    """The leader of every epoch, and everything that any node knows to be committed.

    `committed` maps the end offset of every committed batch to the digest of the log before it, so that two logs with
    the same digest agree on everything before. `ends` maps each epoch to the end of what its leader committed: the
    leader reports a new high watermark first, and the last batch below it is of the leader's epoch.
    """

    def __init__(self) -> None:
        self.leaders: dict[int, int] = {}
        self.committed: dict[int, int] = {0: 0}
        self.end = 0
        self.ends: dict[int, int] = {0: 0}

    def became_leader(self, node_id: int, epoch: int, disk: Disk) -> None:
        """Checks that an epoch has one leader, whose log contains everything that was committed in earlier epochs.

        A candidate may learn late that it has won, when a leader of a later epoch has committed more.
        """
        if self.leaders.setdefault(epoch, node_id) != node_id:
            raise InvariantBroken(f"nodes {self.leaders[epoch]} and {node_id} lead epoch {epoch}")
        end = max(end for committed_in, end in self.ends.items() if committed_in < epoch)
        if disk.start_offset <= end and disk.digest_at(end) != self.committed[end]:
            raise InvariantBroken(f"node {node_id} leads epoch {epoch} without what is committed before {end}")

    def high_watermark(self, node_id: int, former: int, offset: int, disk: Disk) -> None:
        """Checks that a high watermark rises, and that the logs of all nodes are equal below it."""
        if offset <= former:
            raise InvariantBroken(f"the high watermark of node {node_id} went from {former} to {offset}")
        if offset > disk.end_offset:
            raise InvariantBroken(
                f"the high watermark {offset} of node {node_id} is after its log end {disk.end_offset}"
            )
        if offset <= self.end:
            if offset >= disk.start_offset and disk.digest_at(offset) != self.committed.get(offset):
                raise InvariantBroken(f"node {node_id} has another log before its high watermark {offset}")
            return
        if disk.start_offset <= self.end and disk.digest_at(self.end) != self.committed[self.end]:
            raise InvariantBroken(f"node {node_id} commits {offset} on top of another log than is committed")
        committed_in = 0
        for batch in disk.batches[disk.index_at(max(self.end, disk.start_offset)) :]:
            if batch.last_offset < offset:
                self.committed[batch.last_offset + 1] = batch.digest
                committed_in = batch.epoch
        if offset not in self.committed:
            raise InvariantBroken(f"the high watermark {offset} of node {node_id} is inside a batch")
        self.end = self.ends[committed_in] = offset

    def truncated(self, node_id: int, high_watermark: int, offset: int) -> None:
        """Checks that a truncation removes nothing below the high watermark."""
        if offset < high_watermark:
            raise InvariantBroken(f"node {node_id} truncates to {offset}, below its high watermark {high_watermark}")
