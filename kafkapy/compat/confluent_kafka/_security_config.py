"""Translates librdkafka's keys of TLS and SASL to kafkapy's."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Protocol

from kafkapy.client.oauth_login import RetrievedToken

_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "OAUTHBEARER": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
    "GSSAPI": "com.sun.security.auth.module.Krb5LoginModule",
}
_ASSERTION_GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_ASSERTION_RETRIEVER = "org.apache.kafka.common.security.oauthbearer.JwtBearerJwtRetriever"
# The options of `sasl.oauthbearer.config` for a token without a signature, and those of kafkapy's login module.
_UNSECURED = {
    "principal": ("unsecuredLoginStringClaim_sub", "{}"),
    "principalClaimName": ("unsecuredLoginPrincipalClaimName", "{}"),
    "lifeSeconds": ("unsecuredLoginLifetimeSeconds", "{}"),
    "scope": ("unsecuredLoginListClaim_scope", ",{}"),
    "scopeClaimName": ("unsecuredLoginScopeClaimName", "{}"),
}


class Values(Protocol):
    """The typed values of a configuration, and its callbacks."""

    callbacks: dict[str, Callable[..., Any]]

    def __getitem__(self, key: str) -> Any:
        """Returns the value of a key, or its default."""
        ...


def security_properties(settings: Values, invalid: Callable[[str], Exception]) -> dict[str, Any]:
    """Converts librdkafka's keys of TLS and SASL to kafkapy's. Reads the files of keys and certificates.

    Raises `invalid(message)` for values that kafkapy cannot use.
    """
    protocol = settings["security.protocol"].upper()
    found: dict[str, Any] = {"security.protocol": protocol}
    if protocol in ("SSL", "SASL_SSL"):
        found.update(_tls(settings, invalid))
    if protocol.startswith("SASL_"):
        found.update(sasl_properties(settings, invalid))
    return found


def _tls(settings: Values, invalid: Callable[[str], Exception]) -> dict[str, Any]:
    def content(location_key: str, pem_key: str) -> str | None:
        text: str | None = settings[pem_key]
        path: str | None = settings[location_key]
        if text is not None or path is None or path == "probe":
            return text
        try:
            paths = [path] if not os.path.isdir(path) else sorted(entry.path for entry in os.scandir(path))
            return "\n".join(_read(each) for each in paths)
        except OSError as error:
            raise invalid(f"{location_key} failed: {error}") from None

    found: dict[str, Any] = {}
    authority = content("ssl.ca.location", "ssl.ca.pem")
    if authority is not None:
        found["ssl.truststore.type"] = "PEM"
        found["ssl.truststore.certificates"] = authority
    certificate = content("ssl.certificate.location", "ssl.certificate.pem")
    key = content("ssl.key.location", "ssl.key.pem")
    if certificate is not None or key is not None:
        found["ssl.keystore.type"] = "PEM"
        found["ssl.keystore.certificate.chain"] = certificate
        found["ssl.keystore.key"] = key
        found["ssl.key.password"] = settings["ssl.key.password"]
    elif settings["ssl.keystore.location"] is not None:
        found["ssl.keystore.type"] = "PKCS12"
        found["ssl.keystore.location"] = settings["ssl.keystore.location"]
        found["ssl.keystore.password"] = settings["ssl.keystore.password"]
    algorithm = settings["ssl.endpoint.identification.algorithm"]
    found["ssl.endpoint.identification.algorithm"] = "" if algorithm == "none" else algorithm
    return found


def _read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _login(mechanism: str, options: dict[str, str]) -> str:
    listed = "".join(f" {name}={_quoted(value)}" for name, value in options.items())
    return f"{_MODULES[mechanism]} required{listed};"


def sasl_properties(settings: Values, invalid: Callable[[str], Exception]) -> dict[str, Any]:
    """Converts librdkafka's keys of SASL to kafkapy's.

    Raises `invalid(message)` for values that kafkapy cannot use.
    """
    mechanism = settings["sasl.mechanisms"].upper()
    if mechanism not in _MODULES:
        raise invalid(f"No provider for SASL mechanism {mechanism}: kafkapy has {', '.join(_MODULES)}")
    found: dict[str, Any] = {"sasl.mechanism": mechanism}
    if mechanism == "GSSAPI":
        options = {"principal": settings["sasl.kerberos.principal"]}
        if settings["sasl.kerberos.keytab"] is not None:
            options.update(useKeyTab="true", storeKey="true", keyTab=settings["sasl.kerberos.keytab"])
        else:
            options["useTicketCache"] = "true"
        found["sasl.jaas.config"] = _login(mechanism, options)
        found.setdefault("sasl.kerberos.service.name", settings["sasl.kerberos.service.name"])
    elif mechanism == "OAUTHBEARER":
        found.update(_oauth(settings, invalid))
    else:
        username, password = settings["sasl.username"], settings["sasl.password"]
        if username is None or password is None:
            raise invalid("sasl.username and sasl.password must be set")
        found["sasl.jaas.config"] = _login(mechanism, {"username": username, "password": password})
    return found


def _oauth(settings: Values, invalid: Callable[[str], Exception]) -> dict[str, Any]:
    options: dict[str, str] = {}
    for name, value in _pairs(settings["sasl.oauthbearer.extensions"], ","):
        options[f"extension_{name}"] = value
    found: dict[str, Any] = {}
    callback = settings.callbacks.get("oauth_cb")
    if callback is not None:
        config = settings["sasl.oauthbearer.config"] or ""
        found["sasl.login.callback.handler.class"] = lambda: _retrieved(*callback(config))
    elif settings["sasl.oauthbearer.method"] == "oidc":
        if settings["sasl.oauthbearer.grant.type"] == _ASSERTION_GRANT:
            found["sasl.oauthbearer.jwt.retriever.class"] = _ASSERTION_RETRIEVER
    elif settings["enable.sasl.oauthbearer.unsecure.jwt"]:
        for name, value in _pairs(settings["sasl.oauthbearer.config"], " "):
            if name.startswith("extension_"):
                options[f"unsecuredLoginExtension_{name.removeprefix('extension_')}"] = value
            elif name in _UNSECURED:
                option, form = _UNSECURED[name]
                options[option] = form.format(value)
            else:
                raise invalid(f"Unrecognized sasl.oauthbearer.config property: {name}")
    else:
        raise invalid(
            "OAUTHBEARER needs oauth_cb, sasl.oauthbearer.method=oidc or enable.sasl.oauthbearer.unsecure.jwt"
        )
    found["sasl.jaas.config"] = _login("OAUTHBEARER", options)
    return found


def _retrieved(token: str, expires_s: float, principal: str = "", extensions: Any = None) -> RetrievedToken:
    """Converts the result of the program's `oauth_cb` to the form that kafkapy's client accepts.

    The arguments are the elements of the result. `expires_s` is in seconds since 1970. `principal` has no effect,
    because the broker reads the principal from the token.
    """
    return RetrievedToken(token, float(expires_s), dict(extensions or {}))


def _pairs(text: str | None, separator: str) -> list[tuple[str, str]]:
    found = []
    for each in (text or "").split(separator):
        name, _, value = each.strip().partition("=")
        if name:
            found.append((name, value))
    return found
