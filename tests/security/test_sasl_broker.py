"""A broker with SASL for its operator: gate, sessions, metrics, JAAS files, classes, controllers, refused starts."""

from __future__ import annotations

import os
import random
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkapy.errors import Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from tests.broker_process import BrokerProcess
from tests.hostile_clients import produce_request
from tests.ports import free_ports
from tests.sasl_client import CLOSED, SaslConnection, plain_token

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
JAAS = f'{PLAIN} user_alice="alice-secret";'


def secured(port: int, sasl_port: int, **others: str) -> dict[str, str]:
    return {
        "listeners": f"PLAINTEXT://localhost:{port},SASL://localhost:{sasl_port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        **others,
    }


class Metered:
    def __init__(self, process: BrokerProcess, sasl_port: int, metrics_port: int) -> None:
        self.process = process
        self.sasl_port = sasl_port
        self._metrics_port = metrics_port

    def metrics(self) -> dict[str, float]:
        """Returns the series of the metrics page by name and labels."""
        time.sleep(0.3)  # a page is shown again for 0.25 s
        with urllib.request.urlopen(f"http://localhost:{self._metrics_port}/metrics", timeout=20) as page:
            lines = page.read().decode().splitlines()
        return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Metered]:
    port, sasl_port, metrics_port = free_ports(3)
    properties = secured(
        port,
        sasl_port,
        **{
            "listener.name.sasl.plain.sasl.jaas.config": JAAS,
            "listener.name.sasl.plain.connections.max.reauth.ms": "2000",
            "kafkapy.metrics.listener": f"localhost:{metrics_port}",
        },
    )
    with BrokerProcess(tmp_path_factory.mktemp("kafkapy"), properties, port=port) as process:
        yield Metered(process, sasl_port, metrics_port)


def produce(client: SaslConnection, topic: str) -> bytes | str:
    client.socket.sendall(produce_request(topic, b"x"))
    return client.receive()


def test_the_gate_serves_authenticated_clients_until_their_session_expires(broker: Metered) -> None:
    with SaslConnection(broker.sasl_port) as client:
        assert client.log_in("alice", "alice-secret").session_lifetime_ms == 2000
        produce(client, "gated")  # the topic does not exist yet
        _create(client, "gated")
        before = broker.metrics()["kafkapy_requests_gated_total"]
        for _ in range(10):
            assert produce(client, "gated") != CLOSED
        assert broker.metrics()["kafkapy_requests_gated_total"] - before >= 5
        time.sleep(2.1)
        assert produce(client, "gated") == CLOSED


def _create(client: SaslConnection, topic: str) -> None:
    from kafkapy.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse

    wanted = CreateTopicsRequest.CreatableTopic(name=topic, num_partitions=1, replication_factor=1)
    request = CreateTopicsRequest(topics=[wanted], timeout_ms=10_000)
    answer = client.ask(ApiKey.CREATE_TOPICS, 4, request, CreateTopicsResponse)
    assert answer.topics[0].error_code in (0, Error.TOPIC_ALREADY_EXISTS)


def test_a_client_without_authentication_is_not_served_by_the_gate(broker: Metered) -> None:
    for _ in range(3):
        with SaslConnection(broker.sasl_port) as client:
            assert produce(client, "gated") == CLOSED


def test_the_metrics_count_authentications(broker: Metered) -> None:
    def count(name: str) -> float:
        return broker.metrics()[f'kafka_server_socket_server_metrics_{name}{{listener="SASL",networkProcessor="0"}}']

    names = (
        "successful_authentication_total",
        "failed_authentication_total",
        "successful_reauthentication_total",
        "failed_reauthentication_total",
        "successful_authentication_no_reauth_total",
        "expired_connections_killed_count",
    )
    before = {name: count(name) for name in names}
    with SaslConnection(broker.sasl_port) as client:
        assert client.log_in("alice", "wrong").error_code == Error.SASL_AUTHENTICATION_FAILED
        assert client.is_closed
    with SaslConnection(broker.sasl_port) as client:
        client.log_in("alice", "alice-secret")
        assert client.log_in("alice", "alice-secret").error_code == 0
    with SaslConnection(broker.sasl_port) as client, SaslConnection(broker.sasl_port) as old:
        client.log_in("alice", "alice-secret")
        old.log_in("alice", "alice-secret", version=0)
        assert client.log_in("alice", "wrong").error_code == Error.SASL_AUTHENTICATION_FAILED
        time.sleep(2.1)
        assert old.metadata() == CLOSED
    assert {name: count(name) - before[name] for name in names} == dict(zip(names, (3, 1, 1, 1, 1, 1), strict=True))
    assert count("reauthentication_latency_max") >= count("reauthentication_latency_avg") >= 0


def test_random_bytes_close_the_connection_and_harm_no_other(broker: Metered) -> None:
    numbers = random.Random(1)
    with SaslConnection(broker.sasl_port) as good:
        assert good.log_in("alice", "alice-secret").error_code == 0
        for round_number in range(200):
            with SaslConnection(broker.sasl_port) as client:
                if round_number % 3:
                    client.handshake("PLAIN", version=round_number % 2)
                client.send_frame(numbers.randbytes(numbers.randrange(200)))
                client.socket.shutdown(socket.SHUT_WR)
                while client.receive() != CLOSED:
                    pass
        assert good.handshake("PLAIN").error_code == 0
        assert good.authenticate(plain_token("alice", "alice-secret")).error_code == 0
    log = broker.process.log_path.read_text()
    assert "Traceback" not in log
    assert "secret" not in log


