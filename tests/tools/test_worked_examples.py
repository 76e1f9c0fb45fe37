"""Worked examples of books on Kafka, with the output of Apache Kafka 4.

The output differs from that of the books (Apache Kafka 0.10 to 2.0) in the following:

- `Created topic "x".` is `Created topic x.`;
- `--describe` has TopicId, Elr and LastKnownElr, tabs between the columns and `Topic: x` where it was `Topic:x`;
- the Configs of a topic include keys of the broker's configuration (here min.insync.replicas);
- `--alter` no longer changes the configuration (kafka-configs does), and prints nothing when it adds partitions;
- `--delete` prints nothing;
- the error for replicas that cannot be placed has another text;
- `Updated config for entity: brokers '1'.` is `Completed updating config for broker 1.`;
- a group without members is described with its offsets and "has no active members", where it was "is rebalancing";
- `Deleted all consumer group information for group x in zookeeper.` is `Deletion of requested consumer groups ('x') was
  successful.`;
- kafka.tools.GetOffsetShell lists partitions from 0 on, where the book has 2, 1, 0.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkapy.client import Consumer, Producer
from tests.broker_process import BrokerProcess
from tests.tools.tool_host import Done, run_ours

# The configuration that every topic has: the default that the cluster's features set.
OF_THE_CLUSTER = "min.insync.replicas=1"


class Shell:
    """A user of the tools with one broker."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def run(self, command: str) -> Done:
        tool, *words = command.split()
        return run_ours(tool, "--bootstrap-server", self.bootstrap, *words)

    def out(self, command: str, code: int = 0) -> str:
        done = self.run(command)
        assert done.code == code, done
        return done.out

    def described(self, topic: str) -> list[str]:
        """Returns the lines of --describe without the topic's id."""
        return re.sub(r"\tTopicId: \S+", "", self.out(f"topics --describe --topic {topic}")).splitlines()


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    with BrokerProcess(tmp_path_factory.mktemp("broker")) as broker:
        yield Shell(broker.bootstrap)


def head(topic: str, partitions: int, *configs: str) -> str:
    shown = ",".join(sorted((OF_THE_CLUSTER, *configs)))
    return f"Topic: {topic}\tPartitionCount: {partitions}\tReplicationFactor: 1\tConfigs: {shown}"


def line(topic: str, partition: int) -> str:
    return f"\tTopic: {topic}\tPartition: {partition}\tLeader: 1\tReplicas: 1\tIsr: 1\tElr: \tLastKnownElr: "


def test_create_and_list(shell: Shell) -> None:
    assert shell.out("topics --create --topic kafka-action --partitions 3 --replication-factor 1") == (
        "Created topic kafka-action.\n"
    )
    assert "kafka-action\n" in shell.out("topics --list")
    assert shell.described("kafka-action") == [
        head("kafka-action", 3),
        *(line("kafka-action", partition) for partition in range(3)),
    ]
    assert shell.out("topics --create --topic too-many --partitions 1 --replication-factor 4", code=1) == (
        "Error while executing topic command : Unable to replicate the partition 4 time(s): The target replication "
        "factor of 4 cannot be reached because only 1 broker(s) are registered or some brokers have all their log "
        "directories cordoned.\n"
    )
    assert "too-many" not in shell.out("topics --list")


def test_configuration_of_a_topic(shell: Shell) -> None:
    """The book's test creates a topic with an override, changes, adds and deletes overrides, and adds partitions."""
    shell.out(
        "topics --create --topic config-test --partitions 3 --replication-factor 1 --config max.message.bytes=404800"
    )
    assert shell.described("config-test")[0] == head("config-test", 3, "max.message.bytes=404800")
    alter = "configs --alter --entity-type topics --entity-name config-test"
    assert (
        shell.out(f"{alter} --add-config max.message.bytes=204800")
        == "Completed updating config for topic config-test.\n"
    )
    shell.out(f"{alter} --add-config segment.bytes=209715200")
    with_both = head("config-test", 3, "max.message.bytes=204800", "segment.bytes=209715200")
    assert shell.described("config-test")[0] == with_both
    overridden = re.sub(
        r"\tTopicId: \S+", "", shell.out("topics --describe --topics-with-overrides --topic config-test")
    )
    assert overridden == f"{with_both}\n"
    shell.out(f"{alter} --delete-config segment.bytes")
    assert shell.described("config-test")[0] == head("config-test", 3, "max.message.bytes=204800")
    assert shell.out("configs --describe --entity-type topics --entity-name config-test") == (
        "Dynamic configs for topic config-test are:\n"
        "  max.message.bytes=204800 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:max.message.bytes=204800, "
        "DEFAULT_CONFIG:message.max.bytes=1048588}\n"
    )
    assert shell.out("topics --alter --topic config-test --partitions 5") == ""
    assert shell.described("config-test")[1:] == [line("config-test", partition) for partition in range(5)]


