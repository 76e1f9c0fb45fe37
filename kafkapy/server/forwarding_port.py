"""The interface (port) through which a broker forwards requests of clients to the active controller."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from kafkapy.controller.result import ErrorMessage
from kafkapy.controller.topics import NewTopic
from kafkapy.errors import Error
from kafkapy.protocol.api import ApiKey

if TYPE_CHECKING:
    from kafkapy.client.api_versions import Versions

# Responds to the client with an error, by the error function of the request's API.
Refuse = Callable[[Error, "str | None"], object]
OnResponse = Callable[[bytes], object]
# Receives the result of the creation of a topic, or the exception that prevented a result.
OnCreated = Callable[[ErrorMessage | BaseException], object]


class ForwardingPort(Protocol):
    """The interface through which handlers forward requests to the active controller. Only the reactor's thread may
    use it."""

    @property
    def controller_versions(self) -> Versions:
        """The versions of each API that the active controller serves; empty before the first connection to it."""
        ...

    def forward(self, context: Any, payload: bytes, refuse: Refuse, on_response: OnResponse | None = None) -> None:
        """Forwards a client's request to the active controller, and passes the response on to the client or to
        `on_response`.

        `payload` has the header and body of the request, and `context` is its RequestContext. If `on_response` is
        given, it is called with the response (header and body); otherwise the response is sent to the client. `refuse`
        is called with REQUEST_TIMED_OUT if no controller has responded in time, and with UNKNOWN_SERVER_ERROR if the
        controller cannot handle the request.
        """
        ...

    def create_topic(self, wanted: NewTopic, on_result: OnCreated, context: Any = None) -> None:
        """Asks the active controller to create a topic; does nothing while an earlier request for the topic has no
        response.

        `context` is the RequestContext of a client's request: the topic is created in the name of this client, which
        needs the permission to create it. If `context` is None, the topic is created in the name of this broker.
        `on_result` is called with the result, or with the exception that prevented one.
        """
        ...

    def request(self, request: Any, key: ApiKey, on_done: Callable[[Any, int, Exception | None], None]) -> None:
        """Sends a request in the name of this broker to the active controller.

        `on_done(response, API version, error)` is called on any thread. After an error the response is None, otherwise
        the error is None.
        """
        ...
