"""A share group in a cluster: its states are at another broker than its records, and the leader ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkapy.client import Producer, ShareConsumer
from kafkapy.client.admin import Admin, ConfigChange, ConfigResource, ResourceType
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


def test_our_consumer_follows_the_leaders_and_no_accepted_record_comes_again(tmp_path: Path) -> None:
    count = 60
    properties = {"share.coordinator.state.topic.num.partitions": "3"}
    with Cluster(tmp_path, three(Flavour.KAFKAPY), properties=properties) as cluster:
        cluster.create_topic(TOPIC, partitions=3, replication_factor=3)
        with Admin(bootstrap_servers=cluster.bootstrap) as admin:
            reset = ConfigChange("share.auto.offset.reset", "earliest")
            admin.incremental_alter_configs({ConfigResource(ResourceType.GROUP, GROUP): [reset]}).check()
        with Producer(bootstrap_servers=cluster.bootstrap, batch_size=100) as producer:
            for number in range(count):
                producer.send(TOPIC, value=b"%d" % number, partition=number % 3)
        accepted: set[bytes] = set()
        settings = {"share.acknowledgement.mode": "explicit", "max.poll.records": "10"}
        is_killed = False
        with ShareConsumer(settings, bootstrap_servers=cluster.bootstrap, group_id=GROUP) as consumer:
            consumer.subscribe(TOPIC)
            while len(accepted) < count:
                records = consumer.poll(60)
                assert records, f"{len(accepted)} of {count}"
                again = accepted.intersection(record.value for record in records)
                assert not again, f"accepted before: {sorted(again)}"
                for record in records:
                    consumer.acknowledge(record)
                if accepted and not is_killed:
                    is_killed = True
                    cluster[cluster.wait_for_leader(TOPIC, records[0].partition)].kill()
                results = consumer.commit()
                for partition, of_partition in records.by_partition().items():
                    if results[partition] is None:
                        accepted.update(record.value for record in of_partition)
        assert is_killed
