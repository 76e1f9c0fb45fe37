"""Fixtures of the client tests: one broker for all of them, and every client.

KAFKAPY_TEST_SERVER=apache runs the same tests against Apache Kafka, which must pass them too.
KAFKAPY_CLIENT_RECORDS is the number of records that each client writes and reads with each codec (1,000).
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from tests.broker_process import BrokerProcess
from tests.clients.aiokafka_client import AiokafkaClient
from tests.clients.client import Client
from tests.clients.confluent_client import ConfluentClient
from tests.clients.console_client import ConsoleClient
from tests.clients.java_client import JavaClient
from tests.clients.kafka_python_client import KafkaPythonClient
from tests.clients.kafkapy_client import KafkapyClient
from tests.clients.kcat_client import KcatClient
from tests.peers import ApacheKafka, kafka_directory

CLIENTS = ("kafkapy", "confluent-kafka", "kafka-python", "aiokafka", "kcat", "java-4.3", "java-3.9", "console")
# Share groups on a single broker.
SHARE_GROUPS = {
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
}
_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def record_count() -> int:
    return int(os.environ.get("KAFKAPY_CLIENT_RECORDS", "1000"))


@pytest.fixture(scope="session")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Returns the address of a running broker."""
    directory = tmp_path_factory.mktemp("server")
    if os.environ.get("KAFKAPY_TEST_SERVER") == "apache":
        with ApacheKafka(kafka_directory("4.3.0"), directory, heap=("-Xmx512M",)) as kafka:
            yield kafka.bootstrap
    else:
        with BrokerProcess(directory, SHARE_GROUPS) as broker:
            yield broker.bootstrap


@pytest.fixture(scope="session")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Client]:
    """Returns a function that returns the client of a name; Java's are compiled at their first use."""
    made: dict[str, Client] = {}

    def make(name: str) -> Client:
        if name.startswith("java"):
            version = {"java-4.3": "4.3.0", "java-3.9": "3.9.1"}[name]
            return JavaClient(kafka_directory(version), tmp_path_factory.mktemp(name), name)
        if name == "console":
            return ConsoleClient(kafka_directory("4.3.0"))
        classes: dict[str, type[Client]] = {
            "kafkapy": KafkapyClient,
            "confluent-kafka": ConfluentClient,
            "kafka-python": KafkaPythonClient,
            "aiokafka": AiokafkaClient,
            "kcat": KcatClient,
        }
        return classes[name]()

    def client(name: str) -> Client:
        if name not in made:
            made[name] = make(name)
        return made[name]

    return client


@pytest.fixture
def new_topic(bootstrap: str) -> Callable[[int], str]:
    """Returns a function that creates a topic with a new name and a number of partitions."""

    def create(partitions: int) -> str:
        name = f"topic-{os.getpid()}-{next(_numbers)}"
        create_topic(bootstrap, name, partitions)
        return name

    return create


def create_topic(bootstrap: str, name: str, partitions: int, **configs: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(name, partitions, 1, config=configs)])[name].result(30)


def set_topic_config(bootstrap: str, topic: str, key: str, value: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    entry = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(30)


@pytest.fixture(scope="session")
def kafka_libs() -> Path:
    return kafka_directory("4.3.0")
