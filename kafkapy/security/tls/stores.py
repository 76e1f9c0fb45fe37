"""Loads the key store and the trust store that settings name, in any supported format.

As in Java since version 9, a store with the type JKS or PKCS12 may have either of these two formats. The content of the
file determines which one is read.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from kafkapy.config.ssl_settings import CRL_KEY, PEM_TYPE, SslSettings, StoreSettings
from kafkapy.errors import ConfigError
from kafkapy.named_tuple import NamedTuple
from kafkapy.security.tls.jks_store import JCEKS_MAGIC, JKS_MAGIC, read_jks
from kafkapy.security.tls.key_store import KeyStore, StoreError
from kafkapy.security.tls.pem_store import read_pem_key_store, read_pem_trust_store
from kafkapy.security.tls.pkcs12_store import read_pkcs12

_BINARY_TYPES = ("JKS", "PKCS12")
_MAXIMUM_BYTES = 16 << 20


class FileState(NamedTuple):
    """The modification time and the size of a file, by which a change of the file is recognized."""

    location: str
    modified_ns: int
    size: int


def load_key_store(settings: SslSettings) -> KeyStore | None:
    """Returns the key store, or None if the settings name none. Raises ConfigError, which names the key to correct."""
    store, prefix = settings.key_store, settings.prefix
    is_pem = store.type.upper() == PEM_TYPE
    if store.key is not None or store.content is not None:
        _check_inline_key_store(store, prefix)
        return _parsed(prefix, "ssl.keystore.key", lambda: _pem_key_store(store, store.key or "", store.content or ""))
    if store.location is None:
        if store.password is not None:
            raise ConfigError(
                f"{prefix}ssl.keystore.password is set, but no key store; set {prefix}ssl.keystore.location"
            )
        return None
    if is_pem:
        _refuse_password_of_pem(store, prefix, "keystore")
        text = _text(_read(store.location, prefix, "ssl.keystore.location"))
        where = f"ssl.keystore.location={store.location}"
        return _parsed(prefix, where, lambda: _pem_key_store(store, text, text))
    if store.password is None:
        raise ConfigError(
            f"{prefix}ssl.keystore.location is set, but not the password of the key store; set "
            f"{prefix}ssl.keystore.password"
        )
    return _binary_store(store, prefix, "keystore", store.key_password or store.password)


def load_trust_store(settings: SslSettings) -> KeyStore | None:
    """Returns the trust store, or None if the settings name none, so that the machine's authorities are trusted.

    Raises ConfigError, which names the key to correct.
    """
    store, prefix = settings.trust_store, settings.prefix
    is_pem = store.type.upper() == PEM_TYPE
    if store.content is not None:
        key = f"{prefix}ssl.truststore.certificates"
        if not is_pem:
            raise ConfigError(f"{key} needs {prefix}ssl.truststore.type=PEM, not {store.type}")
        if store.location is not None:
            raise ConfigError(f"both {key} and {prefix}ssl.truststore.location are set; remove one of them")
        _refuse_password_of_pem(store, prefix, "truststore")
        content = store.content
        return _parsed(prefix, "ssl.truststore.certificates", lambda: read_pem_trust_store(content))
    if store.location is None:
        if store.password is not None:
            raise ConfigError(
                f"{prefix}ssl.truststore.password is set, but no trust store; set {prefix}ssl.truststore.location"
            )
        return None
    if is_pem:
        _refuse_password_of_pem(store, prefix, "truststore")
        text = _text(_read(store.location, prefix, "ssl.truststore.location"))
        return _parsed(prefix, f"ssl.truststore.location={store.location}", lambda: read_pem_trust_store(text))
    loaded = _binary_store(store, prefix, "truststore", None)
    if not loaded.entries:
        raise ConfigError(f"{prefix}ssl.truststore.location={store.location}: there is no certificate in the store")
    return loaded


def load_revocations(settings: SslSettings) -> bytes | None:
    """Returns the certificate revocation lists as PEM, or None if the settings name none.

    Raises ConfigError if the file cannot be read or contains no list in PEM.
    """
    if settings.crl_location is None:
        return None
    content = _read(settings.crl_location, settings.prefix, CRL_KEY)
    if b"-----BEGIN X509 CRL-----" not in content:
        raise ConfigError(
            f"{settings.prefix}{CRL_KEY}={settings.crl_location}: there is no X509 CRL in PEM in the file"
        )
    return content


def file_states(settings: SslSettings) -> tuple[FileState, ...]:
    """Returns the states of the files that the settings name; a missing file has the size -1."""
    locations = (settings.key_store.location, settings.trust_store.location, settings.crl_location)
    return tuple(_file_state(location) for location in locations if location is not None)


def _file_state(location: str) -> FileState:
    try:
        state = os.stat(location)
    except OSError:
        return FileState(location, 0, -1)
    return FileState(location, state.st_mtime_ns, state.st_size)


def _check_inline_key_store(store: StoreSettings, prefix: str) -> None:
    key, chain = f"{prefix}ssl.keystore.key", f"{prefix}ssl.keystore.certificate.chain"
    if store.key is None or store.content is None:
        given, missing = (chain, key) if store.key is None else (key, chain)
        raise ConfigError(f"{given} is set, but not {missing}; both are needed")
    if store.type.upper() != PEM_TYPE:
        raise ConfigError(f"{key} needs {prefix}ssl.keystore.type=PEM, not {store.type}")
    if store.location is not None:
        raise ConfigError(f"both {key} and {prefix}ssl.keystore.location are set; remove one of them")
    _refuse_password_of_pem(store, prefix, "keystore")


def _refuse_password_of_pem(store: StoreSettings, prefix: str, kind: str) -> None:
    if store.password is not None:
        advice = f"; {prefix}ssl.key.password opens an encrypted key" if kind == "keystore" else ""
        raise ConfigError(f"{prefix}ssl.{kind}.password cannot be set with {prefix}ssl.{kind}.type=PEM{advice}")


def _pem_key_store(store: StoreSettings, key_text: str, certificate_text: str) -> KeyStore:
    return read_pem_key_store(key_text, certificate_text, store.key_password)


def _binary_store(store: StoreSettings, prefix: str, kind: str, key_password: str | None) -> KeyStore:
    if store.type.upper() not in _BINARY_TYPES:
        raise ConfigError(
            f"Invalid value {store.type} for configuration {prefix}ssl.{kind}.type: known are JKS, PKCS12 and PEM"
        )
    location = store.location or ""
    data = _read(location, prefix, f"ssl.{kind}.location")
    return _parsed(prefix, f"ssl.{kind}.location={location}", lambda: read_store(data, store.password, key_password))


def read_store(data: bytes, store_password: str | None, key_password: str | None) -> KeyStore:
    """Returns the entries of a JKS or PKCS #12 file with the content `data`.

    If `store_password` is None, the integrity is not checked. `key_password` decrypts the private keys; if it is None,
    the private keys are left out. Raises StoreError.
    """
    if data[:4] == JKS_MAGIC:
        return read_jks(data, store_password, key_password)
    if data[:4] == JCEKS_MAGIC:
        raise StoreError("the format JCEKS is not supported; convert it by `keytool -importkeystore`")
    if data.lstrip()[:11] == b"-----BEGIN ":
        raise StoreError("the file is PEM; set the type of the store to PEM, and no password of the store")
    if data[:1] != b"\x30":
        raise StoreError("the file is neither JKS nor PKCS #12")
    return read_pkcs12(data, store_password, key_password)


def _parsed(prefix: str, where: str, parse: Callable[[], KeyStore]) -> KeyStore:
    try:
        return parse()
    except StoreError as error:
        raise ConfigError(f"{prefix}{where}: {error}") from error


def _read(location: str, prefix: str, key: str) -> bytes:
    try:
        with open(location, "rb") as file:
            data = file.read(_MAXIMUM_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{prefix}{key}={location}: the file cannot be read ({error.strerror})") from error
    if len(data) > _MAXIMUM_BYTES:
        raise ConfigError(f"{prefix}{key}={location}: the file has more than {_MAXIMUM_BYTES >> 20} MiB")
    return data


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
