"""A scan of listeners shows that every protocol and cipher suite that they offer was configured, and no other."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from kafkapy.config.ssl_settings import StoreSettings
from kafkapy.security.tls.cipher_suites import choose_suites
from kafkapy.security.tls.native_context import make_tls_context
from kafkapy.security.tls.tls_material import load_material
from tests.certificates import settings
from tests.harness.certificates import CertificateAuthority, Identity
from tests.security.tls_scan import scan
from tests.tls_harness import running

PROTOCOLS = ("TLSv1.2", "TLSv1.3")
TLS_1_3 = {"TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256"}
KEYS = {"ec": "ECDSA", "rsa2048": "RSA"}


@pytest.fixture(scope="module")
def identities(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Identity]:
    folder: Path = tmp_path_factory.mktemp("authority")
    authority = CertificateAuthority(folder)
    return {key_type: authority.issue(key_type, key_type=key_type) for key_type in KEYS}


def offered(identity: Identity, protocols: tuple[str, ...], suites: tuple[str, ...] = ()) -> dict[str, set[str]]:
    """Returns what a listener with this configuration offers, found by a scan."""
    store = StoreSettings("PEM", None, None, identity.chain_pem.decode(), identity.key_pem.decode())
    material = load_material(settings(store, protocols=protocols, suites=suites), is_server=True)
    with running(make_tls_context(material, is_server=True)) as harness:

        def connect() -> socket.socket:
            client = harness.connect_plain()
            client.settimeout(60)
            return client

        return scan(connect)


@pytest.mark.parametrize("protocols", [PROTOCOLS, ("TLSv1.2",), ("TLSv1.3",)], ids="+".join)
@pytest.mark.parametrize("key_type", list(KEYS))
def test_only_enabled_protocols_are_offered_with_strong_suites(
    identities: dict[str, Identity], key_type: str, protocols: tuple[str, ...]
) -> None:
    found = offered(identities[key_type], protocols)
    assert set(found) == set(protocols)
    if "TLSv1.3" in protocols:
        assert found["TLSv1.3"] == TLS_1_3
    for name in found.get("TLSv1.2", ()):
        assert name.startswith(("ECDHE-", "DHE-")), name  # forward secrecy
        assert KEYS[key_type] in name
        assert "NULL" not in name and "anon" not in name


def test_protocols_whose_weaknesses_are_public_are_never_offered(identities: dict[str, Identity]) -> None:
    found = offered(identities["rsa2048"], ("SSLv3", "TLSv1", "TLSv1.1", "TLSv1.2"))
    assert set(found) == {"TLSv1.2"}
    assert not any(name.startswith("AES") for name in found["TLSv1.2"]), "no forward secrecy"


CONFIGURED = {
    "both protocols": ("ec", ("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384")),
    "TLS 1.3 only": ("ec", ("TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_CCM_SHA256")),
    "TLS 1.2 only": ("rsa2048", ("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",)),
    "weak": ("rsa2048", ("TLS_RSA_WITH_AES_128_CBC_SHA", "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384")),
    "finite fields": ("rsa2048", ("TLS_DHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_AES_128_GCM_SHA256")),
    "with a signal": ("ec", ("TLS_EMPTY_RENEGOTIATION_INFO_SCSV", "TLS_ECDHE_ECDSA_WITH_AES_256_CCM")),
}


@pytest.mark.parametrize("name", CONFIGURED)
def test_exactly_the_configured_suites_are_offered(identities: dict[str, Identity], name: str) -> None:
    key_type, suites = CONFIGURED[name]
    expected = choose_suites(PROTOCOLS, suites)
    found = offered(identities[key_type], PROTOCOLS, suites)
    assert found.get("TLSv1.2", set()) == set(expected.tls_1_2)
    assert found.get("TLSv1.3", set()) == set(expected.tls_1_3)
    assert set(found) == set(expected.protocols)


def test_a_suite_for_another_kind_of_key_is_not_offered(identities: dict[str, Identity]) -> None:
    suites = ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256")
    assert offered(identities["ec"], PROTOCOLS, suites) == {"TLSv1.2": {"ECDHE-ECDSA-AES128-GCM-SHA256"}}
