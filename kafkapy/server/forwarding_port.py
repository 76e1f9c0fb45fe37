"""The port through which requests of clients are forwarded to the active controller."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from kafkapy.controller.result import ErrorMessage
from kafkapy.controller.topics import NewTopic
from kafkapy.errors import Error

if TYPE_CHECKING:
    from kafkapy.client.api_versions import Versions

# Responds to the client with an error, by the error function of the request's API.
Refuse = Callable[[Error, "str | None"], object]
OnResponse = Callable[[bytes], object]
# Receives the result of creating a topic, or the exception without which there would be one.
OnCreated = Callable[[ErrorMessage | Exception], object]


class ForwardingPort(Protocol):
    """Forwards requests. Reactor thread."""

    @property
    def controller_versions(self) -> Versions:
        """The versions that the active controller serves by API; empty before the first connection to it."""
        ...

    def forward(self, context: Any, payload: bytes, refuse: Refuse, on_response: OnResponse | None = None) -> None:
        """Sends a request of a client, header and body, to the active controller, and its response to the client.

        `context` is the request's RequestContext. With `on_response`, that function is called with the response (header
        and body) instead. `refuse` is called with REQUEST_TIMED_OUT if no controller has responded in time, and with
        UNKNOWN_SERVER_ERROR if the controller cannot handle the request.
        """
        ...

    def create_topic(self, wanted: NewTopic, on_result: OnCreated) -> None:
        """Asks the active controller for a topic; does nothing if this broker has already asked and has no response."""
        ...
