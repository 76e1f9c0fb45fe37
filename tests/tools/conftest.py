"""One broker, and one Java process for Apache Kafka's tools, for all tests of tools."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker_process import BrokerProcess
from tests.peers import kafka_directory
from tests.tools.side_by_side import prepare
from tests.tools.tool_host import ToolHost


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("tools")) as broker:
        yield broker


@pytest.fixture(scope="session")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ToolHost]:
    with ToolHost(kafka_directory("4.3.0"), tmp_path_factory.mktemp("host")) as host:
        yield host


@pytest.fixture(scope="session")
def places(broker: BrokerProcess, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Returns the values of the placeholders in the cases' words."""
    directory: Path = tmp_path_factory.mktemp("files")
    return {**prepare(broker.bootstrap, directory), "data": str(broker.data)}
