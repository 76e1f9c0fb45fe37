"""The calls of kafka-python's README and guide, by kafka-python and by kafkapy.compat.kafka, against a kafkapy broker.

tests/full runs the same programs against Apache Kafka.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from itertools import count

import pytest

from kafkapy.testing import Broker
from tests.compat.kafka_python_programs import PROGRAMS

numbers = count()


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as started:
        yield started


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("package", ["kafkapy.compat.kafka", "kafka"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_program(broker: Broker, package: str, name: str) -> None:
    PROGRAMS[name](import_module(package), broker.bootstrap_servers, f"{name}-{next(numbers)}")
