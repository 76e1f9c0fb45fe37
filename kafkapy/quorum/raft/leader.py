"""Leader: the progress of the replicas, the high watermark, check-quorum, and the change of voters in progress."""

from __future__ import annotations

from typing import Any

from kafkapy.quorum.raft.connections import FOREVER
from kafkapy.quorum.raft.messages import Endpoints, FetchRequest, ReplicaState
from kafkapy.quorum.voters import ReplicaKey, Voter, VoterSet

OBSERVER_SESSION_TIMEOUT_MS = 300_000
# A replica that is to become a voter must have fetched within this time.
CAUGHT_UP_WITHIN_MS = 3_600_000


class Progress:
    """The progress of one replica: the log end offset in its last Fetch, and two monotonic times in milliseconds. These
    are the time of its last Fetch and the last time at which it had caught up (-1 if there was none).
    """

    __slots__ = ("caught_up_ms", "end_offset", "fetch_ms", "key", "leader_end_at_fetch")

    def __init__(self, key: ReplicaKey) -> None:
        self.key = key
        self.end_offset = -1
        self.fetch_ms = -1
        self.caught_up_ms = -1
        self.leader_end_at_fetch = -1

    def fetched(self, offset: int, leader_end_offset: int, monotonic_ms: int) -> None:
        """Records a Fetch of the replica from `offset`, which becomes the replica's end offset. If it is lower than
        before, the replica has lost records.

        `leader_end_offset` is the present end of the leader's log. If `offset` has reached this end, the replica has
        caught up now. Otherwise, if `offset` has reached the end that the leader's log had at the replica's previous
        Fetch, the replica had caught up at the time of that Fetch.
        """
        if offset >= leader_end_offset:
            self.caught_up_ms = monotonic_ms
        elif 0 <= self.leader_end_at_fetch <= offset:
            self.caught_up_ms = self.fetch_ms
        self.leader_end_at_fetch = leader_end_offset
        self.fetch_ms = monotonic_ms
        self.end_offset = offset

    def state(self) -> ReplicaState:
        return ReplicaState(self.key, self.end_offset, self.fetch_ms, self.caught_up_ms)


class HeldFetch:
    """A Fetch whose response is delayed until there are records or a higher high watermark."""

    __slots__ = ("deadline_ms", "request", "token")

    def __init__(self, request: FetchRequest, token: Any, deadline_ms: int) -> None:
        self.request = request
        self.token = token
        self.deadline_ms = deadline_ms


class PendingChange:
    """The change of voters or kraft.version in progress.

    kind         "add", "remove", "update" or "upgrade"
    voter        the voter to add, while `offset` is -1: the leader waits for its ApiVersions response
    offset       offset of the last record of the change, -1 before it is appended
    is_answered  True if the response was already sent, without waiting for the commit
    """

    __slots__ = ("ack_when_committed", "deadline_ms", "is_answered", "kind", "offset", "token", "voter")

    def __init__(self, kind: str, token: Any, deadline_ms: int, voter: Voter | None = None) -> None:
        self.kind = kind
        self.token = token
        self.deadline_ms = deadline_ms
        self.voter = voter
        self.offset = -1
        self.ack_when_committed = True
        self.is_answered = False


