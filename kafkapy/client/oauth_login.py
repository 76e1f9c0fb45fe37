"""The token with which a client authenticates by OAUTHBEARER: where it comes from, and its renewal before it expires.

The token comes from `sasl.oauthbearer.token.endpoint.url` (an OAuth provider, or a file), from a Python callable in
`sasl.login.callback.handler.class`, or is one without a signature that the options of `sasl.jaas.config` describe.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping
from random import random
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from kafkapy.client.errors import AuthenticationError
from kafkapy.client.serialization import load_object
from kafkapy.client.token_endpoint import (
    DEFAULT_TIMEOUT_MS,
    TokenEndpoint,
    assertion_grant,
    checked_url,
    client_credentials,
)
from kafkapy.errors import ConfigError
from kafkapy.named_tuple import NamedTuple
from kafkapy.security.jaas import JaasEntry
from kafkapy.security.sasl.oauth_client import OauthClient, check_extensions

if TYPE_CHECKING:
    from kafkapy.client.security_values import SecurityValues

log = logging.getLogger("kafkapy.client")

TOKEN_URL_KEY = "sasl.oauthbearer.token.endpoint.url"
HANDLER_KEY = "sasl.login.callback.handler.class"
_JAVA = "org.apache.kafka.common.security.oauthbearer."
# Kafka's own handlers, whose work the configured URL determines here.
_KAFKAS_HANDLERS = frozenset(
    f"{_JAVA}{package}OAuthBearerLoginCallbackHandler" for package in ("", "secured.", "internals.secured.")
)
_ASSERTION_RETRIEVER = f"{_JAVA}JwtBearerJwtRetriever"
_PAUSE_AFTER_FAILURE_S = 10.0
# The beginnings of options in sasl.jaas.config.
_EXTENSION, _UNSECURED = "extension_", "unsecuredLogin"
_UNSECURED_EXTENSION = f"{_UNSECURED}Extension_"


class Renewal(NamedTuple):
    """The rules for the time at which a token is renewed, from the keys `sasl.login.refresh.*`.

    A token is renewed when a part of its lifetime has passed. The part is `window_factor` plus a random number from 0
    to `window_jitter`. The renewal is not sooner than `min_period_s` after the receipt of the token, and not later than
    `buffer_s` before it expires. These two limits are ignored for a token whose lifetime is too short for them.
    """

    window_factor: float
    window_jitter: float
    min_period_s: int
    buffer_s: int

    def at_s(self, now_s: float, token: Token) -> float:
        """Returns the wall-clock time in seconds at which to renew a token that was received at `now_s` (seconds).

        A token that has expired already is renewed after a pause, because the provider may give the same one again.
        """
        if token.expires_s <= now_s:
            return now_s + _PAUSE_AFTER_FAILURE_S
        part = self.window_factor + self.window_jitter * random()
        if self.min_period_s + self.buffer_s > token.expires_s - now_s:
            return now_s + (token.expires_s - now_s) * part  # the token is too short-lived for these limits
        at_s = token.issued_s + (token.expires_s - token.issued_s) * part
        return max(min(at_s, token.expires_s - self.buffer_s), now_s + self.min_period_s)


class Token(NamedTuple):
    """A token for OAUTHBEARER, and the times at which it was issued and at which it expires, in seconds since 1970. Its
    `repr` does not contain the token's text, which is secret."""

    text: str
    issued_s: float
    expires_s: float

    def __repr__(self) -> str:
        return f"Token(expires {self.expires_s})"


class RetrievedToken(NamedTuple):
    """The result of an application's function for tokens, if it returns more than the text of the token.

    expires_s: the wall-clock time in seconds at which the token expires; None if the text is a JSON web token, whose
        claim exp is this time.
    extensions: SASL extensions (KIP-342) that are sent with the token, in addition to those of `sasl.jaas.config`.
    """

    text: str
    expires_s: float | None = None
    extensions: Mapping[str, str] = MappingProxyType({})

    def __repr__(self) -> str:
        return f"RetrievedToken(expires {self.expires_s})"


Retriever = Callable[[], str | RetrievedToken]


