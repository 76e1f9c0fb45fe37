"""Moves between log directories, compared with Apache Kafka: error codes, Kafka's tools, and moves that the other
broker began."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic

from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from kafkapy.protocol.messages.alter_replica_log_dirs import AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse
from kafkapy.protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from tests.api_client import ask
from tests.broker_process import BrokerProcess
from tests.peers import ApacheKafka, run_tool
from tests.server_process import ServerProcess
from tests.swap.swap import HEAP

TIMEOUT = 60
THROTTLE = "replica.alter.log.dirs.io.max.bytes.per.second"
LONGEST = "x" * 230
VALUE = bytes(range(250)) * 4


def wait_until(condition: Callable[[], object], seconds: int) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.05)


class Directories:
    """The log directories of a server, as its clients see them."""

    def __init__(self, server: ServerProcess, paths: list[Path]) -> None:
        self.server = server
        self.paths = paths
        host, _, port = server.bootstrap.partition(":")
        self._socket = socket.create_connection((host, int(port)))

    def close(self) -> None:
        self._socket.close()

    def alter(self, path: Path | str, *partitions: tuple[str, int], version: int = 2) -> list[int]:
        """Moves partitions to `path` and returns the error code of each partition."""
        request = AlterReplicaLogDirsRequest
        topics = [request.AlterReplicaLogDirTopic(name=name, partitions=[number]) for name, number in partitions]
        asked = request(dirs=[request.AlterReplicaLogDir(path=str(path), topics=topics)])
        answer = ask(self._socket, ApiKey.ALTER_REPLICA_LOG_DIRS, version, asked, AlterReplicaLogDirsResponse)
        codes = {
            (topic.topic_name, each.partition_index): each.error_code
            for topic in answer.results
            for each in topic.partitions
        }
        return [codes[partition] for partition in partitions]

    def reassign(self, topic: str, number: int, replicas: list[int] | None) -> tuple[int, str | None]:
        request = AlterPartitionReassignmentsRequest
        partition = request.ReassignablePartition(partition_index=number, replicas=replicas)
        asked = request(topics=[request.ReassignableTopic(name=topic, partitions=[partition])])
        answer = ask(self._socket, ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, asked, AlterPartitionReassignmentsResponse)
        ((found,),) = [each.partitions for each in answer.responses]
        return found.error_code, found.error_message

    def describe(self, topic: str, number: int) -> dict[Path, tuple[bool, int, int]]:
        """Returns directory -> (True for a future replica, offset lag, size)."""
        answer = ask(
            self._socket, ApiKey.DESCRIBE_LOG_DIRS, 4, DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse
        )
        return {
            Path(result.log_dir): (each.is_future_key, each.offset_lag, each.partition_size)
            for result in answer.results
            for found in result.topics
            if found.name == topic
            for each in found.partitions
            if each.partition_index == number
        }

    def home(self, topic: str, number: int) -> Path:
        (found,) = [path for path, (future, _, _) in self.describe(topic, number).items() if not future]
        return found

    def other(self, topic: str, number: int) -> Path:
        (found,) = set(self.paths) - {self.home(topic, number)}
        return found

    def wait_for_move(self, topic: str, number: int, target: Path) -> None:
        wait_until(lambda: set(self.describe(topic, number)) == {target}, TIMEOUT)


def codes_of(directories: Directories, admin: AdminClient) -> list[object]:
    """Sends every kind of request that can be refused, and returns the error codes."""
    second = directories.paths[1]
    said: list[object] = [
        directories.alter("/nowhere", ("t", 0)),
        directories.alter(second, ("later", 0), ("later", 1)),
    ]
    create(admin, "t", "later", LONGEST)
    for name, number in (("t", 0), ("later", 0), ("later", 1)):
        wait_until(lambda: len(directories.describe(name, number)) == 1, TIMEOUT)  # noqa: B023
    said.append([directories.home("later", number) == second for number in (0, 1)])
    home, other = directories.home("t", 0), directories.other("t", 0)
    for path in ("/nowhere", "", "logs-1", f"{home}/"):
        said.append(directories.alter(path, ("t", 0), version=1))
    said.append(directories.alter(home, ("t", 0), ("t", 7), ("u", 0), (LONGEST, 0), ("x" * 245, 0)))
    said.append(directories.alter(other, ("__cluster_metadata", 0)))
    for replicas in ([1], [7], [1, 7], [1, 1], [], [-1], None):
        said.append(directories.reassign("t", 0, replicas))
    said += [directories.reassign("u", 0, [1]), directories.reassign("t", 9, [1]), directories.reassign("u", 0, None)]
    said.append([directories.alter(other, ("t", 0)), directories.alter(home, ("t", 0))])
    directories.wait_for_move("t", 0, home)  # the first move may already have ended
    return said


def create(admin: AdminClient, *names: str) -> None:
    topics = [NewTopic(name, 2, 1, config={"file.delete.delay.ms": "0"}) for name in names]
    for future in admin.create_topics(topics).values():
        future.result(TIMEOUT)


def produce(bootstrap: str, first: int, count: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, "enable.idempotence": True})
    for number in range(first, first + count):
        producer.produce("t", key=b"%d" % number, value=VALUE, partition=0)
        producer.poll(0)
    assert producer.flush(TIMEOUT) == 0


def consume(bootstrap: str, count: int) -> list[int]:
    """Returns the keys of the partition's first `count` records."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "g", "enable.auto.commit": False})
    consumer.assign([TopicPartition("t", 0, 0)])
    keys: list[int] = []
    while len(keys) < count:
        messages = consumer.consume(count, TIMEOUT)
        assert messages, f"{len(keys)} of {count} records"
        keys += [int(message.key()) for message in messages if not message.error()]
    consumer.close()
    return keys


