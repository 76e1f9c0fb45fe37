"""Secrets in every place of a configuration: no log, metric, error, description or `repr` shows one of them."""

from __future__ import annotations

import io
import logging
import urllib.request
from base64 import b64encode
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any

import pytest

from kafkapy.client import Producer
from kafkapy.client.admin import (
    Admin,
    ConfigChange,
    ConfigResource,
    NewScramCredential,
    NewTopic,
    ResourceType,
    ScramMechanism,
)
from kafkapy.config import BrokerConfig
from kafkapy.config.listener_ssl import listener_ssl_settings
from kafkapy.errors import ApiError, ConfigError
from kafkapy.security.sasl.scram_client import ScramClient
from kafkapy.security.tls.tls_material import load_material
from kafkapy.security_command import main as security
from kafkapy.tools.doctor import main as doctor
from tests.broker_process import BrokerProcess
from tests.certificates import authority, client_certificate, server_certificate, write_pkcs12
from tests.ports import free_ports
from tests.sasl_client import SaslConnection, plain_token
from tests.security.planted_secrets import PlantedSecrets, representations
from tests.token_provider import TokenProvider

pytestmark = pytest.mark.timeout(180)
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
MECHANISM = ScramMechanism.SCRAM_SHA_256


class PlantedBroker:
    """A broker whose secrets are all planted: stores, JAAS texts, the key of tokens, the password of the metrics."""

    def __init__(self, directory: Path, planted: PlantedSecrets) -> None:
        directory.mkdir(parents=True)
        self.planted = planted
        self.plain_port, self.sasl_port, self.tls_port, self.inline_port, self.metrics_port = free_ports(5)
        self.store_password = planted.new("password of the key store")
        self.passwords = {name: planted.new(f"password of {name}") for name in ("admin", "alice")}
        self.metrics_password = planted.new("password of the metrics")
        issued = server_certificate()
        planted.add_pem("private key", issued.private_key.decode())
        store = write_pkcs12(directory, issued, "server", password=self.store_password)
        trusted = directory / "ca.crt"
        trusted.write_bytes(authority().certificate)
        users = " ".join(f'user_{name}="{password}"' for name, password in self.passwords.items())
        plain = f'{PLAIN} username="admin" password="{self.passwords["admin"]}" {users};'
        ports = {"PLAINTEXT": self.plain_port, "SASL": self.sasl_port, "TLS": self.tls_port, "INLINE": self.inline_port}
        one_line = {name: pem.decode().replace("\n", "\\n") for name, pem in vars_of(issued).items()}
        self.process = BrokerProcess(
            directory / "kafkapy",
            {
                "listeners": ",".join(f"{name}://localhost:{port}" for name, port in ports.items()),
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT,TLS:SASL_SSL,INLINE:SSL",
                "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
                "listener.name.sasl.plain.sasl.jaas.config": plain,
                "listener.name.tls.plain.sasl.jaas.config": plain,
                "listener.name.tls.ssl.keystore.type": "PKCS12",
                "listener.name.tls.ssl.keystore.location": str(store),
                "listener.name.tls.ssl.keystore.password": self.store_password,
                "listener.name.tls.ssl.key.password": self.store_password,
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": str(trusted),
                "listener.name.inline.ssl.keystore.type": "PEM",
                "listener.name.inline.ssl.keystore.certificate.chain": one_line["certificate"],
                "listener.name.inline.ssl.keystore.key": one_line["private_key"],
                "delegation.token.secret.key": planted.new("key of delegation tokens"),
                "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                "super.users": "User:ANONYMOUS;User:admin",
                "kafkapy.metrics.listener": f"127.0.0.1:{self.metrics_port}",
                "kafkapy.metrics.username": "prometheus",
                "kafkapy.metrics.password": self.metrics_password,
            },
            port=self.plain_port,
        )

    def admin(self) -> Admin:
        return Admin(bootstrap_servers=self.process.bootstrap)

    def metrics(self) -> str:
        token = b64encode(f"prometheus:{self.metrics_password}".encode()).decode()
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.metrics_port}/metrics", headers={"Authorization": f"Basic {token}"}
        )
        with urllib.request.urlopen(request, timeout=60) as page:
            return str(page.read().decode())


def vars_of(issued: Any) -> dict[str, bytes]:
    return {"certificate": issued.certificate, "private_key": issued.private_key}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlantedBroker]:
    broker = PlantedBroker(tmp_path_factory.mktemp("planted") / "files", PlantedSecrets())
    with broker.process:
        with broker.admin() as admin:
            log_everything(admin)
        yield broker


