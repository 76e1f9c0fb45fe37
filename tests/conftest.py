"""Fixtures of all tests: the peer's releases, a running broker, free ports.

Tests that need the peer are never skipped; without Java or Maven they fail and name what to install.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests import ports
from tests.broker_process import BrokerProcess
from tests.failed_tests import FailedTests
from tests.hung_tests import HungTestKiller, StalledRunKiller
from tests.peers import kafka_directory
from tests.scheduling import FileScheduling

if TYPE_CHECKING:
    from xdist.remote import Producer
    from xdist.scheduler import Scheduling

# Tools under test name their cluster themselves.
for _variable in ("KAFKAPY_BOOTSTRAP_SERVERS", "KAFKAPY_PROFILE"):
    os.environ.pop(_variable, None)

# No test asserts a time, and the machine may be busy with other tests: an example may take long, and so may drawing it.
settings.register_profile("any_machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any_machine")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--failed-tests", metavar="FILE", help="write the id of each failed test to FILE, one a line")
    parser.addoption(
        "--silence", metavar="SECONDS", type=float, help="end the run if no test begins or ends for so long"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(HungTestKiller())
    if hasattr(config, "workerinput"):
        return
    if seconds := config.getoption("--silence"):
        config.pluginmanager.register(StalledRunKiller(seconds))
    if path := config.getoption("--failed-tests"):
        config.pluginmanager.register(FailedTests(Path(path)))


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling | None:
    """Returns our scheduler for `--dist loadfile`."""
    return FileScheduling(config, log) if config.getoption("dist") == "loadfile" else None


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
