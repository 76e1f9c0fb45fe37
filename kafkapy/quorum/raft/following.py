"""The follower's side of replication: Fetch and FetchSnapshot requests, appends, truncation, downloads of snapshots."""

from __future__ import annotations

from kafkapy.errors import Error
from kafkapy.quorum.raft.connections import FOREVER
from kafkapy.quorum.raft.effects import AppendFetched, DropSnapshotPart, StartAtSnapshot, Truncate, WriteSnapshotChunk
from kafkapy.quorum.raft.elections import handle_common
from kafkapy.quorum.raft.follower import Follower, SnapshotDownload
from kafkapy.quorum.raft.messages import (
    FetchedBatch,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
)
from kafkapy.quorum.raft.node import RaftNode
from kafkapy.quorum.voters import VoterSet
from kafkapy.types import OffsetAndEpoch

# The errors after which a download is given up and the follower asks the leader for the log again.
_LOST_SNAPSHOT = (Error.SNAPSHOT_NOT_FOUND, Error.POSITION_OUT_OF_RANGE)

# -- requests


def fetch_from_bootstrap(node: RaftNode) -> int:
    """Sends a Fetch to a bootstrap server, unless a Fetch is in flight or no connection is ready.

    Returns the monotonic time in milliseconds of the next attempt.
    """
    connections = node.connections
    if connections.is_fetching(node.now_ms):
        return connections.fetch_deadline_ms
    next_ms = FOREVER
    servers = node.bootstrap
    first = int(node.random.random() * len(servers)) if servers else 0
    for index in range(len(servers)):
        server = servers[(first + index) % len(servers)]
        ready_ms = connections.ready_ms(server.node_id, node.now_ms)
        if ready_ms <= node.now_ms:
            node.send(server, _fetch_request(node))
            return connections.fetch_deadline_ms
        next_ms = min(next_ms, ready_ms)
    return next_ms


def fetch_from_leader(node: RaftNode, state: Follower) -> int:
    """Sends a Fetch or FetchSnapshot to the leader, unless one is in flight.

    Returns the monotonic time in milliseconds of the next attempt. While the leader does not respond, requests go to
    the bootstrap servers too, because any of them may know the next leader.
    """
    connections = node.connections
    if connections.is_fetching(node.now_ms):
        return connections.fetch_deadline_ms
    download = state.download
    if download is not None and download.is_complete:
        return FOREVER
    destination = node.destination_of(state.leader_id, state.endpoints)
    is_late = not node.may_stand and node.now_ms >= state.deadline_ms
    if destination is None or is_late or connections.is_backing_off(destination.node_id, node.now_ms):
        next_ms = fetch_from_bootstrap(node)
        if destination is not None and not connections.is_fetching(node.now_ms):
            next_ms = min(next_ms, connections.ready_ms(destination.node_id, node.now_ms))
        return next_ms
    ready_ms = connections.ready_ms(destination.node_id, node.now_ms)
    if ready_ms > node.now_ms:
        return ready_ms
    if download is None:
        node.send(destination, _fetch_request(node))
    else:
        config = node.config
        node.send(
            destination,
            FetchSnapshotRequest(
                config.cluster_id,
                config.key,
                state.epoch,
                download.snapshot_id,
                download.position,
                config.fetch_snapshot_max_bytes,
            ),
        )
    return connections.fetch_deadline_ms


