"""Constructs the server's side of OAUTHBEARER from the configuration of a listener."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

from kafkapy.config.listener_security import CALLBACK_KEY, SaslSettings
from kafkapy.config.python_class import load_class_of_key
from kafkapy.errors import ConfigError
from kafkapy.security.jaas import JaasEntry
from kafkapy.security.oauth.key_source import KeyEndpoint, KeyFile, KeySource, RefreshTimes
from kafkapy.security.oauth.signatures import libcrypto
from kafkapy.security.oauth.token_validation import (
    ClaimRules,
    SignedTokenValidator,
    UnsecuredTokenValidator,
    ValidToken,
)
from kafkapy.security.sasl.oauth_server import OAuthServer

_PACKAGE = "org.apache.kafka.common.security.oauthbearer"
# The classes of Kafka that verify signatures (with the older name), and the class that accepts tokens without one.
SIGNED_CLASSES = (
    f"{_PACKAGE}.OAuthBearerValidatorCallbackHandler",
    f"{_PACKAGE}.secured.OAuthBearerValidatorCallbackHandler",
)
UNSECURED_CLASSES = (f"{_PACKAGE}.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler",)
URL_KEY = "sasl.oauthbearer.jwks.endpoint.url"
UNSECURED_KEY = "kafkapy.sasl.oauthbearer.unsecured.tokens.enable"
MECHANISM = "OAUTHBEARER"


class Validator(Protocol):
    def validate(self, text: str) -> ValidToken:
        """Returns the contents of an acceptable token. Raises InvalidToken."""
        ...


def make_oauth(
    settings: SaslSettings, entries: Sequence[JaasEntry], wall_ms: Callable[[], int]
) -> Callable[[], OAuthServer]:
    """Returns the function that makes an OAuthServer for each authentication.

    `entries` are the login modules of the listener; if several modules set an option, the first of them is used.
    `wall_ms` returns the time that decides whether a token has expired. Raises ConfigError if there are no keys to
    verify tokens with, unless the configuration accepts tokens without a signature.
    """
    options: dict[str, str] = {}
    for entry in reversed(entries):
        options.update(entry.options)
    validator = _make_validator(settings, options, wall_ms)
    return partial(OAuthServer, validator.validate)


def _make_validator(settings: SaslSettings, options: Mapping[str, str], wall_ms: Callable[[], int]) -> Validator:
    class_name, url = settings.value(MECHANISM, CALLBACK_KEY), settings.value(MECHANISM, URL_KEY)
    if class_name and class_name not in SIGNED_CLASSES + UNSECURED_CLASSES:
        return _python_validator(class_name, settings, options)
    if url and class_name not in UNSECURED_CLASSES:
        libcrypto()
        source = _key_source(settings, url)
        return SignedTokenValidator(source.verify, _claim_rules(settings), wall_ms)
    if class_name in SIGNED_CLASSES:
        raise ConfigError(
            f"listener {settings.listener_name}: OAUTHBEARER needs {URL_KEY}, the http, https or file URL of the keys "
            "that verify tokens"
        )
    if not settings.accepts_unsecured_tokens:
        raise ConfigError(
            f"listener {settings.listener_name}: OAUTHBEARER without {URL_KEY} accepts tokens without a signature, "
            f"which anybody can make; set {URL_KEY}, or {UNSECURED_KEY}=true if that is what you want"
        )
    return UnsecuredTokenValidator(options, wall_ms)


def _claim_rules(settings: SaslSettings) -> ClaimRules:
    return ClaimRules(
        audiences=settings.value(MECHANISM, "sasl.oauthbearer.expected.audience"),
        issuer=settings.value(MECHANISM, "sasl.oauthbearer.expected.issuer"),
        scope_claim=settings.value(MECHANISM, "sasl.oauthbearer.scope.claim.name"),
        subject_claim=settings.value(MECHANISM, "sasl.oauthbearer.sub.claim.name"),
        clock_skew_s=settings.value(MECHANISM, "sasl.oauthbearer.clock.skew.seconds"),
    )


def _key_source(settings: SaslSettings, url: str) -> KeySource:
    parts = urlsplit(url)
    if parts.scheme == "file":
        path = unquote(parts.path)
        try:
            return KeyFile(path)
        except (OSError, ValueError) as error:
            raise ConfigError(f"Invalid value {url} for configuration {URL_KEY}: {error}") from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(f"Invalid value {url} for configuration {URL_KEY}: accepted are http, https and file URLs")

    milliseconds = (
        settings.value(MECHANISM, "sasl.oauthbearer.jwks.endpoint.refresh.ms"),
        settings.value(MECHANISM, "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms"),
        settings.value(MECHANISM, "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms"),
    )
    return KeyEndpoint(url, RefreshTimes(*(max(each, 1) / 1000 for each in milliseconds)))


class _PythonValidator:
    """Validates tokens by a Python class of the administrator."""

    def __init__(self, handler: Any) -> None:
        self._handler = handler

    def validate(self, text: str) -> ValidToken:
        name, expires_ms = self._handler.validate(text)
        return ValidToken(name, expires_ms, frozenset())


def _python_validator(class_name: str, settings: SaslSettings, options: Mapping[str, str]) -> Validator:
    """Returns a validator that calls the administrator's Python class.

    The class has `validate(token)`, which returns the principal's name and the time of expiry in milliseconds, or
    raises `kafkapy.security.oauth.json_web_token.InvalidToken`. It may have `configure(mechanism, listener_name,
    options)`, which receives the `options` of the JAAS entry.
    """
    handler: Any = load_class_of_key(CALLBACK_KEY, class_name, "validate tokens")()
    if hasattr(handler, "configure"):
        handler.configure(MECHANISM, settings.listener_name, options)
    return _PythonValidator(handler)
