"""Candidate: a voter that voted for itself in a new epoch and asks the other voters for their votes."""

from __future__ import annotations

from kafkapy.quorum.raft.messages import Endpoints
from kafkapy.quorum.raft.tally import Tally
from kafkapy.quorum.voters import ReplicaKey


class Candidate:
    """The state of a candidate. It becomes Leader when a majority of the voters has granted its vote, and otherwise
    Prospective at `deadline_ms` (monotonic); it waits until then even if it can no longer get a majority."""

    __slots__ = ("deadline_ms", "epoch", "tally", "voted")
    name = "candidate"
    leader_id = -1
    endpoints: Endpoints = ()

    def __init__(self, epoch: int, own_key: ReplicaKey, tally: Tally, deadline_ms: int) -> None:
        self.epoch = epoch
        self.voted: ReplicaKey | None = own_key
        self.tally = tally
        self.deadline_ms = deadline_ms

    def grants(self, candidate: ReplicaKey, is_up_to_date: bool, pre_vote: bool) -> bool:
        """Returns True if `pre_vote` and `is_up_to_date` are both True: the request asks for a PreVote, and the
        candidate's log is not behind this node's log. This node grants no vote, because it has voted for itself."""
        return pre_vote and is_up_to_date
