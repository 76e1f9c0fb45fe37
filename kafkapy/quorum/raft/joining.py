"""Requests of a follower about its own entry in the voter set: corrections, and the automatic join (KIP-853)."""

from __future__ import annotations

from kafkapy.errors import Error
from kafkapy.quorum.raft.elections import handle_common
from kafkapy.quorum.raft.follower import Follower
from kafkapy.quorum.raft.messages import (
    AddVoterRequest,
    ChangeVoterResponse,
    RemoveVoterRequest,
    Request,
    UpdateVoterRequest,
)
from kafkapy.quorum.raft.node import RaftNode
from kafkapy.quorum.voters import KRAFT_VERSION_DYNAMIC

# The errors after which a node waits before it tries again to join.
_WAIT_AND_JOIN = (Error.NONE, Error.REQUEST_TIMED_OUT, Error.DUPLICATE_VOTER, Error.VOTER_NOT_FOUND)


def send_voter_change(node: RaftNode, state: Follower) -> int | None:
    """Sends UpdateRaftVoter, AddRaftVoter or RemoveRaftVoter to the leader if this node's entry in the voter set is
    missing or wrong, and the wait after the last attempt is over.

    Returns None if no request is necessary now. Otherwise the next Fetch waits for the request, and the result is the
    monotonic time in milliseconds at which to try again.
    """
    if node.now_ms < state.update_voter_ms:
        return None
    request = _request(node, state)
    destination = node.destination_of(state.leader_id, state.endpoints)
    if request is not None and destination is not None:
        ready_ms = node.connections.ready_ms(destination.node_id, node.now_ms)
        if ready_ms > node.now_ms:
            return ready_ms
        node.send(destination, request)
    state.update_voter_ms = node.now_ms + node.config.fetch_timeout_ms
    return None if request is None else state.update_voter_ms


def _request(node: RaftNode, state: Follower) -> Request | None:
    config = node.config
    own = config.as_voter
    if not config.can_be_voter or not config.listeners:
        return None
    is_dynamic = node.log.kraft_version() >= KRAFT_VERSION_DYNAMIC
    if node.is_voter:
        is_correct = node.voters.get(own.node_id) == own if is_dynamic else state.has_updated_voter
        return None if is_correct else UpdateVoterRequest(config.cluster_id, state.epoch, own)
    if not is_dynamic or not config.auto_join:
        return None
    former = node.voters.get(own.node_id)
    if former is not None:
        return RemoveVoterRequest(config.cluster_id, former.key)
    return AddVoterRequest(config.cluster_id, config.request_timeout_ms, own, ack_when_committed=False)


def handle_change_response(node: RaftNode, request: Request, response: ChangeVoterResponse) -> bool:
    """Handles the response to UpdateRaftVoter, AddRaftVoter or RemoveRaftVoter.

    Returns True if the next request may be sent at once, and False if the connection has to wait for the back-off time
    first.
    """
    if isinstance(request, UpdateVoterRequest):
        handled = handle_common(node, response.error, response.leader_id, response.epoch, response.endpoints)
        if handled is not None:
            return handled
        state = node.state
        if response.error in (Error.NONE, Error.UNSUPPORTED_VERSION) and isinstance(state, Follower):
            state.has_updated_voter = True
            state.deadline_ms = node.now_ms + node.config.fetch_timeout_ms
            return True
        return response.error == Error.REQUEST_TIMED_OUT  # The leader lives, but another change is in progress.
    if isinstance(node.state, Follower) and response.error in _WAIT_AND_JOIN:
        node.state.update_voter_ms = node.now_ms + node.config.fetch_timeout_ms
        return True
    return False
