"""Changes of key and trust stores while the broker runs: the same requests to kafkapy and to Apache Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkapy.client.admin import Admin, ConfigChange, ConfigResource, ResourceType
from kafkapy.security.tls.authority import CLIENT_AUTH, SERVER_AUTH
from tests.broker_process import BrokerProcess
from tests.certificates import PASSWORD, SERVER_NAME, authority, server_certificate, write_pkcs12
from tests.peers import ApacheKafka, kafka_directory
from tests.ports import free_ports
from tests.server_process import ServerProcess

PREFIX = "listener.name.ssl."
LOCATION = f"{PREFIX}ssl.keystore.location"
RESOURCE = ConfigResource(ResourceType.BROKER, "1")
INVALID_REQUEST = 42
HOSTS = ("localhost", "127.0.0.1")


def write_store(folder: Path, name: str, subject=SERVER_NAME, hosts: tuple[str, ...] = HOSTS) -> Path:
    return write_pkcs12(folder, authority().issue(subject, 30, hosts=hosts, usages=(SERVER_AUTH, CLIENT_AUTH)), name)


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stores")
    write_pkcs12(folder, server_certificate(), "first")
    write_store(folder, "renewed")
    write_store(folder, "more", hosts=(*HOSTS, "other.example"))
    write_store(folder, "fewer", hosts=HOSTS[:1])
    write_store(folder, "renamed", subject=(("O", "Test"), ("CN", "other")))
    return folder


@pytest.fixture(scope="module", params=["kafkapy", "kafka"])
def broker(
    request: pytest.FixtureRequest, stores: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerProcess]:
    plain, encrypted = free_ports(2)
    folder = tmp_path_factory.mktemp(request.param)
    properties = {
        "listeners": f"PLAINTEXT://localhost:{plain},SSL://localhost:{encrypted}",
        "advertised.listeners": f"PLAINTEXT://localhost:{plain},SSL://localhost:{encrypted}",
        "inter.broker.listener.name": "PLAINTEXT",
        f"{PREFIX}ssl.keystore.type": "PKCS12",
        LOCATION: str(stores / "first.p12"),
        f"{PREFIX}ssl.keystore.password": PASSWORD,
    }
    running: ServerProcess
    if request.param == "kafkapy":
        running = BrokerProcess(folder, properties, port=plain)
    else:
        running = ApacheKafka(kafka_directory("4.3.0"), folder, plain, heap=("-Xmx512M",))
        text = running.config.read_text()
        controller = next(line for line in text.splitlines() if line.startswith("listeners=")).rpartition(",")[2]
        properties["listeners"] += f",{controller}"
        names = ",".join(f"{name}:{name}" for name in ("PLAINTEXT", "SSL")) + ",CONTROLLER:PLAINTEXT"
        properties["listener.security.protocol.map"] = names
        kept = [line for line in text.splitlines() if line.partition("=")[0] not in properties]
        running.config.write_text("\n".join([*kept, *(f"{key}={value}" for key, value in properties.items()), ""]))
    with running:
        yield running


def change(broker: ServerProcess, values: dict[str, str]) -> tuple[int, str]:
    """Sets the keys, and returns the error code and its text."""
    with Admin({"bootstrap.servers": broker.bootstrap}) as admin:
        changes = [ConfigChange(key, value) for key, value in values.items()]
        error = admin.incremental_alter_configs({RESOURCE: changes}).errors.get(RESOURCE)
    return (0, "") if error is None else (int(error.error), str(error))


@pytest.mark.peer
@pytest.mark.timeout(300)
def test_the_same_changes_are_accepted_and_refused(broker: ServerProcess, stores: Path) -> None:
    def key_store(name: str) -> dict[str, str]:
        return {LOCATION: str(stores / f"{name}.p12")}

    refused = {
        "renamed": "Keystore DistinguishedName does not match:",
        "fewer": "Keystore SubjectAltNames do not match:",
    }
    for name in ("first", "renewed", "more", "more"):
        assert change(broker, key_store(name)) == (0, ""), name
    for name, text in {**refused, "missing": "Validation of dynamic config update of SSLFactory failed"}.items():
        code, said = change(broker, key_store(name))
        assert (code, text in said) == (INVALID_REQUEST, True), said
    code, said = change(broker, key_store("first"))  # fewer alternative names than "more"
    assert (code, refused["fewer"] in said) == (INVALID_REQUEST, True)
    details = "existing={alias=more, SAN=[[2, localhost], [2, other.example], [7, 127.0.0.1]]}"
    assert details in said or "SAN=[[2, localhost], [7, 127.0.0.1], [2, other.example]]" in said, said
    for values, text in (
        ({"ssl.keystore.location": "x"}, "can be dynamically updated only per-listener using the listener prefix"),
        ({f"{PREFIX}ssl.keystore.password": "wrong"}, "Validation of dynamic config update of SSLFactory failed"),
        (
            {f"{PREFIX}ssl.truststore.type": "PEM", f"{PREFIX}ssl.truststore.location": str(stores / "ca.crt")},
            "Cannot add SSL truststore to an existing listener for which no truststore was configured.",
        ),
    ):
        code, said = change(broker, values)
        assert (code, text in said) == (INVALID_REQUEST, True), said
    entries = describe(broker)
    assert entries[f"{PREFIX}ssl.keystore.password"] == (None, True)
    assert entries[LOCATION] == (str(stores / "more.p12"), False)


def describe(broker: ServerProcess) -> dict[str, tuple[str | None, bool]]:
    """Returns value and sensitivity of the broker's keys."""
    with Admin({"bootstrap.servers": broker.bootstrap}) as admin:
        found = admin.describe_configs([RESOURCE]).values[RESOURCE]
    return {name: (entry.value, entry.is_sensitive) for name, entry in found.items()}
