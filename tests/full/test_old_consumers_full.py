"""Programs with the high-level consumer of Kafka 0.8 to 0.10 on the listener for ZooKeeper's clients."""

from __future__ import annotations

import json
import subprocess

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from kafkapy.client.admin import Admin, NewTopic
from kafkapy.client.producer import Producer
from kafkapy.types import TopicPartition
from tests.clients.legacy.installation import java_command, java_jars
from tests.harness.quorum_nodes import wait_until
from tests.zookeeper.listening_broker import ListeningBroker
from tests.zookeeper.old_consumer import RELEASE, OldConsumer

pytestmark = [pytest.mark.full, pytest.mark.peer, pytest.mark.timeout(600)]
PARTITIONS = 3


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    properties = {"offsets_topic_num_partitions": "1", "offsets_topic_replication_factor": "1"}
    with ListeningBroker(tmp_path_factory.mktemp("zookeeper"), **properties) as broker:
        yield broker


@pytest.fixture(scope="module")
def client(broker):
    client = KazooClient(broker.zookeeper)
    client.start(timeout=30)
    yield client
    client.stop()
    client.close()


def create(broker, topic):
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        admin.create_topics([NewTopic(topic, PARTITIONS, 1)])


def produce(broker, topic, numbers):
    """Sends each number to the partition that is its remainder."""
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        for number in numbers:
            producer.send(topic, value=str(number).encode(), partition=number % PARTITIONS)


def owners(client, group, topic):
    """Returns the owner of each partition; None while the consumers change the owners."""
    path = f"/consumers/{group}/owners/{topic}"
    try:
        return {int(name): client.get(f"{path}/{name}")[0].decode() for name in client.get_children(path)}
    except NoNodeError:
        return None


def offsets(client, group, topic):
    """Returns the offsets in the tree."""
    path = f"/consumers/{group}/offsets/{topic}"
    return {int(name): int(client.get(f"{path}/{name}")[0]) for name in client.get_children(path)}


def group_offsets(broker, group, topic):
    """Returns the offsets of the group coordinator."""
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        found = admin.list_group_offsets([group])[group]
    return {partition: found[TopicPartition(topic, partition)].offset for partition in range(PARTITIONS)}


def values(records):
    return sorted(int(value) for _, _, value in records)


def test_twelve_streams_share_partitions_with_a_second_member_until_both_have_gone(broker, client):
    create(broker, "shared")
    produce(broker, "shared", range(30))
    with OldConsumer(broker.zookeeper, "g", "shared", "A", streams=12) as first:
        # The names of threads are sorted as strings, so that the tenth thread has the third partition.
        wait_until(lambda: owners(client, "g", "shared") == {0: "g_A-0", 1: "g_A-1", 2: "g_A-10"}, "A does not own all")
        member = json.loads(client.get("/consumers/g/ids/g_A")[0])
        assert (member["version"], member["subscription"], member["pattern"]) == (1, {"shared": 12}, "static")
        first.wait_for_records(30)
        first.commit()
        assert offsets(client, "g", "shared") == {0: 10, 1: 10, 2: 10}
        with OldConsumer(broker.zookeeper, "g", "shared", "B") as second:
            wait_until(lambda: client.get_children("/consumers/g/ids") == ["g_A", "g_B"], "B is no member")
            first.close()
            wait_until(lambda: owners(client, "g", "shared") == dict.fromkeys(range(3), "g_B-0"), "B does not own all")
            produce(broker, "shared", range(30, 60))
            assert values(first.records() + second.wait_for_records(30)) == list(range(60))
            second.halt()
        # Nobody closes the session of a process that has died.
        wait_until(lambda: owners(client, "g", "shared") == {}, "a dead member owns partitions")
        assert client.get_children("/consumers/g/ids") == []


def test_offsets_move_from_the_tree_to_the_coordinator_and_back(broker, client):
    create(broker, "moved")
    produce(broker, "moved", range(9))

    def consume(name, numbers, **properties):
        """Reads the numbers, which are all that is new, and commits."""
        with OldConsumer(broker.zookeeper, "m", "moved", name, **properties) as consumer:
            assert values(consumer.wait_for_records(len(numbers))) == list(numbers)
            consumer.commit()
            consumer.close()

    consume("A", range(9))
    assert offsets(client, "m", "moved") == {0: 3, 1: 3, 2: 3}

    both = {"offsets_storage": "kafka", "dual_commit_enabled": "true"}
    only_kafka = {"offsets_storage": "kafka", "dual_commit_enabled": "false"}
    produce(broker, "moved", range(9, 18))
    consume("B", range(9, 18), **both)
    assert offsets(client, "m", "moved") == group_offsets(broker, "m", "moved") == {0: 6, 1: 6, 2: 6}

    produce(broker, "moved", range(18, 27))
    consume("C", range(18, 27), **only_kafka)
    assert group_offsets(broker, "m", "moved") == {0: 9, 1: 9, 2: 9}
    assert offsets(client, "m", "moved") == {0: 6, 1: 6, 2: 6}

    produce(broker, "moved", range(27, 36))
    consume("D", range(27, 36), **both)  # the larger of both offsets counts
    assert offsets(client, "m", "moved") == {0: 12, 1: 12, 2: 12}

    produce(broker, "moved", range(36, 45))
    consume("E", range(36, 45))
    assert offsets(client, "m", "moved") == {0: 15, 1: 15, 2: 15}


def run(broker, class_name, *arguments):
    """Runs a tool of the old release, and returns its output."""
    jars = java_jars("kafka_2.11", RELEASE)
    done = subprocess.run(
        [*java_command(), "-cp", f"{jars}/*", class_name, "--zookeeper", broker.zookeeper, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_old_group_tools_show_and_delete_the_groups_of_the_tree(broker, client):
    create(broker, "checked")
    produce(broker, "checked", range(6))
    for partition in range(PARTITIONS):
        client.create(f"/consumers/c/offsets/checked/{partition}", b"2", makepath=True)
    client.create("/consumers/c/owners/checked", makepath=True)
    client.create("/consumers/c/ids")
    lines = [
        line.split()
        for line in run(broker, "kafka.tools.ConsumerOffsetChecker", "--group", "c", "--broker-info").splitlines()
    ]
    for partition in range(PARTITIONS):
        assert ["c", "checked", str(partition), "2", "2", "0", "none"] in lines
    assert ["1", "->", f"localhost:{broker.port}"] in lines
    assert "c" in run(broker, "kafka.admin.ConsumerGroupCommand", "--list").splitlines()
    deleted = run(broker, "kafka.admin.ConsumerGroupCommand", "--delete", "--group", "c")
    assert "Deleted all consumer group information for group c in zookeeper." in deleted
    assert client.exists("/consumers/c") is None
