"""The limit on failed logins."""

from __future__ import annotations

import asyncio
from collections import Counter

from kafkapy.console.application import Console
from kafkapy.console.settings import Settings
from kafkapy.http.sessions import MOST_FAILURES

HEADERS = ((b"host", b"localhost"), (b"origin", b"http://localhost"))


async def login(application) -> int:
    """Sends a login with a wrong token to an ASGI application and returns the status of the response."""
    scope = {
        "type": "http",
        "method": "POST",
        "scheme": "http",
        "path": "/login",
        "raw_path": b"/login",
        "query_string": b"",
        "headers": list(HEADERS),
    }
    statuses = []

    async def receive():
        return {"type": "http.request", "body": b"token=wrong"}

    async def send(message):
        statuses.extend([message["status"]] if "status" in message else [])

    await application(scope, receive, send)
    return statuses[0]


def test_logins_that_are_sent_at_the_same_time_do_not_exceed_the_limit():
    console = Console(Settings({"test": {"bootstrap.servers": "localhost:1"}}, frozenset(("localhost",))))

    async def attempts():
        return Counter(await asyncio.gather(*(login(console.application) for _ in range(40))))

    try:
        assert asyncio.run(attempts()) == {403: MOST_FAILURES, 429: 40 - MOST_FAILURES}
    finally:
        console.close()
