"""Changes while the broker runs: the file at SIGHUP, dynamic configuration, levels of loggers."""

from __future__ import annotations

import signal
import socket
import time
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from kafkapy.config.row import ConfigSource
from kafkapy.metadata.image import BROKER_LOGGER_RESOURCE, BROKER_RESOURCE, TOPIC_RESOURCE
from kafkapy.protocol.api import ApiKey, response_class
from kafkapy.protocol.messages.describe_configs import DescribeConfigsRequest
from kafkapy.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from tests.api_client import ask
from tests.broker_process import BrokerProcess


def hang_up(broker: BrokerProcess) -> None:
    assert broker.process is not None
    broker.process.send_signal(signal.SIGHUP)


def wait_until(condition: Callable[[], bool], what: Callable[[], str]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, what()
        time.sleep(0.01)


class Configs:
    """Describes and changes the configuration of any kind of resource, by requests of the protocol."""

    def __init__(self, broker: BrokerProcess) -> None:
        self._address = ("localhost", broker.port)

    def _ask(self, key: ApiKey, version: int, request: Any) -> Any:
        with socket.create_connection(self._address, timeout=20) as client:
            return ask(client, key, version, request, response_class(key))

    def described(self, kind: int, name: str, key: str) -> Any:
        resource = DescribeConfigsRequest.DescribeConfigsResource(
            resource_type=kind, resource_name=name, configuration_keys=[key]
        )
        answer = self._ask(ApiKey.DESCRIBE_CONFIGS, 4, DescribeConfigsRequest(resources=[resource]))
        (entry,) = answer.results[0].configs
        return entry

    def alter(self, kind: int, name: str, key: str, value: str) -> None:
        entry = IncrementalAlterConfigsRequest.AlterableConfig(name=key, config_operation=0, value=value)
        resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
            resource_type=kind, resource_name=name, configs=[entry]
        )
        request = IncrementalAlterConfigsRequest(resources=[resource])
        answer = self._ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request)
        assert answer.responses[0].error_code == 0, answer


def change_file(broker: BrokerProcess, **changes: str) -> None:
    assert broker.config is not None
    lines = "".join(f"{key.replace('_', '.')}={value}\n" for key, value in changes.items())
    broker.config.write_text(broker.config.read_text() + lines)


def test_a_hangup_reads_the_file_again(broker: BrokerProcess) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic("inheriting", 1, 1)])["inheriting"].result(20)
    change_file(broker, log_retention_ms="12345", num_partitions="7", message_max_bytes="2000")
    hang_up(broker)
    wait_until(
        lambda: "Configuration read again; changed: log.retention.ms, message.max.bytes" in broker.log(), broker.log
    )
    assert "changed keys that only a restart can change: num.partitions" in broker.log()
    assert Configs(broker).described(BROKER_RESOURCE, "1", "log.retention.ms").value == "12345"
    assert Configs(broker).described(BROKER_RESOURCE, "1", "num.partitions").value == "1"
    topic = Configs(broker).described(TOPIC_RESOURCE, "inheriting", "retention.ms")
    assert (topic.value, topic.config_source) == ("12345", ConfigSource.STATIC_BROKER)
    # A value that was set through the protocol takes precedence over the file, now and after the file is read again.
    Configs(broker).alter(BROKER_RESOURCE, "1", "log.retention.ms", "777")
    change_file(broker, log_retention_ms="54321")
    hang_up(broker)
    wait_until(lambda: "changed: nothing" in broker.log(), broker.log)
    assert Configs(broker).described(BROKER_RESOURCE, "1", "log.retention.ms").value == "777"


def test_a_file_that_cannot_be_served_changes_nothing(broker: BrokerProcess) -> None:
    change_file(broker, log_retention_ms="12345", message_max_bytes="many")
    hang_up(broker)
    wait_until(lambda: "The configuration was not changed: Invalid value many" in broker.log(), broker.log)
    assert Configs(broker).described(BROKER_RESOURCE, "1", "log.retention.ms").value != "12345"
    assert broker.config is not None
    broker.config.unlink()
    hang_up(broker)
    wait_until(lambda: "No such file or directory" in broker.log(), broker.log)
    assert broker.stop() == 0


@pytest.mark.parametrize("level", ["DEBUG", "ERROR"])
def test_levels_of_loggers_change_at_once(broker: BrokerProcess, level: str) -> None:
    name = "kafka.network.SocketServer"
    assert Configs(broker).described(BROKER_LOGGER_RESOURCE, "1", name).value == "INFO"
    Configs(broker).alter(BROKER_LOGGER_RESOURCE, "1", name, level)
    assert Configs(broker).described(BROKER_LOGGER_RESOURCE, "1", name).value == level
    AdminClient({"bootstrap.servers": broker.bootstrap}).list_topics(timeout=20)
    if level == "DEBUG":
        wait_until(lambda: "DEBUG Connection with /127.0.0.1 disconnected" in broker.log(), broker.log)


def test_dynamic_configuration_reaches_what_uses_it(broker: BrokerProcess) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic("inheriting", 1, 1)])["inheriting"].result(20)
    Configs(broker).alter(BROKER_RESOURCE, "", "log.retention.ms", "4242")
    assert Configs(broker).described(TOPIC_RESOURCE, "inheriting", "retention.ms").value == "4242"
    Configs(broker).alter(BROKER_RESOURCE, "1", "log.cleaner.threads", "2")
    assert Configs(broker).described(BROKER_RESOURCE, "1", "log.cleaner.threads").value == "2"
    assert broker.stop() == 0
    with broker:
        assert Configs(broker).described(BROKER_RESOURCE, "1", "log.cleaner.threads").value == "2"
