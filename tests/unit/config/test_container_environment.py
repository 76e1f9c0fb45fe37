"""The configuration that environment variables stand for, by the rules of the image apache/kafka."""

from __future__ import annotations

import pytest

from kafkapy.config.container_environment import completed, key_of, overridden, properties_of
from kafkapy.errors import ConfigError


@pytest.mark.parametrize(
    ("variable", "key"),
    [
        ("KAFKA_LISTENERS", "listeners"),
        ("KAFKA_LOG_RETENTION_MS", "log.retention.ms"),
        ("KAFKA_LISTENER_NAME_INSIDE_PLAIN_SASL_JAAS_CONFIG", "listener.name.inside.plain.sasl.jaas.config"),
        ("KAFKA_LISTENER_NAME_A__B_SSL_CLIENT_AUTH", "listener.name.a_b.ssl.client.auth"),
        ("KAFKA_LISTENER_NAME_SCRAM___SHA___256", "listener.name.scram-sha-256"),
        ("KAFKA_A____B", "a-.b"),
    ],
)
def test_a_variable_is_the_key_of_its_name(variable: str, key: str):
    assert key_of(variable) == key


def test_variables_of_the_jvm_and_of_others_are_no_keys():
    environment = {"KAFKA_HEAP_OPTS": "-Xmx1G", "KAFKA_OPTS": "-Dx=y", "KAFKA_NODE_ID": "4", "PATH": "/bin"}
    assert properties_of({**environment, "KAFKA_LOG4J_LOGGERS": "kafka=WARN", "CLUSTER_ID": "x"}) == {"node.id": "4"}


def no_secret(path: str) -> str:
    raise AssertionError(path)


def test_listeners_are_the_advertised_ones_on_every_address():
    advertised = "PLAINTEXT_HOST://localhost:9092,PLAINTEXT://broker:19092"
    environment = {"KAFKA_PROCESS_ROLES": "broker", "KAFKA_ADVERTISED_LISTENERS": advertised}
    found = completed(environment, no_secret)
    assert found["KAFKA_LISTENERS"] == "PLAINTEXT_HOST://0.0.0.0:9092,PLAINTEXT://0.0.0.0:19092"
    given = completed({**environment, "KAFKA_LISTENERS": "PLAINTEXT://:1"}, no_secret)
    assert given["KAFKA_LISTENERS"] == "PLAINTEXT://:1"


def test_a_controller_has_no_advertised_listeners():
    environment = {"KAFKA_PROCESS_ROLES": "controller", "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://a:1"}
    with pytest.raises(ConfigError, match="not supported on a KRaft controller"):
        completed(environment, no_secret)


def test_the_files_of_tls_become_paths_and_passwords():
    environment = {
        "KAFKA_ADVERTISED_LISTENERS": "SSL://broker:9093",
        "KAFKA_SSL_KEYSTORE_FILENAME": "broker.jks",
        "KAFKA_SSL_KEYSTORE_CREDENTIALS": "store",
        "KAFKA_SSL_KEY_CREDENTIALS": "key",
        "KAFKA_SSL_CLIENT_AUTH": "required",
        "KAFKA_SSL_TRUSTSTORE_FILENAME": "trust.jks",
        "KAFKA_SSL_TRUSTSTORE_CREDENTIALS": "trust",
    }
    found = properties_of(completed(environment, lambda path: f"content of {path}\n"))
    assert {name: value for name, value in found.items() if name.startswith("ssl.")} == {
        "ssl.client.auth": "required",
        "ssl.key.password": "content of /etc/kafka/secrets/key",
        "ssl.keystore.location": "/etc/kafka/secrets/broker.jks",
        "ssl.keystore.password": "content of /etc/kafka/secrets/store",
        "ssl.truststore.location": "/etc/kafka/secrets/trust.jks",
        "ssl.truststore.password": "content of /etc/kafka/secrets/trust",
    }
    for missing in ("KAFKA_SSL_KEYSTORE_FILENAME", "KAFKA_SSL_TRUSTSTORE_CREDENTIALS"):
        rest = {name: value for name, value in environment.items() if name != missing}
        with pytest.raises(ConfigError, match=f"{missing} is not set"):
            completed(rest, lambda path: "")


def test_leading_words_count_as_variables():
    words = ["KAFKA_NODE_ID=2", "CLUSTER_ID=abc", "--override", "log.retention.ms=1"]
    environment, rest = overridden({"KAFKA_NODE_ID": "1", "HOME": "/"}, words)
    assert environment == {"KAFKA_NODE_ID": "2", "CLUSTER_ID": "abc", "HOME": "/"}
    assert rest == ["--override", "log.retention.ms=1"]
