"""A share group in a cluster: its states are at another broker than its records, and the leader ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkapy.client import Producer
from tests.cluster.cluster import Cluster, three
from tests.cluster.nodes import Flavour
from tests.peers import kafka_directory, run_tool

CONSOLE = "org.apache.kafka.tools.consumer.ConsoleShareConsumer"
CONFIGS = "kafka.admin.ConfigCommand"
TOPIC, GROUP = "records", "workers"
COUNT = 6

pytestmark = [pytest.mark.peer, pytest.mark.timeout(300)]


def test_no_accepted_record_comes_again_after_the_leader_has_ended(tmp_path: Path) -> None:
    properties = {"share.coordinator.state.topic.num.partitions": "3"}
    kafka = kafka_directory("4.3.0")
    with Cluster(tmp_path, three(Flavour.KAFKAPY), properties=properties) as cluster:
        cluster.create_topic(TOPIC, partitions=3, replication_factor=3)
        run_tool(
            kafka, CONFIGS, "--bootstrap-server", cluster.bootstrap, "--alter", "--entity-type", "groups",
            "--entity-name", GROUP, "--add-config", "share.auto.offset.reset=earliest",
        )  # fmt: skip
        with Producer({"bootstrap.servers": cluster.bootstrap}) as producer:
            for number in range(COUNT):
                producer.send(TOPIC, value=b"%d" % number, partition=number % 3)

        def consume() -> list[str]:
            done = run_tool(
                kafka, CONSOLE, "--bootstrap-server", cluster.bootstrap, "--topic", TOPIC, "--group", GROUP,
                "--max-messages", str(COUNT // 2), "--timeout-ms", "60000",
            )  # fmt: skip
            return done.stdout.decode().split()

        first = consume()
        cluster[cluster.wait_for_leader(TOPIC, 0)].kill()
        second = consume()
        assert sorted(first + second) == [str(number) for number in range(COUNT)]
