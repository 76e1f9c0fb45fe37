"""A server for the series that run on kafkapy and on Apache Kafka alike: `-k kafkapy` or `-k apache` selects one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.broker_process import BrokerProcess
from tests.peers import ApacheKafka, kafka_directory
from tests.server_process import ServerProcess

NewServer = Callable[..., ServerProcess]


@pytest.fixture(params=["kafkapy", "apache"])
def new_server(request: pytest.FixtureRequest, tmp_path: Path) -> NewServer:
    """Returns a function that makes a server, not started yet, with the given properties."""

    def make(properties: Mapping[str, str] | None = None) -> ServerProcess:
        if request.param == "kafkapy":
            return BrokerProcess(tmp_path / "broker", properties)
        server = ApacheKafka(kafka_directory("4.3.0"), tmp_path / "broker", properties=properties)
        server.start_timeout_s = 300.0
        return server

    return make
