"""The common parts of HTTP interfaces for programs: refused requests, JSON in responses and bodies, encoded paths."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Mapping
from math import isfinite
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

log = logging.getLogger("kafkapy.http")

JSON_TYPE = "application/json"
ErrorHandler = Callable[[Request, Exception], Any]
# The refusals of the server whose text is the reason; others name the status only.
_WITH_REASON = (400, 408, 413, 415, 422)


class RequestRefused(Exception):
    """Raised to refuse a request. The error has a number and a message for the client; the number begins with the HTTP
    status.
    """

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message

    @property
    def status(self) -> int:
        """The HTTP status: the first three digits of the error's number."""
        return int(str(self.code)[:3])


class JsonResponses:
    """Makes responses with JSON of one media type, and the handlers that turn exceptions into such responses."""

    def __init__(self, media_type: str) -> None:
        self._media_type = media_type

    def answer(self, content: Any, status: int = 200, media_type: str | None = None) -> Response:
        """Returns a response with `content` as JSON; if `media_type` is None, with the media type given to the
        constructor."""
        return Response(json_bytes(content), status, media_type=media_type or self._media_type)

    def refuse(self, status: int, reason: str) -> Response:
        """Returns the response to a refused request, with the HTTP status as the number of the error."""
        return self.answer({"error_code": status, "message": reason}, status)

    def handlers(self) -> Mapping[Any, ErrorHandler]:
        """Returns the functions that turn exceptions into responses, by exception class, for Starlette's
        `exception_handlers`."""
        return {RequestRefused: self._on_refusal, HTTPException: self._on_http_error, Exception: self._on_failure}

    async def _on_refusal(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestRefused)
        return self.answer({"error_code": error.code, "message": error.message}, error.status)

    async def _on_http_error(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        is_reason = error.status_code in _WITH_REASON
        response = self.refuse(error.status_code, error.detail if is_reason else _phrase(error))
        response.headers.update(error.headers or {})
        return response

    async def _on_failure(self, request: Request, error: Exception) -> Response:
        log.error("%s %s failed", request.method, request.url.path, exc_info=error)
        return self.refuse(500, "Internal Server Error")


def _phrase(error: HTTPException) -> str:
    return f"HTTP {error.status_code} {error.detail}"


def json_bytes(content: Any) -> bytes:
    """Returns `content` as JSON in UTF-8. Half of a surrogate pair, which UTF-8 cannot hold, is escaped."""
    try:
        return json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return json.dumps(content, separators=(",", ":")).encode()


def refuse_constant(name: str) -> Any:
    """Raises ValueError for NaN and Infinity, which Python reads as numbers and JSON does not have (RFC 8259).

    For the argument `parse_constant` of the module json.
    """
    raise ValueError(f"{name} is not a value of JSON")


def finite_number(text: str) -> float:
    """Returns the number with a fraction or an exponent that `text` represents. Raises ValueError for one that is too
    large, which Python would read as infinite.

    For the argument `parse_float` of the module json.
    """
    number = float(text)
    if not isfinite(number):
        raise ValueError(f"the number {text} is too large")
    return number


def strict_json(content: bytes) -> Any:
    """Returns the value that the JSON text represents. Raises ValueError or RecursionError for a text that is not JSON
    (RFC 8259): Python's own reader accepts NaN, and bytes that are not Unicode."""
    text = content.decode(json.detect_encoding(content))
    return json.loads(text, parse_constant=refuse_constant, parse_float=finite_number)


def check_texts(found: Any) -> None:
    """Raises RequestRefused (422) if a text in the JSON value `found` has half of a surrogate pair, which JSON can
    escape and no record can hold."""
    try:
        json.dumps(found, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise RequestRefused(422, f"the body has a text that is not Unicode: {error}") from None


async def json_body(request: Request, accepted: Collection[str], default: str) -> dict[str, Any]:
    """Returns the JSON object in the body of the request.

    `accepted` are the content types that a request may have; a request without a content type is treated as `default`.
    Raises RequestRefused for another content type (415), and for a body that is not JSON (400), not an object, or not
    Unicode (422).
    """
    content_type = media_type(request) or default
    if content_type not in accepted:
        raise RequestRefused(415, "HTTP 415 Unsupported Media Type")
    content = await request.body()
    try:
        found = strict_json(content)
    except (ValueError, RecursionError) as error:
        raise RequestRefused(400, f"The request's body is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise RequestRefused(422, "The request's body is not a JSON object")
    if b"\\" in content:  # only an escape can be half of a pair
        check_texts(found)
    return found


def media_type(request: Request) -> str:
    """Returns the content type of the request in lower case, without parameters; "" if the request has none."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def with_raw_paths(app: ASGIApp) -> ASGIApp:
    """Returns an ASGI application that calls `app` with the path as it was sent, not percent-decoded, because a name in
    the path may contain an encoded slash. A slash at the end is removed, because Confluent's services ignore it."""

    async def call(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope.get("raw_path"):
            path = scope["raw_path"].decode("latin-1")
            scope = {**scope, "path": path.removesuffix("/") or "/"}
        await app(scope, receive, send)

    return call
