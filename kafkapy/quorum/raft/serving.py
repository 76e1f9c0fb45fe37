"""The leader's side of replication: Fetch and FetchSnapshot requests, fetches that wait for records, and the high
watermark."""

from __future__ import annotations

from typing import Any

from kafkapy.errors import Error
from kafkapy.quorum.raft.connections import FOREVER
from kafkapy.quorum.raft.effects import Respond
from kafkapy.quorum.raft.elections import is_our_cluster
from kafkapy.quorum.raft.leader import HeldFetch, Leader
from kafkapy.quorum.raft.messages import (
    FetchedBatch,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    QuorumDescription,
)
from kafkapy.quorum.raft.node import RaftNode
from kafkapy.types import OffsetAndEpoch

MAX_HELD_FETCHES = 1000
MANY_OBSERVERS = 100
FORMATTED_SNAPSHOT = OffsetAndEpoch(0, 0)


def leader_error(node: RaftNode, epoch: int) -> Error:
    """Returns the error of a request that only the leader of `epoch` serves; NONE if this node is that leader."""
    if epoch < node.state.epoch:
        return Error.FENCED_LEADER_EPOCH
    if epoch > node.state.epoch:
        return Error.UNKNOWN_LEADER_EPOCH
    if not isinstance(node.state, Leader):
        return Error.NOT_LEADER_OR_FOLLOWER
    return Error.NONE if node.shutdown_ms is None else Error.BROKER_NOT_AVAILABLE


# -- Fetch


def handle_fetch(node: RaftNode, request: FetchRequest, token: Any) -> None:
    """Responds to a Fetch at once if the response has records, a diverging epoch, a snapshot id, a higher high
    watermark or an error. Otherwise delays the response until it has one of these, or until the request's `max_wait_ms`
    has passed. If MAX_HELD_FETCHES responses are delayed already, responds at once."""
    if not is_our_cluster(node, request.cluster_id):
        _respond(node, token, FetchResponse(Error.INCONSISTENT_CLUSTER_ID, -1, -1))
        return
    if (
        min(request.max_wait_ms, request.offset, request.last_epoch, request.epoch) < 0
        or request.last_epoch > request.epoch
    ):
        _respond(node, token, FetchResponse(Error.INVALID_REQUEST, *node.leader_fields()))
        return
    error = leader_error(node, request.epoch)
    state = node.state
    if error != Error.NONE or not isinstance(state, Leader):
        _respond(node, token, FetchResponse(error, *node.leader_fields()))
        return
    response = _evaluate(node, state, request)
    if _must_wait(state, request, response) and request.max_wait_ms > 0 and len(state.held) < MAX_HELD_FETCHES:
        deadline_ms = node.now_ms + request.max_wait_ms
        state.held.append(HeldFetch(request, token, deadline_ms))
        state.held_until_ms = min(state.held_until_ms, deadline_ms)
        return
    _respond(node, token, response)


def _must_wait(state: Leader, request: FetchRequest, response: FetchResponse) -> bool:
    return (
        response.read_from < 0
        and response.diverging is None
        and response.snapshot_id is None
        and state.high_watermark <= request.high_watermark
    )


def _respond(node: RaftNode, token: Any, response: FetchResponse) -> None:
    node.effects.append(Respond(token, response))


def _evaluate(node: RaftNode, leader: Leader, request: FetchRequest) -> FetchResponse:
    """Returns the response to a Fetch in this epoch, and stores the offset of a valid Fetch as the replica's
    progress."""
    snapshot_id, diverging = _position(node, request.offset, request.last_epoch)
    read_from = -1
    if snapshot_id is None and diverging is None:
        _note_fetch(node, leader, request)
        if request.offset < node.log.end_offset:
            read_from = request.offset
    return FetchResponse(
        Error.NONE,
        *node.leader_fields(),
        leader.high_watermark,
        node.log.start_offset,
        diverging,
        snapshot_id,
        read_from,
        request.max_bytes,
    )


def _position(node: RaftNode, offset: int, epoch: int) -> tuple[OffsetAndEpoch | None, OffsetAndEpoch | None]:
    """Compares a follower's log with the leader's log. The follower's log ends at `offset` with a record of `epoch`.

    Returns (None, None) if the follower can fetch from `offset`; (snapshot id, None) if the follower has to load this
    snapshot first; and (None, epoch and end offset) if the follower's log differs and must be truncated. The end offset
    is the end of the epoch in the leader's log.
    """
    log = node.log
    latest = log.snapshots[-1] if log.snapshots else None
    if offset == 0 and latest is not None and latest != FORMATTED_SNAPSHOT:
        return latest, None
    if offset == 0 and log.start_offset == 0:
        return None, None
    if latest is not None:
        oldest = log.snapshots[0]
        is_at_other_start = offset == log.start_offset and epoch != oldest.epoch
        if offset < log.start_offset or is_at_other_start or epoch < oldest.epoch:
            return latest, None
    end = log.end_of_epoch(epoch)
    if end.epoch != epoch or end.offset < offset:
        return None, end
    return None, None


