"""Handles expired timers and sends the requests that are due, after each call of the Raft machine."""

from __future__ import annotations

from kafkapy.errors import Error
from kafkapy.quorum.raft import elections, following, joining, serving
from kafkapy.quorum.raft.candidate import Candidate
from kafkapy.quorum.raft.connections import FOREVER
from kafkapy.quorum.raft.follower import Follower
from kafkapy.quorum.raft.leader import Leader
from kafkapy.quorum.raft.node import RaftNode
from kafkapy.quorum.raft.prospective import Prospective
from kafkapy.quorum.raft.resigned import Resigned
from kafkapy.quorum.raft.unattached import Unattached


def poll(node: RaftNode) -> int:
    """Handles expired timers and sends the requests that are due; repeats this after each change of the state. Returns
    the monotonic time in milliseconds at which it must be called again."""
    node.connections.expire(node.now_ms)
    while not node.is_dead:
        state = node.state
        if isinstance(state, Leader):
            next_ms = _poll_leader(node, state)
        elif isinstance(state, Follower):
            next_ms = _poll_follower(node, state)
        elif isinstance(state, Unattached):
            next_ms = _poll_unattached(node, state)
        elif isinstance(state, Prospective):
            next_ms = _poll_prospective(node, state)
        elif isinstance(state, Candidate):
            next_ms = _poll_candidate(node, state)
        else:
            next_ms = _poll_resigned(node, state)
        if node.state is state:
            if node.shutdown_ms is None:
                return next_ms
            # A node that shuts down ignores its election timer, which may have expired.
            return node.shutdown_ms if next_ms <= node.now_ms else min(next_ms, node.shutdown_ms)
    return FOREVER


def _poll_unattached(node: RaftNode, state: Unattached) -> int:
    if node.may_stand and node.shutdown_ms is None:
        if node.now_ms >= state.deadline_ms:
            node.become_prospective()
            return 0
        return min(state.deadline_ms, following.fetch_from_bootstrap(node))
    return following.fetch_from_bootstrap(node)


def _poll_prospective(node: RaftNode, state: Prospective) -> int:
    if node.shutdown_ms is None and (state.tally.is_lost or node.now_ms >= state.deadline_ms):
        if state.leader_id >= 0 and state.endpoints:
            node.become_follower(state.epoch, state.leader_id, state.endpoints)
        else:
            node.become_unattached(state.epoch, state.leader_id)
        return 0
    return elections.send_votes(node, state)


def _poll_candidate(node: RaftNode, state: Candidate) -> int:
    if node.shutdown_ms is None and node.now_ms >= state.deadline_ms:
        node.become_prospective()
        return 0
    return state.deadline_ms if state.tally.is_lost else elections.send_votes(node, state)


def _poll_resigned(node: RaftNode, state: Resigned) -> int:
    if node.shutdown_ms is None and node.now_ms >= state.deadline_ms:
        node.become_unattached(state.epoch + 1)
        return 0
    return elections.send_end_epochs(node, state)


def _poll_follower(node: RaftNode, state: Follower) -> int:
    if node.shutdown_ms is not None:
        return node.shutdown_ms
    if node.may_stand and node.now_ms >= state.deadline_ms:
        node.become_prospective()
        return 0
    change_ms = joining.send_voter_change(node, state)
    if change_ms is not None:
        next_ms = change_ms
    else:
        next_ms = min(following.fetch_from_leader(node, state), state.update_voter_ms)
    return min(next_ms, state.deadline_ms) if state.deadline_ms > node.now_ms else next_ms


def _poll_leader(node: RaftNode, state: Leader) -> int:
    has_others = len(node.voters) > 1 or not state.is_own_voter
    if not has_others:
        state.check_quorum_ms = node.now_ms + node.check_quorum_timeout_ms
    if state.is_resigning or node.shutdown_ms is not None or node.now_ms >= state.check_quorum_ms:
        node.become_resigned(state.epoch, state.candidates())
        return 0
    next_ms = FOREVER
    if has_others:
        next_ms = min(elections.send_begin_epochs(node, state), state.check_quorum_ms)
    if state.pending is not None:
        if node.now_ms >= state.pending.deadline_ms:
            node.finish_change(state, Error.REQUEST_TIMED_OUT, None)
        else:
            next_ms = min(next_ms, state.pending.deadline_ms)
    if state.held:
        serving.complete_held(node, state)
        next_ms = min(next_ms, state.held_until_ms)
    return next_ms
