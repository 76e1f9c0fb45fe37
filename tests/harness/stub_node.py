"""A node on a real loopback socket that responds to requests as a test tells it to."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from typing import Any

from kafkapy._core.bytes.message import Message
from kafkapy.protocol.api import API_TABLE, ApiKey, decode_request_header, request_class, response_header_version
from kafkapy.protocol.messages.api_versions import ApiVersionsResponse
from kafkapy.protocol.messages.header import ResponseHeader

# Returns the response to a request of some version; None sends no response, CLOSE closes the connection.
Responder = Callable[[Any, int], Message | None]
CLOSE: Any = object()


class StubNode:
    """Listens on a port of its own. `answers`: API -> Responder. `received`: (API, version, request) in order.
    `versions`: the announced versions of APIs that differ from the usual ones; None for an API that is not served.

    Each connection has a thread. Use as a context manager, or call `close`.
    """

    def __init__(self, answers: dict[ApiKey, Responder] | None = None, *, port: int = 0) -> None:
        self.answers: dict[ApiKey, Responder] = {ApiKey.API_VERSIONS: self._api_versions, **(answers or {})}
        self.versions: dict[ApiKey, tuple[int, int] | None] = {}
        self.received: list[tuple[ApiKey, int, Any]] = []
        self.accepted = 0
        self._listening = socket.create_server(("127.0.0.1", port))
        self.port: int = self._listening.getsockname()[1]
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> StubNode:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the node as a killed process does: its port refuses connections, and open connections are closed."""
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self.drop_connections()

    def drop_connections(self) -> None:
        for each in self._open:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        self._open.clear()

    def of(self, key: ApiKey) -> list[Any]:
        """Returns the received requests of one API, in order."""
        return [request for received, _, request in self.received if received is key]

    def _accept(self) -> None:
        while True:
            try:
                accepted, _ = self._listening.accept()
            except OSError:
                return
            self.accepted += 1
            self._open.append(accepted)
            threading.Thread(target=self._serve, args=(accepted,), daemon=True).start()

    def _serve(self, accepted: socket.socket) -> None:
        with contextlib.suppress(OSError), accepted, accepted.makefile("rb") as stream:
            while len(size := stream.read(4)) == 4:
                frame = stream.read(int.from_bytes(size, "big"))
                header, pos = decode_request_header(frame)
                key, version = ApiKey(header.request_api_key), header.request_api_version
                request = request_class(key).decode(frame, version, pos)
                self.received.append((key, version, request))
                response = self.answers[key](request, version)
                if response is CLOSE:
                    return
                if response is not None:
                    prefix = ResponseHeader(correlation_id=header.correlation_id).encode(
                        response_header_version(key, version)
                    )
                    body = prefix + response.encode(version)
                    accepted.sendall(len(body).to_bytes(4, "big") + body)

    def _api_versions(self, request: Any, version: int) -> Message:
        served = {**{key: (api.lowest, api.highest) for key, api in API_TABLE.items()}, **self.versions}
        return ApiVersionsResponse(
            api_keys=[
                ApiVersionsResponse.ApiVersion(api_key=key, min_version=low, max_version=high)
                for key, versions in served.items()
                if versions is not None
                for low, high in [versions]
            ]
        )
