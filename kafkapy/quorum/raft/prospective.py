"""Prospective: a voter that asks the other voters whether it could win an election, without a new epoch (KIP-996)."""

from __future__ import annotations

from kafkapy.quorum.raft.messages import Endpoints
from kafkapy.quorum.raft.tally import Tally
from kafkapy.quorum.raft.unattached import may_vote_for
from kafkapy.quorum.voters import ReplicaKey


class Prospective:
    """The state of a prospective candidate: it becomes Candidate when a majority has granted a PreVote. When a majority
    can no longer be reached, and at `deadline_ms`, it follows its former leader again. If it does not know the former
    leader, it becomes Unattached in the same epoch. `begin_ms` is the time at which the round of PreVotes began."""

    __slots__ = ("begin_ms", "deadline_ms", "endpoints", "epoch", "leader_id", "tally", "voted")
    name = "prospective"

    def __init__(
        self,
        epoch: int,
        leader_id: int,
        endpoints: Endpoints,
        voted: ReplicaKey | None,
        tally: Tally,
        begin_ms: int,
        deadline_ms: int,
    ) -> None:
        self.epoch = epoch
        self.leader_id = leader_id
        self.endpoints = endpoints
        self.voted = voted
        self.tally = tally
        self.begin_ms = begin_ms
        self.deadline_ms = deadline_ms

    def grants(self, candidate: ReplicaKey, is_up_to_date: bool, pre_vote: bool) -> bool:
        """Returns True if this node grants a vote to `candidate`, or a PreVote if `pre_vote` is True.

        `is_up_to_date` is True if the candidate's log is not behind this node's log. This suffices for a PreVote; a
        vote is granted by the rules of `may_vote_for`.
        """
        if pre_vote:
            return is_up_to_date
        return may_vote_for(candidate, self.voted, self.leader_id, is_up_to_date)
