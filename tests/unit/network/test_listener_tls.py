"""The TLS of a listener: its stores at the start, and later changes of them."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import pytest

from kafkapy.config import BrokerConfig
from kafkapy.errors import ConfigError
from kafkapy.network.listener_tls import TlsListeners
from kafkapy.security.principal import ANONYMOUS, Principal
from kafkapy.security.tls.authority import CLIENT_AUTH, SERVER_AUTH, CertificateAuthority
from kafkapy.security.tls.engine_factory import TlsIdentity
from kafkapy.security.tls.pem import parse_blocks
from tests.certificates import SERVER_NAME, authority, client_certificate, server_certificate

LOCATION = "listener.name.ssl.ssl.keystore.location"


@pytest.fixture
def properties(tmp_path: Path) -> dict[str, str]:
    issued = server_certificate()
    (tmp_path / "server.pem").write_bytes(issued.private_key + issued.certificate)
    (tmp_path / "ca.crt").write_bytes(authority().certificate)
    return {
        "node.id": "1",
        "listeners": "PLAINTEXT://localhost:0,SSL://localhost:0",
        "ssl.keystore.type": "PEM",
        LOCATION: str(tmp_path / "server.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(tmp_path / "ca.crt"),
        "ssl.client.auth": "requested",
    }


def listener(properties: dict[str, str]):
    found = TlsListeners(BrokerConfig(properties)).of("SSL")
    assert found is not None
    return found


def der(pem: bytes) -> bytes:
    return parse_blocks(pem.decode())[0].content


def test_only_listeners_with_tls_have_stores(properties: dict[str, str]):
    listeners = TlsListeners(BrokerConfig(properties))
    assert listeners.of("PLAINTEXT") is None
    assert listeners.of("SSL") is not None


def test_the_principal_is_the_subject_or_anonymous(properties: dict[str, str]):
    tls = listener(properties)
    assert tls.principal(None) == ANONYMOUS
    assert tls.principal(der(client_certificate().certificate)) == Principal("User", "CN=alice,OU=clients,O=Test")


def test_rules_of_the_listener_come_first(properties: dict[str, str]):
    rules = {
        "ssl.principal.mapping.rules": "DEFAULT",
        "listener.name.ssl.ssl.principal.mapping.rules": "RULE:^CN=(.*?),.*$/$1/",
    }
    tls = listener({**properties, **rules})
    assert tls.principal(der(client_certificate().certificate)).name == "alice"
    with pytest.raises(ConfigError, match=r"listener\.name\.ssl\.ssl\.principal\.mapping\.rules"):
        listener({**properties, "listener.name.ssl.ssl.principal.mapping.rules": "nonsense"})


def test_brokers_must_be_able_to_trust_each_other(properties: dict[str, str], tmp_path: Path):
    listener({**properties, "inter.broker.listener.name": "SSL"})
    (tmp_path / "ca.crt").write_bytes(CertificateAuthority((("CN", "Other"),), 3).certificate)
    listener(properties)
    with pytest.raises(ConfigError, match="the key store cannot be verified by the trust store"):
        listener({**properties, "inter.broker.listener.name": "SSL"})


def test_stores_are_read_again_when_their_files_change(properties: dict[str, str], tmp_path: Path):
    tls = listener(properties)
    first = tls.context
    tls.refresh()
    assert tls.context is first
    issued = authority().issue(SERVER_NAME, 3, hosts=("localhost", "127.0.0.1"), usages=(SERVER_AUTH, CLIENT_AUTH))
    (tmp_path / "server.pem").write_bytes(issued.private_key + issued.certificate + b"\n")
    tls.refresh()
    assert tls.context is not first


def test_files_with_the_certificate_of_another_name_are_not_used(
    properties: dict[str, str], tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    """A change of other keys, or SIGHUP, causes the stores to be read; no request has been checked then."""
    strict, lenient = listener(properties), listener({**properties, "ssl.allow.dn.changes": "true"})
    contexts = strict.context, lenient.context
    issued = authority().issue((("CN", "other"),), 3, hosts=("localhost", "127.0.0.1"), usages=(SERVER_AUTH,))
    (tmp_path / "server.pem").write_bytes(issued.private_key + issued.certificate)
    with caplog.at_level(logging.ERROR):
        strict.refresh()
        assert "The stores of listener SSL are not changed: Keystore DistinguishedName does not match" in caplog.text
        caplog.clear()
        lenient.refresh()
        assert "DistinguishedName" not in caplog.text
    assert strict.context is contexts[0]


def test_files_that_other_brokers_would_not_trust_are_not_used(
    properties: dict[str, str], tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    tls = listener({**properties, "inter.broker.listener.name": "SSL"})
    first = tls.context
    (tmp_path / "ca.crt").write_bytes(CertificateAuthority((("CN", "Other"),), 3).certificate)
    with caplog.at_level(logging.ERROR):
        tls.refresh()
    assert tls.context is first
    assert "the key store cannot be verified by the trust store" in caplog.text


def test_stores_that_cannot_be_read_leave_the_present_ones(
    properties: dict[str, str], tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    tls = listener(properties)
    first = tls.context
    (tmp_path / "server.pem").write_bytes(b"damaged")
    with caplog.at_level(logging.ERROR):
        tls.refresh()
    assert tls.context is first
    assert "there is no private key in PEM" in caplog.text


class VaultFactory:
    """A source of keys for `ssl.engine.factory.class`, whose methods fail while `failing` is one of their names."""

    failing = ""

    def __init__(self, configs: object) -> None:
        pass

    def _check(self, name: str) -> None:
        if self.failing == name:
            raise TimeoutError("the vault does not answer")

    def identity(self) -> TlsIdentity:
        self._check("identity")
        return TlsIdentity(server_certificate().certificate, server_certificate().private_key)

    def trusted_certificates(self) -> bytes:
        return authority().certificate

    def should_be_rebuilt(self, next_configs: object) -> bool:
        self._check("should_be_rebuilt")
        return True


@pytest.mark.parametrize("failing", ["identity", "should_be_rebuilt"])
def test_a_failing_class_of_keys_leaves_the_present_ones(
    properties: dict[str, str], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, failing: str
):
    sys.modules.setdefault(VaultFactory.__module__, sys.modules[__name__])
    tls = listener({**properties, "ssl.engine.factory.class": f"{VaultFactory.__module__}:VaultFactory"})
    first = tls.context
    monkeypatch.setattr(VaultFactory, "failing", failing)
    with caplog.at_level(logging.ERROR):
        tls.refresh()
    assert tls.context is first
    assert "TimeoutError: the vault does not answer" in caplog.text
    with pytest.raises(ConfigError, match="the vault does not answer"):
        tls.check({})


def test_dynamic_keys_take_precedence(properties: dict[str, str], tmp_path: Path):
    config = BrokerConfig({**properties, LOCATION: "", "ssl.keystore.location": str(tmp_path / "server.pem")})
    config.apply_dynamic({}, {LOCATION: "/nowhere"})
    with pytest.raises(ConfigError, match=rf"{LOCATION}=/nowhere: the file cannot be read"):
        TlsListeners(config)


def test_a_sasl_ssl_listener_asks_for_certificates_with_its_prefix_only(
    properties: dict[str, str], caplog: pytest.LogCaptureFixture
):
    sasl = {**properties, "listeners": "SASL_SSL://localhost:0", "ssl.keystore.location": properties[LOCATION]}
    with caplog.at_level(logging.WARNING):
        TlsListeners(BrokerConfig(sasl))
    assert "ssl.client.auth has no effect on the SASL_SSL listener SASL_SSL" in caplog.text
    caplog.clear()
    TlsListeners(BrokerConfig({**sasl, "listener.name.sasl_ssl.ssl.client.auth": "required"}))
    assert "has no effect" not in caplog.text


def test_each_context_is_shared(properties: dict[str, str], tmp_path: Path):
    tls = listener(properties)
    shared: list[object] = []
    tls.share(shared.append)
    assert shared == [tls.context]
    issued = authority().issue(SERVER_NAME, 3, hosts=("localhost", "127.0.0.1"), usages=(SERVER_AUTH, CLIENT_AUTH))
    (tmp_path / "server.pem").write_bytes(issued.private_key + issued.certificate + b"\n")
    tls.refresh()
    assert len(shared) == 2
    assert shared[1] is tls.context
