"""Unattached: a node that does not know the leader of its epoch, or does not know the leader's address."""

from __future__ import annotations

from kafkapy.quorum.raft.messages import Endpoints
from kafkapy.quorum.voters import ReplicaKey
from kafkapy.types import ZERO_UUID


def may_vote_for(candidate: ReplicaKey, voted: ReplicaKey | None, leader_id: int, is_up_to_date: bool) -> bool:
    """Returns True if a node that is Unattached or Prospective grants its vote.

    A vote is repeated for the same candidate; otherwise it goes to a candidate whose log is up to date, once in an
    epoch, and only while the epoch has no known leader.
    """
    if voted is not None:
        return voted.node_id == candidate.node_id and voted.directory_id in (ZERO_UUID, candidate.directory_id)
    return leader_id == -1 and is_up_to_date


class Unattached:
    """A voter becomes Prospective at `deadline_ms`; an observer (deadline FOREVER) only looks for the leader."""

    __slots__ = ("deadline_ms", "epoch", "leader_id", "voted")
    name = "unattached"
    endpoints: Endpoints = ()

    def __init__(self, epoch: int, leader_id: int, voted: ReplicaKey | None, deadline_ms: int) -> None:
        self.epoch = epoch
        self.leader_id = leader_id
        self.voted = voted
        self.deadline_ms = deadline_ms

    def grants(self, candidate: ReplicaKey, is_up_to_date: bool, pre_vote: bool) -> bool:
        """Returns True if this node grants its vote or PreVote."""
        if pre_vote:
            return is_up_to_date
        return may_vote_for(candidate, self.voted, self.leader_id, is_up_to_date)