def _note_fetch(node: RaftNode, leader: Leader, request: FetchRequest) -> None:
    key = request.replica
    if key.node_id < 0 or key.node_id == leader.leader_id:
        return
    if len(leader.observers) > MANY_OBSERVERS:
        leader.forget_observers(node.now_ms)
    leader.progress_of(key).fetched(request.offset, node.log.end_offset, node.now_ms)
    leader.note_fetching_voter(key, node.now_ms, node.check_quorum_timeout_ms)
    update_high_watermark(node, leader)


def complete_held(node: RaftNode, leader: Leader) -> None:
    """Responds to the waiting fetches for which there are new records or a higher high watermark, or whose deadline has
    passed."""
    known = (node.log.end_offset, leader.high_watermark)
    if known == leader.held_known and node.now_ms < leader.held_until_ms:
        return
    leader.held_known = known
    held, leader.held = leader.held, []
    for each in held:
        request = each.request
        is_due = (
            request.offset < node.log.end_offset
            or leader.high_watermark > request.high_watermark
            or each.deadline_ms <= node.now_ms
        )
        if is_due:
            _respond(node, each.token, _evaluate(node, leader, request))
        else:
            leader.held.append(each)
    leader.held_until_ms = min((each.deadline_ms for each in leader.held), default=FOREVER)


# -- the high watermark


def appended(node: RaftNode, leader: Leader, end_offset: int) -> None:
    """Records that the leader's log is durable up to `end_offset`, and increases the high watermark."""
    log = node.log
    if end_offset > log.end_offset:
        log.append((FetchedBatch(log.end_offset, end_offset - 1, leader.epoch),), ())
    log.flushed_offset = max(log.flushed_offset, end_offset)
    update_high_watermark(node, leader)


def update_high_watermark(node: RaftNode, leader: Leader) -> None:
    """Increases the high watermark to the offset that a majority of the voters has reached; completes the change of
    voters in progress if this commits the change."""
    if not leader.raise_high_watermark(node.log.flushed_offset):
        return
    node.raise_high_watermark(leader.high_watermark)
    pending = leader.pending
    if pending is not None and 0 <= pending.offset < leader.high_watermark:
        node.finish_change(leader, Error.NONE, None)
    if not leader.is_own_voter and node.log.voters_offset() < leader.high_watermark:
        leader.is_resigning = True  # The voters without this leader are committed.


# -- FetchSnapshot and DescribeQuorum


def handle_fetch_snapshot(node: RaftNode, request: FetchSnapshotRequest) -> FetchSnapshotResponse:
    """Returns the response to a FetchSnapshot. The driver then adds the requested bytes of the snapshot file."""
    if not is_our_cluster(node, request.cluster_id):
        return FetchSnapshotResponse(Error.INCONSISTENT_CLUSTER_ID, -1, -1)
    error = leader_error(node, request.epoch)
    if error == Error.NONE:
        if request.snapshot_id == FORMATTED_SNAPSHOT or request.snapshot_id not in node.log.snapshots:
            error = Error.SNAPSHOT_NOT_FOUND
        elif request.position < 0:
            error = Error.POSITION_OUT_OF_RANGE
    if error == Error.NONE and isinstance(node.state, Leader) and request.replica.node_id >= 0:
        node.state.note_fetching_voter(request.replica, node.now_ms, node.check_quorum_timeout_ms)
    return FetchSnapshotResponse(
        error, *node.leader_fields(), request.snapshot_id, 0, request.position, request.max_bytes
    )


def describe(node: RaftNode) -> QuorumDescription | None:
    """Returns the data of DescribeQuorum; None if this node is not the leader."""
    leader = node.state
    if not isinstance(leader, Leader):
        return None
    leader.forget_observers(node.now_ms)
    if leader.is_own_voter:
        own = leader.voters[leader.leader_id]
        own.key = leader.own_key
        own.end_offset, own.fetch_ms, own.caught_up_ms = node.log.end_offset, node.now_ms, node.now_ms
    return QuorumDescription(
        leader.leader_id,
        leader.epoch,
        leader.high_watermark,
        tuple(progress.state() for progress in leader.voters.values()),
        tuple(progress.state() for progress in leader.observers.values()),
        tuple(node.voters),
    )