def test_partitions_only_grow(shell: Shell) -> None:
    """The number of partitions is changed from 1 to 3, and a change back to 1 is refused."""
    shell.out("topics --create --topic topic-config --partitions 1")
    assert shell.out("topics --alter --topic topic-config --partitions 3") == ""
    assert shell.described("topic-config")[1:] == [line("topic-config", partition) for partition in range(3)]
    assert shell.out("topics --alter --topic topic-config --partitions 1", code=1) == (
        "Error while executing topic command : The topic topic-config currently has 3 partition(s); 1 would not be an "
        "increase.\n"
    )


def test_filters_of_a_healthy_node_choose_nothing(shell: Shell) -> None:
    assert shell.out("topics --describe --under-replicated-partitions") == ""
    assert shell.out("topics --describe --unavailable-partitions") == ""


def test_delete(shell: Shell) -> None:
    """The default of delete.topic.enable is true since Kafka 1.0."""
    shell.out("topics --create --topic short-lived --partitions 1")
    assert shell.out("topics --delete --topic short-lived") == ""
    assert "short-lived" not in shell.out("topics --list")


def test_delete_where_it_is_switched_off(tmp_path: Path) -> None:
    """The topic and its data remain with delete.topic.enable=false. The book's tool only marked the topic."""
    with BrokerProcess(tmp_path, {"delete.topic.enable": "false"}) as broker:
        shell = Shell(broker.bootstrap)
        shell.out("topics --create --topic kept --partitions 1")
        assert shell.out("topics --delete --topic kept", code=1) == (
            "Error while executing topic command : Topic deletion is disabled.\n"
        )
        assert shell.out("topics --list") == "kept\n"
        assert (broker.data / "kept-0").is_dir()


def test_offsets_of_keyed_records(shell: Shell) -> None:
    """The end offsets add up to sixteen records. The options have a single dash, and the time is -1."""
    shell.out("topics --create --topic keyed --partitions 3")
    with Producer(bootstrap_servers=shell.bootstrap) as producer:
        for number in range(16):
            producer.send("keyed", str(number), key=str(number))
    found = shell.out("get-offsets -topic keyed -time -1").splitlines()
    assert [each.rsplit(":", 1)[0] for each in found] == ["keyed:0", "keyed:1", "keyed:2"]
    assert sum(int(each.rsplit(":", 1)[1]) for each in found) == 16
    assert shell.out("get-offsets --topic=keyed --time -2 --partitions 0,1") == "keyed:0:0\nkeyed:1:0\n"
    class_name = run_ours("get-offsets", "--broker-list", shell.bootstrap, "--topic", "keyed")
    assert class_name.out.splitlines() == found


def test_the_offsets_of_segments(shell: Shell) -> None:
    """`--offsets` prints the end of the log and the beginnings of its segments, the greatest first."""
    shell.out("topics --create --topic rolled --partitions 2 --config segment.bytes=1048576")
    with Producer(bootstrap_servers=shell.bootstrap, batch_size=0) as producer:
        for _ in range(5):
            producer.send("rolled", bytes(500_000), partition=0).result(30)
    form = "get-offsets --broker-list {} --topic rolled --max-wait-ms 1000"
    assert run_ours(*form.format(shell.bootstrap).split(), "--time", "-1", "--offsets", "9").out == (
        "rolled:0:5,4,2,0\nrolled:1:0\n"
    )
    assert shell.out("get-offsets --topic rolled --partitions 0 --offsets 3") == "rolled:0:5,4,2\n"
    assert shell.out("get-offsets --topic rolled --partitions 0 --offsets 3 --time -2") == "rolled:0:0\n"
    now_ms = time.time_ns() // 1_000_000
    assert shell.out(f"get-offsets --topic rolled --partitions 0 --offsets 2 --time {now_ms}") == "rolled:0:4,2\n"
    assert shell.out("get-offsets --topic rolled --partitions 0 --offsets 3 --time 1000") == "rolled:0:\n"
    assert json.loads(shell.out("get-offsets --topic rolled --offsets 2 --json")) == [
        {"topic": "rolled", "partition": 0, "offset": 5},
        {"topic": "rolled", "partition": 0, "offset": 4},
        {"topic": "rolled", "partition": 1, "offset": 0},
    ]
    refused = run_ours("get-offsets", "--bootstrap-server", shell.bootstrap, "--topic", "rolled", "--offsets", "0")
    assert refused.code == 1
    assert "--offsets expects a number of at least 1, but received: 0" in refused.err


