"""Consumer groups of KIP-848 with librdkafka and Java: members join, leave, crash and stall; records are read once."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.broker_process import BrokerProcess
from tests.clients.client import Client
from tests.clients.conftest import create_topic
from tests.clients.consumer_member import ConsumerMember
from tests.clients.java_client import JavaClient
from tests.clients.records import SentRecord, assert_same, by_partition, make_records
from tests.peers import ApacheKafka, kafka_directory

PARTITIONS = 4
COUNT = 200
# Times that are short enough for a test and long enough for a busy machine.
PROPERTIES = {
    "group.consumer.heartbeat.interval.ms": "300",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.assignment.interval.ms": "0",
}
Clients = Callable[[str], Client]
NewTopic = Callable[[int], str]
NewMember = Callable[..., ConsumerMember]
_numbers = itertools.count(1)

pytestmark = pytest.mark.timeout(180)


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Returns the address of a broker with a short heartbeat interval."""
    directory = tmp_path_factory.mktemp("consumer-groups")
    if os.environ.get("KAFKAPY_TEST_SERVER") == "apache":
        kafka = ApacheKafka(kafka_directory("4.3.0"), directory, heap=("-Xmx512M",), properties=PROPERTIES)
        with kafka:
            yield kafka.bootstrap
    else:
        with BrokerProcess(directory, PROPERTIES) as broker:
            yield broker.bootstrap


@pytest.fixture
def new_topic(bootstrap: str) -> Callable[[int], str]:
    def create(partitions: int) -> str:
        name = f"consumed-{os.getpid()}-{next(_numbers)}"
        create_topic(bootstrap, name, partitions)
        return name

    return create


@pytest.fixture
def group() -> str:
    return f"group-{uuid.uuid4()}"


@pytest.fixture
def new_member(bootstrap: str, group: str) -> Iterator[NewMember]:
    """Starts members of the test's group, and stops those that still run at its end."""
    started: list[ConsumerMember] = []

    def start(*topics: str, **properties: Any) -> ConsumerMember:
        member = ConsumerMember(bootstrap, list(topics), properties.pop("group", group), **properties)
        started.append(member)
        member.start()
        return member

    yield start
    for member in started:
        if member.is_alive():
            member.stop()


def wait_until(is_true: Callable[[], bool], what: Callable[[], object] = lambda: "") -> None:
    deadline = time.monotonic() + 60
    while not is_true():
        assert time.monotonic() < deadline, what()
        time.sleep(0.02)


def wait_for_shares(members: list[ConsumerMember], *shares: int) -> None:
    """Waits until no partition has two members and the members have these numbers of partitions."""

    def is_shared() -> bool:
        assigned = [each for member in members for each in member.assigned]
        sizes = sorted(len(member.assigned) for member in members)
        return sizes == sorted(shares) and len(assigned) == len(set(assigned))

    wait_until(is_shared, lambda: f"{shares}, not {[sorted(member.assigned) for member in members]}")


def committed(bootstrap: str, group: str, topic: str, partitions: int) -> dict[int, int]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    try:
        found = consumer.committed([TopicPartition(topic, number) for number in range(partitions)], timeout=30)
        return {entry.partition: entry.offset for entry in found}
    finally:
        consumer.close()


def assert_each_read_once(sent: list[SentRecord], members: list[ConsumerMember]) -> None:
    readers: dict[tuple[int, int], list[int]] = {}
    for number, member in enumerate(members):
        for record in member.received:
            readers.setdefault((record.partition, record.offset), []).append(number)
    twice = {place: numbers for place, numbers in readers.items() if len(numbers) > 1}
    assert not twice, f"read by two members: {twice}"
    received = [record for member in members for record in member.received]
    assert_same(sent, sorted(received, key=lambda record: (record.partition, record.offset)))


def test_a_java_member_goes_on_where_it_stopped(
    clients: Clients, new_topic: NewTopic, bootstrap: str, group: str
) -> None:
    topic, java = new_topic(PARTITIONS), clients("java-4.3")
    assert isinstance(java, JavaClient)
    sent = make_records(COUNT, PARTITIONS, text=True)
    writer = clients("confluent-kafka")
    writer.produce(bootstrap, topic, "none", sent)
    first = java.consume_in_group(bootstrap, topic, group, COUNT, "group.protocol=consumer")
    assert_same(sent, first)
    more = make_records(COUNT, PARTITIONS, seed=1, text=True)
    writer.produce(bootstrap, topic, "none", more)
    second = java.consume_in_group(bootstrap, topic, group, COUNT, "group.protocol=consumer")
    assert_same(sent + more, first + second)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    described = admin.describe_consumer_groups([group])[group].result(30)
    assert (described.state.name, described.type.name) == ("EMPTY", "CONSUMER")


