"""Checks the host, the origin and the body's size of each HTTP request before an application sees the request.

The check of the host protects against DNS rebinding: it refuses requests whose `Host` header has a name that does not
belong to the server. The check of the origin protects against requests that a page of another site makes a browser
send: such a request must not change anything. All responses get security headers.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, MutableMapping
from typing import Any

from kafkapy.decimal_text import is_number

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

SAFE_METHODS = frozenset(("GET", "HEAD", "OPTIONS"))
# Scripts, styles and images come from files of this server only; nothing may frame a page or receive its forms.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
PAGE_HEADERS = {
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
LOOPBACK_NAMES = frozenset(("localhost", "127.0.0.1", "::1"))


class BodyTooLarge(Exception):
    """Raised when the body of a request is larger than the server accepts."""


def host_name(value: str) -> str:
    """Returns the host name in the value of a `Host` header, without the port and in lower case."""
    value = value.strip().lower()
    if value.startswith("["):
        return value[1:].partition("]")[0]
    return value.partition(":")[0]


class Guard:
    """ASGI middleware that refuses bad requests with one line of text, and adds headers to all responses.

    hosts: the names that the `Host` header may have; an empty collection accepts every name. headers: the headers that
    are added to each response which does not set them itself. needs_origin: True if a request that changes something
    must have the header `Sec-Fetch-Site` or `Origin`, as browsers send it. Programs do not send these headers, so an
    interface for programs checks them only if they are there. largest_body: the largest number of bytes that the body
    of a request may have.
    """

    def __init__(
        self,
        application: Application,
        *,
        hosts: Collection[str],
        headers: dict[str, str] | None = None,
        needs_origin: bool = True,
        largest_body: int = 1 << 20,
    ) -> None:
        self._application = application
        self._hosts = frozenset(name.lower() for name in hosts)
        given = PAGE_HEADERS if headers is None else headers
        self._headers = [(name.encode(), value.encode()) for name, value in given.items()]
        self._needs_origin = needs_origin
        self._largest_body = largest_body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers = _first_values(scope["headers"])
        has_begun = False

        async def send_with_headers(message: MutableMapping[str, Any]) -> None:
            nonlocal has_begun
            if message["type"] == "http.response.start":
                has_begun = True
                present = {name.lower() for name, _ in message["headers"]}
                message["headers"] = [
                    *message["headers"],
                    *((name, value) for name, value in self._headers if name not in present),
                ]
            await send(message)

        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await _respond(send_with_headers, *refusal)
            return
        received = 0

        async def receive_within_limit() -> MutableMapping[str, Any]:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self._largest_body:
                raise BodyTooLarge
            return message

        try:
            await self._application(scope, receive_within_limit, send_with_headers)
        except BodyTooLarge:
            if not has_begun:
                await _respond(send_with_headers, *self._too_large())

    def _refusal(self, scope: Scope, headers: dict[str, str]) -> tuple[int, str] | None:
        """Returns the HTTP status and the reason if the request must be refused, or None if the application may get
        it."""
        host = headers.get("host", "")
        if self._hosts and host_name(host) not in self._hosts:
            return 421, f"This server does not serve the host {host[:100]!r}."
        length = headers.get("content-length", "0")
        if not is_number(length):
            return 400, "Content-Length is not a number."
        if int(length[:19]) > self._largest_body:
            return self._too_large()
        if scope["method"] not in SAFE_METHODS and not self._is_same_origin(scope, headers, host):
            return 403, "This change was sent by a page of another origin, or without the header Origin."
        return None

    def _too_large(self) -> tuple[int, str]:
        return 413, f"The body of a request has at most {self._largest_body} bytes."

    def _is_same_origin(self, scope: Scope, headers: dict[str, str], host: str) -> bool:
        site, origin = headers.get("sec-fetch-site"), headers.get("origin")
        if site is not None and site != "same-origin":
            return False
        if origin is not None:
            return origin.lower() == f"{scope['scheme']}://{host.lower()}"
        return site is not None or not self._needs_origin


def _first_values(headers: Collection[tuple[bytes, bytes]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in headers:
        found.setdefault(name.decode("latin-1").lower(), value.decode("latin-1"))
    return found


async def _respond(send: Send, status: int, reason: str) -> None:
    body = f"{reason}\n".encode()
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
