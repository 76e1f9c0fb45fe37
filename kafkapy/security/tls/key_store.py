"""Key stores and trust stores in memory, whatever file they come from."""

from __future__ import annotations

from kafkapy.named_tuple import NamedTuple
from kafkapy.security.tls.pem import CERTIFICATE, encode_block


class StoreError(ValueError):
    """A store that cannot be read: its content is damaged, or a password does not open it."""


class PrivateKey(NamedTuple):
    """A private key in PEM, and the password that decrypts the key if it is encrypted. `repr` does not show them."""

    pem: bytes
    password: str | None = None

    def __repr__(self) -> str:
        return "PrivateKey([hidden])"


class StoreEntry(NamedTuple):
    """One entry of a store: a private key with its certificate chain, leaf first, or one trusted certificate."""

    alias: str
    chain: tuple[bytes, ...]  # DER
    private_key: PrivateKey | None = None


class KeyStore(NamedTuple):
    """The entries of a key store or trust store, in the order of its file."""

    entries: tuple[StoreEntry, ...]

    @property
    def key_entry(self) -> StoreEntry | None:
        """The first entry with a private key, which is the one that is used."""
        return next((each for each in self.entries if each.private_key is not None), None)

    @property
    def certificates(self) -> list[bytes]:
        """The first certificate of each entry, in DER; in a trust store, these are the trusted certificates."""
        return [entry.chain[0] for entry in self.entries if entry.chain]


def certificates_pem(certificates: list[bytes] | tuple[bytes, ...]) -> bytes:
    """Returns DER-encoded certificates as one PEM text."""
    return b"".join(encode_block(CERTIFICATE, each) for each in certificates)
