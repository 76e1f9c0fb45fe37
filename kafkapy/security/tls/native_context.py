"""Makes TLS contexts of the reactor (the thread that serves all connections) from settings."""

from __future__ import annotations

from kafkapy._core.tls.tls_context import (
    CLIENT_AUTH_NONE,
    CLIENT_AUTH_REQUESTED,
    CLIENT_AUTH_REQUIRED,
    TlsContext,
    TlsError,
)
from kafkapy.errors import ConfigError
from kafkapy.security.tls.tls_material import TlsMaterial

_CLIENT_AUTH = {"none": CLIENT_AUTH_NONE, "requested": CLIENT_AUTH_REQUESTED, "required": CLIENT_AUTH_REQUIRED}


def make_tls_context(material: TlsMaterial, *, is_server: bool) -> TlsContext:
    """Returns the reactor's context: for a listener if `is_server` is True, otherwise for connections to other nodes.

    Raises ConfigError if OpenSSL does not accept the stores or settings.
    """
    key, settings = material.private_key, material.settings
    password = None if key is None or key.password is None else key.password.encode()
    try:
        return TlsContext(
            certificate_chain_pem=material.chain_pem,
            private_key_pem=None if key is None else key.pem,
            key_password=password,
            trusted_pem=material.trusted_pem,
            is_server=is_server,
            client_auth=_CLIENT_AUTH[settings.client_auth] if is_server else CLIENT_AUTH_NONE,
            protocols=material.suites.protocols,
            ciphers=material.suites.names or None,
            crl_pem=material.revocations_pem,
        )
    except TlsError as error:
        raise ConfigError(f"{settings.prefix}ssl: {error}") from None
