"""GSSAPI with a real KDC: clients with tickets are served, all others are refused, as by Apache Kafka."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkapy.client import AuthenticationError, Consumer, Producer
from kafkapy.client.admin import Admin
from kafkapy.errors import ConfigError, Error
from kafkapy.types import TopicPartition
from tests.broker_process import BrokerProcess
from tests.kerberos import REALM, KerberosRealm
from tests.peers import ApacheKafka, kafka_directory
from tests.ports import free_ports
from tests.sasl_client import SaslConnection
from tests.server_process import ServerProcess

MODULE = "com.sun.security.auth.module.Krb5LoginModule required"
REFUSED = "Authentication failed during authentication due to invalid credentials with SASL mechanism GSSAPI"
RULES = f"RULE:[2:$1.$2@$0](.*@{REALM})s/@.*//,DEFAULT"
WAIT_S = 60


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KerberosRealm]:
    with KerberosRealm(tmp_path_factory.mktemp("realm")) as running:
        yield running


class KerberosServer:
    def __init__(self, process: ServerProcess, port: int) -> None:
        self.process = process
        self.port = port


class KerberosKafka(ApacheKafka):
    """A process of Apache Kafka that is configured for the Kerberos realm of the test."""

    realm: KerberosRealm

    def command(self) -> list[str]:
        java, *others = super().command()
        return [java, f"-Djava.security.krb5.conf={self.realm.config}", *others]


@pytest.fixture(scope="module", params=["kafkapy", pytest.param("apache", marks=pytest.mark.peer)])
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, realm: KerberosRealm
) -> Iterator[KerberosServer]:
    port, sasl_port = free_ports(2)
    directory: Path = tmp_path_factory.mktemp(request.param)
    keytab = realm.add_service("kafka/localhost")
    listeners = f"PLAINTEXT://localhost:{port},SASL://localhost:{sasl_port}"
    properties = {
        "listeners": listeners,
        "advertised.listeners": listeners,
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.kerberos.service.name": "kafka",
        "sasl.kerberos.principal.to.local.rules": RULES,
        "listener.name.sasl.gssapi.sasl.jaas.config": (
            f'{MODULE} useKeyTab=true storeKey=true keyTab="{keytab}" principal="kafka/localhost@{REALM}";'
        ),
    }
    process: ServerProcess
    if request.param == "kafkapy":
        process = BrokerProcess(directory, properties, port=port, environment=realm.environment())
    else:
        process = KerberosKafka(kafka_directory("4.3.0"), directory, port, properties=properties)
        process.realm = realm
        controller = f"\nlisteners={listeners},CONTROLLER://localhost:{process.controller_port}\n"
        process.config.write_text(process.config.read_text().replace(f"\nlisteners={listeners}\n", controller, 1))
    with process:
        yield KerberosServer(process, sasl_port)


def run_kcat(
    server: KerberosServer, realm: KerberosRealm, cache: Path, *arguments: str, input: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    options = [
        "-X",
        "security.protocol=SASL_PLAINTEXT",
        "-X",
        "sasl.mechanism=GSSAPI",
        "-X",
        "sasl.kerberos.kinit.cmd=true",
    ]
    return subprocess.run(
        ["kcat", "-b", f"localhost:{server.port}", *options, *arguments],
        env={**os.environ, **realm.environment(cache)},
        input=input,
        capture_output=True,
        timeout=WAIT_S,
        check=False,
    )


@pytest.mark.parametrize("name", ["alice", "bob/admin"])
def test_kcat_with_a_ticket_produces_and_consumes(server: KerberosServer, realm: KerberosRealm, name: str) -> None:
    cache = realm.log_in(name)
    topic = f"tickets-{name.replace('/', '-')}"
    sent = run_kcat(server, realm, cache, "-P", "-t", topic, input=b"hello\n")
    assert sent.returncode == 0, sent.stderr.decode()
    received = run_kcat(server, realm, cache, "-C", "-t", topic, "-o", "beginning", "-c", "1", "-e")
    assert received.stdout == b"hello\n", received.stderr.decode()


def test_java_with_a_keytab_produces_and_consumes(
    server: KerberosServer, realm: KerberosRealm, kafka_43: Path, tmp_path: Path
) -> None:
    keytab = realm.add_service("carol")
    jaas = f'{MODULE} useKeyTab=true storeKey=true keyTab="{keytab}" principal="carol@{REALM}";'
    settings = tmp_path / "client.properties"
    settings.write_text(
        f"security.protocol=SASL_PLAINTEXT\nsasl.kerberos.service.name=kafka\nsasl.jaas.config={jaas}\n"
    )
    command = ["java", "-Xmx256M", "-XX:TieredStopAtLevel=1", f"-Djava.security.krb5.conf={realm.config}"]
    command += ["-cp", f"{kafka_43}/libs/*", "org.apache.kafka.tools.TopicCommand"]
    command += ["--bootstrap-server", f"localhost:{server.port}", "--command-config", str(settings)]
    done = subprocess.run(
        [*command, "--create", "--topic", "from-java"], capture_output=True, text=True, timeout=90, check=False
    )
    assert "Created topic from-java" in done.stdout, done.stdout + done.stderr


def our_client(server: KerberosServer, options: str = "") -> dict[str, str]:
    """Returns the configuration of our client for Kerberos, with the keys and options of Java's clients."""
    return {
        "bootstrap.servers": f"localhost:{server.port}",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        "sasl.jaas.config": f"{MODULE} {options};",
    }


