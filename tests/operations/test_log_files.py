"""The log files of single loggers, and the request log."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkapy.client import Producer
from kafkapy.client.admin import Admin, ConfigChange, ConfigResource, ResourceType
from kafkapy.log_files import LOG_FILES
from tests.broker_process import BrokerProcess
from tests.ports import free_ports


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("logs")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory, logs: Path) -> Iterator[BrokerProcess]:
    port, controller_port = free_ports(2)
    properties = {
        "kafkapy.log.directory": str(logs),
        "listeners": f"PLAINTEXT://localhost:{port},CONTROLLER://localhost:{controller_port}",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": f"1@localhost:{controller_port}",
    }
    with BrokerProcess(tmp_path_factory.mktemp("broker"), properties, port=port) as broker:
        yield broker


def controller(broker: BrokerProcess) -> str:
    """Returns the address of the broker's controller listener."""
    assert broker.config is not None
    return broker.config.read_text().rpartition("voters=1@")[2].partition("\n")[0]


def set_level(logger: str, level: str, **bootstrap: Any) -> None:
    resource = ConfigResource(ResourceType.BROKER_LOGGER, "1")
    with Admin(**bootstrap) as admin:
        admin.incremental_alter_configs({resource: [ConfigChange(logger, level)]}).check()


def produce(broker: BrokerProcess, topic: str) -> None:
    """Sends two requests: the gate serves only the second one, because it does not know the producer before."""
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        for _ in range(2):
            producer.send(topic, "value").result(30)


def produced(logs: Path) -> int:
    """Returns the number of Produce requests in the log."""
    lines = (logs / "kafka-request.log").read_text().splitlines()
    entries = [json.loads(line.partition("Received request:")[2].rpartition(" (")[0]) for line in lines]
    assert all(each["principal"] == "User:ANONYMOUS" for each in entries)
    return sum(each["requestHeader"]["requestApiKeyName"] == "Produce" for each in entries)


def test_each_file_exists_and_the_controllers_has_lines(broker: BrokerProcess, logs: Path) -> None:
    assert {path.name for path in logs.iterdir()} == set(LOG_FILES)
    assert "(kafka.controller" in (logs / "controller.log").read_text()
    assert "(kafka.controller" not in broker.log()


def test_requests_are_logged_while_the_level_is_debug(broker: BrokerProcess, logs: Path) -> None:
    """The level may be set on each listener of the node."""
    for number, bootstrap in enumerate(
        ({"bootstrap_servers": broker.bootstrap}, {"bootstrap_controllers": controller(broker)})
    ):
        produce(broker, "t")
        assert produced(logs) == 2 * number
        set_level("kafka.request.logger", "DEBUG", **bootstrap)
        produce(broker, "t")
        assert produced(logs) == 2 * number + 2
        set_level("kafka.request.logger", "WARN", **bootstrap)
        produce(broker, "t")
        assert produced(logs) == 2 * number + 2


def test_roles_are_logged_at_debug(broker: BrokerProcess, logs: Path) -> None:
    set_level("state.change.logger", "DEBUG", bootstrap_servers=broker.bootstrap)
    produce(broker, "roles")
    assert "Leader roles-0 with topic id" in (logs / "state-change.log").read_text()
