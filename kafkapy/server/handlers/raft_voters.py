"""Changes of the quorum's voters: AddRaftVoter 0 to 1, RemoveRaftVoter 0, and UpdateRaftVoter 0 (KIP-853).

The leader of the quorum changes the voters by a record in the metadata log. A broker forwards AddRaftVoter and
RemoveRaftVoter to the leader. Controllers send UpdateRaftVoter, directly to the leader.

Permissions: Alter on the cluster; ClusterAction for UpdateRaftVoter.

Version notes: version 1 of AddRaftVoter may ask for a response before the change is committed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kafkapy.errors import Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from kafkapy.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from kafkapy.protocol.messages.update_raft_voter import UpdateRaftVoterRequest, UpdateRaftVoterResponse
from kafkapy.quorum import raft_server as wire
from kafkapy.quorum.raft.messages import Request
from kafkapy.security.acl import Operation
from kafkapy.server.api_registry import error_with_message, error_without_message, serves
from kafkapy.server.authorization import check_cluster
from kafkapy.server.quorum_requests import ask_quorum
from kafkapy.server.request_context import RequestContext


def _ask_leader(context: RequestContext, response: Any, request: Request, translate: Callable[[Any], Any]) -> None:
    """Forwards a change of the voters to the leader of the quorum.

    If this node is the leader or cannot forward the change, passes `request` to this node's state machine of the Raft
    protocol. `translate` makes the response, an instance of the class `response`, from the machine's response.
    """

    def refuse(error: Error, message: str | None) -> None:
        context.respond(response(error_code=error, error_message=message))

    if context.services.controller.is_active or not context.hand_over(refuse):
        check_cluster(context, Operation.ALTER)
        ask_quorum(context, request, translate)


@serves(ApiKey.ADD_RAFT_VOTER, 0, 1, on_error=error_with_message(AddRaftVoterResponse))
def handle_add_raft_voter(context: RequestContext, request: AddRaftVoterRequest) -> None:
    _ask_leader(context, AddRaftVoterResponse, wire.add_voter_request(request), wire.add_voter_response)


@serves(ApiKey.REMOVE_RAFT_VOTER, 0, 0, on_error=error_with_message(RemoveRaftVoterResponse))
def handle_remove_raft_voter(context: RequestContext, request: RemoveRaftVoterRequest) -> None:
    _ask_leader(context, RemoveRaftVoterResponse, wire.remove_voter_request(request), wire.remove_voter_response)


@serves(ApiKey.UPDATE_RAFT_VOTER, 0, 0, on_error=error_without_message(UpdateRaftVoterResponse))
def handle_update_raft_voter(context: RequestContext, request: UpdateRaftVoterRequest) -> None:
    check_cluster(context, Operation.CLUSTER_ACTION)
    listener = context.listener.name
    asked = wire.update_voter_request(request)
    ask_quorum(context, asked, lambda found: wire.update_voter_response(found, listener))
