"""Apache Kafka's share consumers and its tool for share groups against kafkapy; its dump tool reads the states."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker_process import BrokerProcess
from tests.peers import run_tool
from tests.share_client import ShareClient

PROPERTIES = {
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "offsets.topic.num.partitions": "1",
}
CONSOLE = "org.apache.kafka.tools.consumer.ConsoleShareConsumer"
GROUPS = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"

pytestmark = [pytest.mark.peer, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("broker"), PROPERTIES) as server:
        yield server


def test_a_console_share_consumer_releases_and_another_accepts(broker: BrokerProcess, kafka_libs: Path) -> None:
    client = ShareClient(broker.port, "console")
    client.produce(*[b"value-%d" % number for number in range(5)])

    def consume(*options: str) -> list[str]:
        done = run_tool(
            kafka_libs, CONSOLE, "--bootstrap-server", broker.bootstrap, "--topic", client.topic, "--group",
            client.group, "--max-messages", "5", "--timeout-ms", "60000", "--formatter-property", "print.offset=true",
            "--formatter-property", "print.delivery=true", *options,
        )  # fmt: skip
        return done.stdout.decode().splitlines()

    assert consume("--release") == [f"Offset:{each}\tDelivery:1\tvalue-{each}" for each in range(5)]
    assert consume() == [f"Offset:{each}\tDelivery:2\tvalue-{each}" for each in range(5)]
    described = run_tool(
        kafka_libs, GROUPS, "--bootstrap-server", broker.bootstrap, "--describe", "--group", client.group
    ).stdout.decode()
    fields = described.splitlines()[-1].split() if described.strip() else []
    assert fields[:3] + fields[-1:] == [client.group, client.topic, "0", "0"], described
    log = broker.data / "__share_group_state-0" / "00000000000000000000.log"
    dumped = run_tool(
        kafka_libs, "org.apache.kafka.tools.DumpLogSegments", "--share-group-state-decoder", "--files", str(log)
    ).stdout.decode()
    assert re.search(r'"deliveryState":2', dumped), dumped[-2000:]
    client.close()
