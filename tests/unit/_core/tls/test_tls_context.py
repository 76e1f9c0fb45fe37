"""Contexts: keys, certificates, protocols and ciphers are checked when a context is made."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kafkapy._core.tls.tls_context import CLIENT_AUTH_REQUIRED, TlsContext, TlsError, openssl_version
from tests.harness.certificates import CertificateAuthority, Identity, openssl

GARBAGE = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    return CertificateAuthority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def identity(authority: CertificateAuthority) -> Identity:
    return authority.issue("broker")


def server(identity: Identity, **options: object) -> TlsContext:
    arguments = {"certificate_chain_pem": identity.chain_pem, "private_key_pem": identity.key_pem, "is_server": True}
    return TlsContext(**(arguments | options))  # type: ignore[arg-type]


def test_the_library_is_found() -> None:
    assert openssl_version().startswith("OpenSSL ")


def test_a_context_reports_its_side(identity: Identity, authority: CertificateAuthority) -> None:
    context = server(identity, client_auth=CLIENT_AUTH_REQUIRED, trusted_pem=authority.certificate_pem)
    assert (context.is_server, context.client_auth) == (True, CLIENT_AUTH_REQUIRED)
    assert not TlsContext(is_server=False, trusted_pem=authority.certificate_pem).is_server


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"certificate_chain_pem": None}, "a certificate and its private key are needed together"),
        ({"private_key_pem": None}, "a certificate and its private key are needed together"),
        ({"certificate_chain_pem": None, "private_key_pem": None}, "a server needs a certificate and its private key"),
        ({"certificate_chain_pem": b"nothing"}, "the certificate chain contains no certificate"),
        ({"certificate_chain_pem": GARBAGE}, "a certificate cannot be read"),
        ({"private_key_pem": b"nothing"}, "contains no private key"),
        ({"private_key_pem": b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"}, "cannot be read"),
        ({"client_auth": 1, "trusted_pem": b""}, "the trusted certificates contain no certificate"),
        ({"client_auth": 1, "trusted_pem": GARBAGE}, "a certificate cannot be read"),
        ({"protocols": ()}, "no protocol is enabled"),
        ({"protocols": ("TLSv1.2", "TLSv1.1")}, "TLSv1.1 is insecure"),
        ({"protocols": ("TLSv1.4",)}, "unknown protocol TLSv1.4; accepted are TLSv1.2, TLSv1.3"),
        ({"ciphers": ("TLS_RSA_WITH_NOTHING",)}, "unknown cipher suite TLS_RSA_WITH_NOTHING"),
        ({"ciphers": ("TLS_ÜNKNOWN",)}, "unknown cipher suite TLS_ÜNKNOWN"),
        ({"ciphers": ("TLS_AES_128_GCM_SHA256",), "protocols": ("TLSv1.2",)}, "belongs to an enabled protocol"),
    ],
)
def test_what_cannot_be_used_is_refused_with_the_reason(
    identity: Identity, options: dict[str, object], reason: str
) -> None:
    with pytest.raises(TlsError, match=reason):
        server(identity, **options)


def test_a_key_of_another_certificate_is_refused(identity: Identity, authority: CertificateAuthority) -> None:
    for key_type in ("ec", "rsa2048"):
        other = authority.issue(f"other-{key_type}", key_type=key_type)
        with pytest.raises(TlsError, match="the private key does not belong to the certificate"):
            server(identity, private_key_pem=other.key_pem)


def test_revocation_lists_have_to_be_readable(identity: Identity, authority: CertificateAuthority) -> None:
    trusted = {"client_auth": 1, "trusted_pem": authority.certificate_pem}
    with pytest.raises(TlsError, match="the PEM of revocation lists contains none"):
        server(identity, crl_pem=b"", **trusted)
    with pytest.raises(TlsError, match="a certificate revocation list cannot be read"):
        server(identity, crl_pem=GARBAGE.replace(b"CERTIFICATE", b"X509 CRL"), **trusted)


def test_an_encrypted_key_needs_its_password(identity: Identity, tmp_path: Path) -> None:
    encrypted = tmp_path / "encrypted.key"
    openssl("pkcs8", "-topk8", "-in", identity.key_file, "-out", encrypted, "-passout", "pass:opensesame")
    key = encrypted.read_bytes()
    assert b"ENCRYPTED" in key
    server(identity, private_key_pem=key, key_password=b"opensesame")
    for password, reason in ((b"abracadabra", "its password is wrong"), (None, "its password is missing")):
        with pytest.raises(TlsError, match=reason) as caught:
            server(identity, private_key_pem=key, key_password=password)
        assert "abracadabra" not in str(caught.value)


def test_a_password_longer_than_openssl_accepts_is_wrong(identity: Identity, tmp_path: Path) -> None:
    encrypted = tmp_path / "encrypted.key"
    openssl("pkcs8", "-topk8", "-in", identity.key_file, "-out", encrypted, "-passout", "pass:opensesame")
    with pytest.raises(TlsError, match="its password is wrong"):
        server(identity, private_key_pem=encrypted.read_bytes(), key_password=b"x" * 5000)


def test_java_names_of_ciphers_are_accepted(identity: Identity) -> None:
    names = ("TLS_AES_256_GCM_SHA384", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "SSL_RSA_WITH_AES_128_GCM_SHA256")
    server(identity, ciphers=(*names[:2], "TLS_EMPTY_RENEGOTIATION_INFO_SCSV"))
    with pytest.raises(TlsError, match="unknown cipher suite SSL_RSA_WITH_NOTHING"):
        server(identity, ciphers=("SSL_RSA_WITH_NOTHING",))


def test_a_context_is_made_once(identity: Identity) -> None:
    context = server(identity)
    with pytest.raises(RuntimeError, match="already initialized"):
        context.__init__(is_server=False, trusted_pem=identity.chain_pem)  # type: ignore[misc]


def test_errors_and_texts_contain_no_key(identity: Identity) -> None:
    secret = identity.key_pem.splitlines()[1].decode()
    with pytest.raises(TlsError) as caught:
        server(identity, private_key_pem=identity.key_pem.replace(b"BEGIN PRIVATE", b"BEGIN SECRET"))
    assert secret not in str(caught.value)
    assert secret not in repr(server(identity))


def test_the_library_is_not_loaded_before_it_is_needed() -> None:
    code = (
        "import kafkapy._core.reactor.reactor, kafkapy._core.tls.tls_context\n"
        "assert 'libssl' not in open('/proc/self/maps').read()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
