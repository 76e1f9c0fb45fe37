"""Programs with the high-level consumer of Kafka 0.8 to 1.1 on the listener for ZooKeeper's clients."""

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
from tests.zookeeper.old_consumer import RELEASES, OldConsumer

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


@pytest.fixture(params=RELEASES)
def release(request):
    return request.param


def test_twelve_streams_share_partitions_with_a_second_member_until_both_have_gone(broker, client, release):
    topic, group = f"shared-{release}", f"g-{release}"
    create(broker, topic)
    produce(broker, topic, range(30))
    with OldConsumer(broker.zookeeper, group, topic, "A", streams=12, release=release) as first:
        # The names of threads are sorted as strings, so that the tenth thread has the third partition.
        wait_until(
            lambda: owners(client, group, topic) == {0: f"{group}_A-0", 1: f"{group}_A-1", 2: f"{group}_A-10"},
            "A does not own all",
        )
        member = json.loads(client.get(f"/consumers/{group}/ids/{group}_A")[0])
        assert (member["version"], member["subscription"], member["pattern"]) == (1, {topic: 12}, "static")
        first.wait_for_records(30)
        first.commit()
        assert offsets(client, group, topic) == {0: 10, 1: 10, 2: 10}
        with OldConsumer(broker.zookeeper, group, topic, "B", release=release) as second:
            wait_until(
                lambda: client.get_children(f"/consumers/{group}/ids") == [f"{group}_A", f"{group}_B"], "B is no member"
            )
            first.close()
            wait_until(
                lambda: owners(client, group, topic) == dict.fromkeys(range(3), f"{group}_B-0"), "B does not own all"
            )
            produce(broker, topic, range(30, 60))
            assert values(first.records() + second.wait_for_records(30)) == list(range(60))
            second.halt()
        # Nobody closes the session of a process that has died.
        wait_until(lambda: owners(client, group, topic) == {}, "a dead member owns partitions")
        assert client.get_children(f"/consumers/{group}/ids") == []


def test_offsets_move_from_the_tree_to_the_coordinator_and_back(broker, client, release):
    topic, group = f"moved-{release}", f"m-{release}"
    create(broker, topic)
    produce(broker, topic, range(9))

    def consume(name, numbers, **properties):
        """Reads the numbers, which are all that is new, and commits."""
        with OldConsumer(broker.zookeeper, group, topic, name, release=release, **properties) as consumer:
            assert values(consumer.wait_for_records(len(numbers))) == list(numbers)
            consumer.commit()
            consumer.close()

    consume("A", range(9))
    assert offsets(client, group, topic) == {0: 3, 1: 3, 2: 3}

    both = {"offsets_storage": "kafka", "dual_commit_enabled": "true"}
    only_kafka = {"offsets_storage": "kafka", "dual_commit_enabled": "false"}
    produce(broker, topic, range(9, 18))
    consume("B", range(9, 18), **both)
    assert offsets(client, group, topic) == group_offsets(broker, group, topic) == {0: 6, 1: 6, 2: 6}

    produce(broker, topic, range(18, 27))
    consume("C", range(18, 27), **only_kafka)
    assert group_offsets(broker, group, topic) == {0: 9, 1: 9, 2: 9}
    assert offsets(client, group, topic) == {0: 6, 1: 6, 2: 6}

    produce(broker, topic, range(27, 36))
    consume("D", range(27, 36), **both)  # the larger of both offsets counts
    assert offsets(client, group, topic) == {0: 12, 1: 12, 2: 12}

    produce(broker, topic, range(36, 45))
    consume("E", range(36, 45))
    assert offsets(client, group, topic) == {0: 15, 1: 15, 2: 15}


def run(broker, release, class_name, *arguments):
    """Runs a tool of an old release, and returns its output."""
    jars = java_jars("kafka_2.11", release)
    done = subprocess.run(
        [*java_command(), "-cp", f"{jars}/*", class_name, "--zookeeper", broker.zookeeper, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def prepare_group(broker, client, group, topic):
    """Creates a topic with two records in each partition, and a group in the tree that has read them."""
    create(broker, topic)
    produce(broker, topic, range(6))
    for partition in range(PARTITIONS):
        client.create(f"/consumers/{group}/offsets/{topic}/{partition}", b"2", makepath=True)
    client.create(f"/consumers/{group}/owners/{topic}", makepath=True)
    client.create(f"/consumers/{group}/ids")


def test_the_old_offset_checker_shows_the_groups_of_the_tree(broker, client):
    prepare_group(broker, client, "c", "checked")
    output = run(broker, RELEASES[0], "kafka.tools.ConsumerOffsetChecker", "--group", "c", "--broker-info")
    lines = [line.split() for line in output.splitlines()]
    for partition in range(PARTITIONS):
        assert ["c", "checked", str(partition), "2", "2", "0", "none"] in lines
    assert ["1", "->", f"localhost:{broker.port}"] in lines


def test_the_old_group_tool_shows_and_deletes_the_groups_of_the_tree(broker, client, release):
    group, topic = f"d-{release}", f"deleted-{release}"
    prepare_group(broker, client, group, topic)
    tool = "kafka.admin.ConsumerGroupCommand"
    assert group in run(broker, release, tool, "--list").splitlines()
    described = [line.split() for line in run(broker, release, tool, "--describe", "--group", group).splitlines()]
    for partition in range(PARTITIONS):
        numbers = [str(partition), "2", "2", "0"]
        assert any(topic in line and numbers == line[line.index(topic) + 1 :][:4] for line in described), described
    deleted = run(broker, release, tool, "--delete", "--group", group)
    assert f"Deleted all consumer group information for group {group} in zookeeper." in deleted.replace("'", "")
    assert client.exists(f"/consumers/{group}") is None
