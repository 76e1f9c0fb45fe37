"""The tools for groups in ZooKeeper print the same as those of Apache Kafka 0.10.1.1."""

from __future__ import annotations

import subprocess

import pytest

from kafkapy.client.admin import Admin, NewTopic
from kafkapy.client.producer import Producer
from kafkapy.tools.zookeeper.client import ZooKeeperClient
from kafkapy.types import TopicPartition
from tests.clients.legacy.installation import java_command, java_jars
from tests.tools.tool_host import run_ours
from tests.zookeeper.listening_broker import ListeningBroker

pytestmark = pytest.mark.peer

CHECKER = ("consumer-offset-checker", "kafka.tools.ConsumerOffsetChecker")
GROUPS = ("consumer-groups", "kafka.admin.ConsumerGroupCommand")
NODES = {
    "/consumers/g1/ids": b"",
    "/consumers/g1/offsets/t1/0": b"2",
    "/consumers/g1/offsets/t1/1": b"5",
    "/consumers/g1/owners/t1/0": b"g1_host-1-0",
    "/consumers/g1/owners/t2": b"",
    "/consumers/g2/ids/g2_host-1": b'{"version":1,"subscription":{"t1":1},"pattern":"static","timestamp":"1"}',
    "/consumers/g2/offsets/t1/0": b"1",
}


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    with ListeningBroker(tmp_path_factory.mktemp("groups")) as broker:
        with Admin(bootstrap_servers=broker.bootstrap) as admin:
            admin.create_topics([NewTopic("t1", 2, 1), NewTopic("t2", 1, 1)]).check()
            # The oldest tools do not wait until the coordinator of a group in a new cluster has loaded its partition.
            for group in ("g1", "g2"):
                admin.alter_group_offsets(group, {TopicPartition("t1", 0): 0}).check()
            admin.delete_groups(["g1", "g2"]).check()
        with Producer(bootstrap_servers=broker.bootstrap) as producer:
            for number in range(10):
                producer.send("t1", value=b"x", partition=number % 2)
        yield broker


@pytest.fixture
def client(broker):
    """Yields a client of the tree, whose only group nodes are those in NODES."""
    with ZooKeeperClient(broker.zookeeper) as client:
        for group in client.children("/consumers")[0]:
            client.delete_all(f"/consumers/{group}")
        for path, data in NODES.items():
            client.ensure(path, data)
        yield client


def theirs(broker, class_name, *words):
    """Returns what a program of 0.10.1.1 prints to standard output."""
    command = [*java_command(), "-cp", f"{java_jars('kafka_2.11', '0.10.1.1')}/*", class_name, *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=90, check=True).stdout


def compared(broker, names, *words):
    """Returns what our tool prints, after comparing it with Apache Kafka's."""
    words = ("--zookeeper", broker.zookeeper, *words)
    found = run_ours(names[0], *words).out
    assert found == theirs(broker, names[1], *words)
    return found


def test_the_offset_checker(broker, client):
    text = compared(broker, CHECKER, "--group", "g1", "--topic", "t1", "--broker-info")
    assert [line.split() for line in text.splitlines()[1:]] == [
        ["g1", "t1", "0", "2", "5", "3", "g1_host-1-0"],
        ["g1", "t1", "1", "5", "5", "0", "none"],
        ["BROKER", "INFO"],
        ["1", "->", broker.bootstrap],
    ]
    all_topics = run_ours(CHECKER[0], "--zookeeper", broker.zookeeper, "--group", "g1").out
    assert all_topics.splitlines()[-1].split() == ["g1", "t2", "0", "unknown", "0", "unknown", "none"]
    missing = run_ours(CHECKER[0], "--zookeeper", broker.zookeeper, "--group", "none")
    assert (missing.code, missing.out) == (1, "")
    assert missing.err == "Exiting due to: the group none does not exist below /consumers.\n"


