"""Vote, BeginQuorumEpoch and EndQuorumEpoch: requests, responses, and what every response says about the leader."""

from __future__ import annotations

from kafkapy.errors import Error
from kafkapy.quorum.raft.candidate import Candidate
from kafkapy.quorum.raft.follower import Follower
from kafkapy.quorum.raft.leader import Leader
from kafkapy.quorum.raft.messages import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    Endpoints,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    VoteRequest,
    VoteResponse,
)
from kafkapy.quorum.raft.node import RaftNode
from kafkapy.quorum.raft.prospective import Prospective
from kafkapy.quorum.raft.resigned import Resigned
from kafkapy.quorum.raft.unattached import Unattached
from kafkapy.quorum.voters import ReplicaKey
from kafkapy.types import ZERO_UUID

# -- what a message says about the leader


def is_our_cluster(node: RaftNode, cluster_id: str | None) -> bool:
    """Returns True if the request names this cluster, or no cluster."""
    return cluster_id is None or cluster_id == node.config.cluster_id


def learn_leader(node: RaftNode, leader_id: int, epoch: int, endpoints: Endpoints) -> bool:
    """Applies what a message says about the leader: enters `epoch` if it is higher, or follows the leader of the
    current epoch if this node did not know the leader.

    A lower epoch has no effect. Returns False if this node knows another leader of the current epoch, otherwise True.
    """
    state = node.state
    if epoch < state.epoch:
        return True
    if leader_id >= 0 and not endpoints:
        endpoints = node.endpoints_of(leader_id)
    if leader_id == node.config.node_id:
        # Without its quorum-state a node can learn that it led an epoch, in which it must not vote for another node.
        if epoch > state.epoch or state.leader_id == -1:
            if node.config.can_be_voter:
                node.become_resigned(epoch, ())
            elif epoch > state.epoch:
                node.become_unattached(epoch)
        return epoch > state.epoch or state.leader_id in (-1, leader_id)
    if epoch > state.epoch:
        if leader_id >= 0 and endpoints:
            node.become_follower(epoch, leader_id, endpoints)
        else:
            node.become_unattached(epoch, leader_id)
        return True
    if leader_id == -1:
        return True
    if state.leader_id not in (-1, leader_id):
        return False
    if isinstance(state, Follower):
        if len(endpoints) > len(state.endpoints):
            state.endpoints = endpoints
            node.announce_leader()
    elif state.leader_id == -1 or isinstance(state, Unattached):
        if endpoints:
            node.become_follower(epoch, leader_id, endpoints)
        elif state.leader_id == -1:
            node.become_unattached(epoch, leader_id)
    return True


def handle_common(node: RaftNode, error: Error, leader_id: int, epoch: int, endpoints: Endpoints) -> bool | None:
    """Handles the fields that all responses of the quorum have: the error, and the leader, its epoch and its endpoints.

    Returns None if the caller has to handle the rest of the response. Otherwise returns True if the next request may be
    sent at once, and False if the connection has to wait for the back-off time first.
    """
    former = node.state
    if error == Error.CLUSTER_AUTHORIZATION_FAILED:
        node.fatal("this node is not authorized to take part in the quorum")
        return False
    if error == Error.INCONSISTENT_CLUSTER_ID:
        return False
    if error == Error.UNSUPPORTED_VERSION:
        return None
    if epoch < 0:  # An error of the whole request: the response says nothing about the quorum.
        return False
    if epoch < former.epoch or error == Error.UNKNOWN_LEADER_EPOCH:
        return True
    is_stale = epoch > former.epoch or error in (Error.FENCED_LEADER_EPOCH, Error.NOT_LEADER_OR_FOLLOWER)
    if not learn_leader(node, leader_id, epoch, endpoints):
        node.fatal(
            f"a response names node {leader_id} as leader of epoch {epoch}, whose leader is node {former.leader_id}"
        )
        return True
    if is_stale:
        # The node that responded knows no more than this one: wait before asking it again.
        return error != Error.NOT_LEADER_OR_FOLLOWER or node.state is not former
    if error == Error.INVALID_REQUEST:
        node.fatal("another node of the quorum refused a request as invalid")
        return False
    return False if error == Error.BROKER_NOT_AVAILABLE else None


def _voter_error(node: RaftNode, sender_id: int, epoch: int) -> Error:
    if epoch < node.state.epoch:
        return Error.FENCED_LEADER_EPOCH
    return Error.INVALID_REQUEST if sender_id < 0 else Error.NONE


