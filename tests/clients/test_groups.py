"""Groups with every client: a group continues where it stopped, and its members share the partitions."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, ConsumerGroupListing

from tests.clients.client import GroupClient
from tests.clients.confluent_client import group_consumer, poll_until, received_record
from tests.clients.conftest import CLIENTS
from tests.clients.java_client import JavaClient
from tests.clients.records import SentRecord, assert_same, by_partition, make_records

PARTITIONS = 4
COUNT = 200
ASSIGNORS = ("range", "roundrobin", "cooperative-sticky")
Clients = Callable[[str], GroupClient]
NewTopic = Callable[[int], str]
NewMember = Callable[..., "MemberThread"]


@pytest.fixture
def group() -> str:
    return f"group-{uuid.uuid4()}"


@pytest.mark.parametrize("name", CLIENTS)
def test_a_group_goes_on_where_it_stopped(
    name: str, clients: Clients, new_topic: NewTopic, bootstrap: str, group: str
) -> None:
    topic, client = new_topic(PARTITIONS), clients(name)
    sent = make_records(COUNT, PARTITIONS, text=True)
    writer = clients("confluent-kafka")
    writer.produce(bootstrap, topic, "none", sent)
    first = client.consume_in_group(bootstrap, topic, group, COUNT)
    assert_same(sent, first)
    more = make_records(COUNT, PARTITIONS, seed=1, text=True)
    writer.produce(bootstrap, topic, "none", more)
    second = client.consume_in_group(bootstrap, topic, group, COUNT)
    assert_same(sent + more, first + second)


def committed(bootstrap: str, group: str, topic: str, partitions: int) -> dict[int, int]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    try:
        found = consumer.committed([TopicPartition(topic, number) for number in range(partitions)], timeout=30)
        return {entry.partition: entry.offset for entry in found}
    finally:
        consumer.close()


@pytest.fixture
def new_member(bootstrap: str, group: str) -> Iterator[Callable[..., MemberThread]]:
    """Starts members of the test's group, and stops those that still run at its end."""
    started: list[MemberThread] = []

    def start(topic: str, assignor: str, **properties: str) -> MemberThread:
        member = MemberThread(bootstrap, topic, group, assignor, **properties)
        started.append(member)
        member.start()
        return member

    yield start
    for member in started:
        member.stop()


class MemberThread(threading.Thread):
    """A member with librdkafka that reads until `stop` is called, then commits and leaves the group."""

    def __init__(self, bootstrap: str, topic: str, group: str, assignor: str, **properties: str) -> None:
        super().__init__(daemon=True)
        self.received: list[SentRecord] = []
        self.assigned: set[int] = set()
        self.rebalances = 0
        self._stopping = threading.Event()
        self._consumer = group_consumer(
            bootstrap,
            group,
            **{"partition.assignment.strategy": assignor, "heartbeat.interval.ms": 500, **properties},
        )
        self._consumer.subscribe([topic], on_assign=self._on_assign, on_revoke=self._on_revoke)

    def run(self) -> None:
        while not self._stopping.is_set():
            for message in self._consumer.consume(100, 0.1):
                assert message.error() is None
                self.received.append(received_record(message))
        commit_consumed(self._consumer)
        self._consumer.close()

    def stop(self) -> None:
        self._stopping.set()
        self.join(30)
        assert not self.is_alive()

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self.rebalances += 1
        self.assigned |= {entry.partition for entry in partitions}

    def _on_revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self.assigned -= {entry.partition for entry in partitions}
        commit_consumed(consumer)


def commit_consumed(consumer: Consumer) -> None:
    """Commits the positions of the assigned partitions; it is no error if nothing was consumed."""
    try:
        consumer.commit(asynchronous=False)
    except KafkaException as error:
        # The assertion is outside of the handler, because librdkafka's error object in an exception's context
        # confuses traceback formatting.
        code = error.args[0].code()
    else:
        return
    assert code == KafkaError._NO_OFFSET, code


