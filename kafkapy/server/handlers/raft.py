"""The requests between the nodes of the quorum: Vote 0 to 2, BeginQuorumEpoch and EndQuorumEpoch 0 to 1, Fetch 4 to 18
and FetchSnapshot 0 to 1 of the metadata log, AddRaftVoter 0 to 1, RemoveRaftVoter and UpdateRaftVoter 0.

Behaviour: translates each request for the Raft machine, which runs on the quorum thread, and responds when the machine
does, which may be later. Requests for other partitions get INVALID_REQUEST for the whole request (KIP-595, KIP-853).

Version notes: see kafkapy/quorum/raft_server.py.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from kafkapy.protocol.messages.begin_quorum_epoch import BeginQuorumEpochRequest, BeginQuorumEpochResponse
from kafkapy.protocol.messages.end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse
from kafkapy.protocol.messages.fetch import FetchRequest, FetchResponse
from kafkapy.protocol.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from kafkapy.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from kafkapy.protocol.messages.update_raft_voter import UpdateRaftVoterRequest, UpdateRaftVoterResponse
from kafkapy.protocol.messages.vote import VoteRequest, VoteResponse
from kafkapy.quorum import raft_server as wire
from kafkapy.quorum.raft.messages import Request
from kafkapy.server.api_registry import OnError, serves
from kafkapy.server.request_context import RequestContext


def _whole_error(response: Any) -> OnError:
    """Returns the function that makes responses of this class with an error of the whole request."""
    return lambda request, version, error, message: response(error_code=error)


def _ask(context: RequestContext, request: Request, translate: Callable[[Any], Any]) -> None:
    """Passes a request to the Raft machine; `translate` makes the wire response, on the quorum thread."""
    loop, reactor = context.services.controller, context.services.reactor

    def respond(response: Any) -> None:
        message = translate(response)
        reactor.post(lambda: context.respond(message))

    if not loop.offer(lambda: loop.quorum.receive(request, respond)):
        context.connection.close("too many requests wait for the quorum")


@serves(ApiKey.VOTE, 0, 2, on_error=_whole_error(VoteResponse))
def handle_vote(context: RequestContext, request: VoteRequest) -> None:
    version, listener = context.api_version, context.listener.name
    _ask(context, wire.vote_request(request), lambda response: wire.vote_response(response, version, listener))


@serves(ApiKey.BEGIN_QUORUM_EPOCH, 0, 1, on_error=_whole_error(BeginQuorumEpochResponse))
def handle_begin_quorum_epoch(context: RequestContext, request: BeginQuorumEpochRequest) -> None:
    version, listener = context.api_version, context.listener.name
    _ask(context, wire.begin_request(request), lambda response: wire.begin_response(response, version, listener))


@serves(ApiKey.END_QUORUM_EPOCH, 0, 1, on_error=_whole_error(EndQuorumEpochResponse))
def handle_end_quorum_epoch(context: RequestContext, request: EndQuorumEpochRequest) -> None:
    version, listener = context.api_version, context.listener.name
    _ask(context, wire.end_request(request), lambda response: wire.end_response(response, version, listener))


@serves(ApiKey.FETCH, 4, 18, on_error=_whole_error(FetchResponse))
def handle_fetch(context: RequestContext, request: FetchRequest) -> None:
    version, listener = context.api_version, context.listener.name
    read = context.services.controller.quorum.log.read
    asked = wire.fetch_request(request, version)
    _ask(context, asked, lambda response: wire.fetch_response(response, version, listener, read))


@serves(ApiKey.FETCH_SNAPSHOT, 0, 1, on_error=_whole_error(FetchSnapshotResponse))
def handle_fetch_snapshot(context: RequestContext, request: FetchSnapshotRequest) -> None:
    version, listener = context.api_version, context.listener.name
    read = context.services.controller.quorum.read_snapshot
    asked = wire.fetch_snapshot_request(request)
    _ask(context, asked, lambda response: wire.fetch_snapshot_response(response, version, listener, read))


@serves(ApiKey.ADD_RAFT_VOTER, 0, 1, on_error=_whole_error(AddRaftVoterResponse))
def handle_add_raft_voter(context: RequestContext, request: AddRaftVoterRequest) -> None:
    _ask(context, wire.add_voter_request(request), wire.add_voter_response)


@serves(ApiKey.REMOVE_RAFT_VOTER, 0, 0, on_error=_whole_error(RemoveRaftVoterResponse))
def handle_remove_raft_voter(context: RequestContext, request: RemoveRaftVoterRequest) -> None:
    _ask(context, wire.remove_voter_request(request), wire.remove_voter_response)


@serves(ApiKey.UPDATE_RAFT_VOTER, 0, 0, on_error=_whole_error(UpdateRaftVoterResponse))
def handle_update_raft_voter(context: RequestContext, request: UpdateRaftVoterRequest) -> None:
    translate = partial(wire.update_voter_response, listener=context.listener.name)
    _ask(context, wire.update_voter_request(request), translate)
