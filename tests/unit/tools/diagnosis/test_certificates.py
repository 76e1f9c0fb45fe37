"""The doctor's checks of TLS."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from kafkapy.config import BrokerConfig
from kafkapy.security.tls.authority import SERVER_AUTH
from kafkapy.tools.diagnosis.certificates import check_certificates
from tests.certificates import SERVER_NAME, authority
from tests.diagnosis_machine import complaints
from tests.harness.certificates import CertificateAuthority

DAY_S = 86_400


@pytest.fixture
def properties(tmp_path: Path) -> dict[str, str]:
    issued = authority().issue(SERVER_NAME, 50, usages=(SERVER_AUTH,))
    store = tmp_path / "server.pem"
    store.touch(0o600)
    store.write_bytes(issued.private_key + issued.certificate)
    (tmp_path / "ca.crt").write_bytes(authority().certificate)
    return {
        "node.id": "1",
        "listeners": "SSL://localhost:9093",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(store),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(tmp_path / "ca.crt"),
        "inter.broker.listener.name": "SSL",
    }


def found_in(properties: dict[str, str], days: float = 0, **changes: str) -> list[tuple[str, str]]:
    """Returns the findings `days` after now; the certificate is valid for 50 days."""
    changed = {name.replace("_", "."): value for name, value in changes.items()}
    config = BrokerConfig({**properties, **changed})
    return complaints(check_certificates(config, time.time() + days * DAY_S))


def test_a_plaintext_broker_has_no_findings():
    assert list(check_certificates(BrokerConfig({"node.id": "1"}))) == []


def test_certificates_that_expire_soon_are_reported(properties: dict[str, str]):
    assert found_in(properties) == []
    (own,) = found_in(properties, days=24.5)
    assert own[0] == "warning"
    assert "certificate CN=localhost,OU=brokers,O=Test (alias kafka) expires in 25 days, on " in own[1]
    trusted = found_in(properties, days=35)[1]
    assert trusted[0] == "warning"
    assert "trusted certificate CN=Test CA (alias kafka0) expires in " in trusted[1]


def test_an_expired_certificate_is_a_problem(properties: dict[str, str]):
    found = found_in(properties, days=51)[0]
    assert (found[0], " expired on " in found[1]) == ("problem", True)


def test_a_store_that_cannot_be_read_is_a_problem(properties: dict[str, str]):
    ((level, text),) = found_in(properties, ssl_keystore_location="/nowhere")
    assert (level, text) == (
        "problem", "listener SSL: listener.name.ssl.ssl.keystore.location=/nowhere: the file cannot be read "
        "(No such file or directory)",
    )  # fmt: skip


def test_weak_protocols_and_suites_are_reported(properties: dict[str, str]):
    found = found_in(
        properties, ssl_enabled_protocols="TLSv1.2,TLSv1.1", ssl_cipher_suites="TLS_RSA_WITH_AES_128_CBC_SHA"
    )
    texts = [text for _, text in found]
    assert "listener SSL: ssl.enabled.protocols has TLSv1.1, which are insecure and never offered" in texts
    assert any("TLS_RSA_WITH_AES_128_CBC_SHA" in text for text in texts)


def test_a_key_that_every_user_can_read_is_reported(properties: dict[str, str]):
    os.chmod(properties["ssl.keystore.location"], 0o644)
    assert any(
        "every user of the machine can read or replace the private key" in text for _, text in found_in(properties)
    )


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ({}, "every machine that can connect to the metrics listener can read the metrics"),
        (
            {"kafkapy.metrics.username": "u", "kafkapy.metrics.password": "p"},
            "the password of the metrics listener is readable on the network",
        ),
    ],
)
def test_an_open_metrics_listener_is_reported(keys: dict[str, str], text: str):
    config = BrokerConfig({"node.id": "1", "kafkapy.metrics.listener": "0.0.0.0:9404", **keys})
    assert [each for _, each in complaints(check_certificates(config))] == [text]


def test_revocation_lists_that_expire_are_reported(properties: dict[str, str], tmp_path: Path):
    """The list is valid for 30 days."""
    path = tmp_path / "revoked.pem"
    path.write_bytes(CertificateAuthority(tmp_path / "authority", "Other CA").revoke())
    with_list = {**properties, "kafkapy.ssl.crl.location": str(path)}
    assert found_in(with_list, days=1) == []
    named = f"listener SSL: the revocation list of CN=Other CA in {path}"
    level, text = found_in(with_list, days=29)[-1]
    assert (level, named in text, "then its clients are refused" in text) == ("warning", True, True)
    level, text = found_in(with_list, days=31)[-1]
    assert (level, named in text, "expired on" in text) == ("problem", True, True)
    level, text = found_in(with_list, days=-1)[-1]
    assert (level, named in text, "becomes valid on" in text) == ("problem", True, True)


def test_a_damaged_revocation_list_is_a_problem(properties: dict[str, str], tmp_path: Path):
    path = tmp_path / "revoked.pem"
    path.write_text("-----BEGIN X509 CRL-----\nMAA=\n-----END X509 CRL-----\n")
    (found,) = found_in({**properties, "kafkapy.ssl.crl.location": str(path)})
    assert found[0] == "problem"
    assert "cannot be read: it is not a certificate revocation list" in found[1]
