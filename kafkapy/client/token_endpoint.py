"""Retrieval of OAuth tokens by HTTP: a POST to the token endpoint of an identity provider (KIP-768, RFC 6749)."""

from __future__ import annotations

import json
import time
from base64 import b64encode
from collections.abc import Callable, Mapping
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import TYPE_CHECKING
from urllib.parse import quote_plus, urlencode, urlsplit

from kafkapy.client.errors import AuthenticationError
from kafkapy.errors import ConfigError
from kafkapy.named_tuple import NamedTuple

if TYPE_CHECKING:
    from ssl import SSLContext

_LONGEST_RESPONSE_BYTES = 1 << 20
_SHOWN_CHARACTERS = 200
DEFAULT_TIMEOUT_MS = 10_000
# Statuses of the class 4xx after which another attempt may succeed, and of the class 5xx after which none can succeed.
_WORTH_ANOTHER_ATTEMPT = frozenset((408, 429))
_PERMANENT_SERVER_ERRORS = frozenset((501, 505))


class _Refused(Exception):
    """The endpoint has refused to issue a token; another attempt cannot succeed."""


class TokenEndpoint(NamedTuple):
    """The endpoint, and the settings of requests to it.

    `context` is None to use the certificate authorities that the machine trusts.
    """

    url: str
    connect_timeout_ms: int = DEFAULT_TIMEOUT_MS
    read_timeout_ms: int = DEFAULT_TIMEOUT_MS
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 10_000
    context: SSLContext | None = None

    def retrieve(self, form: Mapping[str, str], headers: Mapping[str, str]) -> str:
        """Sends the fields `form` by POST and returns the token in the response.

        Blocks. Repeats the request after a failure that may pass, until `retry_backoff_max_ms` have passed in all.
        Raises AuthenticationError if the endpoint refuses or cannot be reached until then.
        """
        body = urlencode(form).encode()
        end = time.monotonic() + self.retry_backoff_max_ms / 1000
        pause_s = self.retry_backoff_ms / 1000
        while True:
            try:
                return _token_of(self._post(body, headers))
            except _Refused as refusal:
                raise AuthenticationError(f"The token endpoint {self.url} gave no token: {refusal}") from None
            except (OSError, HTTPException) as error:
                if time.monotonic() + pause_s > end:
                    reason = str(error) or type(error).__name__
                    raise AuthenticationError(f"The token endpoint {self.url} cannot be used: {reason}") from error
            time.sleep(pause_s)
            pause_s *= 2

    def _post(self, body: bytes, headers: Mapping[str, str]) -> bytes:
        """Sends a request and returns the body of the response. Raises _Refused, or OSError if another attempt may
        succeed.
        """
        parts = urlsplit(self.url)
        host, port = parts.hostname or "", parts.port
        connection: HTTPConnection
        if parts.scheme == "https":
            connection = HTTPSConnection(host, port, timeout=self.connect_timeout_ms / 1000, context=self.context)
        else:
            connection = HTTPConnection(host, port, timeout=self.connect_timeout_ms / 1000)
        try:
            connection.connect()
            connection.sock.settimeout(self.read_timeout_ms / 1000)
            path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            connection.request("POST", path, body, {**_HEADERS, **headers})
            response = connection.getresponse()
            content = response.read(_LONGEST_RESPONSE_BYTES)
        finally:
            connection.close()
        if response.status in (200, 201):
            return content
        problem = f"HTTP status {response.status}{_error_of(content)}"
        is_permanent = 400 <= response.status < 500 and response.status not in _WORTH_ANOTHER_ATTEMPT
        if is_permanent or response.status < 400 or response.status in _PERMANENT_SERVER_ERRORS:
            raise _Refused(problem)
        raise OSError(problem)


_HEADERS = {
    "Accept": "application/json",
    "Cache-Control": "no-cache",
    "Content-Type": "application/x-www-form-urlencoded",
}


def checked_url(key: str, url: str) -> str:
    """Returns a URL unchanged if its scheme is http, https or file.

    Raises ConfigError for any other URL, and for an http or https URL without a host; the message names the
    configuration key `key`.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https", "file") or (parts.scheme != "file" and not parts.hostname):
        raise ConfigError(f"Invalid value {url} for configuration {key}: not a URL of http, https or file")
    return url


def client_credentials(
    endpoint: TokenEndpoint, client_id: str, secret: str, scope: str | None, *, urlencoded: bool
) -> Callable[[], str]:
    """Returns a function that retrieves a token by the grant client_credentials.

    The function blocks, and raises AuthenticationError if it gets no token. With `urlencoded`, id and secret are
    URL-encoded before they are put into the header Authorization, as RFC 6749 demands.
    """
    if urlencoded:
        client_id, secret = quote_plus(client_id), quote_plus(secret)
    header = b64encode(f"{client_id}:{secret}".encode()).decode()
    form = {"grant_type": "client_credentials", **({"scope": scope} if scope else {})}
    return lambda: endpoint.retrieve(form, {"Authorization": f"Basic {header}"})


def assertion_grant(endpoint: TokenEndpoint, make_assertion: Callable[[], str], scope: str | None) -> Callable[[], str]:
    """Returns a function that retrieves a token for the assertion that `make_assertion()` returns (RFC 7523).

    The function blocks, and raises AuthenticationError if it gets no token. `scope` is None for the endpoint's default.
    """
    grant = {"grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer", **({"scope": scope} if scope else {})}
    return lambda: endpoint.retrieve({**grant, "assertion": make_assertion()}, {})


def _token_of(content: bytes) -> str:
    try:
        answer = json.loads(content)
        token = (answer.get("access_token") or answer.get("id_token") or "").strip()
    except (ValueError, AttributeError, RecursionError):
        raise _Refused("the response is not JSON with a token") from None
    if not token:
        raise _Refused("the response has neither access_token nor id_token")
    return str(token)


def _error_of(content: bytes) -> str:
    """Returns the error that a response names, in parentheses, to append to a message; "" if it names none."""
    try:
        answer = json.loads(content)
        shown = [str(answer[name]) for name in ("error", "error_description") if answer.get(name)]
    except (ValueError, AttributeError, TypeError, RecursionError):
        return ""
    return f" ({': '.join(shown)[:_SHOWN_CHARACTERS]})" if shown else ""
