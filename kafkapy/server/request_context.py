"""The context of a request for its handler, through which it also responds."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from kafkapy._core.reactor.reactor import Connection
from kafkapy.protocol.messages.header import RequestHeader

if TYPE_CHECKING:
    from kafkapy.config.listener import Listener
    from kafkapy.server.api_registry import Response
    from kafkapy.server.services import Services

logger = logging.getLogger("kafka.server.KafkaApis")

ANONYMOUS = "User:ANONYMOUS"


class Session:
    """The facts that hold for all requests of a connection, stored in `connection.state`. Reactor thread only."""

    __slots__ = ("client_software_name", "client_software_version", "principal")

    def __init__(self) -> None:
        self.principal = ANONYMOUS
        self.client_software_name = ""
        self.client_software_version = ""


class RequestContext:
    """One request in progress, which the dispatcher creates. `respond` is called once, on the reactor's thread."""

    __slots__ = (
        "answered",
        "api_key",
        "api_version",
        "client_id",
        "connection",
        "correlation_id",
        "flexible_header",
        "header",
        "listener",
        "principal",
        "services",
        "session",
        "waited_ms",
    )

    def __init__(
        self,
        services: Services,
        connection: Connection,
        session: Session,
        header: RequestHeader,
        flexible_header: bool,
        waited_ms: int,
    ) -> None:
        self.services = services
        self.connection = connection
        self.session = session
        self.principal: str = session.principal
        self.listener: Listener = connection.listener
        self.header = header
        self.api_key: int = header.request_api_key
        self.api_version: int = header.request_api_version
        self.correlation_id: int = header.correlation_id
        self.client_id: str | None = header.client_id
        self.flexible_header = flexible_header
        self.waited_ms = waited_ms  # the time for which the gate held the request before it declined
        self.answered = False

    def respond(self, response: Response | None) -> None:
        """Sends `response`, a message of the API's response class, or ends the request without a response if None.

        None is for clients that expect no response (acks=0). A response that cannot be encoded is a bug: it is logged,
        and the connection is closed, because the client would wait forever.
        """
        if self.answered:
            raise RuntimeError(f"request {self.correlation_id} of {self.connection.id} has been answered already")
        self.answered = True
        if response is None:
            self.connection.respond(None)
            return
        error = getattr(response, "error_code", 0)
        if error:
            self.services.request_errors.count(self.api_key, error)
        prefix = (self.correlation_id & 0xFFFFFFFF).to_bytes(4, "big")
        try:
            chunks = response.encode_chunks(self.api_version, prefix + b"\0" if self.flexible_header else prefix)
        except ValueError:
            logger.exception("Response to %r cannot be encoded", self.header)
            self.connection.close("the response could not be encoded")
            return
        self.connection.respond(chunks)
