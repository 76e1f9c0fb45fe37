"""Unmodified clients authenticate by SASL, and produce and consume."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from kafka import KafkaConsumer, KafkaProducer

from kafkapy.types import random_uuid, uuid_to_string
from tests.broker_process import BrokerProcess
from tests.peers import run_tool
from tests.ports import free_ports

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
WAIT_S = 30


class SecuredBroker:
    def __init__(self, process: BrokerProcess, port: int) -> None:
        self.process = process
        self.bootstrap = f"localhost:{port}"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    port, sasl_port = free_ports(2)
    directory: Path = tmp_path_factory.mktemp("kafkapy")
    properties = {
        "listeners": f"PLAINTEXT://localhost:{port},SASL://localhost:{sasl_port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "listener.name.sasl.plain.sasl.jaas.config": f'{PLAIN} user_alice="alice-secret";',
        "listener.name.sasl.scram-sha-512.connections.max.reauth.ms": "3000",
    }
    with BrokerProcess(directory, properties, port=port) as process:
        yield SecuredBroker(process, sasl_port)


def librdkafka(server: SecuredBroker, mechanism: str, name: str, password: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": server.bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": name,
        "sasl.password": password,
        "log_level": 0,
    }


def kafka_python(server: SecuredBroker, mechanism: str, name: str, password: str) -> dict[str, Any]:
    return {
        "bootstrap_servers": server.bootstrap,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": name,
        "sasl_plain_password": password,
    }


def round_trip_of_librdkafka(settings: dict[str, Any], topic: str) -> None:
    producer = Producer({**settings, "linger.ms": 0})
    failures: list[Any] = []
    for number in range(100):
        producer.produce(
            topic, str(number).encode(), on_delivery=lambda error, _: failures.append(error) if error else None
        )
    assert producer.flush(WAIT_S) == 0
    assert failures == []
    consumer = Consumer({**settings, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    received: list[Any] = []
    while len(received) < 100:
        messages = consumer.consume(100, WAIT_S)
        assert messages, f"only {len(received)} records in {WAIT_S} s"
        received += [message.value() for message in messages if message.error() is None]
    consumer.close()
    assert received == [str(number).encode() for number in range(100)]


def round_trip_of_kafka_python(settings: dict[str, Any], topic: str) -> None:
    producer = KafkaProducer(**settings)
    futures = [producer.send(topic, str(number).encode()) for number in range(100)]
    for future in futures:
        future.get(WAIT_S)
    producer.close()
    consumer = KafkaConsumer(
        topic, **settings, group_id=topic, auto_offset_reset="earliest", consumer_timeout_ms=WAIT_S * 1000
    )
    received = [record.value for _, record in zip(range(100), consumer, strict=False)]
    consumer.close()
    assert received == [str(number).encode() for number in range(100)]


@pytest.fixture(scope="module")
def scram_users(server: SecuredBroker) -> None:
    """Creates the SCRAM user carol for SHA-256 and SHA-512, with requests of an authenticated administrator."""
    admin = AdminClient(librdkafka(server, "PLAIN", "alice", "alice-secret"))
    for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
        upsertion = UserScramCredentialUpsertion("carol", ScramCredentialInfo(mechanism, 4096), b"carol-secret")
        for future in admin.alter_user_scram_credentials([upsertion]).values():
            future.result(WAIT_S)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.usefixtures("scram_users")
def test_librdkafka_produces_and_consumes(server: SecuredBroker, mechanism: str) -> None:
    name = "alice" if mechanism == "PLAIN" else "carol"
    settings = librdkafka(server, mechanism, name, f"{name}-secret")
    round_trip_of_librdkafka(settings, f"librdkafka-{mechanism}")


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.usefixtures("scram_users")
def test_kafka_python_produces_and_consumes(server: SecuredBroker, mechanism: str) -> None:
    name = "alice" if mechanism == "PLAIN" else "carol"
    settings = kafka_python(server, mechanism, name, f"{name}-secret")
    round_trip_of_kafka_python(settings, f"kafka-python-{mechanism}")


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
@pytest.mark.usefixtures("scram_users")
def test_a_wrong_password_is_reported_by_the_client(server: SecuredBroker, mechanism: str) -> None:
    errors: list[KafkaError] = []
    name = "alice" if mechanism == "PLAIN" else "carol"
    settings = librdkafka(server, mechanism, name, "wrong")
    producer = Producer({**settings, "error_cb": errors.append})
    producer.produce("refused", b"x")
    while not errors:
        producer.poll(0.1)
    assert errors[0].code() == KafkaError._AUTHENTICATION
    producer.purge()
    producer.flush()


def test_a_user_that_is_created_on_the_running_broker_may_log_in_until_it_is_deleted(server: SecuredBroker) -> None:
    admin = AdminClient(librdkafka(server, "PLAIN", "alice", "alice-secret"))
    mechanism = ScramMechanism.SCRAM_SHA_512
    upsertion = UserScramCredentialUpsertion("dave", ScramCredentialInfo(mechanism, 8192), b"first")
    admin.alter_user_scram_credentials([upsertion])["dave"].result(WAIT_S)
    assert _can_log_in(server, "dave", "first")
    described = admin.describe_user_scram_credentials(["dave"])["dave"].result(WAIT_S)
    assert [(each.mechanism, each.iterations) for each in described.scram_credential_infos] == [(mechanism, 8192)]
    changed = UserScramCredentialUpsertion("dave", ScramCredentialInfo(mechanism, 4096), b"second")
    admin.alter_user_scram_credentials([changed])["dave"].result(WAIT_S)
    assert not _can_log_in(server, "dave", "first")
    assert _can_log_in(server, "dave", "second")
    admin.alter_user_scram_credentials([UserScramCredentialDeletion("dave", mechanism)])["dave"].result(WAIT_S)
    assert not _can_log_in(server, "dave", "second")


def _can_log_in(server: SecuredBroker, name: str, password: str) -> bool:
    """Returns whether the user may authenticate; waits for the client's first success or refusal."""
    errors: list[KafkaError] = []
    settings = librdkafka(server, "SCRAM-SHA-512", name, password)
    admin = AdminClient({**settings, "error_cb": errors.append})
    future = admin.list_consumer_groups()
    while not future.done():
        admin.poll(0.05)
        if any(error.code() == KafkaError._AUTHENTICATION for error in errors):
            return False
    future.result()
    return True


