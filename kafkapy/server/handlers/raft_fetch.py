"""Fetch of the metadata log on the listeners of a controller, versions 4 to 18 (KIP-595).

The state machine of the Raft protocol serves the fetches of voters and observers, without fetch sessions. A request for
other partitions than `__cluster_metadata`-0 fails as a whole, with INVALID_REQUEST.

Permissions: ClusterAction on the cluster.

Version notes: from version 13 on the topic has an id. From 17 on the replica has a directory id, and the response has
the leader's endpoints. From 18 on the request has the follower's high watermark.
"""

from __future__ import annotations

from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.fetch import FetchRequest, FetchResponse
from kafkapy.quorum import raft_server as wire
from kafkapy.security.acl import Operation
from kafkapy.server.api_registry import error_without_message, serves
from kafkapy.server.authorization import check_cluster
from kafkapy.server.quorum_requests import ask_quorum
from kafkapy.server.request_context import RequestContext


@serves(ApiKey.FETCH, 4, 18, on_error=error_without_message(FetchResponse))
def handle_fetch(context: RequestContext, request: FetchRequest) -> None:
    check_cluster(context, Operation.CLUSTER_ACTION)
    version, listener = context.api_version, context.listener.name
    read = context.services.quorum.quorum.log.read
    asked = wire.fetch_request(request, version)
    ask_quorum(context, asked, lambda found: wire.fetch_response(found, version, listener, read))
