"""Resigned: a node that was the leader of its epoch, and has given up leadership or was restarted while it led."""

from __future__ import annotations

from kafkapy.quorum.raft.messages import Endpoints
from kafkapy.quorum.voters import ReplicaKey


class Resigned:
    """The state of a former leader: it sends EndQuorumEpoch to every voter until the voter acknowledges it. At
    `deadline_ms` it becomes Unattached in the next epoch, except while the node shuts down."""

    __slots__ = ("deadline_ms", "endpoints", "epoch", "leader_id", "preferred", "unacknowledged")
    name = "resigned"
    voted: ReplicaKey | None = None

    def __init__(
        self,
        epoch: int,
        leader_id: int,
        endpoints: Endpoints,
        voter_ids: tuple[int, ...],
        preferred: tuple[ReplicaKey, ...],
        deadline_ms: int,
    ) -> None:
        self.epoch = epoch
        self.leader_id = leader_id
        self.endpoints = endpoints
        self.preferred = preferred
        self.unacknowledged = set(voter_ids) - {leader_id}
        self.deadline_ms = deadline_ms

    def grants(self, candidate: ReplicaKey, is_up_to_date: bool, pre_vote: bool) -> bool:
        """Returns True if `pre_vote` and `is_up_to_date` are both True: the request asks for a PreVote, and the
        candidate's log is not behind this node's log. This node grants no vote in the epoch that it led.
        """
        return pre_vote and is_up_to_date