def log_everything(admin: Admin) -> None:
    """Sets every logger of the broker to TRACE."""
    loggers = ConfigResource(ResourceType.BROKER_LOGGER, "1")
    names = [entry.name for entry in admin.describe_configs([loggers])[loggers].values()]
    admin.incremental_alter_configs({loggers: [ConfigChange(name, "TRACE") for name in names]}).check()


def scram_login(broker: PlantedBroker, name: str, password: str, *, is_token: bool = False) -> list[Any]:
    """Authenticates by SCRAM and returns the responses."""
    exchange = ScramClient(MECHANISM, name, password, is_token=is_token)
    responses: list[Any] = []
    with SaslConnection(broker.sasl_port) as client:
        responses.append(client.handshake("SCRAM-SHA-256"))
        challenge = None
        while (message := exchange.step(challenge)) is not None:
            responses.append(client.authenticate(message))
            if responses[-1].error_code:
                break
            challenge = responses[-1].auth_bytes
        responses.append(client.metadata())
    return responses


def test_the_broker_shows_no_secret_while_clients_authenticate(broker: PlantedBroker) -> None:
    planted, texts = broker.planted, {}
    scram_password = planted.new("SCRAM password")
    with broker.admin() as admin:
        admin.alter_user_scram_credentials([NewScramCredential("bob", MECHANISM, scram_password)]).check()
    for name, password in (("alice", broker.passwords["alice"]), ("alice", planted.new("wrong password"))):
        for version in (0, 1, 2):
            with SaslConnection(broker.sasl_port) as client:
                texts[f"PLAIN {version}"] = repr([client.log_in(name, password, version), client.metadata()])
    with SaslConnection(broker.sasl_port) as client:
        client.handshake("PLAIN", version=0)
        client.raw_token(plain_token("alice", broker.passwords["alice"]))
    for name, password in (("bob", scram_password), ("bob", planted.new("wrong SCRAM password"))):
        texts[f"SCRAM {password}"] = repr(scram_login(broker, name, password))
    password = broker.passwords["alice"]
    login = {
        "bootstrap.servers": f"localhost:{broker.sasl_port}",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'{PLAIN} username="alice" password="{password}";',
    }
    with Admin(login) as admin:
        token = admin.create_delegation_token(renewers=["User:bob"])
        planted.add("HMAC of a token", token.hmac)
        admin.renew_delegation_token(token.hmac)
        texts["token"] = repr(token)
        texts["tokens"] = repr(admin.describe_delegation_tokens(["User:alice"]))
        texts["token login"] = repr(scram_login(broker, token.token_id, b64encode(token.hmac).decode(), is_token=True))
        admin.expire_delegation_token(token.hmac)
        with suppress(ApiError):
            admin.renew_delegation_token(token.hmac)
        texts["denied"] = repr(admin.create_topics([NewTopic("denied")]).errors)
    texts |= {"log": broker.process.log(), "metrics": broker.metrics()}
    assert "kafka.authorizer.logger" in texts["log"]
    assert "DEBUG" in texts["log"]
    planted.check(texts)


def test_descriptions_and_refused_changes_show_no_secret(broker: PlantedBroker) -> None:
    planted, texts = broker.planted, {}
    resource = ConfigResource(ResourceType.BROKER, "1")
    changes = {
        "listener.name.tls.ssl.keystore.password": planted.new("wrong password of a key store"),
        "listener.name.inline.ssl.keystore.key": "-----BEGIN PRIVATE KEY-----" + planted.new("broken key"),
        "listener.name.sasl.plain.sasl.jaas.config": f'{PLAIN} user_alice="{planted.new("new JAAS password")}";',
        "listener.name.sasl.scram-sha-256.sasl.jaas.config": f"{SCRAM} {planted.new('malformed JAAS')}",
        "ssl.truststore.password": planted.new("password of a trust store"),
        "delegation.token.secret.key": planted.new("another key of delegation tokens"),
    }
    with broker.admin() as admin:
        for key, value in changes.items():
            for validate_only in (True, False):
                try:
                    results = admin.incremental_alter_configs(
                        {resource: [ConfigChange(key, value)]}, validate_only=validate_only
                    )
                    texts[f"{key} {validate_only}"] = repr(results) + repr(results.errors)
                except ApiError as error:
                    texts[f"{key} {validate_only}"] = repr(error)
        for each in (resource, ConfigResource(ResourceType.BROKER, "")):
            described = admin.describe_configs([each], include_synonyms=True, include_documentation=True)
            texts[f"description {each.name}"] = repr(dict(described))
    texts |= {"log": broker.process.log(), "metrics": broker.metrics()}
    planted.check(texts)