@pytest.fixture
def kerberos(realm: KerberosRealm, monkeypatch: pytest.MonkeyPatch) -> KerberosRealm:
    """Configures this process for the Kerberos realm of the test by environment variables."""
    for name, value in realm.environment().items():
        monkeypatch.setenv(name, value)
    return realm


def test_our_client_with_a_keytab_produces_and_consumes(server: KerberosServer, kerberos: KerberosRealm) -> None:
    keytab = kerberos.add_service("dora")
    settings = our_client(server, f'useKeyTab=true storeKey=true keyTab="{keytab}" principal="dora@{REALM}"')
    with Producer(settings) as producer:
        assert producer.send("from-kafkapy", b"hello").result(WAIT_S).topic == "from-kafkapy"
    with Consumer({**settings, "group.id": "g", "auto.offset.reset": "earliest"}) as consumer:
        consumer.assign([TopicPartition("from-kafkapy", 0)])
        deadline = time.monotonic() + WAIT_S
        while not (records := list(consumer.poll(1.0))):
            assert time.monotonic() < deadline
    assert [each.value for each in records] == [b"hello"]


def test_our_client_uses_a_ticket_of_kinit(
    server: KerberosServer, kerberos: KerberosRealm, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = kerberos.log_in("frank")
    with Admin(our_client(server, f'useTicketCache=true ticketCache="{cache}"')) as admin:
        admin.list_topics()
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{cache}")
    with Admin(our_client(server)) as admin:
        admin.list_topics()


def test_our_client_names_what_it_lacks(
    server: KerberosServer, kerberos: KerberosRealm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{tmp_path}/no-tickets")
    keytab = kerberos.add_service("dora")
    with pytest.raises(ConfigError, match=r"no credentials of nobody@KAFKAPY\.TEST in the keytab"):
        Admin(our_client(server, f'useKeyTab=true keyTab="{keytab}" principal="nobody@{REALM}"'))
    with pytest.raises(ConfigError, match=r"sasl\.kerberos\.service\.name is missing"):
        Admin({**our_client(server), "sasl.kerberos.service.name": None})
    settings = our_client(server, f'useKeyTab=true keyTab="{keytab}" principal="dora@{REALM}"')
    with (
        Admin({**settings, "sasl.kerberos.service.name": "unknown"}) as admin,
        pytest.raises(AuthenticationError, match=r"GSSAPI failed: .*not found in Kerberos database"),
    ):
        admin.list_topics()


@pytest.mark.parametrize("token", [b"", b"nonsense", b"\x60\x06\x06\x04\x2a\x86\x48\x86", bytes(10_000)])
def test_a_token_that_is_no_ticket_is_refused(server: KerberosServer, token: bytes) -> None:
    with SaslConnection(server.port) as client:
        assert list(client.handshake("GSSAPI").mechanisms) == ["GSSAPI"]
        answer = client.authenticate(token)
        assert (answer.error_code, answer.error_message) == (Error.SASL_AUTHENTICATION_FAILED, REFUSED)
        assert client.is_closed


def test_a_keytab_without_the_principal_prevents_the_start(tmp_path: Path, realm: KerberosRealm) -> None:
    port, sasl_port = free_ports(2)
    jaas = f'{MODULE} useKeyTab=true keyTab="{tmp_path}/none.keytab" principal="kafka/localhost@{REALM}";'
    properties = {
        "listeners": f"PLAINTEXT://localhost:{port},SASL://localhost:{sasl_port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT",
        "listener.name.sasl.gssapi.sasl.jaas.config": jaas,
    }
    process = BrokerProcess(tmp_path / "kafkapy", properties, port=port, environment=realm.environment())
    with pytest.raises(AssertionError, match=r"GSSAPI cannot use the keys of the principal kafka/localhost@KAFKAPY"):
        process.start()
