"""The requests between the nodes of the quorum: Vote 0 to 2, BeginQuorumEpoch and EndQuorumEpoch 0 to 1, and
FetchSnapshot 0 to 1 (KIP-595, KIP-630, KIP-853, KIP-996).

The handlers translate each request for the state machine of the Raft protocol. A request for other partitions than
`__cluster_metadata`-0 fails as a whole, with INVALID_REQUEST.

Permissions: ClusterAction on the cluster.

Version notes: version 0 of Vote, BeginQuorumEpoch and EndQuorumEpoch has no directory ids and no endpoints of the
leader; Vote has PreVote from version 2 on.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.begin_quorum_epoch import BeginQuorumEpochRequest, BeginQuorumEpochResponse
from kafkapy.protocol.messages.end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse
from kafkapy.protocol.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from kafkapy.protocol.messages.vote import VoteRequest, VoteResponse
from kafkapy.quorum import raft_server as wire
from kafkapy.quorum.raft.messages import Request
from kafkapy.security.acl import Operation
from kafkapy.server.api_registry import error_without_message, serves
from kafkapy.server.authorization import check_cluster
from kafkapy.server.quorum_requests import ask_quorum
from kafkapy.server.request_context import RequestContext


def _ask(context: RequestContext, request: Request, write: Callable[[Any, int, str], Any]) -> None:
    """Passes a request to the state machine of the Raft protocol, and sends its response to the client.

    `write(response, version, listener)` gets the machine's response, the API version and the name of the listener, and
    returns the message to encode.
    """
    version, listener = context.api_version, context.listener.name
    ask_quorum(context, request, lambda found: write(found, version, listener))


@serves(ApiKey.VOTE, 0, 2, on_error=error_without_message(VoteResponse))
def handle_vote(context: RequestContext, request: VoteRequest) -> None:
    check_cluster(context, Operation.CLUSTER_ACTION)
    _ask(context, wire.vote_request(request), wire.vote_response)


@serves(ApiKey.BEGIN_QUORUM_EPOCH, 0, 1, on_error=error_without_message(BeginQuorumEpochResponse))
def handle_begin_quorum_epoch(context: RequestContext, request: BeginQuorumEpochRequest) -> None:
    check_cluster(context, Operation.CLUSTER_ACTION)
    _ask(context, wire.begin_request(request), wire.begin_response)


@serves(ApiKey.END_QUORUM_EPOCH, 0, 1, on_error=error_without_message(EndQuorumEpochResponse))
def handle_end_quorum_epoch(context: RequestContext, request: EndQuorumEpochRequest) -> None:
    check_cluster(context, Operation.CLUSTER_ACTION)
    _ask(context, wire.end_request(request), wire.end_response)


@serves(ApiKey.FETCH_SNAPSHOT, 0, 1, on_error=error_without_message(FetchSnapshotResponse))
def handle_fetch_snapshot(context: RequestContext, request: FetchSnapshotRequest) -> None:
    check_cluster(context, Operation.CLUSTER_ACTION)
    write = partial(wire.fetch_snapshot_response, read=context.services.quorum.quorum.read_snapshot)
    _ask(context, wire.fetch_snapshot_request(request), write)