def set_throttle(admin: AdminClient, rate: str | None) -> None:
    change = AlterConfigOpType.DELETE if rate is None else AlterConfigOpType.SET
    entry = ConfigEntry(THROTTLE, rate, incremental_operation=change)
    resource = ConfigResource(ConfigResource.Type.BROKER, "1", incremental_configs=[entry])
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(TIMEOUT)


def servers(kafka_43: Path, root: Path) -> tuple[ApacheKafka, BrokerProcess]:
    """Returns both brokers, configured for the same two directories; only one may run at a time."""
    kafka = ApacheKafka(kafka_43, root, dynamic=True, heap=HEAP, log_dir_count=2)
    return kafka, BrokerProcess(root, config=kafka.config, port=kafka.port)


@pytest.mark.timeout(300)
def test_codes(kafka_43: Path, tmp_path: Path) -> None:
    said: list[list[object]] = []
    for number in range(2):
        pair = servers(kafka_43, tmp_path / f"{number}")
        with pair[number] as server:
            directories = Directories(server, pair[0].log_dirs)
            said.append(codes_of(directories, AdminClient({"bootstrap.servers": server.bootstrap})))
            directories.close()
    assert said[0] == said[1]


@pytest.mark.timeout(300)
def test_tools(kafka_43: Path, tmp_path: Path) -> None:
    """The tool kafka-reassign-partitions moves a partition between directories, and kafka-log-dirs shows it."""
    kafka, ours = servers(kafka_43, tmp_path)
    with ours:
        admin = AdminClient({"bootstrap.servers": ours.bootstrap})
        create(admin, "t")
        produce(ours.bootstrap, 0, 2000)
        directories = Directories(ours, kafka.log_dirs)
        target = directories.other("t", 0)
        plan = {"topic": "t", "partition": 0, "replicas": [1], "log_dirs": [str(target)]}
        plan_file = tmp_path / "plan.json"
        plan_file.write_text(json.dumps({"version": 1, "partitions": [plan]}))

        def tool(name: str, *arguments: str) -> str:
            return run_tool(kafka_43, name, "--bootstrap-server", ours.bootstrap, *arguments).stdout.decode()

        reassign = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
        executed = tool(reassign, "--reassignment-json-file", str(plan_file), "--execute")
        assert "Successfully started moving log directory" in executed, executed
        directories.wait_for_move("t", 0, target)
        verified = tool(reassign, "--reassignment-json-file", str(plan_file), "--verify")
        assert "Reassignment of replica t-0-1 completed successfully." in verified, verified
        shown = tool("org.apache.kafka.tools.LogDirsCommand", "--describe", "--topic-list", "t")
        (found,) = json.loads(shown.splitlines()[-1])["brokers"]
        assert {each["logDir"]: [one["partition"] for one in each["partitions"]] for each in found["logDirs"]}[
            str(target)
        ].count("t-0") == 1
        assert consume(ours.bootstrap, 2000) == list(range(2000))
        directories.close()
    with kafka:  # which finds partitions only in the directories that the metadata names
        assert consume(kafka.bootstrap, 2000) == list(range(2000))
        assert (target / "t-0").is_dir()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("begun_by", ["kafkapy", "kafka"])
def test_the_other_goes_on_with_a_move(kafka_43: Path, tmp_path: Path, begun_by: str) -> None:
    """The first broker is killed during a move, which a throttle prevents from ending."""
    kafka, ours = servers(kafka_43, tmp_path)
    begins, goes_on = (ours, kafka) if begun_by == "kafkapy" else (kafka, ours)
    with begins:
        admin = AdminClient({"bootstrap.servers": begins.bootstrap})
        create(admin, "t")
        produce(begins.bootstrap, 0, 3000)
        set_throttle(admin, "1")
        directories = Directories(begins, kafka.log_dirs)
        target = directories.other("t", 0)
        assert directories.alter(target, ("t", 0)) == [0]
        wait_until(lambda: directories.describe("t", 0)[target][2] > 0, TIMEOUT)
        is_future, lag, _ = directories.describe("t", 0)[target]
        assert is_future and 0 < lag < 3000
        directories.close()
        produce(begins.bootstrap, 3000, 10)
        begins.kill()
    assert len(list(target.glob("t-0.*-future"))) == 1
    with goes_on:
        admin = AdminClient({"bootstrap.servers": goes_on.bootstrap})
        set_throttle(admin, None)
        directories = Directories(goes_on, kafka.log_dirs)
        produce(goes_on.bootstrap, 3010, 10)
        directories.wait_for_move("t", 0, target)
        produce(goes_on.bootstrap, 3020, 10)
        assert consume(goes_on.bootstrap, 3030) == list(range(3030))
        directories.close()
    assert not list(target.glob("t-0.*-future")) and (target / "t-0").is_dir()
