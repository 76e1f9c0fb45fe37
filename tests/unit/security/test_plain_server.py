"""The server's side of PLAIN; what it refuses, and with which text, is compared with Kafka in tests/security."""

from __future__ import annotations

import pytest

from kafkapy.security.sasl.plain_server import PlainServer, UserTable
from kafkapy.security.sasl.server_mechanism import AuthenticationFailed

USERS = UserTable({"user_alice": "secret", "user_é": "pässword", "username": "admin", "password": "admin-secret"})


@pytest.mark.parametrize("token", ["\0alice\0secret", "alice\0alice\0secret", "\0é\0pässword"])
def test_the_right_password(token: str) -> None:
    exchange = PlainServer(USERS.check_password)
    assert not exchange.is_complete
    assert exchange.step(token.encode()) == b""
    assert exchange.is_complete
    assert exchange.principal.name == token.split("\0")[1]
    assert exchange.expires_ms is None


@pytest.mark.parametrize("token", [b"\0alice\0Secret", b"\0alice\0secret\xff", b"\0name\0admin", b"\0\xff\0x"])
def test_a_wrong_password(token: bytes) -> None:
    exchange = PlainServer(USERS.check_password)
    with pytest.raises(AuthenticationFailed, match="Invalid username or password"):
        exchange.step(token)
    assert not exchange.is_complete


def test_an_exception_of_a_class_of_the_administrator_is_a_failed_authentication() -> None:
    def fail(name: str, password: str) -> bool:
        raise OSError("no connection to the directory")

    with pytest.raises(AuthenticationFailed, match="credentials for user could not be verified") as caught:
        PlainServer(fail).step(b"\0alice\0secret")
    assert "directory" not in str(caught.value.client_text)