def parse_token(text: str, now_s: float) -> Token:
    """Returns a token with the times of its claims, without a check of its signature.

    `now_s` is the issue time of a token without the claim iat. Raises AuthenticationError if `text` is not a JSON web
    token with the claim exp.
    """
    try:
        payload = text.split(".")[1]
        claims = json.loads(urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        return Token(text, float(claims.get("iat", now_s)), float(claims["exp"]))
    except (IndexError, ValueError, KeyError, AttributeError, TypeError, RecursionError):
        raise AuthenticationError("The OAuth token is not a JSON web token with the claim exp") from None


class OauthLogin:
    """Owns the current token of a client and the thread that renews the token before it expires. Thread-safe."""

    def __init__(self, retrieve: Retriever, renewal: Renewal, extensions: Mapping[str, str]) -> None:
        """Retrieves the first token and starts the thread that renews it; blocks.

        Raises AuthenticationError if no token can be retrieved, or the token is invalid.
        `extensions` are the SASL extensions of the configuration, which are sent with every token.
        """
        self._retrieve = retrieve
        self._renewal = renewal
        self._configured_extensions = dict(extensions)
        self._is_closed = threading.Event()
        self._current = self._next()
        threading.Thread(target=self._run, name="kafkapy-oauth-login", daemon=True).start()

    def mechanism(self, host: str) -> OauthClient:
        """Returns the client's part of the mechanism for one authentication, with the current token; `host` has no
        effect.
        """
        token, extensions = self._current
        return OauthClient(token.text, extensions)

    def close(self) -> None:
        """Ends the thread. The current token stays usable."""
        self._is_closed.set()

    def _run(self) -> None:
        now_s = time.time()
        at_s = self._renewal_s(now_s)
        while not self._is_closed.wait(max(at_s - now_s, 0)):
            try:
                self._current = self._next()
                now_s = time.time()
                at_s = self._renewal_s(now_s)
            except Exception as error:  # a callable of the application may raise anything
                log.warning("The OAuth token could not be renewed: %s", error)
                now_s = time.time()
                at_s = now_s + _PAUSE_AFTER_FAILURE_S

    def _renewal_s(self, now_s: float) -> float:
        """Returns the wall-clock time in seconds at which to renew the token that was received at `now_s`."""
        token = self._current[0]
        if token.expires_s <= now_s:
            log.warning(
                "The OAuth token expired %.0f s before it was received; the clocks of this machine and of the provider "
                "may differ",
                now_s - token.expires_s,
            )
        return self._renewal.at_s(now_s, token)

    def _next(self) -> tuple[Token, dict[str, str]]:
        """Retrieves a token; returns it and the SASL extensions to send with it.

        Raises AuthenticationError if no token can be retrieved, or the token or its extensions are invalid. Also raises
        it for an expired token, but only if the application's function has returned a RetrievedToken. If the function
        has returned a str, the broker refuses an expired token, as in Java's client.
        """
        retrieved, now_s = self._retrieve(), time.time()
        if isinstance(retrieved, str):
            return parse_token(retrieved, now_s), self._configured_extensions
        text, expires_s, extensions = retrieved
        token = parse_token(text, now_s) if expires_s is None else Token(text, now_s, expires_s)
        if token.expires_s <= now_s:
            raise AuthenticationError(f"The OAuth token has expired {now_s - token.expires_s:.0f} s ago")
        try:
            check_extensions(extensions)
        except ValueError as error:
            raise AuthenticationError(f"The OAuth token cannot be sent: {error}") from error
        return token, {**self._configured_extensions, **extensions}


def oauth_login(values: SecurityValues, entry: JaasEntry) -> OauthLogin:
    """Returns the login that the configuration describes, with its first token; blocks.

    Raises ConfigError if configuration keys are missing or invalid, and AuthenticationError if no token can be
    retrieved or the token is invalid.
    """
    prefix = _EXTENSION
    retrieve = _retriever(values, entry)
    if retrieve is None:
        retrieve = _unsecured(entry.options)
        prefix = _UNSECURED_EXTENSION
    extensions = {key.removeprefix(prefix): text for key, text in entry.options.items() if key.startswith(prefix)}
    renewal = Renewal(
        values["sasl.login.refresh.window.factor"],
        values["sasl.login.refresh.window.jitter"],
        values["sasl.login.refresh.min.period.seconds"],
        values["sasl.login.refresh.buffer.seconds"],
    )
    return OauthLogin(retrieve, renewal, extensions)


def _retriever(values: SecurityValues, entry: JaasEntry) -> Retriever | None:
    """Returns the function that retrieves a token.

    None means that no source is configured, so that the client makes an unsigned token itself. Raises ConfigError if
    keys that the source needs are missing or invalid.
    """
    handler = values[HANDLER_KEY]
    if handler is not None and handler not in _KAFKAS_HANDLERS:
        return _own_retriever(handler)
    url = values[TOKEN_URL_KEY]
    if url is None:
        if handler is not None:
            raise ConfigError(f"{TOKEN_URL_KEY} is missing, which {HANDLER_KEY} needs")
        return None
    parts = urlsplit(checked_url(TOKEN_URL_KEY, url))
    if parts.scheme == "file":
        return lambda: _read_token(unquote(parts.path))
    endpoint = TokenEndpoint(
        url,
        values["sasl.login.connect.timeout.ms"] or DEFAULT_TIMEOUT_MS,
        values["sasl.login.read.timeout.ms"] or DEFAULT_TIMEOUT_MS,
        values["sasl.login.retry.backoff.ms"],
        values["sasl.login.retry.backoff.max.ms"],
        _context(entry.options) if parts.scheme == "https" else None,
    )
    scope = values["sasl.oauthbearer.scope"] or entry.options.get("scope")
    if values["sasl.oauthbearer.jwt.retriever.class"] == _ASSERTION_RETRIEVER:
        from kafkapy.client.oauth_assertion import assertion_maker

        return assertion_grant(endpoint, assertion_maker(values), scope)
    client_id = values["sasl.oauthbearer.client.credentials.client.id"] or entry.options.get("clientId")
    secret_value = values["sasl.oauthbearer.client.credentials.client.secret"]
    secret = entry.options.get("clientSecret") if secret_value is None else secret_value.value
    if not client_id or secret is None:
        raise ConfigError(
            "sasl.oauthbearer.client.credentials.client.id and .secret are missing, also as clientId and clientSecret "
            "in sasl.jaas.config"
        )
    is_encoded = values["sasl.oauthbearer.header.urlencode"]
    return client_credentials(endpoint, client_id, secret, scope, urlencoded=is_encoded)


def _own_retriever(handler: Any) -> Retriever:
    """Returns a function that calls the application's function, and so retrieves a token.

    `handler` is a callable, a class whose instance is callable, or the name `module:name` of one of these. The returned
    function raises AuthenticationError if the application's function raises. Raises ConfigError for another handler.
    """
    found = load_object(HANDLER_KEY, handler) if isinstance(handler, str) else handler
    if isinstance(found, type):
        found = found()
    if not callable(found):
        raise ConfigError(
            f"Invalid value {handler} for configuration {HANDLER_KEY}: not a function that returns a token"
        )

    def retrieve() -> str | RetrievedToken:
        try:
            retrieved = found()
            return retrieved if isinstance(retrieved, RetrievedToken) else str(retrieved)
        except Exception as error:
            raise AuthenticationError(f"{HANDLER_KEY} gave no token: {error}") from error

    return retrieve


def _read_token(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise AuthenticationError(f"The file {path} of {TOKEN_URL_KEY} cannot be read: {error}") from error


def _context(options: Mapping[str, str]) -> Any:
    """Returns the TLS context for the token endpoint, from the options `ssl.*` of `sasl.jaas.config`.

    None means that there are no such options: the certificate authorities that the machine trusts are then used.
    """
    given = {key: text for key, text in options.items() if key.startswith("ssl.")}
    if not given:
        return None
    from kafkapy.client.configuration import security_values
    from kafkapy.client.security_values import tls_context

    return tls_context(security_values(given))


def _unsecured(options: Mapping[str, str]) -> Callable[[], str]:
    """Returns a function that makes tokens without a signature, for tests, as Kafka's default handler does.

    `options` are those of `sasl.jaas.config`; they give the claims, such as `unsecuredLoginStringClaim_sub`. Raises
    ConfigError if they lack the claim that names the principal.
    """
    principal_claim = options.get(f"{_UNSECURED}PrincipalClaimName", "sub")
    if f"{_UNSECURED}StringClaim_{principal_claim}" not in options:
        raise ConfigError(
            f"sasl.jaas.config has neither the option {_UNSECURED}StringClaim_{principal_claim} of a token without "
            f"signature, nor does {TOKEN_URL_KEY} say where tokens come from"
        )
    lifetime_s = int(options.get(f"{_UNSECURED}LifetimeSeconds", "3600"))

    def claims(kind: str, convert: Callable[[str], Any]) -> dict[str, Any]:
        prefix = f"{_UNSECURED}{kind}Claim_"
        return {key.removeprefix(prefix): convert(text) for key, text in options.items() if key.startswith(prefix)}

    def make() -> str:
        now_s = int(time.time())
        content = {
            "iat": now_s,
            "exp": now_s + lifetime_s,
            **claims("String", str),
            **claims("Number", float),
            **claims("List", lambda text: text[1:].split(text[:1]) if text else []),
        }
        return f"{_encoded({'alg': 'none'})}.{_encoded(content)}."

    return make


def _encoded(value: dict[str, Any]) -> str:
    return urlsafe_b64encode(json.dumps(value, separators=(",", ":")).encode()).decode().rstrip("=")
