"""Tokens from an OAuth provider, which a server in the test process plays."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator
from typing import Any

import pytest

from kafkapy.client import AuthenticationError, ConfigError, token_endpoint
from kafkapy.client.token_endpoint import TokenEndpoint, assertion_grant, checked_url, client_credentials
from tests.token_provider import TokenProvider


def endpoint(provider: TokenProvider) -> TokenEndpoint:
    return TokenEndpoint(provider.url, retry_backoff_ms=1, retry_backoff_max_ms=50)


@pytest.fixture
def provider() -> Iterator[TokenProvider]:
    made = TokenProvider()
    yield made
    made.close()


def test_client_credentials_are_sent_as_a_header(provider: TokenProvider) -> None:
    retrieve = client_credentials(endpoint(provider), "my id", "s:cret", "a b", urlencoded=False)
    assert retrieve() == "a.b.c"
    headers, form = provider.asked[0]
    assert b64decode(headers["Authorization"].removeprefix("Basic ")) == b"my id:s:cret"
    assert form == {"grant_type": ["client_credentials"], "scope": ["a b"]}
    client_credentials(endpoint(provider), "my id", "s:cret", None, urlencoded=True)()
    headers, form = provider.asked[1]
    assert b64decode(headers["Authorization"].removeprefix("Basic ")) == b"my+id:s%3Acret"
    assert form == {"grant_type": ["client_credentials"]}


def test_an_assertion_is_sent_in_the_form(provider: TokenProvider) -> None:
    assert assertion_grant(endpoint(provider), lambda: "signed", "scope")() == "a.b.c"
    headers, form = provider.asked[0]
    grant = "urn:ietf:params:oauth:grant-type:jwt-bearer"
    assert form == {"grant_type": [grant], "scope": ["scope"], "assertion": ["signed"]}
    assert "Authorization" not in headers


def test_an_id_token_is_accepted(provider: TokenProvider) -> None:
    provider.answers = [(200, {"id_token": " d.e.f "})]
    assert endpoint(provider).retrieve({}, {}) == "d.e.f"


def test_a_failure_that_may_pass_is_repeated(provider: TokenProvider) -> None:
    provider.answers = [(503, b""), (429, b"wait"), (200, {"access_token": "a.b.c"})]
    patient = TokenEndpoint(provider.url, retry_backoff_ms=1, retry_backoff_max_ms=60_000)
    assert patient.retrieve({}, {}) == "a.b.c"
    assert len(provider.asked) == 3


@pytest.mark.parametrize("status", [302, 400, 401, 403, 404, 501])
def test_a_refusal_is_not_repeated(provider: TokenProvider, status: int) -> None:
    provider.answers = [(status, {"error": "invalid_client", "error_description": "unknown client"})]
    with pytest.raises(AuthenticationError, match=rf"HTTP status {status} \(invalid_client: unknown client\)"):
        client_credentials(endpoint(provider), "id", "the-secret", None, urlencoded=False)()
    assert len(provider.asked) == 1


@pytest.mark.parametrize("answer", [b"no JSON", b"[1]", {"token": "t"}, b"[" * 100_000])
def test_a_response_without_a_token_is_refused(provider: TokenProvider, answer: Any) -> None:
    provider.answers = [(200, answer)]
    with pytest.raises(AuthenticationError, match="the response"):
        endpoint(provider).retrieve({}, {})


def test_an_endpoint_that_cannot_be_reached_is_named(provider: TokenProvider) -> None:
    provider.close()
    with pytest.raises(AuthenticationError, match=rf"{provider.url[:20]}.*cannot be used"):
        endpoint(provider).retrieve({}, {})


class FakeTime:
    """A clock that advances only during a sleep."""

    def __init__(self) -> None:
        self.now = 0.0
        self.pauses: list[float] = []

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds


def test_attempts_end_before_a_pause_that_would_take_too_long(
    provider: TokenProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = FakeTime()
    monkeypatch.setattr(token_endpoint, "time", clock)
    provider.close()
    asked = TokenEndpoint(provider.url, retry_backoff_ms=100, retry_backoff_max_ms=1000)
    with pytest.raises(AuthenticationError, match="cannot be used"):
        asked.retrieve({}, {})
    assert clock.pauses == [0.1, 0.2, 0.4]


@pytest.mark.parametrize("url", ["ftp://host/", "localhost:80", "https:///path"])
def test_another_kind_of_url_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="not a URL of http, https or file"):
        checked_url("key", url)