def test_offsets_of_a_group(shell: Shell) -> None:
    """The group is described with members and, with a lag of 0, without members; then it is deleted."""
    shell.out("topics --create --topic offset-test --partitions 1")
    with Producer(bootstrap_servers=shell.bootstrap) as producer:
        for number in range(29):
            producer.send("offset-test", str(number))
    group = "consumer-offset-test"
    settings = {"group_id": group, "client_id": "consumer-1", "auto_offset_reset": "earliest"}
    with Consumer(bootstrap_servers=shell.bootstrap, **settings) as consumer:
        consumer.subscribe(["offset-test"])
        count = 0
        while count < 29:
            count += len(consumer.poll(20))
        consumer.commit()
        rows = shell.out(f"consumer-groups --describe --group {group}").splitlines()
        assert rows[1].split() == (
            [
                "GROUP",
                "TOPIC",
                "PARTITION",
                "CURRENT-OFFSET",
                "LOG-END-OFFSET",
                "LAG",
                "CONSUMER-ID",
                "HOST",
                "CLIENT-ID",
            ]
        )
        assert rows[2].split()[:6] == [group, "offset-test", "0", "29", "29", "0"]
        assert rows[2].split()[7:] == ["/127.0.0.1", "consumer-1"]
    done = shell.run(f"consumer-groups --describe --group {group}")
    assert done.err == f"\nConsumer group '{group}' has no active members.\n"
    assert done.out.splitlines()[2].split() == [group, "offset-test", "0", "29", "29", "0", "-", "-", "-"]
    assert group in shell.out("consumer-groups --list").split()
    assert shell.out(f"consumer-groups --delete --group {group}") == (
        f"Deletion of requested consumer groups ('{group}') was successful.\n"
    )


def test_throttles_and_quotas(shell: Shell) -> None:
    """Brackets enclose values with commas; entity flags may be repeated in one command."""
    shell.out("topics --create --topic throttled --partitions 3")
    throttles = (
        "leader.replication.throttled.replicas=[0:1,1:1,2:1],follower.replication.throttled.replicas=[0:1,1:1,2:1]"
    )
    shell.out(f"configs --alter --entity-type topics --entity-name throttled --add-config {throttles}")
    described = shell.out("configs --describe --entity-type topics --entity-name throttled")
    assert "  leader.replication.throttled.replicas=0:1,1:1,2:1 sensitive=false" in described
    rates = "leader.replication.throttled.rate=10485760,follower.replication.throttled.rate=10485760"
    assert shell.out(f"configs --alter --entity-type brokers --entity-name 1 --add-config {rates}") == (
        "Completed updating config for broker 1.\n"
    )
    assert "  leader.replication.throttled.rate=10485760 " in shell.out("configs --describe --broker 1")
    quota = "--add-config producer_byte_rate=1024,consumer_byte_rate=2048"
    assert shell.out(f"configs --alter --entity-type users --entity-name morton {quota}") == (
        "Completed updating config for user morton.\n"
    )
    assert shell.out("configs --describe --entity-type users --entity-name morton") == (
        "Quota configs for user-principal 'morton' are consumer_byte_rate=2048.0, producer_byte_rate=1024.0\n"
    )
    both = "--entity-type users --entity-name morton --entity-type clients --entity-name user-client-config"
    shell.out(f"configs --alter {both} {quota}")
    assert shell.out(f"configs --describe {both}") == (
        "Quota configs for user-principal 'morton', client-id 'user-client-config' are consumer_byte_rate=2048.0, "
        "producer_byte_rate=1024.0\n"
    )


def test_preferred_leaders(shell: Shell, tmp_path: Path) -> None:
    """The only broker is the preferred leader; the tool is kafka-preferred-replica-election's successor."""
    shell.out("topics --create --topic elected --partitions 2")
    file = tmp_path / "partitions.json"
    file.write_text('{"partitions":[{"topic":"elected","partition":1}]}')
    assert shell.out(f"leader-election --election-type preferred --path-to-json-file {file}") == (
        "Valid replica already elected for partitions elected-1\n"
    )


def test_the_performance_tools_show_throttle_times(shell: Shell) -> None:
    """The quotas let a megabyte pass at once, and the tools exceed it."""
    shell.out("topics --create --topic measured")
    shell.out(
        "configs --alter --entity-type clients --entity-name measured --add-config "
        "producer_byte_rate=100000,consumer_byte_rate=100000"
    )
    sizes = "--topic measured --num-records 1300 --command-property client.id=measured --print-metrics"
    produced = shell.out(f"producer-perf-test {sizes} --record-size 1000 --throughput -1")
    consumed = shell.out(f"consumer-perf-test {sizes}")
    for shown, metric in (
        (produced, "producer-metrics:produce-throttle-time"),
        (consumed, "consumer-fetch-manager-metrics:fetch-throttle-time"),
    ):
        for kind in ("avg", "max"):
            (found,) = re.findall(rf"^{metric}-{kind}:{{client-id=measured}} +: ([0-9.]+)$", shown, re.MULTILINE)
            assert float(found) > 0, shown
