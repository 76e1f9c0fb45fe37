"""Follower: a replica that fetches from the leader of its epoch."""

from __future__ import annotations

from kafkapy.quorum.raft.messages import Endpoints
from kafkapy.quorum.voters import ReplicaKey
from kafkapy.types import OffsetAndEpoch


class SnapshotDownload:
    """A snapshot that a follower downloads; `position` is the number of bytes that have been written already."""

    __slots__ = ("is_complete", "position", "snapshot_id")

    def __init__(self, snapshot_id: OffsetAndEpoch) -> None:
        self.snapshot_id = snapshot_id
        self.position = 0
        self.is_complete = False


class Follower:
    """The state of a follower. Every successful fetch sets `deadline_ms` to the end of a new fetch timeout. At
    `deadline_ms` a voter becomes Prospective, and an observer asks the bootstrap servers for the leader.

    `has_fetched` is True after the first successful fetch from this leader: from then on the node refuses PreVotes.
    """

    __slots__ = (
        "deadline_ms",
        "download",
        "endpoints",
        "epoch",
        "has_fetched",
        "has_updated_voter",
        "leader_id",
        "update_voter_ms",
        "voted",
    )
    name = "follower"

    def __init__(
        self,
        epoch: int,
        leader_id: int,
        endpoints: Endpoints,
        voted: ReplicaKey | None,
        deadline_ms: int,
        update_voter_ms: int,
    ) -> None:
        self.epoch = epoch
        self.leader_id = leader_id
        self.endpoints = endpoints
        self.voted = voted
        self.deadline_ms = deadline_ms
        self.update_voter_ms = update_voter_ms
        self.has_fetched = False
        self.has_updated_voter = False
        self.download: SnapshotDownload | None = None

    def grants(self, candidate: ReplicaKey, is_up_to_date: bool, pre_vote: bool) -> bool:
        """Returns True if this follower grants the vote that `candidate` requests.

        It grants only PreVotes (`pre_vote` is True), only while it has not yet fetched from its leader, and only if
        `is_up_to_date` is True: the candidate's log is not behind this node's log.
        """
        return pre_vote and is_up_to_date and not self.has_fetched