def _fetch_request(node: RaftNode) -> FetchRequest:
    config, end = node.config, node.log.end
    return FetchRequest(
        config.cluster_id,
        config.key,
        node.state.epoch,
        end.offset,
        end.epoch,
        node.high_watermark,
        # A Fetch that the leader holds must end well before the fetch timeout, also if that is configured to be short.
        min(config.fetch_max_wait_ms, config.fetch_timeout_ms // 4),
        config.fetch_max_bytes,
    )


# -- responses to Fetch


def handle_fetch_response(node: RaftNode, request: FetchRequest, response: FetchResponse) -> bool:
    """Appends the batches of a Fetch response, truncates the log, or begins the download of a snapshot.

    Returns True if the next request may be sent at once. Returns False if the connection has to wait for the back-off
    time first, because the response has an error or batches that do not continue the log.
    """
    handled = handle_common(node, response.error, response.leader_id, response.epoch, response.endpoints)
    if handled is not None:
        return handled
    state = node.state
    if response.error != Error.NONE or not isinstance(state, Follower):
        return False
    if request.offset != node.log.end_offset:
        return True  # The log changed since the request.
    is_progress = True
    if state.download is not None:
        pass  # A bootstrap server is the leader: the download goes on.
    elif response.diverging is not None:
        _truncate(node, response.diverging)
    elif response.snapshot_id is not None:
        _begin_download(node, state, response.snapshot_id)
    else:
        is_progress = _append(node, response)
    if not is_progress:
        return False
    _note_success(node, state)
    return True


def _note_success(node: RaftNode, state: Follower) -> None:
    state.deadline_ms = node.now_ms + node.config.fetch_timeout_ms
    state.has_fetched = True
    node.refused_epoch = -1


def _truncate(node: RaftNode, diverging: OffsetAndEpoch) -> None:
    """Removes the records that the leader does not have. `diverging` is the largest epoch that both logs may have in
    common, and its end offset in the leader's log."""
    log = node.log
    own = log.end if diverging.epoch == 0 else log.end_of_epoch(diverging.epoch)
    is_common = diverging.epoch in (0, own.epoch)
    offset = min(own.offset, diverging.offset) if is_common else own.offset
    if min(offset, diverging.offset) < node.high_watermark:
        node.fatal(
            f"the leader asks to truncate the metadata log to offset {diverging.offset} of epoch {diverging.epoch}, "
            f"which is below the high watermark {node.high_watermark}"
        )
        return
    if offset < log.end_offset:
        log.truncate(offset)
        node.effects.append(Truncate(offset))
        node.voters_changed()


def _append(node: RaftNode, response: FetchResponse) -> bool:
    """Appends the batches before the first one that does not continue the log, and increases the high watermark.

    Returns False if the response has batches and its first one does not continue the log.
    """
    log = node.log
    batches: list[FetchedBatch] = []
    end, epoch = log.end_offset, log.last_epoch
    for batch in response.batches:
        if batch.base_offset != end or batch.last_offset < end or not epoch <= batch.epoch <= node.state.epoch:
            break
        batches.append(batch)
        end, epoch = batch.last_offset + 1, batch.epoch
    if response.batches and not batches:
        return False
    if batches:
        changes = tuple(change for change in response.changes if change.offset < end)
        log.append(batches, changes)
        is_durable = node.config.can_be_voter
        if is_durable:
            log.flushed_offset = end
        records = response.records
        if len(batches) < len(response.batches):
            records = records[: sum(batch.size for batch in batches)]
        node.effects.append(AppendFetched(records, tuple(batches), is_durable))
        if changes:
            node.voters_changed()
    node.raise_high_watermark(min(response.high_watermark, log.end_offset))
    return True


# -- snapshots


def _begin_download(node: RaftNode, state: Follower, snapshot_id: OffsetAndEpoch) -> None:
    if snapshot_id.offset < 0 or snapshot_id.epoch < 0 or snapshot_id.offset < node.high_watermark:
        return
    state.download = SnapshotDownload(snapshot_id)


def handle_snapshot_response(node: RaftNode, request: FetchSnapshotRequest, response: FetchSnapshotResponse) -> bool:
    """Writes a piece of the snapshot; after the last piece, starts the log at the end of the snapshot.

    Returns True if the next request may be sent at once. Returns False if the connection has to wait for the back-off
    time first, because the response has an error or lacks the requested data.
    """
    handled = handle_common(node, response.error, response.leader_id, response.epoch, response.endpoints)
    state = node.state
    if handled is not None:
        # Apache Kafka 4.3 cannot encode a response with SNAPSHOT_NOT_FOUND: the whole request gets an error instead.
        if response.epoch < 0 and isinstance(state, Follower):
            give_up_download(node, state)
        return handled
    if not isinstance(state, Follower) or state.download is None:
        return True
    download = state.download
    if request.snapshot_id != download.snapshot_id or request.position != download.position:
        return True
    is_other = response.snapshot_id != download.snapshot_id or response.position != download.position
    if response.error in _LOST_SNAPSHOT or (response.error == Error.NONE and is_other):
        give_up_download(node, state)
        _note_success(node, state)
        return True
    if response.error != Error.NONE:
        return False
    if not response.data and response.size > download.position:
        return False
    node.effects.append(WriteSnapshotChunk(download.snapshot_id, download.position, response.data))
    download.position += len(response.data)
    if download.position >= response.size:
        download.is_complete = True
        node.effects.append(StartAtSnapshot(download.snapshot_id))
    _note_success(node, state)
    return True


def started_at_snapshot(
    node: RaftNode, snapshot_id: OffsetAndEpoch, voters: VoterSet | None, kraft_version: int
) -> None:
    """Begins the log at the end of a snapshot that the machine's driver has stored. The snapshot's records are
    committed.
    """
    node.log.start_at(snapshot_id, voters, kraft_version)
    node.voters_changed()
    if isinstance(node.state, Follower):
        node.state.download = None
    node.raise_high_watermark(snapshot_id.offset)


def give_up_download(node: RaftNode, state: Follower) -> None:
    """Ends the download of a snapshot, so that the follower sends Fetch requests again."""
    if state.download is not None:
        node.effects.append(DropSnapshotPart(state.download.snapshot_id))
        state.download = None
