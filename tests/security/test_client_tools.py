"""Our tools against secured brokers: each reads the keys of TLS and SASL from its configuration file."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from tests.harness.certificates import CertificateAuthority
from tests.security.secured_kafka import SecuredKafka, sasl_client
from tests.tools.tool_host import Done, run_ours

FILE = "--command-config"


@pytest.fixture(scope="module")
def config(authority: CertificateAuthority, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Returns the path of a client's file for the listener SASL_SSL."""
    keys = {
        "security.protocol": "SASL_SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.certificate_file),
        **sasl_client("SCRAM-SHA-512", "admin"),
    }
    return write_keys(tmp_path_factory.mktemp("tools") / "client.properties", keys)


def write_keys(path: Path, keys: dict[str, str]) -> str:
    path.write_text("".join(f"{key}={value}\n" for key, value in keys.items()))
    return str(path)


@pytest.fixture(scope="module")
def topic(secured_kafka: SecuredKafka, config: str) -> str:
    """Returns a topic with three records, which the console producer has written."""
    name = f"tools-{uuid.uuid4()}"
    succeed(secured_kafka, "topics", FILE, config, "--create", "--topic", name)
    server = ("--bootstrap-server", secured_kafka.address("SASL_SSL"))
    done = run_ours("console-producer", *server, "--producer.config", config, "--topic", name, input="a\nb\nc\n")
    assert done.code == 0, done.err
    return name


def succeed(kafka: SecuredKafka, tool: str, *words: str) -> Done:
    done = run_ours(tool, *words, "--bootstrap-server", kafka.address("SASL_SSL"))
    assert done.code == 0, done.out + done.err
    return done


COMMANDS = [
    ("topics", "--command-config FILE --describe --topic TOPIC", "PartitionCount: 1"),
    ("configs", "--command-config FILE --describe --entity-type topics --entity-name TOPIC", "Dynamic configs"),
    ("consumer-groups", "--command-config FILE --list", ""),
    ("get-offsets", "--command-config FILE --topic TOPIC", "TOPIC:0:3"),
    ("log-dirs", "--command-config FILE --describe --topic-list TOPIC", '"partition":"TOPIC-0"'),
    ("broker-api-versions", "--command-config FILE", "Produce(0)"),
    ("features", "--command-config FILE describe", "metadata.version"),
    ("transactions", "--command-config FILE list", "TransactionalId"),
    ("cluster", "cluster-id --config FILE", "Cluster ID"),
    (
        "producer-perf-test",
        "--command-config FILE --topic TOPIC-perf --num-records 5 --throughput -1 --record-size 10",
        "5 records sent",
    ),
    ("console-consumer", "--consumer.config FILE --from-beginning --max-messages 3 --topic TOPIC", "a\nb\nc\n"),
]


@pytest.mark.parametrize(("tool", "words", "expected"), COMMANDS, ids=[command[0] for command in COMMANDS])
def test_a_tool_connects_with_the_keys_of_its_file(
    secured_kafka: SecuredKafka, config: str, topic: str, tool: str, words: str, expected: str
) -> None:
    filled = words.replace("FILE", config).replace("TOPIC", topic).split()
    assert expected.replace("TOPIC", topic) in succeed(secured_kafka, tool, *filled).out


def test_a_refused_tool_says_why_at_once(
    secured_kafka: SecuredKafka, authority: CertificateAuthority, tmp_path: Path
) -> None:
    keys = {"security.protocol": "SASL_PLAINTEXT", **sasl_client("PLAIN", password="wrong-secret")}
    path = write_keys(tmp_path / "wrong.properties", keys)
    done = run_ours("topics", "--bootstrap-server", secured_kafka.address("SASL_PLAINTEXT"), FILE, path, "--list")
    assert done.code == 1
    assert "Authentication failed: Invalid username or password" in done.out + done.err
    assert "Traceback" not in done.out + done.err and "wrong-secret" not in done.out + done.err