@pytest.mark.parametrize("assignor", ["uniform", "range"])
def test_members_share_the_partitions(
    assignor: str, clients: Clients, new_topic: NewTopic, new_member: NewMember, bootstrap: str, group: str
) -> None:
    """A third member joins two, and one leaves: each partition has one reader, each record is read once."""
    topic = new_topic(PARTITIONS)
    writer = clients("confluent-kafka")
    properties = {"group.remote.assignor": assignor}
    members = [new_member(topic, **properties) for _ in range(2)]
    sent: list[SentRecord] = []

    def read_all() -> None:
        records = make_records(COUNT, PARTITIONS, seed=len(sent), text=True)
        writer.produce(bootstrap, topic, "none", records)
        sent.extend(records)
        wait_until(lambda: sum(len(member.received) for member in members) >= len(sent))

    wait_for_shares(members, 2, 2)
    read_all()
    members.append(new_member(topic, **properties))
    wait_for_shares(members, 1, 1, 2)
    read_all()
    members[0].stop()
    wait_for_shares(members[1:], 2, 2)
    read_all()
    for member in members[1:]:
        member.stop()
    assert_each_read_once(sent, members)
    offsets = {partition: len(records) for partition, records in by_partition(sent).items()}
    assert committed(bootstrap, group, topic, PARTITIONS) == offsets


@pytest.mark.parametrize(
    ("partitions", "members", "shares"), [(2, 1, [2]), (2, 2, [1, 1]), (2, 3, [0, 1, 1]), (10, 5, [2] * 5)]
)
def test_shares(partitions: int, members: int, shares: list[int], new_topic: NewTopic, new_member: NewMember) -> None:
    topic = new_topic(partitions)
    wait_for_shares([new_member(topic) for _ in range(members)], *shares)


def test_two_groups_of_one_topic(new_topic: NewTopic, new_member: NewMember, group: str) -> None:
    topic = new_topic(4)
    wait_for_shares([new_member(topic) for _ in range(4)], 1, 1, 1, 1)
    wait_for_shares([new_member(topic, group=f"{group}-2") for _ in range(2)], 2, 2)


def test_an_idle_member_takes_over(new_topic: NewTopic, new_member: NewMember) -> None:
    topic = new_topic(2)
    members = [new_member(topic) for _ in range(3)]
    wait_for_shares(members, 0, 1, 1)
    busy = next(member for member in members if member.assigned)
    busy.stop()
    wait_for_shares([member for member in members if member is not busy], 1, 1)


def test_a_crashed_member_is_replaced(new_topic: NewTopic, new_member: NewMember, bootstrap: str, group: str) -> None:
    """A killed process does not leave the group; the other member gets its partitions when its session ends."""
    topic = new_topic(2)
    program = Path(__file__).with_name("consumer_program.py")
    victim = subprocess.Popen([sys.executable, str(program), bootstrap, topic, group], stdout=subprocess.PIPE)
    try:
        assert victim.stdout is not None
        assert victim.stdout.readline().split() == [b"assigned", b"2"]
        survivor = new_member(topic)
        wait_for_shares([survivor], 1)
    finally:
        victim.send_signal(signal.SIGKILL)
        victim.communicate()
    wait_for_shares([survivor], 2)


def test_a_member_that_does_not_poll_loses_its_partitions(
    clients: Clients, new_topic: NewTopic, new_member: NewMember, bootstrap: str
) -> None:
    topic = new_topic(2)
    sleeper = new_member(topic, **{"max.poll.interval.ms": 2000})
    wait_for_shares([sleeper], 2)
    sleeper.pause()
    other = new_member(topic)
    wait_for_shares([other], 2)
    sent = make_records(COUNT, 2, text=True)
    clients("confluent-kafka").produce(bootstrap, topic, "none", sent)
    wait_until(lambda: len(other.received) == COUNT)
    sleeper.resume()
    wait_for_shares([sleeper, other], 1, 1)


