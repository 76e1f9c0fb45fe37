"""ASGI middleware that authenticates users, and limits the size and the time of bodies and responses."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import logging
import os
from collections.abc import Callable
from contextlib import suppress

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kafkapy.http.passwords import PasswordFile
from kafkapy.http.settings import RequestLimits

log = logging.getLogger("kafkapy.http")

# Returns the response for a refused request, from its status and the reason.
Refuse = Callable[[int, str], Response]
_MOST_REMEMBERED = 1000
_CLOSE = {"connection": "close"}


class _ClientTooSlow(Exception):
    """Raised when a client has not received a piece of its response within the limit of time."""


def json_refusal(status: int, reason: str) -> Response:
    """Returns the response to a refused request in the form of Confluent's programs: a JSON object with `error_code`
    (the HTTP status) and `message`."""
    return JSONResponse({"error_code": status, "message": reason}, status)


class Protection:
    """Wraps an ASGI application, which gets only requests of authenticated users, and bodies within the limits.

    The name of the user is in `scope["user"]`; it is None if the server has no authentication. If the body is too large
    or arrives too slowly, reading it raises HTTPException (413 or 408), which the application's own handler turns into
    a response. A client that does not receive its response in time is disconnected.
    """

    def __init__(
        self,
        app: ASGIApp,
        limits: RequestLimits,
        users: PasswordFile | None = None,
        realm: str = "kafkapy",
        refuse: Refuse = json_refusal,
    ) -> None:
        self._app = app
        self._limits = limits
        self._users = users
        self._realm = realm.replace('"', "")
        self._refuse = refuse
        self._digest_key = os.urandom(32)
        self._accepted: set[bytes] = set()
        self._checking = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        scope["user"] = None
        if self._users is not None:
            scope["user"] = await self._authenticated(self._users, headers.get(b"authorization", b""))
            if scope["user"] is None:
                refusal = self._refuse(401, "Unauthorized")
                refusal.headers["www-authenticate"] = f'Basic realm="{self._realm}", charset="UTF-8"'
                await refusal(scope, receive, send)
                return
        announced = headers.get(b"content-length", b"0")
        if announced.isdigit() and int(announced) > self._limits.body_bytes:
            # The body is read first, because many clients read no response before they have sent everything.
            await self._discard(receive)
            refusal = self._refuse(413, self._too_large())
            refusal.headers.update(_CLOSE)
            await refusal(scope, receive, send)
            return
        try:
            await self._app(scope, self._limited(receive), self._timed(send))
        except _ClientTooSlow:
            log.info("%s does not take its response; disconnected", scope.get("client"))

    async def _authenticated(self, users: PasswordFile, authorization: bytes) -> str | None:
        """Returns the name of the user if `authorization`, the value of the header, has a valid name and password (RFC
        7617); otherwise None.

        Valid headers are remembered by their keyed digests, because a check of a password takes about 50 ms. Checks run
        one at a time, so that wrong passwords do not occupy the machine.
        """
        scheme, _, given = authorization.partition(b" ")
        try:
            name, _, password = base64.b64decode(given.strip(), validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            return None
        if scheme.lower() != b"basic" or not name:
            return None
        digest = hashlib.blake2b(given.strip(), key=self._digest_key).digest()
        if digest not in self._accepted:
            async with self._checking:
                if not await asyncio.to_thread(users.accepts, name, password):
                    return None
            if len(self._accepted) >= _MOST_REMEMBERED:
                self._accepted.clear()
            self._accepted.add(digest)
        return name

    def _too_large(self) -> str:
        return f"The request's body is larger than {self._limits.body_bytes} bytes"

    async def _discard(self, receive: Receive) -> None:
        """Reads and drops the rest of a request's body, for at most the time (`body_s`) that the limits permit for a
        body."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._limits.body_s):
                while (await receive()).get("more_body", False):
                    pass

    def _limited(self, receive: Receive) -> Receive:
        """Returns an ASGI `receive` that calls the given one, and raises HTTPException when the body is too large or
        too slow."""
        received = 0
        is_complete = False
        deadline_s: float | None = None

        async def limited() -> Message:
            nonlocal received, is_complete, deadline_s
            if is_complete:
                return await receive()  # which waits for the client to disconnect
            if deadline_s is None:
                deadline_s = asyncio.get_running_loop().time() + self._limits.body_s
            try:
                async with asyncio.timeout_at(deadline_s):
                    message = await receive()
            except TimeoutError:
                reason = f"The request's body did not arrive within {self._limits.body_s:g} seconds"
                raise HTTPException(408, reason, _CLOSE) from None
            received += len(message.get("body", b""))
            if received > self._limits.body_bytes:
                raise HTTPException(413, self._too_large(), _CLOSE)
            is_complete = not message.get("more_body", False)
            return message

        return limited

    def _timed(self, send: Send) -> Send:
        async def timed(message: Message) -> None:
            try:
                async with asyncio.timeout(self._limits.send_s):
                    await send(message)
            except TimeoutError:
                raise _ClientTooSlow from None

        return timed
