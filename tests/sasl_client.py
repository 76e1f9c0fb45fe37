"""A client that authenticates by SASL step by step, with every right and wrong order of requests."""

from __future__ import annotations

import socket
import struct
from types import TracebackType
from typing import Any, Self

from kafkapy.protocol.api import ApiKey, response_header_version
from kafkapy.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafkapy.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kafkapy.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kafkapy.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from tests.api_client import request_bytes
from tests.reactor_harness import frame, receive_frame

TIMEOUT_S = 20
CLOSED = "closed"


def plain_token(name: str, password: str, authorization_id: str = "") -> bytes:
    return f"{authorization_id}\0{name}\0{password}".encode()


class SaslConnection:
    """One connection to a listener with SASL.

    Each method sends a request and returns its response; CLOSED if the broker closed the connection instead.
    """

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("localhost", port), TIMEOUT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.socket.close()

    def send_frame(self, payload: bytes) -> None:
        self.socket.sendall(frame(payload))

    def receive(self) -> bytes | str:
        """Returns the next frame, or CLOSED."""
        try:
            return receive_frame(self.socket)
        except ConnectionError:
            return CLOSED

    @property
    def is_closed(self) -> bool:
        """True if the broker closes the connection, which this property waits for."""
        return self.receive() == CLOSED

    def ask(self, key: ApiKey, version: int, request: Any, response_class: Any) -> Any:
        self.send_frame(request_bytes(key, version, request))
        return self.read(key, version, response_class)

    def read(self, key: ApiKey, version: int, response_class: Any) -> Any:
        """Returns the response to a request that was sent earlier."""
        payload = self.receive()
        if isinstance(payload, str):
            return payload
        assert struct.unpack_from(">i", payload) == (7,)
        return response_class.decode(payload, version, 4 + response_header_version(key, version))

    def versions(self, version: int = 3, *, software: str = "tests") -> Any:
        """Sends ApiVersions. A version that does not exist has the body of version 4, and a response of version 0."""
        request = ApiVersionsRequest(client_software_name=software, client_software_version="1")
        body = request.encode(min(version, 4))
        self.send_frame(request_bytes(ApiKey.API_VERSIONS, 4, b"")[:2] + struct.pack(">h", version)
                        + request_bytes(ApiKey.API_VERSIONS, min(version, 4), body)[4:])  # fmt: skip
        return self.read(ApiKey.API_VERSIONS, 0 if version > 4 else version, ApiVersionsResponse)

    def handshake(self, mechanism: str, version: int = 1) -> Any:
        request = SaslHandshakeRequest(mechanism=mechanism)
        return self.ask(ApiKey.SASL_HANDSHAKE, version, request, SaslHandshakeResponse)

    def authenticate(self, token: bytes, version: int = 2) -> Any:
        request = SaslAuthenticateRequest(auth_bytes=token)
        return self.ask(ApiKey.SASL_AUTHENTICATE, version, request, SaslAuthenticateResponse)

    def raw_token(self, token: bytes) -> bytes | str:
        """Sends a token as a frame of its own, as after SaslHandshake version 0."""
        self.send_frame(token)
        return self.receive()

    def metadata(self, version: int = 9) -> Any:
        """Sends Metadata for no topic."""
        return self.ask(ApiKey.METADATA, version, MetadataRequest(topics=[]), MetadataResponse)

    def log_in(self, name: str, password: str, version: int = 2) -> Any:
        """Authenticates by PLAIN; returns the response to the token."""
        assert self.handshake("PLAIN").error_code == 0
        return self.authenticate(plain_token(name, password), version)
