"""The values of the keys of TLS and SASL, wherever they are configured, and the TLS context that they describe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from ssl import SSLContext


class SecurityValues(Protocol):
    """The values of TLS and SASL keys by key, converted to their types."""

    def __getitem__(self, key: str) -> Any:
        """Returns the value of a key; None if it is unset."""
        ...


def tls_context(values: SecurityValues) -> SSLContext:
    """Returns the TLS context that the keys `ssl.*` describe. Reads files.

    Raises ConfigError for invalid values and for files that cannot be used.
    """
    from kafkapy.config.ssl_settings import SslSettings
    from kafkapy.security.tls.python_context import client_context
    from kafkapy.security.tls.tls_material import load_material

    return client_context(load_material(SslSettings.from_values(values.__getitem__), is_server=False))