def test_the_tools_show_no_secret(broker: PlantedBroker, tmp_path: Path) -> None:
    planted, output = broker.planted, io.StringIO()
    with redirect_stdout(output), redirect_stderr(output):
        doctor(["--config", str(broker.process.config)])
        doctor(["--config", str(broker.process.config), "--json"])
        doctor(["--config", str(broker.process.config), "--override", "ssl.keystore.password=" + planted.new("wrong")])
        assert security(["init", "--directory", str(tmp_path / "made"), "--port", "19093"]) == 0
        assert security(["init", "--directory", str(tmp_path / "made"), "--port", "19093"]) != 0
    made = (tmp_path / "made" / "client.properties").read_text()
    planted.add("password of security init", made.partition('password="')[2].partition('"')[0].encode())
    for name in ("ca.key", "server.pem", "client.pem"):
        planted.add_pem(name, (tmp_path / "made" / name).read_text().partition("-----BEGIN CERTIFICATE")[0])
    planted.check({"output": output.getvalue()})
    assert "certificates" in output.getvalue()


def test_no_object_of_a_client_or_a_configuration_shows_a_secret(
    broker: PlantedBroker, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    planted = broker.planted
    caplog.set_level(1)
    logging.getLogger("kafkapy").setLevel(1)
    store_password, client_secret = planted.new("password of the client's store"), planted.new("client secret")
    store = write_pkcs12(tmp_path, client_certificate(), "client", password=store_password)
    planted.add_pem("key of the client", client_certificate().private_key.decode())
    password = broker.passwords["alice"]
    tls = {
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(store),
        "ssl.keystore.password": store_password,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": authority().certificate.decode(),
    }
    provider = TokenProvider()
    access_token = planted.new("access token")
    provider.answers = [(200, {"access_token": f"a.{access_token}.c"}), (401, {"error": "no"})]
    base = {"bootstrap.servers": f"localhost:{broker.tls_port}", "security.protocol": "SASL_SSL", **tls}
    logins = (
        {"sasl.mechanism": "PLAIN", "sasl.jaas.config": f'{PLAIN} username="alice" password="{password}";'},
        {"sasl.mechanism": "PLAIN", "sasl.jaas.config": f'{PLAIN} username="alice" password="{planted.new("bad")}";'},
        {"sasl.mechanism": "SCRAM-SHA-256", "sasl.jaas.config": f'{SCRAM} username="x" password="{planted.new("s")}";'},
        {
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.jaas.config": f'{OAUTH} clientId="me" clientSecret="{client_secret}";',
            "sasl.oauthbearer.token.endpoint.url": provider.url,
        },
        {"sasl.mechanism": "PLAIN", "ssl.keystore.password": planted.new("wrong password of the client's store")},
        {"sasl.mechanism": "PLAIN", "sasl.jaas.config": f"{PLAIN} {planted.new('malformed')}"},
    )
    texts: dict[str, str] = {}
    settings = listener_config(broker)
    for number, login in enumerate(logins):
        for kind in (Admin, Producer):
            try:
                with kind({**base, **login, "default.api.timeout.ms": 20_000, "max.block.ms": 20_000}) as client:
                    collect(texts)
                    texts[f"{number} {kind.__name__}"] = repr(client)
                    if isinstance(client, Admin):
                        client.list_topics()
                    else:
                        client.partitions_for("topic")
                    collect(texts)
            except (ApiError, ConfigError, OSError) as error:
                texts[f"{number} {kind.__name__} failed"] = f"{error!r} {error} {error.__cause__!r}"
    provider.close()
    assert settings
    assert any(name.startswith("kafkapy._core.") for name in texts), "no object of the core was examined"
    texts["client's log"] = caplog.text
    planted.check(texts)


def listener_config(broker: PlantedBroker) -> list[Any]:
    """Returns the broker's configuration and the material of its listeners, as objects of this process."""
    from kafkapy.config.properties import read_properties

    config = BrokerConfig(read_properties(str(broker.process.config)))
    material = [
        load_material(listener_ssl_settings(config, name, protocol), is_server=True)
        for name, protocol in (("TLS", "SASL_SSL"), ("INLINE", "SSL"))
    ]
    return [config, *material]


def collect(texts: dict[str, str]) -> None:
    """Adds the representations of all objects by class."""
    for name, text in representations():
        if text not in texts.get(name, ""):
            texts[name] = texts.get(name, "") + text
