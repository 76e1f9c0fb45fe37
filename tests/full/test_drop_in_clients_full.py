"""The programs of kafka-python's README and guide against Apache Kafka, with kafka-python and with its replacement."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from itertools import count

import pytest

from tests.compat.kafka_python_programs import PROGRAMS
from tests.peers import ApacheKafka, kafka_directory

numbers = count()


@pytest.fixture(scope="module")
def apache_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheKafka]:
    with ApacheKafka(kafka_directory("4.3.0"), tmp_path_factory.mktemp("kafka")) as node:
        yield node


@pytest.mark.full
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("package", ["kafkapy.compat.kafka", "kafka"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_program(apache_kafka: ApacheKafka, package: str, name: str) -> None:
    PROGRAMS[name](import_module(package), apache_kafka.bootstrap, f"{name}-{next(numbers)}")
