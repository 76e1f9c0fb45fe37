"""Our consumer: positions, times, pauses, groups and their listeners, commits."""

from __future__ import annotations

import re
import threading
import uuid
from collections.abc import Callable

import pytest
from confluent_kafka import Producer as ConfluentProducer

from kafkapy.client import ConcurrentUse, Consumer, OffsetAndMetadata, Producer, TopicPartition, WakeupError
from kafkapy.errors import ApiError
from tests.clients.confluent_client import ConfluentClient

NewTopic = Callable[[int], str]


@pytest.fixture
def group() -> str:
    return f"group-{uuid.uuid4()}"


@pytest.fixture
def filled(bootstrap: str, new_topic: NewTopic) -> str:
    """Returns a topic with two partitions of 100 records each, whose timestamps are a second apart."""
    topic = new_topic(2)
    with Producer(bootstrap_servers=bootstrap, batch_size=400) as producer:
        for number in range(200):
            producer.send(topic, str(number // 2), partition=number % 2, timestamp=1_700_000_000_000 + number * 1000)
    return topic


def values(consumer: Consumer, count: int) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    while len(found) < count:
        records = consumer.poll(20)
        assert records, f"{len(found)} of {count}"
        found += [(record.partition, int(record.value)) for record in records]
    return found


def test_positions(bootstrap: str, filled: str) -> None:
    first, second = TopicPartition(filled, 0), TopicPartition(filled, 1)
    with Consumer(bootstrap_servers=bootstrap, max_poll_records=7) as consumer:
        consumer.assign([first, second])
        assert (consumer.position(first), consumer.position(second)) == (100, 100)
        assert not consumer.poll(0.1)
        consumer.seek(first, 97)
        assert values(consumer, 3) == [(0, 97), (0, 98), (0, 99)]
        consumer.seek_to_beginning([second])
        assert values(consumer, 7) == [(1, number) for number in range(7)]
        assert (consumer.position(second), consumer.current_lag(second)) == (7, 93)
        consumer.seek_to_end()
        assert consumer.position(second) == 100
        assert consumer.beginning_offsets([first, second]) == {first: 0, second: 0}
        times = {first: 1_700_000_000_000 + 20_500, second: 1_800_000_000_000}
        found = consumer.offsets_for_times(times)
        assert found[first][:2] == (11, 1_700_000_022_000) and found[second] is None
        assert [each.partition for each in consumer.partitions_for(filled)] == [0, 1]


def test_paused_partitions_wait(bootstrap: str, filled: str) -> None:
    first, second = TopicPartition(filled, 0), TopicPartition(filled, 1)
    with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([first, second])
        consumer.pause([first])
        assert {partition for partition, _ in values(consumer, 100)} == {1}
        assert consumer.paused() == {first}
        consumer.resume([first])
        assert values(consumer, 100) == [(0, number) for number in range(100)]


def test_without_a_reset_policy_the_application_hears_of_it(bootstrap: str, filled: str) -> None:
    with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="none") as consumer:
        consumer.assign([(filled, 0)])
        with pytest.raises(ApiError, match="no reset policy"):
            consumer.poll(10)
        consumer.seek(TopicPartition(filled, 0), 1000)
        with pytest.raises(ApiError, match="out of range"):
            consumer.poll(10)


def test_iterating_and_waking(bootstrap: str, filled: str) -> None:
    with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([(filled, 0)])
        records = iter(consumer)
        assert [int(next(records).value) for _ in range(100)] == list(range(100))
        threading.Thread(target=consumer.wakeup).start()
        with pytest.raises(WakeupError):
            next(records)


def repeat(call: Callable[[], object]) -> None:
    """Calls `call` ten times, so that at least one call has to wait.

    A call does not wait if the networking thread already has its result.
    """
    for _ in range(10):
        call()


def test_a_second_thread_is_refused(bootstrap: str, filled: str) -> None:
    """The refusal has the text of Java's consumer."""
    is_inside, may_leave = threading.Event(), threading.Event()

    def hold(topic: str, data: bytes | None) -> bytes | None:
        is_inside.set()
        may_leave.wait(60)
        return data

    settings = {"auto.offset.reset": "earliest", "value.deserializer": hold}
    with Consumer(settings, bootstrap_servers=bootstrap) as consumer:
        consumer.assign([TopicPartition(filled, 0)])
        thread = threading.Thread(target=lambda: values(consumer, 1))
        thread.start()
        assert is_inside.wait(60)
        for call in (consumer.commit, consumer.assignment, consumer.poll, consumer.close):
            with pytest.raises(ConcurrentUse, match="not safe for multi-threaded access") as refusal:
                call()
            assert str(refusal.value).endswith(f"otherThread(id: {thread.ident})")
        may_leave.set()
        thread.join(60)
        assert consumer.assignment() == {TopicPartition(filled, 0)}


def test_positions_and_commits_while_iterating(bootstrap: str, filled: str, group: str) -> None:
    """They follow the records that the iteration has returned, not those that it has fetched ahead."""
    partition = TopicPartition(filled, 0)
    with Consumer(bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="earliest") as consumer:
        consumer.assign([partition])
        records = iter(consumer)
        assert [next(records).offset for _ in range(3)] == [0, 1, 2]
        assert consumer.position(partition) == 3
        consumer.commit()
        committed = consumer.committed([partition])[partition]
        assert committed is not None and committed.offset == 3
        assert next(records).offset == 3
    with Consumer(bootstrap_servers=bootstrap, group_id=group) as consumer:  # after the automatic commit of `close`
        committed = consumer.committed([partition])[partition]
        assert committed is not None and committed.offset == 4


def test_every_call_that_waits_can_be_woken(bootstrap: str, group: str, filled: str) -> None:
    partition, unknown = TopicPartition(filled, 0), TopicPartition("no-such-topic", 0)
    settings = {"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False}
    with Consumer(settings, allow_auto_create_topics=False) as consumer:
        consumer.assign([partition, unknown])
        calls: list[Callable[[], object]] = [
            lambda: consumer.position(unknown),
            lambda: consumer.end_offsets([partition]),
            lambda: consumer.offsets_for_times({partition: 0}),
            lambda: consumer.partitions_for(filled),
            lambda: consumer.committed([partition]),
            lambda: consumer.commit({partition: 7}),
            lambda: consumer.poll(20),
        ]
        for call in calls:
            consumer.wakeup()
            with pytest.raises(WakeupError):
                repeat(call)
        assert consumer.position(partition) in (7, 100)  # The commit may have succeeded although it raised the error.
    with Consumer(bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="earliest") as consumer:
        consumer.subscribe([filled])
        assert values(consumer, 1)
        consumer.wakeup()
    with Consumer(bootstrap_servers=bootstrap, group_id=group) as consumer:
        committed = consumer.committed([partition, TopicPartition(filled, 1)]).values()
        assert any(committed), "closing commits all the same"


class Refusing:
    """A listener that raises an exception when partitions are revoked."""

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        raise ValueError("mine")


def test_what_a_listener_raises_does_not_keep_partitions(bootstrap: str, group: str, filled: str) -> None:
    settings = {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest"}
    settings["partition.assignment.strategy"] = "cooperative-sticky"
    first, second = Consumer(settings), Consumer(settings)
    first.subscribe([filled], Refusing())
    assert len(values(first, 200)) == 200
    second.subscribe([filled])
    complaints = []
    with second:
        for _ in range(600):
            try:
                first.poll(0.05)
            except ValueError as error:
                complaints.append(error)
            second.poll(0.05)
            if len(first.assignment()) == len(second.assignment()) == 1:
                break
        assert len(complaints) == 1
        assert sorted(first.assignment() | second.assignment()) == [(filled, 0), (filled, 1)]
    with pytest.raises(ValueError, match="mine"):
        first.close()


def test_a_fetch_session_of_many_partitions(bootstrap: str, new_topic: NewTopic) -> None:
    topic = new_topic(30)
    with (
        Producer(bootstrap_servers=bootstrap) as producer,
        Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer,
    ):
        consumer.assign([(topic, number) for number in range(30)])
        for turn in range(3):
            for number in range(30):
                producer.send(topic, str(turn), partition=number)
            assert producer.flush(20)
            assert sorted(values(consumer, 30)) == [(number, turn) for number in range(30)]


def test_read_committed_passes_over_what_was_aborted(bootstrap: str, new_topic: NewTopic) -> None:
    topic = new_topic(1)
    writer = ConfluentProducer({"bootstrap.servers": bootstrap, "transactional.id": str(uuid.uuid4())})
    writer.init_transactions(30)
    for number in range(6):
        writer.begin_transaction()
        writer.produce(topic, str(number))
        writer.flush(30)  # records that are not sent yet would be dropped by an abort
        if number % 2:
            writer.abort_transaction(30)
        else:
            writer.commit_transaction(30)
    for level, expected in (("read_committed", [0, 2, 4]), ("read_uncommitted", list(range(6)))):
        with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest", isolation_level=level) as consumer:
            consumer.assign([(topic, 0)])
            assert [value for _, value in values(consumer, len(expected))] == expected
            assert consumer.end_offsets([TopicPartition(topic, 0)]) == {TopicPartition(topic, 0): 12}


def test_commits(bootstrap: str, filled: str, group: str) -> None:
    first, second = TopicPartition(filled, 0), TopicPartition(filled, 1)
    heard = []
    with Consumer(bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="earliest") as consumer:
        consumer.assign([first, second])
        assert consumer.committed([first]) == {first: None}
        consumer.commit({first: OffsetAndMetadata(40, "note"), second: 60})
        committed = consumer.committed([first, second])
        assert committed[first][:2] == (40, "note") and committed[second][:2] == (60, "")
        consumer.commit_async({first: 41}, lambda offsets, error: heard.append((offsets[first].offset, error)))
        while not heard or consumer.position(first) < 100:
            consumer.poll(1)
        assert heard == [(41, None)]
    with Consumer(bootstrap_servers=bootstrap, group_id=group, enable_auto_commit=False) as consumer:
        consumer.assign([first])
        assert consumer.position(first) == 100


class Listener:
    """A listener that records the assigned and revoked partitions."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, list[int]]] = []

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        self.heard.append(("revoked", [each.partition for each in partitions]))

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        self.heard.append(("assigned", [each.partition for each in partitions]))


@pytest.mark.parametrize("assignor", ["range", "roundrobin", "sticky", "cooperative-sticky"])
def test_two_members_share(bootstrap: str, new_topic: NewTopic, group: str, assignor: str) -> None:
    topic, listener = new_topic(4), Listener()
    settings = {
        "bootstrap_servers": bootstrap,
        "group_id": group,
        "partition_assignment_strategy": assignor,
        "heartbeat_interval_ms": 100,
    }
    with Consumer(**settings) as one:
        one.subscribe([topic], listener)
        while len(one.assignment()) != 4:
            one.poll(1)
        with Consumer(**settings) as two:
            two.subscribe([topic])
            while len(one.assignment()) != 2 or len(two.assignment()) != 2:
                one.poll(0.1)
                two.poll(0.1)
            assert len(one.assignment() | two.assignment()) == 4
        while len(one.assignment()) != 4:
            one.poll(0.1)
    kept = sorted(each for what, each in listener.heard if what == "revoked")
    if assignor == "cooperative-sticky":
        assert listener.heard[0] == ("assigned", [0, 1, 2, 3])
        assert len(kept[0]) == 2 or len(kept[1]) == 2
    else:
        assert ("revoked", [0, 1, 2, 3]) in listener.heard


def test_auto_commit_and_static_membership(bootstrap: str, filled: str, group: str) -> None:
    settings = {
        "bootstrap_servers": bootstrap,
        "group_id": group,
        "group_instance_id": "static",
        "auto_offset_reset": "earliest",
    }
    with Consumer(**settings) as consumer:
        consumer.subscribe(filled)
        values(consumer, 200)
    with Producer(bootstrap_servers=bootstrap) as producer:
        producer.send(filled, "100", partition=0)
    with Consumer(**settings) as consumer:
        consumer.subscribe(filled)
        assert values(consumer, 1) == [(0, 100)]


def test_topics_that_match_a_pattern(bootstrap: str, new_topic: NewTopic, group: str) -> None:
    topics = {new_topic(1), new_topic(2)}
    pattern = re.compile("|".join(f"^{topic}$" for topic in topics))
    with Consumer(bootstrap_servers=bootstrap, group_id=group) as consumer:
        consumer.subscribe(pattern)
        while len(consumer.assignment()) < 3:
            consumer.poll(1)
        assert {each.topic for each in consumer.assignment()} == topics == consumer.subscription()


def test_another_library_goes_on_in_the_same_group(bootstrap: str, filled: str, group: str) -> None:
    with Consumer(bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="earliest") as consumer:
        consumer.subscribe(filled)
        values(consumer, 200)
        consumer.commit()
    with Producer(bootstrap_servers=bootstrap) as producer:
        producer.send(filled, b"last", partition=1)
    received = ConfluentClient().consume_in_group(bootstrap, filled, group, 1)
    assert [(record.partition, record.offset, record.value) for record in received] == [(1, 100, b"last")]
