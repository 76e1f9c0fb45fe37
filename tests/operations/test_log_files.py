"""The log files of single loggers, and the request log."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkapy.client import Producer
from kafkapy.client.admin import Admin, ConfigChange, ConfigResource, ResourceType
from kafkapy.log_files import LOG_FILES
from tests.broker_process import BrokerProcess


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("logs")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory, logs: Path) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("broker"), {"kafkapy.log.directory": str(logs)}) as broker:
        yield broker


def set_level(broker: BrokerProcess, logger: str, level: str) -> None:
    resource = ConfigResource(ResourceType.BROKER_LOGGER, "1")
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        admin.incremental_alter_configs({resource: [ConfigChange(logger, level)]}).check()


def produce(broker: BrokerProcess, topic: str) -> None:
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
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
    produce(broker, "t")
    assert produced(logs) == 0
    set_level(broker, "kafka.request.logger", "DEBUG")
    produce(broker, "t")
    assert produced(logs) == 1
    set_level(broker, "kafka.request.logger", "WARN")
    produce(broker, "t")
    assert produced(logs) == 1


def test_roles_are_logged_at_debug(broker: BrokerProcess, logs: Path) -> None:
    set_level(broker, "state.change.logger", "DEBUG")
    produce(broker, "roles")
    assert "Leader roles-0 with topic id" in (logs / "state-change.log").read_text()
