"""Streams groups (KIP-1071): the same requests to kafkapy and to Apache Kafka 4.3 get the same responses, and leave the
same records in `__consumer_offsets`."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafkapy.client import Consumer, TopicPartition
from kafkapy.protocol.api import ApiKey, response_class
from kafkapy.protocol.coordinator_record import decode_coordinator_key, decode_coordinator_value
from kafkapy.protocol.messages.create_topics import CreateTopicsRequest
from kafkapy.protocol.messages.delete_groups import DeleteGroupsRequest
from kafkapy.protocol.messages.find_coordinator import FindCoordinatorRequest
from kafkapy.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from kafkapy.protocol.messages.join_group import JoinGroupRequest
from kafkapy.protocol.messages.list_groups import ListGroupsRequest
from kafkapy.protocol.messages.offset_commit import OffsetCommitRequest
from kafkapy.protocol.messages.offset_fetch import OffsetFetchRequest
from kafkapy.protocol.messages.streams_group_describe import StreamsGroupDescribeRequest
from kafkapy.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from tests.api_client import ask
from tests.broker_process import BrokerProcess
from tests.peers import ApacheKafka
from tests.server_process import ServerProcess

Heartbeat = StreamsGroupHeartbeatRequest
GROUP = "application"
SOURCE, REPARTITION, CHANGELOG = "source", "application-words-repartition", "application-counts-changelog"
PROPERTIES = {
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.assignment.interval.ms": "0",
    "group.initial.rebalance.delay.ms": "0",
}
NO_TASKS: dict[str, Any] = {"active_tasks": [], "standby_tasks": [], "warmup_tasks": []}
# The streams groups' records; of the values, the fields that differ between two runs.
STREAMS_KEYS = (17, 19, 20, 21, 22, 23)
NOT_COMPARED = frozenset(("metadata_hash", "assignment_timestamp"))
WAIT_S = 60


def plain(value: Any) -> Any:
    """Returns the fields of a message as comparable values, without the order of Java's maps."""
    if isinstance(value, str) and value.startswith("Internal topics are missing"):
        return sorted(value.replace(",", "").split())
    if hasattr(value, "FIELDS"):
        names = (name for name in value.FIELDS if name not in NOT_COMPARED and name != "unknown_tagged_fields")
        return {name: plain(getattr(value, name)) for name in names}
    if not isinstance(value, list):
        return value
    return sorted(map(plain, value), key=_name)


def _name(value: Any) -> str:
    """Returns the name by which a list is sorted; the order of a list without names remains."""
    return str(value.get("member_id", value.get("topic"))) if isinstance(value, dict) else ""


def topology(epoch: int = 0, source: str = SOURCE) -> Heartbeat.Topology:
    """Returns the topology of a word count."""
    info = Heartbeat.TopicInfo
    config = Heartbeat.KeyValue(key="cleanup.policy", value="compact")
    return Heartbeat.Topology(
        epoch=epoch,
        subtopologies=[
            Heartbeat.Subtopology(subtopology_id="0", source_topics=[source], repartition_sink_topics=[REPARTITION]),
            Heartbeat.Subtopology(
                subtopology_id="1",
                repartition_source_topics=[info(name=REPARTITION)],
                state_changelog_topics=[info(name=CHANGELOG, replication_factor=1, topic_configs=[config])],
            ),
        ],
    )


def tasks(**partitions: list[int]) -> list[Heartbeat.TaskIds]:
    return [Heartbeat.TaskIds(subtopology_id=name[1:], partitions=each) for name, each in partitions.items()]