def test_static_members_restart_without_a_rebalance(new_topic: NewTopic, new_member: NewMember) -> None:
    topic = new_topic(3)
    members = [new_member(topic, **{"group.instance.id": f"instance-{number}"}) for number in range(3)]
    wait_for_shares(members, 1, 1, 1)
    before = [set(member.assigned) for member in members]
    rebalances = [member.rebalances for member in members]
    for number in range(3):
        members[number].stop()
        members[number] = new_member(topic, **{"group.instance.id": f"instance-{number}"})
        wait_until(lambda number=number: members[number].assigned == before[number])  # type: ignore[misc]
        for other in range(number + 1, 3):
            assert members[other].rebalances == rebalances[other]
    assert [member.assigned for member in members] == before


def test_a_regular_expression_finds_topics(new_topic: NewTopic, new_member: NewMember, bootstrap: str) -> None:
    first, second = new_topic(1), new_topic(1)
    member = new_member(f"^{first}|{second}.*|nothing[0-9]{{2}}$")
    wait_until(lambda: member.assigned == {(first, 0), (second, 0)}, lambda: member.assigned)
    create_topic(bootstrap, f"{second}-more", 2)
    wait_until(lambda: len(member.assigned) == 4, lambda: member.assigned)


def test_java_and_librdkafka_in_one_group(
    clients: Clients, new_topic: NewTopic, new_member: NewMember, bootstrap: str, group: str
) -> None:
    topic = new_topic(PARTITIONS)
    java = clients("java-4.3")
    assert isinstance(java, JavaClient)
    half = COUNT // 2
    process = java.member(bootstrap, topic, group, half, "group.protocol=consumer")
    member = new_member(topic)
    wait_until(lambda: member_count(bootstrap, group) == 2)
    wait_for_shares([member], 2)
    sent = make_records(COUNT, PARTITIONS, text=True)
    clients("confluent-kafka").produce(bootstrap, topic, "lz4", sent)
    wait_until(lambda: len(member.received) >= half)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors[-4000:]
    member.stop()
    theirs = [SentRecord.from_line(line) for line in output.splitlines() if line.count("\t") == 5]
    received = theirs + [record for record in member.received if record not in theirs]
    assert_same(sent, sorted(received, key=lambda record: (record.partition, record.offset)))


def member_count(bootstrap: str, group: str) -> int:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    return len(admin.describe_consumer_groups([group])[group].result(30).members)


def test_a_group_changes_its_protocol_with_its_members(
    clients: Clients, new_topic: NewTopic, new_member: NewMember, bootstrap: str, group: str
) -> None:
    """Members of the new protocol replace classic ones one by one, and then the reverse; each record is read once."""
    topic = new_topic(PARTITIONS)
    writer, admin = clients("confluent-kafka"), AdminClient({"bootstrap.servers": bootstrap})
    classic = {
        "group.protocol": "classic",
        "partition.assignment.strategy": "cooperative-sticky",
        "heartbeat.interval.ms": 300,
    }
    sent: list[SentRecord] = []
    everybody: list[ConsumerMember] = []

    def start(**properties: Any) -> ConsumerMember:
        everybody.append(new_member(topic, **properties))
        return everybody[-1]

    def read_all() -> None:
        records = make_records(COUNT, PARTITIONS, seed=len(sent), text=True)
        writer.produce(bootstrap, topic, "none", records)
        sent.extend(records)
        wait_until(lambda: sum(len(member.received) for member in everybody) >= len(sent))

    def kind() -> str:
        listed = admin.list_consumer_groups().result(30).valid
        return next(entry.type.name for entry in listed if entry.group_id == group)

    old = [start(**classic), start(**classic)]
    wait_for_shares(old, 2, 2)
    read_all()
    assert kind() == "CLASSIC"
    new = [start()]
    wait_for_shares([*old, *new], 1, 1, 2)
    assert kind() == "CONSUMER"
    read_all()
    old[0].stop()
    wait_for_shares([old[1], *new], 2, 2)
    new.append(start())
    old[1].stop()
    wait_for_shares(new, 2, 2)
    read_all()
    again = start(**classic)
    wait_for_shares([*new, again], 1, 1, 2)
    read_all()
    for member in new:
        member.stop()
    wait_for_shares([again], PARTITIONS)
    read_all()
    assert kind() == "CLASSIC"
    again.stop()
    assert_each_read_once(sent, everybody)