def test_a_committed_offset_of_the_coordinator_precedes_that_of_zookeeper(broker, client):
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        admin.alter_group_offsets("g1", {TopicPartition("t1", 0): 4}).check()
        try:
            text = compared(broker, GROUPS, "--describe", "--group", "g1")
        finally:
            admin.delete_groups(["g1"]).check()
    rows = [line.split() for line in text.splitlines()]
    assert rows[0] == ["GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "OWNER"]
    assert rows[1:3] == [
        ["g1", "t1", "0", "4", "5", "1", "g1_host-1-0"],
        ["g1", "t1", "1", "5", "5", "0", "none"],
    ]


def test_groups_are_listed_and_those_without_members_deleted(broker, client):
    assert run_ours(GROUPS[0], "--zookeeper", broker.zookeeper, "--list").out == "g1\ng2\n"

    def delete(*words, code=0):
        done = run_ours(GROUPS[0], "--zookeeper", broker.zookeeper, "--delete", *words)
        assert (done.code, done.err) == (code, "")
        return done.out

    active = "Delete for group g2 failed because its consumers are still active.\n"
    assert delete("--group", "g2", code=1) == active
    assert theirs(broker, GROUPS[1], "--zookeeper", broker.zookeeper, "--delete", "--group", "g2") == active
    active = "Delete for group g2 topic t1 failed because its consumers are still active.\n"
    assert delete("--group", "g2", "--topic", "t1", code=1) == active
    deleted = "Deleted consumer group information for group g1 topic t1 in zookeeper.\n"
    assert delete("--group", "g1", "--topic", "t1") == deleted
    assert client.exists("/consumers/g1/offsets/t1") is None
    assert client.exists("/consumers/g1/owners/t2") is not None
    deleted = "Deleted consumer group information for all inactive consumer groups for topic t1 in zookeeper.\n"
    assert delete("--topic", "t1") == deleted
    assert delete("--group", "g1") == "Deleted all consumer group information for group g1 in zookeeper.\n"
    assert client.exists("/consumers/g1") is None
    assert delete("--group", "g1", code=1) == "Delete for group g1 failed because group does not exist.\n"
    assert client.exists("/consumers/g2/offsets/t1/0") is not None


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("--delete", "Option [delete] either takes [group], [topic], or both"),
        ("--describe", 'Missing required argument "[group]"'),
        ("--list --bootstrap-server a:1", "Option [bootstrap-server] is not valid with [zookeeper]."),
        ("--list --all-groups", "Option [all-groups] is not valid with [zookeeper]."),
        ("--reset-offsets", "Command must include exactly one action with [zookeeper]: --list, --describe, --delete"),
    ],
)
def test_flags_that_do_not_go_with_zookeeper_are_refused(words, error):
    done = run_ours(GROUPS[0], "--zookeeper", "localhost:1", *words.split())
    assert done.code == 1
    assert done.err.startswith(f"{error}\n")


def test_offsets_are_exported_and_imported(broker, client, tmp_path):
    file, other = tmp_path / "offsets", tmp_path / "other"
    zookeeper = ("--zkconnect", broker.zookeeper)
    assert run_ours("export-zk-offsets", *zookeeper, "--output-file", str(file)) == (0, "", "")
    theirs(broker, "kafka.tools.ExportZkOffsets", *zookeeper, "--output-file", str(other))
    lines = file.read_text().splitlines()
    assert lines == ["/consumers/g1/offsets/t1/0:2", "/consumers/g1/offsets/t1/1:5", "/consumers/g2/offsets/t1/0:1"]
    assert sorted(other.read_text().splitlines()) == lines
    file.write_text("/consumers/g1/offsets/t1/0:3\n/consumers/new/offsets/t1/1:7\n")
    assert run_ours("import-zk-offsets", *zookeeper, "--input-file", str(file)) == (0, "", "")
    assert client.get("/consumers/g1/offsets/t1/0")[0] == b"3"
    assert client.get("/consumers/new/offsets/t1/1")[0] == b"7"
    file.write_text("/consumers/g1/offsets/t1/0:4\n/brokers/ids/1:7\n")
    done = run_ours("import-zk-offsets", *zookeeper, "--input-file", str(file))
    assert done.code == 1
    assert "line 2: expected /consumers/GROUP/offsets/TOPIC/PARTITION:OFFSET, not '/brokers/ids/1:7'" in done.err
    assert client.get("/consumers/g1/offsets/t1/0")[0] == b"3"
    done = run_ours("export-zk-offsets", *zookeeper, "--group", "none", "--output-file", str(file))
    assert (done.code, done.err) == (1, "The group none does not exist below /consumers.\n")
