"""The dynamic configuration of brokers is applied when a change concerns it, on brokers and on controllers."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from kafkapy.config import BrokerConfig
from kafkapy.metadata.delta import MetadataDelta
from kafkapy.metadata.image import BROKER_RESOURCE, EMPTY_IMAGE, TOPIC_RESOURCE
from kafkapy.protocol.messages.metadata_records import ConfigRecord
from kafkapy.server.dynamic_config_listener import DynamicConfigListener


class Node:
    """The configuration of node 1, with its listener and the number of calls of `on_applied`."""

    def __init__(self, directory: Path) -> None:
        self.config = BrokerConfig({"log.dirs": str(directory)})
        self.applied = 0
        self.listener = DynamicConfigListener(self.config, 1, self._count)
        self.image = EMPTY_IMAGE

    def _count(self) -> None:
        self.applied += 1

    def change(self, resource_type: int, resource_name: str, name: str, value: str | None) -> None:
        delta = MetadataDelta(self.image)
        delta.replay(ConfigRecord(resource_type=resource_type, resource_name=resource_name, name=name, value=value))
        self.image = delta.to_image(self.image.offset + 1, 0)
        self.listener.on_metadata(delta, self.image)


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_the_value_of_this_node_precedes_that_of_all_brokers(node: Node) -> None:
    node.change(BROKER_RESOURCE, "", "log.retention.ms", "100")
    assert node.config["log.retention.ms"] == 100
    node.change(BROKER_RESOURCE, "2", "log.retention.ms", "300")
    assert node.config["log.retention.ms"] == 100
    node.change(BROKER_RESOURCE, "1", "log.retention.ms", "200")
    assert node.config["log.retention.ms"] == 200
    node.change(BROKER_RESOURCE, "1", "log.retention.ms", None)
    assert node.config["log.retention.ms"] == 100
    assert node.applied == 4


def test_the_configuration_of_a_topic_applies_nothing(node: Node) -> None:
    node.change(TOPIC_RESOURCE, "t", "retention.ms", "100")
    assert node.applied == 0


def test_a_value_that_cannot_be_used_is_logged(node: Node, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        node.change(BROKER_RESOURCE, "", "log.retention.ms", "soon")
    assert "log.retention.ms" in caplog.text
    assert node.config["log.retention.ms"] is None or node.config["log.retention.ms"] > 0