def _is_addressee(node: RaftNode, key: ReplicaKey) -> bool:
    """Returns True if `key`, the addressee in a request, is this node with its directory, or if the request names no
    addressee."""
    if key.node_id < 0:
        return True
    return key.node_id == node.config.node_id and key.directory_id in (ZERO_UUID, node.config.directory_id)


# -- Vote


def handle_vote(node: RaftNode, request: VoteRequest) -> VoteResponse:
    """Grants or refuses a vote; the vote is made durable before the response."""
    if not is_our_cluster(node, request.cluster_id):
        return VoteResponse(Error.INCONSISTENT_CLUSTER_ID, -1, -1)
    largest_epoch = request.epoch if request.pre_vote else request.epoch - 1
    if request.end_offset < 0 or request.epoch < 0 or not 0 <= request.last_epoch <= largest_epoch:
        return VoteResponse(Error.INVALID_REQUEST, *node.leader_fields())
    error = _voter_error(node, request.candidate.node_id, request.epoch)
    if error != Error.NONE:
        return VoteResponse(error, *node.leader_fields())
    if request.epoch > node.state.epoch:
        node.become_unattached(request.epoch)
    if not _is_addressee(node, request.voter):
        return VoteResponse(Error.INVALID_VOTER_KEY, *node.leader_fields())
    is_granted = _grants(node, request)
    state = node.state
    if is_granted and not request.pre_vote and isinstance(state, Unattached | Prospective) and state.voted is None:
        state.voted = request.candidate
        # The candidate has at least as good a chance as this node, which therefore does not compete with it.
        state.deadline_ms = node.election_deadline() if node.may_stand else state.deadline_ms
        node.save_election()
    elif is_granted and isinstance(state, Follower):
        # This node may be about to ask for PreVotes, too; if both asked, neither of them might win the election.
        state.deadline_ms = max(state.deadline_ms, node.now_ms + turn_ms(node))
    return VoteResponse(Error.NONE, *node.leader_fields(), is_granted)


def _grants(node: RaftNode, request: VoteRequest) -> bool:
    if request.candidate.node_id == node.config.node_id:
        return False
    end = node.log.end
    is_up_to_date = (request.last_epoch, request.end_offset) >= (end.epoch, end.offset)
    state = node.state
    if isinstance(state, Follower) and request.pre_vote and node.is_leader_refused:
        return is_up_to_date
    return state.grants(request.candidate, is_up_to_date, request.pre_vote)


def send_votes(node: RaftNode, state: Prospective | Candidate) -> int:
    """Sends Vote requests to the voters that have not responded.

    Returns the monotonic time in milliseconds of the next attempt.
    """
    next_ms = state.deadline_ms
    for node_id in sorted(state.tally.waiting):
        voter = node.voters.get(node_id)
        destination = None if voter is None else node.voter_destination(voter)
        if voter is None or destination is None:
            continue
        ready_ms = node.connections.ready_ms(node_id, node.now_ms)
        if ready_ms <= node.now_ms:
            end = node.log.end
            is_pre_vote = isinstance(state, Prospective)
            request = VoteRequest(
                node.config.cluster_id, voter.key, node.config.key, state.epoch, end.epoch, end.offset, is_pre_vote
            )
            node.send(destination, request)
        next_ms = min(next_ms, node.connections.ready_ms(node_id, node.now_ms))
    return next_ms