class StreamsClient:
    """Owns a connection, and collects lines about the broker's responses in `said`."""

    def __init__(self, port: int) -> None:
        self._connection = socket.create_connection(("localhost", port), timeout=30)
        self.said: list[Any] = []

    def close(self) -> None:
        self._connection.close()

    def ask(self, key: ApiKey, version: int, request: Any) -> Any:
        return ask(self._connection, key, version, request, response_class(key))

    def say(self, what: str, response: Any) -> Any:
        self.said.append((what, plain(response)))
        return response

    def heartbeat(self, what: str, member: str = "m1", epoch: int = 0, group: str = GROUP, **fields: Any) -> Any:
        request = Heartbeat(group_id=group, member_id=member, member_epoch=epoch, **fields)
        return self.say(what, self.ask(ApiKey.STREAMS_GROUP_HEARTBEAT, 0, request))

    def join(self, what: str, member: str = "m1", **fields: Any) -> Any:
        joining: dict[str, Any] = {
            "rebalance_timeout_ms": 60_000,
            "process_id": f"process of {member}",
            "topology": topology(),
            **NO_TASKS,
        }
        return self.heartbeat(what, member, **{**joining, **fields})

    def until(self, what: str, is_done: Callable[[Any], bool], member: str, epoch: int, **fields: Any) -> Any:
        """Repeats a heartbeat in the member's newest epoch until `is_done(response)`; adds a line about the last one to
        `said`."""
        deadline = time.monotonic() + WAIT_S
        while True:
            request = Heartbeat(group_id=GROUP, member_id=member, member_epoch=epoch, **fields)
            response = self.ask(ApiKey.STREAMS_GROUP_HEARTBEAT, 0, request)
            if is_done(response):
                return self.say(what, response)
            assert response.error_code == 0 and time.monotonic() < deadline, response
            epoch = response.member_epoch
            time.sleep(0.1)

    def describe(self, what: str, *groups: str) -> None:
        request = StreamsGroupDescribeRequest(group_ids=list(groups or (GROUP,)))
        self.say(what, self.ask(ApiKey.STREAMS_GROUP_DESCRIBE, 0, request))

    def list(self, what: str) -> None:
        self.say(what, self.ask(ApiKey.LIST_GROUPS, 5, ListGroupsRequest(states_filter=[], types_filter=["streams"])))

    def create(self, topic: str, partitions: int) -> None:
        entry = CreateTopicsRequest.CreatableTopic(name=topic, num_partitions=partitions, replication_factor=1)
        created = self.ask(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=[entry], timeout_ms=10_000))
        assert created.topics[0].error_code == 0, created

    def commit(self, what: str, member: str, epoch: int, topic: str = SOURCE, partition: int = 0) -> None:
        entry = OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=partition, committed_offset=5)
        request = OffsetCommitRequest(
            group_id=GROUP,
            member_id=member,
            generation_id_or_member_epoch=epoch,
            topics=[OffsetCommitRequest.OffsetCommitRequestTopic(name=topic, partitions=[entry])],
        )
        self.say(what, self.ask(ApiKey.OFFSET_COMMIT, 9, request))

    def fetch(self, what: str, member: str | None, epoch: int) -> None:
        group = OffsetFetchRequest.OffsetFetchRequestGroup(
            group_id=GROUP, member_id=member, member_epoch=epoch, topics=None
        )
        self.say(what, self.ask(ApiKey.OFFSET_FETCH, 9, OffsetFetchRequest(groups=[group])))

    def join_classic(self, what: str, group: str = GROUP) -> None:
        protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"")
        request = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            protocol_type="consumer",
            protocols=[protocol],
        )
        response = self.ask(ApiKey.JOIN_GROUP, 3, request)
        self.said.append((what, response.error_code))

    def delete(self, what: str) -> None:
        self.say(what, self.ask(ApiKey.DELETE_GROUPS, 2, DeleteGroupsRequest(groups_names=[GROUP])))

    def configure(self, what: str, name: str, value: str) -> None:
        change = IncrementalAlterConfigsRequest.AlterableConfig(name=name, config_operation=0, value=value)
        resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
            resource_type=32, resource_name=GROUP, configs=[change]
        )
        self.say(
            what, self.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, IncrementalAlterConfigsRequest(resources=[resource]))
        )

    def await_coordinator(self) -> None:
        deadline = time.monotonic() + WAIT_S
        while True:
            request = FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP])
            self.ask(ApiKey.FIND_COORDINATOR, 4, request)
            probe = Heartbeat(group_id=GROUP, member_id="nobody", member_epoch=1)
            if self.ask(ApiKey.STREAMS_GROUP_HEARTBEAT, 0, probe).error_code == 69:
                return
            assert time.monotonic() < deadline
            time.sleep(0.1)


def bad_requests(client: StreamsClient) -> None:
    client.heartbeat("unknown group", epoch=1)
    client.heartbeat("leave unknown group", epoch=-1)
    client.heartbeat("static leave", epoch=-2)
    client.heartbeat("low epoch", epoch=-3)
    client.join("no member id", member="")
    client.join("no group id", group="")
    client.join("empty rack", rack_id="")
    client.join("static member", instance_id="i")
    client.join("no timeout", rebalance_timeout_ms=-1)
    client.join("no topology", topology=None)
    client.join("tasks at join", active_tasks=tasks(_0=[0]))
    client.join("no standby tasks", standby_tasks=None)
    client.join("warm-up tasks", warmup_tasks=tasks(_0=[0]))
    client.join("task offsets", task_offsets=[])
    client.join("task end offsets", task_end_offsets=[])
    client.join("internal topic", topology=topology(source="__consumer_offsets"))
    client.join("invalid topic", topology=topology(source="a b"))
    client.heartbeat("topology later", epoch=1, topology=topology())
    client.heartbeat("one kind of tasks", epoch=1, active_tasks=[])
    subtopology = Heartbeat.Subtopology
    info = Heartbeat.TopicInfo(name="t")
    for what, subtopologies in (
        ("no source", [subtopology(subtopology_id="0")]),
        ("regex", [subtopology(subtopology_id="0", source_topic_regex=["a.*"])]),
        ("sized changelog", [subtopology(state_changelog_topics=[Heartbeat.TopicInfo(name="t", partitions=1)])]),
        ("no sink", [subtopology(subtopology_id="0", repartition_source_topics=[info])]),
        ("loop", [subtopology(subtopology_id="0", repartition_source_topics=[info], repartition_sink_topics=["t"])]),
    ):
        client.join(what, topology=Heartbeat.Topology(epoch=0, subtopologies=subtopologies))
    client.describe("no group", GROUP, "")


