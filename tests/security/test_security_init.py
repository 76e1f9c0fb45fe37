"""`kafkapy security init`: a broker starts with its files, and every kind of client connects with them."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from kafka import KafkaAdminClient

from kafkapy.client.admin import Admin
from kafkapy.config.properties import read_properties
from kafkapy.security_command import main
from kafkapy.tools.topics import main as topics
from tests.broker_process import BrokerProcess
from tests.certificates import openssl
from tests.peers import kafka_directory
from tests.ports import free_port

TOPIC = "made-by-the-tool"


def free_pair() -> int:
    """Returns a port whose successor is free too."""
    while True:
        port = free_port()
        with suppress(OSError), socket.socket() as other:
            other.bind(("localhost", port + 1))
            return port


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("secured") / "files"


@pytest.fixture(scope="module")
def broker(folder: Path, tmp_path_factory: pytest.TempPathFactory):
    port = free_pair()
    assert main(["init", "--directory", str(folder), "--port", str(port)]) == 0
    with BrokerProcess(tmp_path_factory.mktemp("run"), config=folder / "server.properties", port=port) as running:
        command = ["--bootstrap-server", running.bootstrap, "--command-config", str(folder / "client.properties")]
        assert topics([*command, "--create", "--topic", TOPIC, "--partitions", "1"]) == 0
        yield running


def test_secrets_are_private_and_in_the_clients_files_only(broker: BrokerProcess, folder: Path) -> None:
    for name in os.listdir(folder):
        if name not in ("ca.crt", "data"):
            assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600, name
    password = read_properties(str(folder / "client.properties"))["sasl.jaas.config"].split('"')[3]
    assert len(password) == 32
    assert password not in (folder / "server.properties").read_text()
    assert password not in broker.log()


def test_the_certificates_are_those_of_the_authority(broker: BrokerProcess, folder: Path) -> None:
    for name, purpose in (("server.pem", "sslserver"), ("client.pem", "sslclient")):
        assert "OK" in openssl("verify", "-CAfile", "ca.crt", "-purpose", purpose, "-x509_strict", name, folder=folder)


def test_kafkapy_connects(broker: BrokerProcess, folder: Path) -> None:
    with Admin(read_properties(str(folder / "client.properties"))) as admin:
        assert TOPIC in admin.list_topics()


def test_librdkafka_connects(broker: BrokerProcess, folder: Path) -> None:
    settings = read_properties(str(folder / "librdkafka.properties"))
    assert TOPIC in AdminClient(dict(settings)).list_topics(timeout=30).topics


def test_kcat_connects(broker: BrokerProcess, folder: Path) -> None:
    command = ["kcat", "-F", str(folder / "librdkafka.properties"), "-L"]
    assert TOPIC in subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


def test_kafka_python_connects(broker: BrokerProcess, folder: Path) -> None:
    jaas = read_properties(str(folder / "client.properties"))["sasl.jaas.config"].split('"')
    client = KafkaAdminClient(
        bootstrap_servers=broker.bootstrap, security_protocol="SASL_SSL", ssl_cafile=str(folder / "ca.crt"),
        sasl_mechanism="SCRAM-SHA-512", sasl_plain_username=jaas[1], sasl_plain_password=jaas[3],
    )  # fmt: skip
    try:
        assert TOPIC in client.list_topics()
    finally:
        client.close()


@pytest.mark.peer
def test_java_connects(broker: BrokerProcess, folder: Path) -> None:
    class_path = f"{kafka_directory('4.3.0')}/libs/*"
    command = [
        "java", "-Xmx128M", "-XX:TieredStopAtLevel=1", "-cp", class_path, "org.apache.kafka.tools.TopicCommand",
        "--bootstrap-server", broker.bootstrap, "--command-config", str(folder / "client.properties"), "--list",
    ]  # fmt: skip
    assert TOPIC in subprocess.run(command, capture_output=True, text=True, check=True, timeout=90).stdout.splitlines()


def test_existing_files_are_not_overwritten(folder: Path, broker: BrokerProcess, capsys) -> None:
    before = (folder / "ca.key").read_bytes()
    assert main(["init", "--directory", str(folder)]) == 1
    assert "exists; choose another directory, or delete it" in capsys.readouterr().err
    assert (folder / "ca.key").read_bytes() == before


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--host", "a:9092"], "--host a:9092: expected is a host name or an IP address, without a port"),
        (["--user", "a,b"], "--user a,b: expected are letters"),
        (["--port", "65535"], "--port 65535: expected is 1 to 65534"),
        (["--days", "0"], "--days 0: expected is at least 1"),
    ],
)
def test_impossible_arguments_are_refused(tmp_path: Path, words: list[str], text: str, capsys) -> None:
    assert main(["init", "--directory", str(tmp_path / "files"), *words]) == 1
    assert text in capsys.readouterr().err
    assert not (tmp_path / "files").exists()


def test_hosts_are_in_the_certificate_and_the_first_is_advertised(tmp_path: Path) -> None:
    assert main(["init", "-d", str(tmp_path / "files"), "--host", "kafka.example.org", "2001:db8::1"]) == 0
    shown = openssl("x509", "-in", "server.pem", "-noout", "-ext", "subjectAltName", folder=tmp_path / "files")
    assert "DNS:kafka.example.org, IP Address:2001:DB8:0:0:0:0:0:1, DNS:localhost" in shown
    properties = read_properties(str(tmp_path / "files" / "server.properties"))
    assert properties["listeners"] == "SASL_SSL://:9093,SSL://:9094"
    assert properties["advertised.listeners"] == "SASL_SSL://kafka.example.org:9093,SSL://kafka.example.org:9094"