def wait_until(is_true: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 60
    while not is_true():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_members_share_the_partitions(
    assignor: str, clients: Clients, new_topic: NewTopic, new_member: NewMember, bootstrap: str, group: str
) -> None:
    """A third member joins two, and one leaves: each partition has one reader, each record is read once."""
    topic = new_topic(PARTITIONS)
    writer = clients("confluent-kafka")
    members = [new_member(topic, assignor) for _ in range(2)]
    sent: list[SentRecord] = []

    def read_all() -> None:
        records = make_records(COUNT, PARTITIONS, seed=len(sent), text=True)
        writer.produce(bootstrap, topic, "none", records)
        sent.extend(records)
        wait_until(lambda: sum(len(member.received) for member in members) >= len(sent), "all records are read")

    def wait_for_shares(*shares: int) -> None:
        alive = [member for member in members if member.is_alive()]
        wait_until(
            lambda: sorted(len(member.assigned) for member in alive) == sorted(shares),
            f"{shares}, not {[member.assigned for member in alive]}",
        )
        assert set().union(*(member.assigned for member in alive)) == set(range(PARTITIONS))

    wait_for_shares(2, 2)
    read_all()
    members.append(new_member(topic, assignor))
    wait_for_shares(1, 1, 2)
    read_all()
    members[0].stop()
    wait_for_shares(2, 2)
    read_all()
    for member in members[1:]:
        member.stop()
    received = [record for member in members for record in member.received]
    assert_same(sent, sorted(received, key=lambda record: (record.partition, record.offset)))
    offsets = {partition: len(records) for partition, records in by_partition(sent).items()}
    assert committed(bootstrap, group, topic, PARTITIONS) == offsets


@pytest.mark.parametrize(
    ("partitions", "members", "shares"), [(2, 1, [2]), (2, 2, [1, 1]), (2, 3, [0, 1, 1]), (10, 5, [2] * 5)]
)
def test_shares(partitions: int, members: int, shares: list[int], new_topic: NewTopic, new_member: NewMember) -> None:
    topic = new_topic(partitions)
    threads = [new_member(topic, "roundrobin") for _ in range(members)]
    wait_until(
        lambda: sorted(len(thread.assigned) for thread in threads) == shares,
        f"{shares}, not {[thread.assigned for thread in threads]}",
    )


def test_two_groups_share_a_topic_each_for_itself(
    new_topic: NewTopic, new_member: NewMember, clients: Clients, bootstrap: str, group: str
) -> None:
    """Four members have one of four partitions each, two members two each; both groups read every record."""
    topic = new_topic(PARTITIONS)
    groups = [[new_member(topic, "range", **{"group.id": f"{group}-{size}"}) for _ in range(size)] for size in (4, 2)]
    for members, shares in zip(groups, ([1] * 4, [2] * 2), strict=True):
        wait_until(lambda: [len(member.assigned) for member in members] == shares, f"{shares}")  # noqa: B023
    sent = make_records(COUNT, PARTITIONS, text=True)
    clients("confluent-kafka").produce(bootstrap, topic, "none", sent)
    for members in groups:
        wait_until(lambda: sum(len(member.received) for member in members) >= COUNT, "all is read")  # noqa: B023
        received = [record for member in members for record in member.received]
        assert_same(sent, sorted(received, key=lambda record: (record.partition, record.offset)))


def test_an_idle_member_takes_over(new_topic: NewTopic, new_member: NewMember) -> None:
    topic = new_topic(2)
    threads = [new_member(topic, "range") for _ in range(3)]
    wait_until(lambda: sorted(len(thread.assigned) for thread in threads) == [0, 1, 1], "one is idle")
    busy = next(thread for thread in threads if thread.assigned)
    busy.stop()
    others = [thread for thread in threads if thread is not busy]
    wait_until(lambda: [len(thread.assigned) for thread in others] == [1, 1], "the idle one has taken over")


def test_a_restarted_static_member_causes_no_rebalance(new_topic: NewTopic, new_member: NewMember) -> None:
    topic = new_topic(2)
    threads = [new_member(topic, "range", **{"group.instance.id": f"instance-{number}"}) for number in range(2)]
    wait_until(lambda: [len(thread.assigned) for thread in threads] == [1, 1], "both have a partition")
    before, rebalances = set(threads[1].assigned), threads[0].rebalances
    threads[1].stop()
    again = new_member(topic, "range", **{"group.instance.id": "instance-1"})
    wait_until(lambda: again.assigned == before, "it has its partition back")
    assert threads[0].rebalances == rebalances


def test_java_and_librdkafka_in_one_group(
    clients: Clients, new_topic: NewTopic, new_member: NewMember, bootstrap: str, group: str
) -> None:
    topic = new_topic(PARTITIONS)
    java = clients("java-4.3")
    assert isinstance(java, JavaClient)
    half = COUNT // 2
    settings = ("partition.assignment.strategy=org.apache.kafka.clients.consumer.RangeAssignor",)
    process = java.member(bootstrap, topic, group, half, *settings)
    member = new_member(topic, "range")
    admin = AdminClient({"bootstrap.servers": bootstrap})
    wait_until(lambda: len(member.assigned) == 2 and _member_count(admin, group) == 2, "both share the topic")
    sent = make_records(COUNT, PARTITIONS, text=True)
    clients("confluent-kafka").produce(bootstrap, topic, "lz4", sent)
    wait_until(lambda: len(member.received) >= half, "librdkafka has read its half")
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors[-4000:]
    member.stop()
    theirs = [SentRecord.from_line(line) for line in output.splitlines() if line.count("\t") == 5]
    received = theirs + [record for record in member.received if record not in theirs]
    assert_same(sent, sorted(received, key=lambda record: (record.partition, record.offset)))


def _member_count(admin: AdminClient, group: str) -> int:
    return len(admin.describe_consumer_groups([group])[group].result(30).members)


def test_administration_of_groups(clients: Clients, new_topic: NewTopic, bootstrap: str, group: str) -> None:
    topic = new_topic(1)
    sent = make_records(10, 1, text=True)
    clients("confluent-kafka").produce(bootstrap, topic, "none", sent)
    consumer = group_consumer(bootstrap, group)
    consumer.subscribe([topic])
    poll_until(consumer, lambda received: len(received) >= 10)
    consumer.commit(asynchronous=False)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    described = admin.describe_consumer_groups([group])[group].result(30)
    assert (described.state.name, described.partition_assignor) == ("STABLE", "range")
    (member,) = described.members
    assert [(entry.topic, entry.partition) for entry in member.assignment.topic_partitions] == [(topic, 0)]
    with pytest.raises(Exception, match=r"NON_EMPTY_GROUP|not empty"):
        admin.delete_consumer_groups([group])[group].result(30)
    consumer.close()
    listed = {entry.group_id: entry for entry in admin.list_consumer_groups().result(30).valid}
    assert isinstance(listed[group], ConsumerGroupListing)
    assert listed[group].state.name == "EMPTY"
    assert committed(bootstrap, group, topic, 1) == {0: 10}
    admin.delete_consumer_groups([group])[group].result(30)
    assert group not in {entry.group_id for entry in admin.list_consumer_groups().result(30).valid}
    assert committed(bootstrap, group, topic, 1) == {0: -1001}  # librdkafka's value for no committed offset