@pytest.mark.usefixtures("scram_users")
def test_librdkafka_authenticates_again_on_a_long_connection(server: SecuredBroker) -> None:
    errors: list[KafkaError] = []
    settings = librdkafka(server, "SCRAM-SHA-512", "carol", "carol-secret")
    producer = Producer({**settings, "linger.ms": 0, "error_cb": errors.append})
    delivered: list[Any] = []
    while len(delivered) < 70:
        producer.produce("long", b"x", on_delivery=lambda error, _: delivered.append(error))
        producer.poll(0.1)
    assert producer.flush(WAIT_S) == 0
    assert set(delivered) == {None}
    assert errors == []


def test_a_user_of_the_storage_format_tool_may_log_in_after_the_first_start(tmp_path: Path) -> None:
    port, sasl_port, controller_port = free_ports(3)
    controller = f"localhost:{controller_port}"
    properties = {
        "listeners": f"PLAINTEXT://localhost:{port},SASL://localhost:{sasl_port},CONTROLLER://{controller}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": f"1@{controller}",
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
    }
    process = BrokerProcess(tmp_path / "kafkapy", properties, port=port)
    credential = 'SCRAM-SHA-512=[name="erin",password="erin-secret"]'
    command = [sys.executable, "-m", "kafkapy", "storage", "format", "-t", uuid_to_string(random_uuid())]
    command += ["-c", str(process.config), "--add-scram", credential]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    with process:
        server = SecuredBroker(process, sasl_port)
        assert _can_log_in(server, "erin", "erin-secret")
        assert not _can_log_in(server, "erin", "other")


JAVA_SETTINGS = {
    "PLAIN": f'{PLAIN} username="alice" password="alice-secret";',
    "SCRAM-SHA-256": (
        'org.apache.kafka.common.security.scram.ScramLoginModule required username="carol" password="carol-secret";'
    ),
}


@pytest.mark.peer
@pytest.mark.parametrize("mechanism", list(JAVA_SETTINGS))
@pytest.mark.usefixtures("scram_users")
def test_java_4_3_uses_the_broker(server: SecuredBroker, mechanism: str, kafka_43: Path, tmp_path: Path) -> None:
    settings = tmp_path / "client.properties"
    settings.write_text(
        f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\nsasl.jaas.config={JAVA_SETTINGS[mechanism]}\n"
    )
    arguments = ["--bootstrap-server", server.bootstrap, "--command-config", str(settings)]
    topic = f"java-{mechanism}"
    done = run_tool(kafka_43, "org.apache.kafka.tools.TopicCommand", *arguments, "--create", "--topic", topic)
    assert f"Created topic {topic}".encode() in done.stdout


def test_the_log_and_the_answers_contain_no_password(server: SecuredBroker) -> None:
    log = server.process.log_path.read_text()
    assert "secret" not in log
    assert "Failed authentication with /127.0.0.1" in log