# -- other configurations ----------------------------------------------------------------------------------------------


def can_log_in(port: int, password: str = "alice-secret", name: str = "alice") -> bool:
    with SaslConnection(port) as client:
        return bool(client.log_in(name, password).error_code == 0)


@pytest.mark.parametrize("context", ["KafkaServer", "sasl.KafkaServer"])
@pytest.mark.parametrize("by_environment", [False, True])
def test_users_of_a_jaas_file(tmp_path: Path, context: str, by_environment: bool) -> None:
    port, sasl_port = free_ports(2)
    path = tmp_path / "jaas.conf"
    other = f'KafkaServer {{ {PLAIN} user_alice="other"; }};\n' if context != "KafkaServer" else ""
    path.write_text(f"{other}{context} {{ org.example.Other required; {JAAS} }};\n")
    properties = secured(port, sasl_port)
    environment = {}
    if by_environment:
        environment["KAFKA_OPTS"] = f"-Xmx1G -Djava.security.auth.login.config={path}"
    else:
        properties["kafkapy.jaas.config.file"] = str(path)
    with BrokerProcess(tmp_path / "kafkapy", properties, port=port, environment=environment):
        assert can_log_in(sasl_port)
        assert not can_log_in(sasl_port, "other")


CLASSES = """
import hashlib, hmac

class Passwords:
    def configure(self, mechanism, listener_name, options):
        self.suffix = options["suffix"]
        assert (mechanism, listener_name) == ("PLAIN", "SASL")

    def authenticate(self, name, password):
        return password == name + self.suffix
"""


def test_a_python_class_checks_passwords(tmp_path: Path) -> None:
    port, sasl_port = free_ports(2)
    (tmp_path / "our_passwords.py").write_text(CLASSES)
    properties = secured(
        port,
        sasl_port,
        **{
            "listener.name.sasl.plain.sasl.jaas.config": f'{PLAIN} suffix="-password";',
            "listener.name.sasl.plain.sasl.server.callback.handler.class": "our_passwords:Passwords",
        },
    )
    environment = {"PYTHONPATH": str(tmp_path)}
    with BrokerProcess(tmp_path / "kafkapy", properties, port=port, environment=environment):
        assert can_log_in(sasl_port, "carol-password", "carol")
        assert not can_log_in(sasl_port, "carol", "carol")


def test_a_listener_of_the_controller_authenticates_clients(tmp_path: Path) -> None:
    port, sasl_port, controller_port = free_ports(3)
    properties = secured(
        port,
        sasl_port,
        **{
            "listeners": f"PLAINTEXT://localhost:{port},CONTROLLER://localhost:{controller_port}",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": f"1@localhost:{controller_port}",
            "listener.name.controller.plain.sasl.jaas.config": JAAS,
        },
    )
    request = DescribeClusterRequest(endpoint_type=2)
    with BrokerProcess(tmp_path / "kafkapy", properties, port=port):
        with SaslConnection(controller_port) as client:
            assert client.ask(ApiKey.DESCRIBE_CLUSTER, 1, request, DescribeClusterResponse) == CLOSED
        with SaslConnection(controller_port) as client:
            assert client.log_in("alice", "wrong").error_code == Error.SASL_AUTHENTICATION_FAILED
        with SaslConnection(controller_port) as client:
            assert client.versions().error_code == 0
            assert client.log_in("alice", "alice-secret").error_code == 0
            assert client.ask(ApiKey.DESCRIBE_CLUSTER, 1, request, DescribeClusterResponse).error_code == 0


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"sasl.enabled.mechanisms": "PLAIN,CRAM-MD5"}, "the mechanism CRAM-MD5 is not served; served are PLAIN"),
        ({}, "Could not find a 'KafkaServer' or 'sasl.KafkaServer' entry in the JAAS configuration"),
        ({"listener.name.sasl.plain.sasl.jaas.config": "x required password=top@secret;"}, "[hidden]"),
        ({"listener.name.sasl.plain.sasl.jaas.config": "x required;"}, "has no login module org.apache.kafka"),
        ({"sasl.enabled.mechanisms": "OAUTHBEARER"}, "kafkapy.sasl.oauthbearer.unsecured.tokens.enable=true"),
        ({"sasl.enabled.mechanisms": "OAUTHBEARER", "sasl.oauthbearer.jwks.endpoint.url": "file:/none"}, "file:/none"),
        ({"sasl.enabled.mechanisms": "OAUTHBEARER", "sasl.oauthbearer.jwks.endpoint.url": "ftp://x"}, "ftp://x"),
        ({"kafkapy.jaas.config.file": "/does/not/exist"}, "Cannot read the JAAS file /does/not/exist"),
        ({"sasl.server.callback.handler.class": "org.example.Handler"}, "not a Python class"),
    ],
)
def test_a_configuration_that_cannot_be_served_prevents_the_start(
    tmp_path: Path, properties: dict[str, str], message: str
) -> None:
    port, sasl_port = free_ports(2)
    settings = {"log.dirs": str(tmp_path / "data"), **secured(port, sasl_port), **properties}
    path = tmp_path / "server.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    command = [sys.executable, "-m", "kafkapy", "broker", "start", "--config", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env={**os.environ})
    assert done.returncode != 0
    assert message in done.stderr + done.stdout
    assert "secret" not in done.stderr + done.stdout
    assert "Traceback" not in done.stderr + done.stdout
