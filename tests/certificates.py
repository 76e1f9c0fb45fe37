"""Certificates for tests: an authority, a server on loopback, clients, and their stores in every format."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

from kafkapy.config.ssl_settings import SslSettings, StoreSettings
from kafkapy.security.tls.authority import CLIENT_AUTH, SERVER_AUTH, CertificateAuthority, IssuedCertificate

PASSWORD = "store-password"
SERVER_NAME = (("O", "Test"), ("OU", "brokers"), ("CN", "localhost"))
CLIENT_NAME = (("O", "Test"), ("OU", "clients"), ("CN", "alice"))
NO_STORE = StoreSettings("JKS", None, None, None)


@cache
def authority() -> CertificateAuthority:
    """Returns the authority that all tests of a process share."""
    return CertificateAuthority((("CN", "Test CA"),), 60)


@cache
def server_certificate() -> IssuedCertificate:
    return authority().issue(SERVER_NAME, 30, hosts=("localhost", "127.0.0.1"), usages=(SERVER_AUTH, CLIENT_AUTH))


@cache
def client_certificate() -> IssuedCertificate:
    return authority().issue(CLIENT_NAME, 30)


def pem_key_store(issued: IssuedCertificate) -> StoreSettings:
    """Returns the settings of a key store that the configuration contains as PEM text, without a file."""
    return StoreSettings("PEM", None, None, issued.certificate.decode(), issued.private_key.decode())


def pem_trust_store(certificates: bytes) -> StoreSettings:
    return StoreSettings("PEM", None, None, certificates.decode())


def settings(
    key_store: StoreSettings = NO_STORE,
    trust_store: StoreSettings = NO_STORE,
    *,
    client_auth: str = "none",
    protocols: tuple[str, ...] = ("TLSv1.2", "TLSv1.3"),
    suites: tuple[str, ...] = (),
    algorithm: str = "https",
    factory: str | None = None,
    crl: str | None = None,
    prefix: str = "",
) -> SslSettings:
    return SslSettings(prefix, key_store, trust_store, client_auth, protocols, suites, algorithm, factory, crl)


def openssl(*arguments: str, folder: Path) -> str:
    """Runs the program openssl in `folder` and returns its output."""
    done = subprocess.run(["openssl", *arguments], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def write_pem(folder: Path, issued: IssuedCertificate, name: str) -> tuple[Path, Path]:
    """Writes a certificate and its key, and returns their paths."""
    certificate, key = folder / f"{name}.crt", folder / f"{name}.key"
    certificate.write_bytes(issued.certificate)
    key.write_bytes(issued.private_key)
    return certificate, key


def write_pkcs12(folder: Path, issued: IssuedCertificate, name: str, *options: str, password: str = PASSWORD) -> Path:
    """Writes a PKCS #12 key store with the authority's certificate by the program openssl, and returns its path."""
    certificate, key = write_pem(folder, issued, name)
    (folder / "ca.crt").write_bytes(authority().certificate)
    store = folder / f"{name}.p12"
    openssl(
        "pkcs12", "-export", "-in", certificate.name, "-inkey", key.name, "-certfile", "ca.crt", "-name", name,
        "-passout", f"pass:{password}", "-out", store.name, *options, folder=folder,
    )  # fmt: skip
    return store


def keytool(*arguments: str, folder: Path) -> str:
    """Runs Java's keytool in `folder` and returns its output."""
    done = subprocess.run(["keytool", *arguments], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