def life_of_a_group(client: StreamsClient) -> None:
    joined = client.join("source is missing", client_tags=[Heartbeat.KeyValue(key="zone", value="a")])
    client.describe("without source")
    client.create(SOURCE, 2)
    missing = client.until("internal topics", lambda response: _status(response) == 3, "m1", joined.member_epoch)
    first = client.until("tasks", lambda response: _status(response) is None, "m1", missing.member_epoch)
    client.describe("one member")
    client.join("another topology", "m2", topology=topology(source="another"))
    client.join("a newer topology", "m2", topology=topology(epoch=1))
    second = client.join("a second member", "m2", user_endpoint=Heartbeat.Endpoint(host="host", port=7))
    epoch = first.member_epoch
    assert first.active_tasks
    client.heartbeat("a newer epoch", epoch=epoch + 9)
    client.heartbeat("an older epoch", epoch=epoch - 1)
    client.heartbeat("an unknown member", "m3", epoch)
    client.heartbeat("unknown subtopology", epoch=epoch, **{**NO_TASKS, "active_tasks": tasks(_7=[0])})
    client.heartbeat("unknown task", epoch=epoch, **{**NO_TASKS, "active_tasks": tasks(_0=[9])})
    held = {**NO_TASKS, "active_tasks": tasks(_0=[0, 1], _1=[0, 1])}
    left = client.heartbeat("has to revoke", epoch=epoch, **held)
    client.describe("revoking")
    client.commit("commit in the epoch", "m1", epoch)
    client.commit("commit in a newer epoch", "m1", epoch + 5)
    client.commit("commit of an unknown member", "m3", epoch)
    client.fetch("fetch in the epoch", "m1", epoch)
    client.fetch("fetch in another epoch", "m1", epoch + 5)
    client.fetch("fetch of an administrator", None, -1)
    kept = [
        Heartbeat.TaskIds(subtopology_id=each.subtopology_id, partitions=each.partitions) for each in left.active_tasks
    ]
    revoked = client.heartbeat("has revoked", epoch=epoch, **{**NO_TASKS, "active_tasks": kept})
    client.commit("commit in an older epoch", "m1", epoch)
    client.commit("commit of a task of another", "m1", epoch, partition=1)
    client.until(
        "the second member gets tasks", lambda response: bool(response.active_tasks), "m2", second.member_epoch
    )
    client.describe("two members")
    client.list("listed")
    client.join_classic("a classic member")
    client.delete("deletion with members")
    client.configure("standby tasks", "streams.num.standby.replicas", "1")
    client.until(
        "standby tasks of the first", lambda response: bool(response.standby_tasks), "m1", revoked.member_epoch
    )
    client.describe("with standby tasks")
    client.heartbeat("shutdown", epoch=-1, shutdown_application=True)
    client.describe("one has left")
    client.heartbeat("the last one leaves", "m2", -1)
    client.describe("all have left")
    client.join("join again", "m4", topology=topology())
    client.heartbeat("leave again", "m4", -1)
    client.delete("deletion")
    client.describe("deleted")
    client.join_classic("a classic group instead")


def _status(response: Any) -> int | None:
    return response.status[0].status_code if response.status else None


def records_of(server: ServerProcess) -> list[Any]:
    """Returns the records of streams groups, decoded."""
    found = []
    with Consumer({"bootstrap.servers": f"localhost:{server.port}", "auto.offset.reset": "earliest"}) as consumer:
        partitions = [TopicPartition("__consumer_offsets", number) for number in range(50)]
        consumer.assign(partitions)
        ends = consumer.end_offsets(partitions)
        wanted = {partition for partition, end in ends.items() if end}
        deadline = time.monotonic() + WAIT_S
        while wanted:
            assert time.monotonic() < deadline
            for record in consumer.poll(0.5):
                kind = int.from_bytes(record.key[:2], "big")
                if kind in STREAMS_KEYS:
                    value = None if record.value is None else decode_coordinator_value(kind, record.value)
                    found.append((kind, plain(decode_coordinator_key(record.key)), plain(value)))
            wanted = {each for each in wanted if consumer.position(each) < ends[each]}
    return found


@pytest.mark.peer
@pytest.mark.timeout(300)
def test_responses_and_records_are_those_of_apache_kafka(kafka_43: Path, tmp_path: Path) -> None:
    servers = (
        ApacheKafka(kafka_43, tmp_path / "kafka", properties=PROPERTIES),
        BrokerProcess(tmp_path / "kafkapy", PROPERTIES),
    )
    said, records = [], []
    for server in servers:
        server.directory.mkdir(exist_ok=True)
        with server:
            client = StreamsClient(server.port)
            client.await_coordinator()
            bad_requests(client)
            life_of_a_group(client)
            client.close()
            said.append(client.said)
            records.append(records_of(server))
    assert [pair for pair in zip(*said, strict=True) if pair[0] != pair[1]] == []
    theirs, ours = records
    assert ours == theirs