class Leader:
    """The leader of `epoch`, whose first record, LeaderChange, is at `epoch_start`.

    `high_watermark` is -1 until a record of this epoch is committed. From then on, a majority has every record that a
    former leader committed.
    """

    __slots__ = (
        "begin_ms",
        "check_quorum_ms",
        "endpoints",
        "epoch",
        "epoch_start",
        "fetched_voters",
        "granting",
        "held",
        "held_known",
        "held_until_ms",
        "high_watermark",
        "is_resigning",
        "leader_id",
        "observers",
        "own_key",
        "pending",
        "unsaved_voters",
        "voter_set",
        "voters",
    )
    name = "leader"
    voted: ReplicaKey | None = None

    def __init__(
        self, epoch: int, own_key: ReplicaKey, endpoints: Endpoints, epoch_start: int, granting: tuple[int, ...]
    ) -> None:
        self.epoch = epoch
        self.own_key = own_key
        self.leader_id = own_key.node_id
        self.endpoints = endpoints
        self.epoch_start = epoch_start
        self.granting = granting
        self.high_watermark = -1
        self.voter_set = VoterSet()
        self.voters: dict[int, Progress] = {}
        self.observers: dict[ReplicaKey, Progress] = {}
        self.held: list[HeldFetch] = []
        # The earliest deadline of a held fetch, and the end offset and high watermark when they were last checked.
        self.held_until_ms = FOREVER
        self.held_known = (-1, -1)
        self.pending: PendingChange | None = None
        # Voters with the directory ids and version ranges that they reported, while kraft.version is 0.
        self.unsaved_voters: VoterSet | None = None
        self.fetched_voters: set[int] = set()
        self.check_quorum_ms = 0
        self.begin_ms = 0
        self.is_resigning = False

    def grants(self, candidate: ReplicaKey, is_up_to_date: bool, pre_vote: bool) -> bool:
        """Returns False: a leader grants neither votes nor PreVotes."""
        return False

    # -- progress

    def set_voters(self, voters: VoterSet) -> None:
        """Replaces the voters; the progress of a replica is kept if it was a voter or an observer before."""
        former = [*self.voters.values(), *self.observers.values()]
        self.voter_set = voters
        self.voters = {voter.node_id: Progress(voter.key) for voter in voters}
        self.observers = {}
        for progress in former:
            found = voters.find(progress.key)
            if found is None:
                if progress.fetch_ms >= 0:
                    self.observers[progress.key] = progress
            elif self.voters[found.node_id].fetch_ms < progress.fetch_ms:
                self.voters[found.node_id] = progress
        self.fetched_voters &= self.voters.keys()

    def progress_of(self, key: ReplicaKey) -> Progress:
        """Returns the progress of a replica; a replica that is neither a voter nor an observer becomes an observer."""
        if self.voter_set.is_voter(key):
            progress = self.voters[key.node_id]
            progress.key = key
            return progress
        found = self.observers.get(key)
        if found is None:
            found = self.observers[key] = Progress(key)
        return found

    @property
    def is_own_voter(self) -> bool:
        """True if this node is one of the voters; a leader that removed itself is not."""
        return self.voter_set.is_voter(self.own_key)

    def is_caught_up(self, key: ReplicaKey, monotonic_ms: int) -> bool:
        """Returns True if the observer has reached the end of the leader's log at least once, and has sent a Fetch
        within the last hour.
        """
        progress = self.observers.get(key)
        return (
            progress is not None
            and progress.caught_up_ms >= 0
            and progress.fetch_ms > monotonic_ms - CAUGHT_UP_WITHIN_MS
        )

    def forget_observers(self, monotonic_ms: int) -> None:
        """Removes the observers that did not fetch for OBSERVER_SESSION_TIMEOUT_MS."""
        oldest_ms = monotonic_ms - OBSERVER_SESSION_TIMEOUT_MS
        for key in [key for key, progress in self.observers.items() if progress.fetch_ms < oldest_ms]:
            del self.observers[key]

    def candidates(self) -> tuple[ReplicaKey, ...]:
        """Returns the other voters as preferred candidates of the next election, the most caught up first."""
        others = [each for each in self.voters.values() if each.key.node_id != self.leader_id]
        return tuple(each.key for each in sorted(others, key=lambda each: -each.end_offset))

    # -- high watermark and check-quorum

    def raise_high_watermark(self, own_end_offset: int) -> bool:
        """Increases the high watermark to the offset that a majority of the voters has reached; returns True if it
        rose."""
        if not self.voters:
            return False
        if self.is_own_voter:
            self.voters[self.leader_id].end_offset = own_end_offset
        ends = sorted((progress.end_offset for progress in self.voters.values()), reverse=True)
        offset = ends[len(ends) // 2]
        if offset <= self.epoch_start or offset <= self.high_watermark:
            return False
        self.high_watermark = offset
        return True

    def note_fetching_voter(self, key: ReplicaKey, monotonic_ms: int, timeout_ms: int) -> None:
        """Records a Fetch of the voter `key`; has no effect for an observer.

        The check-quorum timeout is restarted, with the length `timeout_ms`, when a majority of the voters has fetched
        since its last restart.
        """
        if key.node_id == self.leader_id or not self.voter_set.is_voter(key):
            return
        self.fetched_voters.add(key.node_id)
        majority = len(self.voters) // 2 + (0 if self.is_own_voter else 1)
        if len(self.fetched_voters) >= majority:
            self.fetched_voters.clear()
            self.check_quorum_ms = monotonic_ms + timeout_ms
