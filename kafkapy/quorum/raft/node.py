"""The parts of the Raft machine that all states share, and the transitions between the states."""

from __future__ import annotations

from random import Random

from kafkapy.errors import Error
from kafkapy.quorum.raft.candidate import Candidate
from kafkapy.quorum.raft.config import RaftConfig
from kafkapy.quorum.raft.connections import FOREVER, Connections
from kafkapy.quorum.raft.effects import (
    AppendControl,
    BecameLeader,
    DropSnapshotPart,
    Effect,
    ElectionState,
    Fatal,
    HighWatermark,
    KRaftVersionResult,
    LeaderChange,
    LeaderChanged,
    LostLeadership,
    Respond,
    SaveElection,
    Send,
)
from kafkapy.quorum.raft.follower import Follower
from kafkapy.quorum.raft.leader import Leader
from kafkapy.quorum.raft.log_view import LogView
from kafkapy.quorum.raft.messages import (
    ChangeVoterResponse,
    Destination,
    Endpoints,
    FetchedBatch,
    FetchResponse,
    Request,
    VoterChange,
)
from kafkapy.quorum.raft.prospective import Prospective
from kafkapy.quorum.raft.resigned import Resigned
from kafkapy.quorum.raft.tally import Tally
from kafkapy.quorum.raft.unattached import Unattached
from kafkapy.quorum.voters import KRAFT_VERSION_DYNAMIC, ReplicaKey, Voter, VoterSet

State = Unattached | Prospective | Candidate | Leader | Follower | Resigned
# Check-quorum waits for this many fetch timeouts.
CHECK_QUORUM_FACTOR = 1.5


