"""The listening socket of a server."""

from __future__ import annotations

import socket

from kafkapy.http.serving import listen


def test_responses_are_sent_without_delay():
    """The library asyncio sets TCP_NODELAY only for connections of a socket whose protocol is named."""
    with listen("localhost", 0) as bound:
        assert bound.proto == socket.IPPROTO_TCP
