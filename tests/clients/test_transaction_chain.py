"""Consume, transform, produce in transactions, with broker and application killed: each input exactly once.

A sample; the hundred kills are in tests/full. KAFKAPY_TEST_SERVER=apache runs it against Apache Kafka.
KAFKAPY_CHAIN_SEED: another course.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.broker_process import BrokerProcess
from tests.clients.chain.chain import PROPERTIES, Chain, java_command, librdkafka_command
from tests.peers import ApacheKafka, kafka_directory
from tests.server_process import ServerProcess

KILLS = 3
CLIENTS = ("librdkafka", "java-4.3")
SEED = int(os.environ.get("KAFKAPY_CHAIN_SEED", "6"))


def new_broker(directory: Path) -> ServerProcess:
    if os.environ.get("KAFKAPY_TEST_SERVER") == "apache":
        return ApacheKafka(kafka_directory("4.3.0"), directory, heap=("-Xmx512M",), properties=PROPERTIES)
    return BrokerProcess(directory, PROPERTIES)


def carry_chain(client: str, directory: Path, kills: int) -> None:
    if client == "librdkafka":
        command = librdkafka_command()
    else:
        command = java_command(kafka_directory("4.3.0") / "libs", directory / "classes")
    with new_broker(directory / "broker") as broker:
        chain = Chain(broker, command, directory, SEED)
        chain.run(kills)
    assert chain.fenced >= kills // 6  # most zombies hear it as that; some that they are no members any more


@pytest.mark.timeout(600)
@pytest.mark.parametrize("client", CLIENTS)
def test_each_input_exactly_once(client: str, tmp_path: Path) -> None:
    carry_chain(client, tmp_path, KILLS)
