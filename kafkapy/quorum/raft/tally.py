"""The votes of one election or of one round of PreVotes."""

from __future__ import annotations

from kafkapy.quorum.voters import VoterSet


class Tally:
    """Counts the responses of the voters. If a voter responds more than once, its first response counts; `waiting` has
    the ids of the voters that have not responded."""

    __slots__ = ("_majority", "granted", "rejected", "waiting")

    def __init__(self, voters: VoterSet, own_id: int) -> None:
        self._majority = len(voters) // 2 + 1
        self.waiting = set(voters.ids)
        self.granted: set[int] = set()
        self.rejected: set[int] = set()
        self.record(own_id, True)

    def record(self, node_id: int, granted: bool) -> None:
        """Counts the vote of a node; the vote of a node that is no voter does not count."""
        if node_id in self.waiting:
            self.waiting.remove(node_id)
            (self.granted if granted else self.rejected).add(node_id)

    @property
    def is_won(self) -> bool:
        """True if a majority of the voters has granted the vote."""
        return len(self.granted) >= self._majority

    @property
    def is_lost(self) -> bool:
        """True if a majority can no longer be reached."""
        return len(self.granted) + len(self.waiting) < self._majority
