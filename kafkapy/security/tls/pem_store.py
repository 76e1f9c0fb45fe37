"""Key stores and trust stores in PEM (KIP-651)."""

from __future__ import annotations

from kafkapy.security.tls.der import DerError, DerReader
from kafkapy.security.tls.key_store import KeyStore, PrivateKey, StoreEntry, StoreError
from kafkapy.security.tls.pem import (
    CERTIFICATE_LABELS,
    ENCRYPTED_PRIVATE_KEY,
    PRIVATE_KEY,
    PemBlock,
    PemError,
    encode_block,
    parse_blocks,
)

# The alias that Apache Kafka gives the entry of a key store in PEM.
KEY_ALIAS = "kafka"
_KEY_SUFFIX = PRIVATE_KEY


def read_pem_key_store(key_text: str, certificate_text: str, key_password: str | None) -> KeyStore:
    """Returns the key store of one private key in `key_text` and its certificate chain in `certificate_text`.

    Both arguments may be the text of one file that has the key and the certificates. Raises StoreError.
    """
    keys = [block for block in _blocks(key_text) if block.label.endswith(_KEY_SUFFIX)]
    if not keys:
        problem = "no private key in PEM"
        if "Proc-Type:" in key_text:
            problem = "no private key in PKCS #8; convert it by `openssl pkcs8 -topk8 -in KEY -out NEW`"
        raise StoreError(f"there is {problem}")
    if len(keys) > 1:
        raise StoreError(f"there are {len(keys)} private keys; expected is one")
    if keys[0].label not in (PRIVATE_KEY, ENCRYPTED_PRIVATE_KEY):
        raise StoreError(
            f"the private key is an {keys[0].label}, not PKCS #8; convert it by `openssl pkcs8 -topk8 -in KEY -out NEW`"
        )
    is_encrypted = keys[0].label == ENCRYPTED_PRIVATE_KEY
    if is_encrypted and key_password is None:
        raise StoreError("the private key is encrypted; set ssl.key.password")
    key = PrivateKey(encode_block(*keys[0]), key_password if is_encrypted else None)
    return KeyStore((StoreEntry(KEY_ALIAS, tuple(_certificates(certificate_text)), key),))


def read_pem_trust_store(text: str) -> KeyStore:
    """Returns the trust store of all certificates in the text. Raises StoreError."""
    certificates = _certificates(text)
    return KeyStore(tuple(StoreEntry(f"{KEY_ALIAS}{index}", (each,)) for index, each in enumerate(certificates)))


def _blocks(text: str) -> list[PemBlock]:
    try:
        return parse_blocks(text)
    except PemError as error:
        raise StoreError(str(error)) from error


def _certificates(text: str) -> list[bytes]:
    certificates: list[bytes] = []
    for block in _blocks(text):
        if block.label in CERTIFICATE_LABELS:
            try:
                # A TRUSTED CERTIFICATE of OpenSSL has more data after the certificate.
                certificates.append(DerReader(block.content).element())
            except DerError as error:
                raise StoreError(f"a certificate is damaged: {error}") from error
    if not certificates:
        raise StoreError("there is no certificate in PEM")
    return certificates
