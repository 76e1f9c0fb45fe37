"""The interface of the classes that `ssl.engine.factory.class` names.

In Apache Kafka a Java class of this kind makes TLS engines. In kafkapy, a Python class supplies keys and certificates
for TLS contexts. It reads them from a source other than the key store and trust store, such as a secret manager.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from kafkapy.named_tuple import NamedTuple


class TlsIdentity(NamedTuple):
    """A private key and its certificate chain, leaf first, as PEM. `repr` does not show them."""

    certificate_chain: bytes
    private_key: bytes
    key_password: str | None = None

    def __repr__(self) -> str:
        return "TlsIdentity([hidden])"


class SslEngineFactory(Protocol):
    """A source of keys and certificates for one listener or client. Called by one thread at a time; may wait."""

    def __init__(self, configs: Mapping[str, object]) -> None:
        """Makes a source for one listener or client. `configs` has the values of the `ssl.*` keys by name, with the
        listener's prefix removed."""

    def identity(self) -> TlsIdentity | None:
        """Returns the private key and certificate to present to peers; None for a client that presents none. Raises
        ValueError if they are unavailable.
        """

    def trusted_certificates(self) -> bytes | None:
        """Returns the trusted certificates as PEM; None to trust the machine's authorities. Raises ValueError if they
        are unavailable."""

    def should_be_rebuilt(self, next_configs: Mapping[str, object]) -> bool:
        """Returns whether a change of configuration, or of a file, needs another instance of the class."""
