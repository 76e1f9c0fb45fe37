"""An application consumes, transforms and produces in transactions: despite kills each input has its effect once.

The test with a hundred kills is in tests/full. KAFKAPY_TEST_SERVER=apache runs this one against Apache Kafka.
KAFKAPY_CHAIN_SEED sets the seed of the random moments.
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
    assert chain.fenced >= kills // 6  # other zombies get an error of the group instead


@pytest.mark.timeout(600)
@pytest.mark.parametrize("client", CLIENTS)
def test_each_input_exactly_once(client: str, tmp_path: Path) -> None:
    carry_chain(client, tmp_path, KILLS)
