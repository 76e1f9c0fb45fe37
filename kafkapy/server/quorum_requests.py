"""Passes requests to the state machine of the Raft protocol, and sends its responses to the clients.

The state machine runs on a thread of its own, the quorum thread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kafkapy.quorum.raft.messages import Request
from kafkapy.server.request_context import RequestContext


def ask_quorum(context: RequestContext, request: Request, translate: Callable[[Any], Any]) -> None:
    """Passes a request to the state machine of the Raft protocol, and sends its response to the client.

    The client receives `translate(response of the machine)`; `translate` runs on the quorum thread.
    """
    loop, reactor = context.services.quorum, context.services.reactor

    def respond(response: Any) -> None:
        message = translate(response)
        reactor.post(lambda: context.respond(message))

    if not loop.offer(lambda: loop.quorum.receive(request, respond)):
        context.connection.close("too many requests wait for the quorum")
