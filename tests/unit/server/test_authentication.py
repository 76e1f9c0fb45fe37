"""The authentication of a connection: the delay of failures, mechanisms that block, limits of sessions, counts."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from kafkapy.config import BrokerConfig
from kafkapy.config.listener_security import SaslSettings
from kafkapy.errors import Error
from kafkapy.metrics.duration_window import DurationWindow
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kafkapy.protocol.messages.sasl_handshake import SaslHandshakeRequest
from kafkapy.security.principal import Principal
from kafkapy.security.principal_builder import AuthenticatedConnection, DefaultPrincipalBuilder
from kafkapy.security.sasl.plain_server import PlainServer
from kafkapy.security.sasl.server_factory import MechanismMaker
from kafkapy.security.sasl.server_mechanism import TemporaryFailure
from kafkapy.server.authentication import Authenticator
from kafkapy.server.listener_authentication import ListenerAuthentication
from kafkapy.server.request_context import Session
from tests.api_client import request_bytes
from tests.mock_clock import MockClock
from tests.sasl_client import plain_token


class RecordedConnection:
    """Records what happens to a connection, in order."""

    def __init__(self) -> None:
        self.id = "1"
        self.peer_host = "127.0.0.1"
        self.listener = SimpleNamespace(name="SASL", security_protocol="SASL_PLAINTEXT")
        self.events: list[Any] = []

    def respond(self, chunks: list[Any] | None) -> None:
        self.events.append(None if chunks is None else b"".join(map(bytes, chunks)))

    def close(self, reason: str) -> None:
        self.events.append(("closed", reason))

    def close_unauthenticated(self, reason: str) -> None:
        self.events.append(("closed", reason))

    def begin_authentication(self, limit: int) -> None:
        self.events.append(("limit", limit))

    def end_authentication(self, lifetime_ms: int) -> None:
        self.events.append(("lifetime", lifetime_ms))


class Exchange:
    """One connection, whose delayed work and work on the handler pool a test runs."""

    def __init__(self, maker: MechanismMaker, properties: dict[str, str] | None = None, builder: Any = None) -> None:
        self.scheduled: list[tuple[int, Callable[[], object]]] = []
        self.submitted: list[Callable[[], Any]] = []
        self.clock = MockClock()
        config = BrokerConfig({"sasl.enabled.mechanisms": "PLAIN", **(properties or {})})
        reactor: Any = SimpleNamespace(schedule=lambda delay_ms, work: self.scheduled.append((delay_ms, work)))
        pool: Any = SimpleNamespace(submit=self.submitted.append)
        self.listener = ListenerAuthentication(
            SaslSettings(config, "SASL"), {"PLAIN": maker}, reactor, pool, self.clock
        )
        self.connection: Any = RecordedConnection()
        self.session = Session()
        self.authenticator = Authenticator(
            self.listener, self.connection, self.session, lambda: builder or DefaultPrincipalBuilder()
        )
        self.session.authenticator = self.authenticator

    def send(self, key: ApiKey, version: int, request: Any) -> bool:
        payload = memoryview(bytearray(request_bytes(key, version, request)))
        frame: Any = SimpleNamespace(payload=payload, has_invalid_size=False)
        return self.authenticator.admits(frame, lambda key: None)

    def shake(self) -> None:
        self.send(ApiKey.SASL_HANDSHAKE, 1, SaslHandshakeRequest(mechanism="PLAIN"))
        self.connection.events.clear()

    def present(self, token: bytes) -> None:
        self.send(ApiKey.SASL_AUTHENTICATE, 2, SaslAuthenticateRequest(auth_bytes=token))

    def answers(self) -> list[SaslAuthenticateResponse]:
        frames = [event for event in self.connection.events if isinstance(event, bytes)]
        return [SaslAuthenticateResponse.decode(frame, 2, 5) for frame in frames]


ALICE = MechanismMaker(partial(PlainServer, lambda name, password: (name, password) == ("alice", "secret")))


def test_the_answer_and_the_end_of_a_failed_authentication_are_delayed() -> None:
    exchange = Exchange(ALICE)
    exchange.shake()
    exchange.present(plain_token("alice", "wrong"))
    assert exchange.connection.events == []
    ((delay_ms, end),) = exchange.scheduled
    assert delay_ms == 100
    end()
    assert [answer.error_code for answer in exchange.answers()] == [Error.SASL_AUTHENTICATION_FAILED]
    assert exchange.connection.events[-1] == ("closed", "Authentication failed: Invalid username or password")
    assert exchange.listener.counts.failed == 1


class SilentMechanism:
    """Completes at the first token, and has no answer to it, as GSSAPI at its end."""

    is_complete = False
    principal = Principal("User", "alice")
    expires_ms = None

    def step(self, token: bytes) -> None:
        self.is_complete = True


@pytest.mark.parametrize("version", [0, 1])
def test_an_exchange_may_end_without_an_answer(version: int) -> None:
    """A client with raw tokens would take an empty answer for the response to its next request."""
    exchange = Exchange(MechanismMaker(SilentMechanism))
    exchange.send(ApiKey.SASL_HANDSHAKE, version, SaslHandshakeRequest(mechanism="PLAIN"))
    exchange.connection.events.clear()
    if version:
        exchange.present(b"token")
        assert [(each.error_code, each.auth_bytes) for each in exchange.answers()] == [(0, b"")]
    else:
        frame: Any = SimpleNamespace(payload=memoryview(bytearray(b"token")), has_invalid_size=False)
        exchange.authenticator.admits(frame, lambda key: None)
        assert exchange.answers() == []
        assert None in exchange.connection.events


def test_without_a_delay_the_answer_is_sent_at_once() -> None:
    exchange = Exchange(ALICE, {"listener.name.sasl.connection.failed.authentication.delay.ms": "0"})
    exchange.shake()
    exchange.present(plain_token("alice", "wrong"))
    assert exchange.scheduled == []
    assert exchange.connection.events[-1][0] == "closed"


def test_frames_after_a_failure_are_ignored() -> None:
    exchange = Exchange(ALICE)
    exchange.shake()
    exchange.present(plain_token("alice", "wrong"))
    exchange.present(plain_token("alice", "secret"))
    assert len(exchange.scheduled) == 1
    assert exchange.connection.events == []
    assert exchange.session.authenticator is exchange.authenticator


def test_a_success_ends_the_authentication() -> None:
    exchange = Exchange(ALICE)
    exchange.shake()
    exchange.present(plain_token("alice", "secret"))
    assert exchange.connection.events[0] == ("lifetime", -1)
    assert exchange.session.principal == Principal("User", "alice")
    assert exchange.session.authenticator is None
    assert (exchange.listener.counts.succeeded, exchange.listener.counts.without_reauthentication) == (1, 0)


def test_a_mechanism_that_blocks_runs_on_the_handler_pool() -> None:
    exchange = Exchange(ALICE._replace(blocks=True))
    exchange.shake()
    exchange.present(plain_token("alice", "secret"))
    assert exchange.connection.events == []
    (work,) = exchange.submitted
    continuation = work()
    assert exchange.connection.events == []
    continuation()
    assert exchange.session.principal.name == "alice"
    assert exchange.answers()[0].error_code == 0


@pytest.mark.parametrize("error", [TemporaryFailure("the KDC is down"), OSError("a defect")])
def test_a_failure_that_is_not_the_clients_closes_the_connection_without_an_answer(error: Exception) -> None:
    def fail(token: bytes) -> bytes:
        raise error

    mechanism: Any = SimpleNamespace(is_complete=False, step=fail)
    exchange = Exchange(MechanismMaker(lambda: mechanism))
    exchange.shake()
    exchange.present(b"token")
    assert [event[0] for event in exchange.connection.events] == ["closed"]
    assert exchange.scheduled == []
    assert exchange.listener.counts.failed == 0


class Builder(DefaultPrincipalBuilder):
    def build(self, connection: AuthenticatedConnection) -> Principal:
        assert (connection.listener, connection.sasl_mechanism) == ("SASL", "PLAIN")
        if connection.principal.name != "alice":
            raise LookupError("unknown")
        return Principal("Group", "staff")


def test_the_principal_builder_names_the_client() -> None:
    exchange = Exchange(ALICE, builder=Builder())
    exchange.shake()
    exchange.present(plain_token("alice", "secret"))
    assert str(exchange.session.principal) == "Group:staff"


def test_an_exception_of_the_principal_builder_closes_the_connection() -> None:
    exchange = Exchange(MechanismMaker(partial(PlainServer, lambda name, password: True)), builder=Builder())
    exchange.shake()
    exchange.present(plain_token("bob", "secret"))
    assert [event[0] for event in exchange.connection.events] == ["closed"]
    assert exchange.session.principal.name == "ANONYMOUS"


@pytest.mark.parametrize(
    ("expires_in_ms", "limit_ms", "lifetime_ms"),
    [(None, 0, None), (None, 5000, 5000), (3000, 0, 3000), (3000, 5000, 3000), (9000, 5000, 5000), (-1, 5000, 0)],
)
def test_the_lifetime_of_a_session(expires_in_ms: int | None, limit_ms: int, lifetime_ms: int | None) -> None:
    clock_ms = MockClock().wall_ms()
    mechanism: Any = SimpleNamespace(
        is_complete=True,
        principal=Principal("User", "alice"),
        expires_ms=None if expires_in_ms is None else clock_ms + expires_in_ms,
        step=lambda token: b"",
    )
    properties = {"listener.name.sasl.plain.connections.max.reauth.ms": str(limit_ms)}
    exchange = Exchange(MechanismMaker(lambda: mechanism), properties)
    exchange.shake()
    exchange.present(b"token")
    assert exchange.answers()[0].session_lifetime_ms == (lifetime_ms or 0)
    assert ("lifetime", -1 if lifetime_ms is None else lifetime_ms) in exchange.connection.events
    assert (exchange.session.authenticator is None) == (lifetime_ms is None)


@pytest.mark.parametrize("is_token_first", [True, False])
def test_a_re_authentication_says_whether_the_client_has_used_a_token(is_token_first: bool) -> None:
    """A client that has authenticated by a delegation token may not ask for tokens."""
    mechanisms: list[Any] = [
        SimpleNamespace(
            is_complete=True,
            principal=Principal("User", "alice", token_authenticated=is_token),
            expires_ms=None,
            step=lambda token: b"",
        )
        for is_token in (is_token_first, not is_token_first)
    ]
    remaining = iter(mechanisms)
    properties = {"listener.name.sasl.plain.connections.max.reauth.ms": "5000"}
    exchange = Exchange(MechanismMaker(lambda: next(remaining)), properties)
    for mechanism in mechanisms:
        exchange.shake()
        exchange.present(b"token")
        assert exchange.answers()[0].error_code == Error.NONE
        assert exchange.session.principal == mechanism.principal


def test_the_latency_of_re_authentications_is_that_of_the_last_minute() -> None:
    window = DurationWindow(0)
    assert all(map(math.isnan, window.average_and_maximum(0)))
    window.add(10, 1_000)
    window.add(30, 29_000)
    assert window.average_and_maximum(29_999) == (20.0, 30.0)
    assert window.average_and_maximum(59_999) == (20.0, 30.0)
    assert all(map(math.isnan, window.average_and_maximum(60_000)))
    window.add(50, 31_000)
    assert window.average_and_maximum(31_000) == (30.0, 50.0)
    window.add(70, 100_000)
    assert window.average_and_maximum(100_000) == (70.0, 70.0)
