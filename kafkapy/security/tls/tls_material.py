"""Everything that a TLS context is made from, read from the stores and checked."""

from __future__ import annotations

import time

from kafkapy.config.ssl_settings import SslSettings
from kafkapy.errors import ConfigError
from kafkapy.named_tuple import NamedTuple
from kafkapy.security.tls.certificate import Certificate, date_text, parse_certificate
from kafkapy.security.tls.cipher_suites import CipherSuites, choose_suites
from kafkapy.security.tls.der import DerError
from kafkapy.security.tls.engine_factory import SslEngineFactory
from kafkapy.security.tls.key_store import KeyStore, PrivateKey, certificates_pem
from kafkapy.security.tls.pem_store import read_pem_key_store, read_pem_trust_store
from kafkapy.security.tls.stores import FileState, file_states, load_key_store, load_revocations, load_trust_store


class TlsMaterial(NamedTuple):
    """The stores of one listener or client, its protocols and suites, and the state of its files when they were read.

    Without a trust store the machine's authorities are trusted.
    """

    settings: SslSettings
    key_store: KeyStore | None
    trust_store: KeyStore | None
    revocations_pem: bytes | None
    suites: CipherSuites
    files: tuple[FileState, ...]

    @property
    def private_key(self) -> PrivateKey | None:
        entry = self.key_store.key_entry if self.key_store is not None else None
        return None if entry is None else entry.private_key

    @property
    def chain_pem(self) -> bytes | None:
        """The certificate of this listener or client, followed by its issuers, in PEM; None without a private key."""
        entry = self.key_store.key_entry if self.key_store is not None else None
        return None if entry is None else certificates_pem(entry.chain)

    @property
    def trusted_pem(self) -> bytes | None:
        return None if self.trust_store is None else certificates_pem(self.trust_store.certificates)

    @property
    def own_certificates(self) -> list[tuple[str, Certificate]]:
        """The alias and the leaf certificate of each entry of the key store that has a certificate, in order."""
        entries = () if self.key_store is None else self.key_store.entries
        return [(entry.alias, parse_certificate(entry.chain[0])) for entry in entries if entry.chain]

    @property
    def trusted_certificates(self) -> list[tuple[str, Certificate]]:
        entries = () if self.trust_store is None else self.trust_store.entries
        return [(entry.alias, parse_certificate(entry.chain[0])) for entry in entries if entry.chain]


def load_material(settings: SslSettings, *, is_server: bool) -> TlsMaterial:
    """Returns the material from the stores, or from the class of `ssl.engine.factory.class`.

    A server needs a key store. Raises ConfigError, which names the key to correct.
    """
    suites = choose_suites(settings.enabled_protocols, settings.cipher_suites, settings.prefix)
    files = file_states(settings)
    if settings.engine_factory_class:
        key_store, trust_store = _from_factory(settings)
    else:
        key_store, trust_store = load_key_store(settings), load_trust_store(settings)
    material = TlsMaterial(settings, key_store, trust_store, load_revocations(settings), suites, files)
    if key_store is not None and material.private_key is None:
        raise ConfigError(f"{_key_store_name(settings)}: there is no private key in the key store")
    if is_server and key_store is None:
        raise ConfigError(
            f"{settings.prefix}ssl.keystore.location is not set; a listener with TLS needs a private key and a "
            "certificate. `kafkapy security init` creates them"
        )
    try:
        _ = material.own_certificates, material.trusted_certificates
    except DerError as error:
        raise ConfigError(f"{settings.prefix}ssl.keystore or ssl.truststore: {error}") from error
    return material


def certificate_warnings(material: TlsMaterial, now_s: float | None = None) -> list[str]:
    """Returns a sentence for each own or trusted certificate that is not valid now, or at `now_s` (s since 1970)."""
    now = time.time() if now_s is None else now_s
    warnings: list[str] = []
    for what, certificates in (
        ("certificate", material.own_certificates),
        ("trusted certificate", material.trusted_certificates),
    ):
        for alias, certificate in certificates:
            if certificate.not_after_s < now:
                state = f"expired on {date_text(certificate.not_after_s)}"
            elif certificate.not_before_s > now:
                state = f"becomes valid on {date_text(certificate.not_before_s)}"
            else:
                continue
            consequence = (
                "connections with it fail" if what == "certificate" else "certificates issued by it are refused"
            )
            warnings.append(
                f"{material.settings.prefix or 'ssl'}: the {what} {certificate.subject_text} (alias {alias}) {state}; "
                f"{consequence}"
            )
    return warnings


def _key_store_name(settings: SslSettings) -> str:
    location = settings.key_store.location
    return f"{settings.prefix}ssl.keystore.location={location}" if location else f"{settings.prefix}ssl.keystore.key"


def _from_factory(settings: SslSettings) -> tuple[KeyStore | None, KeyStore | None]:
    factory = make_factory(settings)
    name = f"{settings.prefix}ssl.engine.factory.class={settings.engine_factory_class}"
    try:
        identity, trusted = factory.identity(), factory.trusted_certificates()
        key_store = trust_store = None
        if identity is not None:
            key_text, chain_text = identity.private_key.decode(), identity.certificate_chain.decode()
            key_store = read_pem_key_store(key_text, chain_text, identity.key_password)
        if trusted is not None:
            trust_store = read_pem_trust_store(trusted.decode())
    except ValueError as error:
        raise ConfigError(f"{name}: {error}") from error
    except Exception as error:  # the class may fail in any way
        raise ConfigError(f"{name}: {type(error).__name__}: {error}") from error
    return key_store, trust_store


def factory_has_changed(settings: SslSettings) -> bool:
    """Returns whether the class of `ssl.engine.factory.class` wants its keys and certificates to be requested again.
    Raises ConfigError if the class raises an exception."""
    factory = make_factory(settings)
    name = f"{settings.prefix}ssl.engine.factory.class={settings.engine_factory_class}"
    try:
        return bool(factory.should_be_rebuilt(settings.as_configs()))
    except Exception as error:  # the class may fail in any way
        raise ConfigError(f"{name}: {type(error).__name__}: {error}") from error


def make_factory(settings: SslSettings) -> SslEngineFactory:
    """Returns an instance of the class of `ssl.engine.factory.class`. Raises ConfigError if the class cannot be
    imported, or its constructor raises an exception."""
    from kafkapy.config.python_class import load_class

    name = settings.engine_factory_class or ""
    try:
        found = load_class(name)
    except ImportError as error:
        raise ConfigError(
            f"{settings.prefix}ssl.engine.factory.class={name}: not a Python class that can be imported ({error}), and "
            "kafkapy cannot run Java classes"
        ) from None
    try:
        factory: SslEngineFactory = found(settings.as_configs())
    except Exception as error:  # the class may fail in any way
        raise ConfigError(
            f"{settings.prefix}ssl.engine.factory.class={name}: {type(error).__name__}: {error}"
        ) from error
    return factory
