"""Groups of unmodified clients: members join, leave, crash and stall; each record is read once.

Static members restart one after the other without a rebalance. KAFKAPY_TEST_SERVER=apache tests Apache Kafka instead.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from kafkapy.errors import Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.heartbeat import HeartbeatRequest
from tests.broker_process import BrokerProcess
from tests.clients.conftest import create_topic
from tests.clients.members.member import (
    ASSIGNORS,
    MAX_POLL_MS,
    WITH_STATIC_MEMBERS,
    GroupOfMembers,
    Member,
    MemberPrograms,
)
from tests.old_client import ask
from tests.peers import ApacheKafka, kafka_directory
from tests.server_process import ServerProcess

PARTITIONS = 4
RECORDS = 40
PROPERTIES = {
    "group.min.session.timeout.ms": "1000",
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "3000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "300",
}
# The clients of the default run; tests/full passes the course with all of them.
SAMPLE = ("java-4.3-consumer", "java-0.10.1", "librdkafka", "kafkajs")
NewGroup = Callable[[str, str], GroupOfMembers]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    directory = tmp_path_factory.mktemp("server")
    made: ServerProcess = BrokerProcess(directory, PROPERTIES)
    if os.environ.get("KAFKAPY_TEST_SERVER") == "apache":
        made = ApacheKafka(kafka_directory("4.3.0"), directory, heap=("-Xmx512M",), properties=PROPERTIES)
    with made as running:
        yield running


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> MemberPrograms:
    return MemberPrograms(tmp_path_factory.mktemp("programs"))


@pytest.fixture
def name() -> str:
    """Returns the name of both the test's topic and its group."""
    return f"members-{uuid.uuid4()}"


@pytest.fixture
def new_group(server: ServerProcess, programs: MemberPrograms, name: str, tmp_path: Path) -> Iterator[NewGroup]:
    made: list[GroupOfMembers] = []

    def create(client: str, assignor: str) -> GroupOfMembers:
        create_topic(server.bootstrap, name, PARTITIONS)
        command = programs.command(client)
        made.append(GroupOfMembers(command, client, assignor, server.bootstrap, name, name, tmp_path))
        return made[-1]

    yield create
    for group in made:
        group.close()


class Course:
    """Writes records and checks that the members together read each of them exactly once."""

    def __init__(self, server: ServerProcess, topic: str, group: GroupOfMembers) -> None:
        self._producer = Producer({"bootstrap.servers": server.bootstrap})
        self._topic = topic
        self._group = group
        self._sent = 0

    def read_all(self) -> None:
        for number in range(RECORDS):
            self._producer.produce(self._topic, b"%d" % number, partition=number % PARTITIONS)
        assert self._producer.flush(30) == 0
        self._sent += RECORDS // PARTITIONS
        expected = [(partition, offset) for partition in range(PARTITIONS) for offset in range(self._sent)]
        self._group.wait(lambda: len(self._group.records()) >= len(expected), "all is read")
        assert self._group.records() == expected


@pytest.mark.timeout(300)
@pytest.mark.parametrize("client", SAMPLE)
def test_join_leave_crash_and_stall(client: str, new_group: NewGroup, server: ServerProcess, name: str) -> None:
    join_leave_crash_and_stall(client, new_group, server, name)


def join_leave_crash_and_stall(client: str, new_group: NewGroup, server: ServerProcess, name: str) -> None:
    group = new_group(client, ASSIGNORS[client][-1])
    course = Course(server, name, group)
    first, second = group.start(), group.start()
    group.wait_for_shares(PARTITIONS, 2, 2)
    course.read_all()
    third = group.start()
    group.wait_for_shares(PARTITIONS, 1, 1, 2)
    course.read_all()
    second.stop()
    group.wait_for_shares(PARTITIONS, 2, 2)
    course.read_all()
    third.crash()
    group.wait_for_shares(PARTITIONS, 4)
    course.read_all()
    fourth = group.start()
    group.wait_for_shares(PARTITIONS, 2, 2)
    stall_until_others_have_all(client, first, group, fourth)
    group.wait_for_shares(PARTITIONS, 2, 2)
    course.read_all()


def stall_until_others_have_all(client: str, member: Member, group: GroupOfMembers, other: Member) -> None:
    """Stalls a member for longer than max.poll.interval.ms; freezes KafkaJS, which has no such setting."""
    if client == "kafkajs":
        member.freeze()
    else:
        member.stall(3 * MAX_POLL_MS)
    group.wait_for_shares(PARTITIONS, 4, among=[other])
    member.thaw()


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("client", "assignor"), [(client, assignor) for client, names in ASSIGNORS.items() for assignor in names[:-1]]
)
def test_every_assignor_shares(
    client: str, assignor: str, new_group: NewGroup, server: ServerProcess, name: str
) -> None:
    group = new_group(client, assignor)
    course = Course(server, name, group)
    first, _ = group.start(), group.start()
    group.wait_for_shares(PARTITIONS, 2, 2)
    course.read_all()
    first.stop()
    group.wait_for_shares(PARTITIONS, 4)
    course.read_all()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("client", WITH_STATIC_MEMBERS)
def test_a_rolling_restart_of_static_members_causes_no_rebalance(
    client: str, new_group: NewGroup, server: ServerProcess, name: str
) -> None:
    group = new_group(client, "range")
    course = Course(server, name, group)
    members = {instance: group.start(instance) for instance in ("one", "two")}
    group.wait_for_shares(PARTITIONS, 2, 2)
    course.read_all()
    before = {instance: member.assigned() for instance, member in members.items()}
    generation = generation_of(server, name)
    for instance in members:
        members[instance].crash()
        members[instance] = group.start(instance)
        group.wait(lambda: members[instance].assigned() == before[instance], "it has its partitions back")  # noqa: B023
    course.read_all()
    assert generation_of(server, name) == generation


def generation_of(server: ServerProcess, group: str) -> int:
    """Returns the group's generation: the one for which the coordinator accepts a heartbeat of a member."""
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    member = admin.describe_consumer_groups([group])[group].result(30).members[0]
    for generation in range(1, 100):
        request = HeartbeatRequest(
            group_id=group,
            generation_id=generation,
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
        )
        error = Error(ask(server, ApiKey.HEARTBEAT, 3, request).error_code)
        if error is Error.NONE:
            return generation
        assert error is Error.ILLEGAL_GENERATION, error
    raise AssertionError("no generation")
