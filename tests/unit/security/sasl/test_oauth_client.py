"""The client side of OAUTHBEARER: its messages."""

from __future__ import annotations

from kafkapy.security.sasl.oauth_client import OauthClient


def test_the_first_message_has_token_and_extensions() -> None:
    client = OauthClient("a.b.c", {"logicalCluster": "lkc", "pool": "p 1"})
    assert client.step(None) == b"n,,\x01auth=Bearer a.b.c\x01logicalCluster=lkc\x01pool=p 1\x01\x01"
    assert client.step(b"") is None
    assert client.is_complete


def test_an_error_of_the_server_is_acknowledged() -> None:
    client = OauthClient("a.b.c", {})
    assert client.step(None) == b"n,,\x01auth=Bearer a.b.c\x01\x01"
    assert client.step(b'{"status":"invalid_token"}') == b"\x01"
    assert not client.is_complete
