"""Unattached: a node that does not know the leader of its epoch, or does not know the leader's address."""

from __future__ import annotations

from kafkapy.quorum.raft.messages import Endpoints
from kafkapy.quorum.voters import ReplicaKey
from kafkapy.types import ZERO_UUID


def may_vote_for(candidate: ReplicaKey, voted: ReplicaKey | None, leader_id: int, is_up_to_date: bool) -> bool:
    """Returns True if a node that is Unattached or Prospective grants its vote to `candidate`.

    `voted` is the candidate that got this node's vote in the epoch, or None. Only this candidate gets the vote again.
    A node that has not voted grants its vote if the candidate's log is up to date and the node knows no leader of the
    epoch (`leader_id` is -1).
    """
    if voted is not None:
        return voted.node_id == candidate.node_id and voted.directory_id in (ZERO_UUID, candidate.directory_id)
    return leader_id == -1 and is_up_to_date


class Unattached:
    """The state of a node that does not know the leader, or does not know the leader's address. A voter becomes
    Prospective at `deadline_ms`; for an observer, `deadline_ms` is FOREVER."""

    __slots__ = ("deadline_ms", "epoch", "leader_id", "voted")
    name = "unattached"
    endpoints: Endpoints = ()

    def __init__(self, epoch: int, leader_id: int, voted: ReplicaKey | None, deadline_ms: int) -> None:
        self.epoch = epoch
        self.leader_id = leader_id
        self.voted = voted
        self.deadline_ms = deadline_ms

    def grants(self, candidate: ReplicaKey, is_up_to_date: bool, pre_vote: bool) -> bool:
        """Returns True if this node grants a vote to `candidate`, or a PreVote if `pre_vote` is True.

        `is_up_to_date` is True if the candidate's log is not behind this node's log. This suffices for a PreVote; a
        vote is granted by the rules of `may_vote_for`.
        """
        if pre_vote:
            return is_up_to_date
        return may_vote_for(candidate, self.voted, self.leader_id, is_up_to_date)
