"""SASL on the connection of a fetcher: before the first Fetch, again before the session ends, and when it fails."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kafkapy._core.bytes.message import Message
from kafkapy.errors import Error
from kafkapy.protocol.api import ApiKey, decode_request_header, request_class, response_header_version
from kafkapy.protocol.messages.header import ResponseHeader
from kafkapy.protocol.messages.sasl_authenticate import SaslAuthenticateResponse
from kafkapy.protocol.messages.sasl_handshake import SaslHandshakeResponse
from kafkapy.security.gssapi_library import GssError
from kafkapy.security.sasl.plain_client import PlainClient
from tests.unit.replica.fetcher.test_fetcher_manager import Harness, ScriptedConnection, positions

HANDSHAKE, AUTHENTICATE, FETCH = ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE, ApiKey.FETCH


@pytest.fixture
def harness(tmp_path: Path) -> Any:
    return Harness(tmp_path, sasl_mechanism=lambda host: PlainClient("admin", f"secret of {host}"))


def apis(connection: ScriptedConnection) -> list[ApiKey]:
    return [ApiKey(decode_request_header(sent)[0].request_api_key) for sent in connection.sent]


def respond(connection: ScriptedConnection, message: Message, *, other_id: int = 0) -> None:
    """Responds to the last request."""
    header, _ = decode_request_header(connection.sent[-1])
    key, version = ApiKey(header.request_api_key), header.request_api_version
    head = ResponseHeader(correlation_id=header.correlation_id + other_id).encode(response_header_version(key, version))
    connection._on_response(SimpleNamespace(payload=memoryview(head + message.encode(version))))


def authenticate(connection: ScriptedConnection, *, lifetime_ms: int = 0) -> None:
    respond(connection, SaslHandshakeResponse(mechanisms=["PLAIN"]))
    respond(connection, SaslAuthenticateResponse(session_lifetime_ms=lifetime_ms))


def test_a_connection_authenticates_before_its_first_fetch(harness: Any) -> None:
    harness.follow(0)
    [connection] = harness.connections
    assert apis(connection) == [HANDSHAKE]
    authenticate(connection)
    assert apis(connection) == [HANDSHAKE, AUTHENTICATE, FETCH]
    header, position = decode_request_header(connection.sent[1])
    request = request_class(AUTHENTICATE).decode(connection.sent[1], header.request_api_version, position)
    assert request.auth_bytes == b"\0admin\0secret of one"
    connection.respond()
    assert apis(connection)[3:] == [FETCH]


def test_partitions_that_are_added_meanwhile_do_not_disturb_the_authentication(harness: Any) -> None:
    harness.follow(0)
    [connection] = harness.connections
    harness.follow(1)
    assert apis(connection) == [HANDSHAKE]
    authenticate(connection)
    assert apis(connection) == [HANDSHAKE, AUTHENTICATE, FETCH]


def test_a_session_is_renewed_between_two_fetches(harness: Any) -> None:
    harness.follow(0)
    [connection] = harness.connections
    authenticate(connection, lifetime_ms=10_000)
    harness.clock.advance(8_000)
    connection.respond()
    assert apis(connection)[2:] == [FETCH, FETCH]
    harness.clock.advance(1_600)
    connection.respond()
    assert apis(connection)[4:] == [HANDSHAKE]
    authenticate(connection)
    assert apis(connection)[4:] == [HANDSHAKE, AUTHENTICATE, FETCH]
    assert len(harness.connections) == 1


def test_a_refusal_ends_the_connection_and_is_tried_again_later(harness: Any, caplog: pytest.LogCaptureFixture) -> None:
    harness.follow(0)
    [first] = harness.connections
    respond(first, SaslHandshakeResponse(mechanisms=["PLAIN"]))
    refused = SaslAuthenticateResponse(error_code=int(Error.SASL_AUTHENTICATION_FAILED), error_message="wrong password")
    respond(first, refused)
    assert first.reason == "wrong password" and "wrong password" in caplog.text
    harness.scheduler.advance(5_000)
    assert len(harness.connections) == 2
    authenticate(harness.connections[1])
    assert apis(harness.connections[1]) == [HANDSHAKE, AUTHENTICATE, FETCH]


def test_an_invalid_response_ends_the_connection(harness: Any) -> None:
    harness.follow(0)
    [connection] = harness.connections
    respond(connection, SaslHandshakeResponse(mechanisms=["PLAIN"]), other_id=7)
    assert connection.reason is not None


def test_a_leader_that_does_not_respond_is_given_up(harness: Any) -> None:
    harness.follow(0)
    [connection] = harness.connections
    harness.scheduler.advance(harness.settings.request_timeout_ms + 1)
    assert connection.reason == "the leader did not respond in time"


@pytest.mark.parametrize("renews", [False, True])
def test_a_login_that_fails_is_tried_again_after_the_back_off(
    tmp_path: Path, renews: bool, caplog: pytest.LogCaptureFixture
) -> None:
    is_broken = not renews

    def mechanism(host: str) -> PlainClient:
        if is_broken:
            raise GssError("the ticket has expired")
        return PlainClient("admin", "secret")

    harness = Harness(tmp_path, sasl_mechanism=mechanism)
    harness.follow(0)
    if renews:
        authenticate(harness.connections[0], lifetime_ms=10_000)
        harness.clock.advance(10_000)
        is_broken = True
        harness.connections[0].respond()
    harness.follow(1)
    assert harness.connections[0].reason is not None and "the ticket has expired" in caplog.text
    is_broken = False
    harness.scheduler.advance(harness.settings.backoff_ms)
    connection = harness.connections[-1]
    authenticate(connection)
    assert apis(connection) == [HANDSHAKE, AUTHENTICATE, FETCH]
    assert positions(connection) == {0: 1, 1: 1}
