"""One broker for all tests of the reliability patterns; KAFKAPY_TEST_SERVER=apache takes Apache Kafka instead."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator

import pytest

from kafkapy.client import Admin
from kafkapy.client.admin import NewTopic
from tests.broker_process import BrokerProcess
from tests.peers import ApacheKafka, kafka_directory

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Returns the address of a running broker."""
    directory = tmp_path_factory.mktemp("reliable")
    if os.environ.get("KAFKAPY_TEST_SERVER") == "apache":
        with ApacheKafka(kafka_directory("4.3.0"), directory, heap=("-Xmx512M",)) as kafka:
            yield kafka.bootstrap
    else:
        with BrokerProcess(directory) as broker:
            yield broker.bootstrap


@pytest.fixture
def make_topic(bootstrap: str):
    """Returns a function that creates a topic of a new name, which begins with the given text."""

    def make(prefix: str, partitions: int = 1) -> str:
        name = f"{prefix}-{next(_numbers)}"
        with Admin(bootstrap_servers=bootstrap) as admin:
            admin.create_topics([NewTopic(name, partitions, 1)]).check()
        return name

    return make
