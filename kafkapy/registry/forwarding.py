"""Forwards requests that write to the instance that was elected as the writer."""

from __future__ import annotations

import asyncio
import http.client
import ssl
from concurrent.futures import Executor
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from kafkapy.client.schema.registry_client import LARGEST_RESPONSE
from kafkapy.registry import errors

# Marks a forwarded request, which the receiver does not forward again. It is Confluent's name.
_FORWARD_HEADER = "X-Forward"
# The headers that are forwarded; the others belong to the connection.
_HEADERS = ("accept", "authorization", "content-type")


class Forwarder:
    """Sends requests to other instances of the registry. Any thread may use it.

    `tls` verifies the instances whose addresses begin with https; None means the system's certificate authorities.
    """

    def __init__(self, tls: ssl.SSLContext | None, timeout_s: float) -> None:
        self._tls = tls
        self._timeout_s = timeout_s

    @staticmethod
    def is_forwarded(request: Request) -> bool:
        """Returns whether another instance has forwarded this request."""
        return request.headers.get(_FORWARD_HEADER, "").lower() == "true"

    async def forward(self, request: Request, url: str, executor: Executor) -> Response:
        """Sends the request to the instance at `url`, on a thread of `executor`, and returns the response.

        Raises RegistryError if the instance cannot be reached.
        """
        body = await request.body()
        target = request.scope["path"] + (f"?{request.url.query}" if request.url.query else "")
        headers = {name: request.headers[name] for name in _HEADERS if name in request.headers}
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(executor, self._send, url, request.method, target, body, headers)

    def _send(self, url: str, method: str, target: str, body: bytes, headers: dict[str, str]) -> Response:
        parts = urlsplit(url)
        connection = (
            http.client.HTTPSConnection(parts.hostname or "", parts.port, timeout=self._timeout_s, context=self._tls)
            if parts.scheme == "https"
            else http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=self._timeout_s)
        )
        try:
            connection.request(method, target, body or None, {**headers, _FORWARD_HEADER: "true"})
            found = connection.getresponse()
            content = found.read(LARGEST_RESPONSE)
            return Response(content, found.status, media_type=found.headers.get("content-type"))
        except (OSError, http.client.HTTPException) as error:
            raise errors.forwarding_failed(f"{url}: {error or type(error).__name__}") from None
        finally:
            connection.close()