class RaftNode:
    """The data and operations that all states of the Raft machine use, such as the configuration, the log and the
    current state.

    While the machine handles a call, `now_ms` is the monotonic time of the call. The states append effects to
    `effects`, which the call returns at its end.
    """

    def __init__(self, config: RaftConfig, log: LogView, random: Random) -> None:
        self.config = config
        self.log = log
        self.random = random
        self.now_ms = 0
        self.effects: list[Effect] = []
        self.connections = Connections(config.request_timeout_ms, config.retry_backoff_ms)
        self.state: State = Unattached(0, -1, None, FOREVER)
        self.saved: ElectionState | None = None
        self.high_watermark = log.snapshots[-1].offset if log.snapshots and log.snapshots[-1].offset else -1
        self.is_dead = False
        # The time by which the node stops; None while it is not shutting down.
        self.shutdown_ms: int | None = None
        # The epoch whose leader refuses every connection, and the time before which that is not acted on again.
        self.refused_epoch = -1
        self.refusal_ignored_until_ms = 0
        own = {(listener.host, listener.port) for listener in config.listeners}
        self.bootstrap = [
            Destination(-2 - index, host, port)
            for index, (host, port) in enumerate(config.bootstrap)
            if (host, port) not in own
        ]
        self.voters = VoterSet()
        self.is_voter = False
        self._was_voter = False
        self._announced: tuple[int, int, Endpoints] = (-1, 0, ())
        self.voters_changed()

    # -- voters and addresses

    def voters_changed(self) -> None:
        """Reads the newest voter set from the log; uses the static voters while the log contains none."""
        voters = self.log.voters()
        self.voters = self.config.static_voters if voters is None else voters
        self.is_voter = self.config.can_be_voter and self.voters.is_voter(self.config.key)
        former = self.log.former_voters()
        self._was_voter = self.config.can_be_voter and former is not None and former.is_voter(self.config.key)
        if isinstance(self.state, Leader):
            self.state.set_voters(self.voters)

    @property
    def may_stand(self) -> bool:
        """True if this node may stand for election: it is a voter, or it was a voter before the newest change of the
        voter set, and this change may still be uncommitted.

        In Kafka, only a voter may stand. But in a quorum of two voters, the leader may fail after it has appended its
        own removal and before the other voter has fetched the removal. The other voter then needs the vote of the
        former leader, which refuses the vote because its own log is longer. Without this rule, no leader would be
        elected again.
        """
        return self.is_voter or (self._was_voter and self.log.voters_offset() >= self.high_watermark)

    @property
    def is_leader_refused(self) -> bool:
        """True if the leader of the current epoch refuses every connection of this node."""
        return self.refused_epoch == self.state.epoch

    @property
    def is_only_voter(self) -> bool:
        """True if this node is the only voter."""
        return self.is_voter and len(self.voters) == 1

    def endpoints_of(self, node_id: int) -> Endpoints:
        """Returns the endpoints of a node in the voter set; empty if the node is not a voter."""
        voter = self.voters.get(node_id)
        return () if voter is None else voter.listeners

    def destination_of(self, node_id: int, endpoints: Endpoints) -> Destination | None:
        """Returns the address of a node on the listener of the quorum, None if `endpoints` does not contain this
        listener."""
        for listener in endpoints:
            if listener.name == self.config.listener_name:
                return Destination(node_id, listener.host, listener.port)
        return None

    def voter_destination(self, voter: Voter) -> Destination | None:
        """Returns the address of a voter on the listener of the quorum, None if the voter does not have this
        listener."""
        return self.destination_of(voter.node_id, voter.listeners)

    def send(self, destination: Destination, request: Request) -> None:
        """Adds an effect that sends a request to a node. The caller has checked that `connections` allows a request to
        the node now."""
        self.connections.sent(destination.node_id, request, self.now_ms)
        self.effects.append(Send(destination, request))

    def leader_fields(self) -> tuple[int, int, Endpoints]:
        """Returns leader, epoch and the leader's endpoints, as every response contains them."""
        state = self.state
        return state.leader_id, state.epoch, state.endpoints or self.endpoints_of(state.leader_id)

    # -- transitions

    def election_deadline(self) -> int:
        """Returns the monotonic time in milliseconds at which an election timeout that begins now will end.

        The length of the timeout is random: one to two times the configured election timeout.
        """
        timeout_ms = self.config.election_timeout_ms
        return self.now_ms + timeout_ms + (int(self.random.random() * timeout_ms) if timeout_ms else 0)

    def fatal(self, text: str) -> None:
        """Stops the machine for good because continuing could lose committed records: adds the effect Fatal with the
        reason `text`. Later calls of the machine have no effect.
        """
        self.is_dead = True
        self.effects.append(Fatal(text))

    def _voted_in(self, epoch: int) -> ReplicaKey | None:
        return self.state.voted if epoch == self.state.epoch else None

    def become_unattached(self, epoch: int, leader_id: int = -1) -> None:
        """Enters the state Unattached in `epoch`, which is not below the current epoch; `leader_id` is the leader of
        the epoch if this node knows the leader but not its address, otherwise -1.

        An election timer that runs is not restarted, except after a lost round of PreVotes.
        """
        state = self.state
        deadline_ms = self.election_deadline()
        if not self.may_stand:
            deadline_ms = FOREVER
        elif isinstance(state, Candidate | Unattached | Resigned) or (
            isinstance(state, Prospective) and not state.tally.is_lost
        ):
            deadline_ms = min(deadline_ms, state.deadline_ms)
        self._enter(Unattached(epoch, leader_id, self._voted_in(epoch), deadline_ms))

    def become_prospective(self) -> None:
        """Begins a round of PreVotes. If this node is the only voter, it becomes Candidate at once."""
        state = self.state
        tally = Tally(self.voters, self.config.node_id)
        if tally.is_won:
            self.become_candidate()
            return
        deadline_ms = self.election_deadline()
        self._enter(
            Prospective(state.epoch, state.leader_id, state.endpoints, state.voted, tally, self.now_ms, deadline_ms)
        )

    def become_candidate(self) -> None:
        """Begins an election in the next epoch. If this node is the only voter, it wins the election and becomes leader
        in this call."""
        tally = Tally(self.voters, self.config.node_id)
        candidate = Candidate(self.state.epoch + 1, self.config.key, tally, self.election_deadline())
        if tally.is_won:
            # Its vote is durable together with its leadership, before the first batch of the epoch is appended.
            self.state = candidate
            self.become_leader(tuple(sorted(tally.granted)))
        else:
            self._enter(candidate)

    def become_follower(self, epoch: int, leader_id: int, endpoints: Endpoints) -> None:
        """Follows the leader of an epoch that is not below the current one."""
        fetch_ms = self.now_ms + self.config.fetch_timeout_ms
        self._enter(Follower(epoch, leader_id, endpoints, self._voted_in(epoch), fetch_ms, fetch_ms))

    def become_resigned(self, epoch: int, preferred: tuple[ReplicaKey, ...]) -> None:
        """Gives up the leadership of an epoch that this node led."""
        self._enter(
            Resigned(
                epoch,
                self.config.node_id,
                self.config.listeners,
                self.voters.ids,
                preferred,
                self.election_deadline(),
            )
        )

    def become_leader(self, granting: tuple[int, ...]) -> None:
        """Becomes leader of the epoch in which this node is Candidate, and appends the first batch of the epoch.
        `granting` are the ids of the voters that granted their votes."""
        epoch, start = self.state.epoch, self.log.end_offset
        own = self.config.as_voter
        leader = Leader(epoch, own.key, self.config.listeners, start, granting)
        leader.begin_ms = self.now_ms
        leader.check_quorum_ms = self.now_ms + self.check_quorum_timeout_ms
        leader.set_voters(self.voters)
        self._enter(leader)
        keys = tuple(voter.key for voter in self.voters)
        granted = tuple(key for key in keys if key.node_id in granting)
        records: list[LeaderChange | int | VoterSet] = [LeaderChange(own.node_id, keys, granted)]
        if self.log.kraft_version() >= KRAFT_VERSION_DYNAMIC:
            is_known = self.is_voter and self.config.listeners
            voters = self.voters.with_voter(own) if is_known else self.voters
            if self.log.voters_offset() < 0 or voters != self.voters:
                records += [self.log.kraft_version(), voters]
        else:
            leader.unsaved_voters = self.voters.with_voter(own)
        self.append_control(records)
        self.effects.append(BecameLeader(epoch, start))

    @property
    def check_quorum_timeout_ms(self) -> int:
        """The milliseconds after which a leader resigns if no majority of the voters has sent a Fetch in this time."""
        return int(self.config.fetch_timeout_ms * CHECK_QUORUM_FACTOR)

    def enter_first(self, state: State, saved: ElectionState | None) -> None:
        """Enters `state`, the first state after a start. `saved` is the content of quorum-state, None if the file is
        missing or unreadable."""
        self.saved = saved
        self.state = state
        if not self.is_only_voter:
            self.save_election()
            self.announce_leader()

    def _enter(self, state: State) -> None:
        former = self.state
        self.state = state
        self.connections.reset()
        if not isinstance(state, Prospective):
            self.save_election()
        if isinstance(former, Leader):
            self._leave_leader(former)
        elif isinstance(former, Follower) and former.download is not None:
            self.effects.append(DropSnapshotPart(former.download.snapshot_id))
        self.announce_leader()

    def save_election(self) -> None:
        """Writes quorum-state if the epoch, the leader, the vote or the static voters have changed."""
        state = self.state
        is_dynamic = self.log.kraft_version() >= KRAFT_VERSION_DYNAMIC
        voters = () if is_dynamic else self.voters.ids
        election = ElectionState(state.epoch, state.leader_id, state.voted, voters)
        if election != self.saved:
            self.saved = election
            self.effects.append(SaveElection(election, is_dynamic))

    def announce_leader(self) -> None:
        """Reports the leader, its endpoints and the epoch to the driver if any of these has changed since the last
        report."""
        leader = self.leader_fields()
        state = self.state
        if isinstance(state, Resigned):
            leader = (-1, state.epoch, ())
        if leader != self._announced:
            self._announced = leader
            self.effects.append(LeaderChanged(leader[0], leader[1], leader[2]))

    def _leave_leader(self, former: Leader) -> None:
        fields = self.leader_fields()
        for held in former.held:
            self.effects.append(Respond(held.token, FetchResponse(Error.NOT_LEADER_OR_FOLLOWER, *fields)))
        former.held.clear()
        self.finish_change(former, Error.NOT_LEADER_OR_FOLLOWER, None)
        self.effects.append(LostLeadership(former.epoch))

    # -- the leader's appends and the high watermark

    def finish_change(self, leader: Leader, error: Error, message: str | None) -> None:
        """Ends the change of voters or kraft.version in progress, if there is one, and responds to its request."""
        pending = leader.pending
        leader.pending = None
        if pending is None or pending.is_answered:
            return
        if pending.kind == "upgrade":
            self.effects.append(KRaftVersionResult(pending.token, error, message))
        elif pending.kind == "update":
            self.effects.append(Respond(pending.token, ChangeVoterResponse(error, message, *self.leader_fields())))
        else:
            self.effects.append(Respond(pending.token, ChangeVoterResponse(error, message)))

    def append_control(self, records: list[LeaderChange | int | VoterSet]) -> int:
        """Appends a control batch of the leader; returns the offset of its last record."""
        base, epoch = self.log.end_offset, self.state.epoch
        last = base + len(records) - 1
        changes = []
        for index, record in enumerate(records):
            if isinstance(record, VoterSet):
                changes.append(VoterChange(base + index, voters=record))
            elif isinstance(record, int):
                changes.append(VoterChange(base + index, kraft_version=record))
        self.log.append((FetchedBatch(base, last, epoch),), changes)
        self.effects.append(AppendControl(base, epoch, tuple(records)))
        if changes:
            self.voters_changed()
        return last

    def raise_high_watermark(self, offset: int) -> None:
        """Sets the high watermark and reports it to the driver, if `offset` is above the current one."""
        if offset > self.high_watermark:
            self.high_watermark = offset
            self.effects.append(HighWatermark(offset))
