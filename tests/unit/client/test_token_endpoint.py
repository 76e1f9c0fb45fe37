"""Tokens from an OAuth provider, which a server in the test process plays."""

from __future__ import annotations

import json
import threading
from base64 import b64decode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any
from urllib.parse import parse_qs

import pytest

from kafkapy.client import AuthenticationError, ConfigError
from kafkapy.client.token_endpoint import TokenEndpoint, assertion_grant, checked_url, client_credentials


class Provider:
    """A token endpoint that gives the answers in `answers`, the last one again and again."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, Any]] = [(200, {"access_token": "a.b.c"})]
        self.asked: list[tuple[dict[str, str], dict[str, list[str]]]] = []
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                provider.asked.append((dict(self.headers), parse_qs(body.decode())))
                status, answer = provider.answers[0] if len(provider.answers) == 1 else provider.answers.pop(0)
                content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: Any) -> None:
                """Writes nothing."""

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/token?tenant=t"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def endpoint(self) -> TokenEndpoint:
        return TokenEndpoint(self.url, retry_backoff_ms=1, retry_backoff_max_ms=50)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def provider() -> Iterator[Provider]:
    made = Provider()
    yield made
    made.close()


def test_client_credentials_are_sent_as_a_header(provider: Provider) -> None:
    retrieve = client_credentials(provider.endpoint(), "my id", "s:cret", "a b", urlencoded=False)
    assert retrieve() == "a.b.c"
    headers, form = provider.asked[0]
    assert b64decode(headers["Authorization"].removeprefix("Basic ")) == b"my id:s:cret"
    assert form == {"grant_type": ["client_credentials"], "scope": ["a b"]}
    client_credentials(provider.endpoint(), "my id", "s:cret", None, urlencoded=True)()
    headers, form = provider.asked[1]
    assert b64decode(headers["Authorization"].removeprefix("Basic ")) == b"my+id:s%3Acret"
    assert form == {"grant_type": ["client_credentials"]}


def test_an_assertion_is_sent_in_the_form(provider: Provider) -> None:
    assert assertion_grant(provider.endpoint(), lambda: "signed", "scope")() == "a.b.c"
    headers, form = provider.asked[0]
    grant = "urn:ietf:params:oauth:grant-type:jwt-bearer"
    assert form == {"grant_type": [grant], "scope": ["scope"], "assertion": ["signed"]}
    assert "Authorization" not in headers


def test_an_id_token_is_accepted(provider: Provider) -> None:
    provider.answers = [(200, {"id_token": " d.e.f "})]
    assert provider.endpoint().retrieve({}, {}) == "d.e.f"


def test_a_failure_that_may_pass_is_repeated(provider: Provider) -> None:
    provider.answers = [(503, b""), (429, b"wait"), (200, {"access_token": "a.b.c"})]
    assert provider.endpoint().retrieve({}, {}) == "a.b.c"
    assert len(provider.asked) == 3


@pytest.mark.parametrize("status", [302, 400, 401, 403, 404, 501])
def test_a_refusal_is_not_repeated(provider: Provider, status: int) -> None:
    provider.answers = [(status, {"error": "invalid_client", "error_description": "unknown client"})]
    with pytest.raises(AuthenticationError, match=rf"HTTP status {status} \(invalid_client: unknown client\)"):
        client_credentials(provider.endpoint(), "id", "the-secret", None, urlencoded=False)()
    assert len(provider.asked) == 1


@pytest.mark.parametrize("answer", [b"no JSON", b"[1]", {"token": "t"}, b"[" * 100_000])
def test_a_response_without_a_token_is_refused(provider: Provider, answer: Any) -> None:
    provider.answers = [(200, answer)]
    with pytest.raises(AuthenticationError, match="the response"):
        provider.endpoint().retrieve({}, {})


def test_an_endpoint_that_cannot_be_reached_is_named(provider: Provider) -> None:
    provider.close()
    with pytest.raises(AuthenticationError, match=rf"{provider.endpoint().url[:20]}.*cannot be used"):
        provider.endpoint().retrieve({}, {})


@pytest.mark.parametrize("url", ["ftp://host/", "localhost:80", "https:///path"])
def test_another_kind_of_url_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="not a URL of http, https or file"):
        checked_url("key", url)
