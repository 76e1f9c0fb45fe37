"""The client side of PLAIN: its only token, and a server that sends more than it may."""

from __future__ import annotations

import pytest

from kafkapy.security.sasl.client_mechanism import ServerNotTrusted
from kafkapy.security.sasl.plain_client import PlainClient


def test_the_token_has_no_authorization_id() -> None:
    client = PlainClient("alice", "sécret")
    assert client.step(None) == b"\0alice\0" + "sécret".encode()
    assert not client.is_complete
    assert client.step(b"") is None
    assert client.is_complete


def test_a_challenge_is_refused() -> None:
    client = PlainClient("alice", "secret")
    client.step(None)
    with pytest.raises(ServerNotTrusted, match="unexpected challenge"):
        client.step(b"more")
