"""The Scala consumers and tools of Apache Kafka 0.10.1.1 and 1.1.1, which know only ZooKeeper's address."""

from __future__ import annotations

import subprocess

import pytest
from kazoo.client import KazooClient

from kafkapy.client.admin import Admin
from kafkapy.client.producer import Producer
from tests.clients.legacy.installation import java_command, java_jars
from tests.harness.quorum_nodes import wait_until
from tests.zookeeper.listening_broker import ListeningBroker
from tests.zookeeper.old_consumer import RELEASES

pytestmark = pytest.mark.peer
TOPIC_TOOL = "kafka.admin.TopicCommand"


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    with ListeningBroker(tmp_path_factory.mktemp("zookeeper")) as broker:
        yield broker


@pytest.fixture(scope="module")
def client(broker):
    client = KazooClient(broker.zookeeper)
    client.start(timeout=30)
    yield client
    client.stop()
    client.close()


def run(broker, class_name, *arguments, release=RELEASES[0]):
    """Runs a program of an old release, and returns its output."""
    jars = java_jars("kafka_2.11", release)
    done = subprocess.run(
        [*java_command(), "-cp", f"{jars}/*", class_name, "--zookeeper", broker.zookeeper, *arguments],
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def create(broker, client, topic, *arguments):
    """Creates a topic of two partitions with the old tool, and waits until it has leaders."""
    words = ("--create", "--topic", topic, "--partitions", "2", "--replication-factor", "1", *arguments)
    assert f'Created topic "{topic}".' in run(broker, TOPIC_TOOL, *words)
    state = f"/brokers/topics/{topic}/partitions/1/state"
    wait_until(lambda: client.exists(state) is not None, f"{topic} has no leader")


def test_the_tool_creates_and_describes_a_topic(broker, client):
    create(broker, client, "described", "--config", "retention.ms=86400000")
    text = run(broker, TOPIC_TOOL, "--describe", "--topic", "described")
    assert "Topic:described\tPartitionCount:2\tReplicationFactor:1\tConfigs:retention.ms=86400000" in text
    assert "Partition: 1\tLeader: 1\tReplicas: 1\tIsr: 1" in text
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        assert len(admin.describe_topics(["described"])["described"].partitions) == 2


def test_the_tool_adds_partitions_and_deletes_a_topic(broker, client):
    create(broker, client, "gone")
    extended = run(broker, TOPIC_TOOL, "--alter", "--topic", "gone", "--partitions", "3")
    assert "Adding partitions succeeded!" in extended
    added = "/brokers/topics/gone/partitions/2/state"
    wait_until(lambda: client.exists(added) is not None, "the partition has no leader")
    assert "Topic gone is marked for deletion." in run(broker, TOPIC_TOOL, "--delete", "--topic", "gone")
    wait_until(lambda: client.exists("/brokers/topics/gone") is None, "the topic was not deleted")
    wait_until(lambda: not client.get_children("/admin/delete_topics"), "the request was not completed")
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        assert "gone" not in admin.list_topics()


@pytest.mark.parametrize("release", RELEASES)
def test_the_consumer_reads_a_topic_and_stores_its_offsets(broker, client, release):
    topic, group = f"read-{release}", f"g-{release}"
    create(broker, client, topic)
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        for number in range(5):
            producer.send(topic, value=str(number).encode(), partition=number % 2)
    words = ("--topic", topic, "--from-beginning", "--max-messages", "5", "--consumer-property", f"group.id={group}")
    text = run(broker, "kafka.tools.ConsoleConsumer", *words, release=release)
    assert sorted(line for line in text.splitlines() if line.isdigit()) == ["0", "1", "2", "3", "4"]
    assert "Processed a total of 5 messages" in text
    offsets = [int(client.get(f"/consumers/{group}/offsets/{topic}/{partition}")[0]) for partition in range(2)]
    assert offsets == [3, 2]
    assert client.get_children(f"/consumers/{group}/owners/{topic}") == []
    wait_until(lambda: not client.get_children(f"/consumers/{group}/ids"), "the session was not closed")