def handle_vote_response(node: RaftNode, node_id: int, request: VoteRequest, response: VoteResponse) -> bool:
    """Handles the response of voter `node_id` to a Vote request: counts its vote or PreVote.

    With a majority of PreVotes this node becomes Candidate, and with a majority of votes leader. If the voter does not
    support PreVote, this node becomes Candidate at once. Returns True if the next request may be sent at once, and
    False if the connection has to wait for the back-off time first, because the response has an error.
    """
    handled = handle_common(node, response.error, response.leader_id, response.epoch, response.endpoints)
    if handled is not None:
        return handled
    state = node.state
    if response.error == Error.UNSUPPORTED_VERSION:
        if isinstance(state, Prospective) and request.pre_vote and request.epoch == state.epoch:
            node.become_candidate()
        return False
    if response.error != Error.NONE:
        return False
    if isinstance(state, Prospective if request.pre_vote else Candidate) and request.epoch == state.epoch:
        assert isinstance(state, Prospective | Candidate)
        if node_id == state.leader_id:
            node.refused_epoch = -1  # the leader's process runs
        if isinstance(state, Prospective) and not response.granted and node.is_leader_refused:
            # The voter may notice only later that the leader's process has ended: it is asked again, less and less
            # often. A refused PreVote has no effect on the voter.
            pause_ms = max(turn_ms(node) // 2, node.now_ms - state.begin_ms)
            node.connections.pause(node_id, node.now_ms + pause_ms)
            return True
        state.tally.record(node_id, response.granted)
        if state.tally.is_won and request.pre_vote:
            node.become_candidate()
        elif state.tally.is_won:
            node.become_leader(tuple(sorted(state.tally.granted)))
    return True


# -- BeginQuorumEpoch and EndQuorumEpoch


def handle_begin(node: RaftNode, request: BeginQuorumEpochRequest) -> BeginQuorumEpochResponse:
    """Handles BeginQuorumEpoch: follows the leader that sent the request.

    The response has an error, and the sender is not followed, if the request is from another cluster or an older epoch,
    or if its sender cannot be the leader. A request that names another voter gets the error INVALID_VOTER_KEY, but its
    sender is followed.
    """
    if not is_our_cluster(node, request.cluster_id):
        return BeginQuorumEpochResponse(Error.INCONSISTENT_CLUSTER_ID, -1, -1)
    error = _voter_error(node, request.leader_id, request.epoch)
    if error == Error.NONE and not _may_lead(node, request.leader_id, request.epoch, request.endpoints):
        error = Error.INVALID_REQUEST
    if error == Error.NONE and not _is_addressee(node, request.voter):
        error = Error.INVALID_VOTER_KEY
    return BeginQuorumEpochResponse(error, *node.leader_fields())


def _may_lead(node: RaftNode, leader_id: int, epoch: int, endpoints: Endpoints) -> bool:
    """Returns whether `leader_id`, the sender of a request, may be the leader of `epoch`.

    The sender cannot be the leader if it is this node itself, or if this node knows another leader of the epoch. If the
    sender may be the leader, this node follows it, unless this node is in a higher epoch already.
    """
    return leader_id != node.config.node_id and learn_leader(node, leader_id, epoch, endpoints)


def handle_end(node: RaftNode, request: EndQuorumEpochRequest) -> EndQuorumEpochResponse:
    """Handles EndQuorumEpoch, with which a leader announces that it resigns.

    If this node follows that leader, it asks for votes itself after a short time, which depends on the node's rank
    among the preferred candidates. An administrator may send the request to the leader: if this node is the leader that
    the request names, this node resigns.
    """
    if not is_our_cluster(node, request.cluster_id):
        return EndQuorumEpochResponse(Error.INCONSISTENT_CLUSTER_ID, -1, -1)
    error = _voter_error(node, request.leader_id, request.epoch)
    leader = node.state
    if error == Error.NONE and isinstance(leader, Leader) and (request.leader_id, request.epoch) == _identity(leader):
        return _resign(node, leader, request)
    if error == Error.NONE and not _may_lead(node, request.leader_id, request.epoch, request.endpoints):
        error = Error.INVALID_REQUEST
    state = node.state
    if error == Error.NONE and isinstance(state, Follower) and state.leader_id == request.leader_id:
        state.deadline_ms = node.now_ms + election_backoff_ms(node, request.preferred)
    return EndQuorumEpochResponse(error, *node.leader_fields())


def _identity(leader: Leader) -> tuple[int, int]:
    return leader.leader_id, leader.epoch


def _resign(node: RaftNode, leader: Leader, request: EndQuorumEpochRequest) -> EndQuorumEpochResponse:
    """Resigns at the request of an administrator, so that the first preferred candidate becomes leader.

    A request to resign is an extension of kafkapy, which nodes never send to each other. Leaders of Apache Kafka ignore
    it.
    """
    others = leader.candidates()
    wanted = [each.node_id for each in request.preferred]
    preferred = sorted(others, key=lambda key: wanted.index(key.node_id) if key.node_id in wanted else len(wanted))
    if not others or any(each not in [key.node_id for key in others] for each in wanted):
        return EndQuorumEpochResponse(Error.INCONSISTENT_VOTER_SET, *node.leader_fields())
    node.become_resigned(leader.epoch, tuple(preferred))
    return EndQuorumEpochResponse(Error.NONE, *node.leader_fields())


def election_backoff_ms(node: RaftNode, preferred: tuple[ReplicaKey, ...]) -> int:
    """Returns the milliseconds for which this node waits for a new leader, after the leader has resigned, before it
    asks for votes itself.

    The first candidate in `preferred` does not wait. Every other candidate waits at least as long as the candidate
    before it.
    """
    largest_ms = node.config.election_backoff_max_ms
    own = node.config.key
    for rank, key in enumerate(preferred):
        if key.node_id == own.node_id and key.directory_id in (ZERO_UUID, own.directory_id):
            base_ms = largest_ms >> (len(preferred) - 1)
            return 0 if rank == 0 else min(largest_ms, base_ms << (rank - 1))
    return largest_ms


def leader_refused(node: RaftNode, leader_id: int) -> None:
    """Shortens the fetch timeout of a voter whose leader refuses every connection.

    The voters wait for different times, in the order of their ids, so that two voters do not ask for votes at the same
    time. After the timeout was shortened, further refusals have no effect for the length of the election timeout.
    """
    state = node.state
    if not isinstance(state, Follower) or state.leader_id != leader_id or not node.is_voter:
        return
    node.refused_epoch = state.epoch
    if node.now_ms >= node.refusal_ignored_until_ms:
        node.refusal_ignored_until_ms = node.now_ms + node.config.election_timeout_ms
        others = [node_id for node_id in node.voters.ids if node_id != leader_id]
        state.deadline_ms = min(state.deadline_ms, node.now_ms + others.index(node.config.node_id) * turn_ms(node))


def turn_ms(node: RaftNode) -> int:
    """Returns the difference in milliseconds between the waiting times of two voters with successive ids. The voters
    wait for different times, in the order of their ids, before they stand for election."""
    return node.config.election_timeout_ms // 10


def handle_begin_response(node: RaftNode, response: BeginQuorumEpochResponse) -> bool:
    """Handles the response of a voter to BeginQuorumEpoch.

    Returns True if the next request may be sent at once, and False if the connection has to wait for the back-off time
    first, because the response has an error.
    """
    handled = handle_common(node, response.error, response.leader_id, response.epoch, response.endpoints)
    return response.error == Error.NONE if handled is None else handled


def handle_end_response(node: RaftNode, node_id: int, response: EndQuorumEpochResponse) -> bool:
    """Handles the response to EndQuorumEpoch, by which a voter acknowledges that this node has resigned.

    Returns True if the next request may be sent at once, and False if the connection has to wait for the back-off time
    first, because the response has an error.
    """
    handled = handle_common(node, response.error, response.leader_id, response.epoch, response.endpoints)
    if handled is not None:
        return handled
    if response.error == Error.NONE and isinstance(node.state, Resigned):
        node.state.unacknowledged.discard(node_id)
    return response.error == Error.NONE


def send_begin_epochs(node: RaftNode, leader: Leader) -> int:
    """Sends BeginQuorumEpoch to the voters that have not fetched for half the fetch timeout.

    Returns the monotonic time in milliseconds at which the next of these requests are due.
    """
    if node.now_ms >= leader.begin_ms:
        interval_ms = node.config.fetch_timeout_ms // 2
        for voter in node.voters:
            progress = leader.voters[voter.node_id]
            has_fetched = progress.fetch_ms >= 0 and progress.fetch_ms > node.now_ms - interval_ms
            destination = node.voter_destination(voter)
            if voter.node_id == node.config.node_id or has_fetched or destination is None:
                continue
            if node.connections.ready_ms(voter.node_id, node.now_ms) <= node.now_ms:
                request = BeginQuorumEpochRequest(
                    node.config.cluster_id, voter.key, leader.leader_id, leader.epoch, leader.endpoints
                )
                node.send(destination, request)
        leader.begin_ms = node.now_ms + interval_ms
    return leader.begin_ms


def send_end_epochs(node: RaftNode, state: Resigned) -> int:
    """Announces the resignation to the voters that have not acknowledged it.

    Returns the monotonic time in milliseconds of the next attempt.
    """
    next_ms = state.deadline_ms
    for node_id in sorted(state.unacknowledged):
        voter = node.voters.get(node_id)
        destination = None if voter is None else node.voter_destination(voter)
        if destination is None:
            continue
        if node.connections.ready_ms(node_id, node.now_ms) <= node.now_ms:
            request = EndQuorumEpochRequest(
                node.config.cluster_id, state.leader_id, state.epoch, state.preferred, state.endpoints
            )
            node.send(destination, request)
        next_ms = min(next_ms, node.connections.ready_ms(node_id, node.now_ms))
    return next_ms
