"""Kafka's Raft for the metadata log as a pure state machine.

The machine has no clock, no disk and no network: the driver calls it with messages and times and carries out the
effects that each call returns, in their order. One thread calls the machine.
"""

from __future__ import annotations

from random import Random
from typing import Any

from kafkapy.errors import Error
from kafkapy.quorum.raft import elections, following, joining, membership, serving
from kafkapy.quorum.raft.candidate import Candidate
from kafkapy.quorum.raft.config import RaftConfig
from kafkapy.quorum.raft.connections import FOREVER
from kafkapy.quorum.raft.effects import Effect, ElectionState, KRaftVersionResult, Respond, Stopped
from kafkapy.quorum.raft.follower import Follower
from kafkapy.quorum.raft.leader import Leader
from kafkapy.quorum.raft.log_view import LogView
from kafkapy.quorum.raft.messages import (
    AddVoterRequest,
    ApiVersionsRequest,
    ApiVersionsResponse,
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    ChangeVoterResponse,
    Destination,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    QuorumDescription,
    RemoveVoterRequest,
    Request,
    Response,
    UpdateVoterRequest,
    VoteRequest,
    VoteResponse,
)
from kafkapy.quorum.raft.node import RaftNode
from kafkapy.quorum.raft.polling import poll
from kafkapy.quorum.raft.resigned import Resigned
from kafkapy.quorum.raft.tally import Tally
from kafkapy.quorum.raft.unattached import Unattached
from kafkapy.quorum.voters import VoterSet
from kafkapy.types import OffsetAndEpoch


