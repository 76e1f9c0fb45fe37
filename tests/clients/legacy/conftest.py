"""Fixtures: the clients of every release, and the broker that they all use.

KAFKAPY_TEST_SERVER=apache runs the same tests against Apache Kafka 3.9, the last that serves all of these clients.
KAFKAPY_LEGACY_RECORDS is the number of records that each client writes and reads with each codec (200).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

from tests.broker_process import BrokerProcess
from tests.clients.conftest import create_topic
from tests.clients.legacy.carriage import Carriage
from tests.clients.legacy.clients import TriedClients
from tests.peers import ApacheKafka, kafka_directory

SAMPLE = "200"


@pytest.fixture(scope="session")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Returns the address of a running broker."""
    directory = tmp_path_factory.mktemp("server")
    if os.environ.get("KAFKAPY_TEST_SERVER") == "apache":
        with ApacheKafka(kafka_directory("3.9.1"), directory, heap=("-Xmx512M",)) as kafka:
            yield kafka.bootstrap
    else:
        with BrokerProcess(directory) as broker:
            yield broker.bootstrap


@pytest.fixture(scope="session")
def tried(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TriedClients]:
    clients = TriedClients(tmp_path_factory.mktemp("programs"))
    yield clients
    clients.close()


@pytest.fixture(scope="module", autouse=True)
def _no_idle_programs(tried: TriedClients) -> Iterator[None]:
    """Ends the clients' processes after each module, because a long run should not keep idle processes."""
    yield
    tried.close()


@pytest.fixture(scope="session")
def empty_topic(bootstrap: str) -> Callable[[int], str]:
    """Returns a function that creates a topic with a new name and a number of partitions."""
    made: list[str] = []

    def create(partitions: int) -> str:
        made.append(f"carried-{os.getpid()}-{len(made)}")
        create_topic(bootstrap, made[-1], partitions)
        return made[-1]

    return create


@pytest.fixture(scope="session")
def carriage(tried: TriedClients, bootstrap: str, empty_topic: Callable[[int], str]) -> Carriage:
    return Carriage(tried, bootstrap, empty_topic, int(os.environ.get("KAFKAPY_LEGACY_RECORDS", SAMPLE)))
