"""An HTTP connection with time limits for the arrival of each request."""

from __future__ import annotations

import asyncio
from typing import Any

import h11

from kafkapy.http.uvicorn_parts import H11Protocol

FIRST_HEAD_S = 10.0
REQUEST_BODY_S = 30.0
MOST_HEAD_BYTES = 64 << 10
# How much longer than the limit a connection waits for a body whose request may be answered by the application first.
_REFUSAL_S = 1.0


def connection_class(head_s: float, body_s: float) -> type[H11Protocol]:
    """Returns a connection class for a server, with limits of time in seconds.

    A connection is closed if the head of a request does not arrive within `head_s` seconds after its first byte (or
    after the connection was made), or if its body does not end within `body_s` + 1 seconds after the head. The extra
    second is for an application that refuses the body after `body_s` seconds.
    """

    class TimedConnection(H11Protocol):
        _timer: asyncio.TimerHandle | None = None
        _limit_s: float | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._set_limit(head_s)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            state: Any = self.conn.their_state
            if state is h11.IDLE:
                self._set_limit(head_s)
            else:
                self._set_limit(body_s + _REFUSAL_S if state is h11.SEND_BODY else None)

        def connection_lost(self, exc: Exception | None) -> None:
            self._set_limit(None)
            super().connection_lost(exc)

        def _set_limit(self, seconds: float | None) -> None:
            """Closes the connection after `seconds`, unless the method is called again with another limit before; None
            means no limit.

            A call with the same limit does not start the time again.
            """
            if seconds is not None and seconds == self._limit_s:
                return
            if self._timer is not None:
                self._timer.cancel()
            self._limit_s = seconds
            self._timer = None if seconds is None else self.loop.call_later(seconds, self.transport.close)

    return TimedConnection