class RaftMachine:
    """The state machine of one replica of the metadata log, a voter or an observer, as KIP-595 and KIP-853 define it.

    The code that calls the machine is its driver. The driver carries out the effects that the machine returns: for
    example, it appends records or sends a response. Every method that takes `monotonic_ms` returns effects, unless its
    docstring says otherwise. The driver carries out all effects of one call before it makes the next call, with two
    exceptions. Directly after the effect AppendControl it calls `appended`, and directly after StartAtSnapshot it calls
    `started_at_snapshot`. It carries out the effects that these two methods return after the remaining effects of the
    first call.
    """

    def __init__(self, config: RaftConfig, log: LogView, saved: ElectionState | None, random: Random) -> None:
        """Makes the machine. `log` describes the log as it was opened; only the machine changes it from now on.
        `saved` is the content of quorum-state, None if the file is missing or unreadable."""
        self._node = RaftNode(config, log, random)
        self._saved = saved
        self._deadline_ms = FOREVER

    # -- state, for the driver to read

    @property
    def epoch(self) -> int:
        """The current epoch."""
        return self._node.state.epoch

    @property
    def leader_id(self) -> int:
        """The id of the leader of the current epoch; -1 if the leader is not known or has resigned."""
        state = self._node.state
        return -1 if isinstance(state, Resigned) else state.leader_id

    @property
    def is_leader(self) -> bool:
        """True if this node leads the current epoch."""
        return isinstance(self._node.state, Leader)

    @property
    def is_voter(self) -> bool:
        """True if this node is in the newest voter set, committed or not."""
        return self._node.is_voter

    @property
    def state_name(self) -> str:
        """Kafka's name of the state: unattached, prospective, candidate, leader, follower or resigned, and observer for
        a follower that is no voter (as in the metric current-state)."""
        state = self._node.state
        return "observer" if isinstance(state, Follower) and not self._node.is_voter else state.name

    @property
    def high_watermark(self) -> int:
        """The offset before which all records are committed; -1 if this offset is not known."""
        return self._node.high_watermark

    @property
    def log(self) -> LogView:
        """The offsets, epochs, snapshots and voter sets of the log, as this machine knows them; only the machine
        changes them.
        """
        return self._node.log

    @property
    def voters(self) -> VoterSet:
        """The newest voter set, committed or not."""
        return self._node.voters

    @property
    def kraft_version(self) -> int:
        """The newest kraft.version, committed or not."""
        return self._node.log.kraft_version()

    def voters_at(self, offset: int) -> tuple[VoterSet | None, int]:
        """Returns the voter set (None if there is none) and the kraft.version that the records before `offset`
        determine. A snapshot with this end offset has to contain both."""
        return self._node.log.voters_before(offset)

    def describe(self, monotonic_ms: int) -> QuorumDescription | None:
        """Returns the data of the response to DescribeQuorum, or None if this node is not the leader. Unlike the other
        methods with `monotonic_ms`, this one returns no effects.
        """
        self._node.now_ms = monotonic_ms
        return serving.describe(self._node)

    def next_deadline_ms(self) -> int:
        """Returns the monotonic time in milliseconds at which the driver must call `tick`. A call of any other method
        of the machine may change this time.
        """
        return self._deadline_ms

    # -- inputs

    def start(self, monotonic_ms: int) -> list[Effect]:
        """Enters the first state, which depends on quorum-state. If this node is the only voter, it becomes leader in
        this call, without waiting for a timer."""
        node = self._node
        node.now_ms = monotonic_ms
        self._enter_first_state()
        if node.is_only_voter and not isinstance(node.state, Leader):
            node.become_prospective()
        return self._finish()

    def _enter_first_state(self) -> None:
        node, saved, last_epoch = self._node, self._saved, self._node.log.last_epoch
        own = node.config.key
        election_ms = self._first_election_deadline()
        deadline_ms = election_ms if node.may_stand else FOREVER
        if saved is None or saved.epoch < last_epoch:
            node.enter_first(Unattached(last_epoch, -1, None, deadline_ms), saved)
        elif saved.leader_id == own.node_id:
            resigned = Resigned(saved.epoch, own.node_id, node.config.listeners, node.voters.ids, (), election_ms)
            node.enter_first(resigned, saved)
        elif saved.leader_id >= 0 and node.endpoints_of(saved.leader_id):
            fetch_ms = node.now_ms + node.config.fetch_timeout_ms
            endpoints = node.endpoints_of(saved.leader_id)
            follower = Follower(saved.epoch, saved.leader_id, endpoints, saved.voted, fetch_ms, fetch_ms)
            node.enter_first(follower, saved)
        elif saved.leader_id < 0 and node.may_stand and saved.voted is not None and saved.voted.node_id == own.node_id:
            node.enter_first(Candidate(saved.epoch, own, Tally(node.voters, own.node_id), deadline_ms), saved)
        else:
            node.enter_first(Unattached(saved.epoch, saved.leader_id, saved.voted, deadline_ms), saved)

    def _first_election_deadline(self) -> int:
        """Returns the monotonic time in ms at which this node stands for election if it finds no leader.

        A voter that has stored no epoch of an earlier election does not wait for the election timeout. In a new cluster
        this applies to all voters. They ask for votes one after another, in the order of their ids, so that two voters
        do not ask at the same time. In an older cluster it applies only to a voter that starts with an empty directory.
        The other voters then refuse the PreVote of this voter, and name the leader in their responses.
        """
        node = self._node
        if (self._saved is not None and self._saved.epoch) or node.log.last_epoch or not node.is_voter:
            return node.election_deadline()
        return node.now_ms + sorted(node.voters.ids).index(node.config.node_id) * elections.turn_ms(node)

    def tick(self, monotonic_ms: int) -> list[Effect]:
        """Handles timers that expired, and sends the requests that are due."""
        self._node.now_ms = monotonic_ms
        return self._finish()

    def receive(self, request: Request, token: Any, monotonic_ms: int) -> list[Effect]:
        """Handles a request of another node or of a client; this call or a later one returns a Respond effect with
        `token`."""
        node = self._node
        node.now_ms = monotonic_ms
        if node.is_dead:
            return []
        response: Response | None = None
        if isinstance(request, FetchRequest):
            serving.handle_fetch(node, request, token)
        elif isinstance(request, VoteRequest):
            response = elections.handle_vote(node, request)
        elif isinstance(request, BeginQuorumEpochRequest):
            response = elections.handle_begin(node, request)
        elif isinstance(request, EndQuorumEpochRequest):
            response = elections.handle_end(node, request)
        elif isinstance(request, FetchSnapshotRequest):
            response = serving.handle_fetch_snapshot(node, request)
        elif isinstance(request, UpdateVoterRequest):
            response = membership.handle_update(node, request)
        elif isinstance(request, AddVoterRequest):
            membership.handle_add(node, request, token)
        elif isinstance(request, RemoveVoterRequest):
            membership.handle_remove(node, request, token)
        else:
            raise TypeError(f"{type(request).__name__} is not a request to the quorum")
        if response is not None:
            node.effects.append(Respond(token, response))
        return self._finish()

    def response(
        self, destination: Destination, request: Request, response: Response | None, monotonic_ms: int
    ) -> list[Effect]:
        """Handles the response to a request that this machine sent; `response` is None if the request failed or timed
        out.

        `request` is the same object as in the Send effect. A response is ignored if the machine has given up the
        request because of a timeout or a change of the node's state.
        """
        node = self._node
        node.now_ms = monotonic_ms
        if node.is_dead or not node.connections.received(destination.node_id, request):
            return []
        is_handled = self._handle_response(destination, request, response)
        if not is_handled:
            node.connections.failed(destination.node_id, monotonic_ms)
        return self._finish()

    def _handle_response(self, destination: Destination, request: Request, response: Response | None) -> bool:
        node, node_id = self._node, destination.node_id
        if isinstance(response, FetchResponse) and isinstance(request, FetchRequest):
            return following.handle_fetch_response(node, request, response)
        if isinstance(response, VoteResponse) and isinstance(request, VoteRequest):
            return elections.handle_vote_response(node, node_id, request, response)
        if isinstance(response, BeginQuorumEpochResponse):
            return elections.handle_begin_response(node, response)
        if isinstance(response, EndQuorumEpochResponse):
            return elections.handle_end_response(node, node_id, response)
        if isinstance(response, FetchSnapshotResponse) and isinstance(request, FetchSnapshotRequest):
            return following.handle_snapshot_response(node, request, response)
        if isinstance(response, ApiVersionsResponse):
            return membership.handle_api_versions_response(node, node_id, response)
        if isinstance(response, ChangeVoterResponse):
            return joining.handle_change_response(node, request, response)
        if isinstance(request, ApiVersionsRequest):
            membership.api_versions_failed(node, node_id)
        return False

    def appended(self, end_offset: int, epoch: int, monotonic_ms: int) -> list[Effect]:
        """Notifies the machine that the records of this node as leader are durable up to `end_offset`. They include
        the control records of AppendControl.

        The driver calls this method after each append, before it calls any other method.
        """
        node = self._node
        node.now_ms = monotonic_ms
        if node.is_dead:
            return []
        if isinstance(node.state, Leader) and node.state.epoch == epoch:
            serving.appended(node, node.state, end_offset)
        elif end_offset > node.log.end_offset:
            node.fatal(f"records of epoch {epoch} were appended by a node that does not lead it")
        else:  # The node resigned in the call that returned AppendControl.
            node.log.flushed_offset = max(node.log.flushed_offset, end_offset)
        return self._finish()

    def started_at_snapshot(
        self, snapshot_id: OffsetAndEpoch, voters: VoterSet | None, kraft_version: int, monotonic_ms: int
    ) -> list[Effect]:
        """Notifies the machine that StartAtSnapshot was carried out; `voters` is the voter set of the snapshot, None if
        the snapshot has no KRaftVoters record."""
        node = self._node
        node.now_ms = monotonic_ms
        if node.is_dead:
            return []
        following.started_at_snapshot(node, snapshot_id, voters, kraft_version)
        return self._finish()

    def snapshot_taken(self, snapshot_id: OffsetAndEpoch) -> None:
        """Notifies the machine that this node has written a snapshot of its committed image."""
        self._node.log.add_snapshot(snapshot_id)

    def cleaned(self, start_offset: int, snapshots: list[OffsetAndEpoch]) -> None:
        """Notifies the machine that the driver removed the log before `start_offset`, and all snapshots except
        `snapshots`."""
        self._node.log.clean(start_offset, snapshots)

    def leader_refused(self, leader_id: int, monotonic_ms: int) -> list[Effect]:
        """Notifies the machine that every connection to the leader is refused, because its process has ended.

        A follower that is a voter then asks for PreVotes without waiting for its fetch timeout, and grants the PreVotes
        of others. The driver repeats the call while connections are refused.
        """
        self._node.now_ms = monotonic_ms
        if self._node.is_dead:
            return []
        elections.leader_refused(self._node, leader_id)
        return self._finish()

    def upgrade_refusal(self) -> str | None:
        """Returns the reason why kraft.version cannot be increased from 0 to 1 now, in words for the user; None if it
        can be increased. Changes nothing.
        """
        return membership.upgrade_refusal(self._node)

    def upgrade_kraft_version(self, level: int, token: Any, monotonic_ms: int) -> list[Effect]:
        """Increases kraft.version to `level` for an UpdateFeatures request; only 1 is possible, from 0. This call or a
        later one returns the effect KRaftVersionResult with `token`, which says whether it succeeded.
        """
        self._node.now_ms = monotonic_ms
        if self._node.is_dead:
            return [KRaftVersionResult(token, Error.NOT_LEADER_OR_FOLLOWER, None)]
        membership.upgrade_kraft_version(self._node, level, token)
        return self._finish()

    def shutdown(self, timeout_ms: int, monotonic_ms: int) -> list[Effect]:
        """Gives up leadership and stops, after `timeout_ms` at the latest.

        When the machine has stopped, the effects that its methods return contain Stopped: those of this call, or those
        of a later input.
        """
        self._node.now_ms = monotonic_ms
        self._node.shutdown_ms = monotonic_ms + timeout_ms
        return self._finish()

    # -- after every input

    def _finish(self) -> list[Effect]:
        node = self._node
        if not node.is_dead:
            if node.shutdown_ms is not None and self._is_stopped(node.shutdown_ms):
                node.is_dead = True
                node.effects.append(Stopped())
            else:
                self._deadline_ms = poll(node)
        if node.is_dead:
            self._deadline_ms = FOREVER
        effects, node.effects = node.effects, []
        return effects

    def _is_stopped(self, shutdown_ms: int) -> bool:
        node = self._node
        has_remote_leader = node.state.leader_id not in (-1, node.config.node_id)
        return has_remote_leader or not node.is_voter or node.is_only_voter or node.now_ms >= shutdown_ms
