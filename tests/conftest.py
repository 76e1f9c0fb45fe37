"""Fixtures of all tests: the peer's releases, a running broker, free ports.

Tests that need the peer are never skipped; without Java or Maven they fail and name what to install.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests import ports
from tests.broker_process import BrokerProcess
from tests.peers import kafka_directory

# Tools under test name their cluster themselves.
for _variable in ("KAFKAPY_BOOTSTRAP_SERVERS", "KAFKAPY_PROFILE"):
    os.environ.pop(_variable, None)

# No test asserts a time, and the machine may be busy with other tests: an example may take long, and so may drawing it.
settings.register_profile("any_machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any_machine")


@pytest.fixture(scope="session")
def kafka_43() -> Path:
    """Returns the jars of Apache Kafka 4.3.0, for `tests.peers.ApacheKafka` and `run_tool`."""
    return kafka_directory("4.3.0")


@pytest.fixture(scope="session")
def kafka_39() -> Path:
    """Returns the jars of Apache Kafka 3.9.1."""
    return kafka_directory("3.9.1")


@pytest.fixture
def free_port() -> int:
    """Returns a TCP port on loopback on which no process listens."""
    return ports.free_port()


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    """Yields a running kafkapy on an empty directory."""
    with BrokerProcess(tmp_path / "kafkapy") as process:
        yield process
