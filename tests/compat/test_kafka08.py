"""The clients of Apache Kafka 0.8, as Kafka's documentation described them, with published examples of assignments."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator

import pytest

from kafkapy.client import Admin, Consumer
from kafkapy.client.admin import NewTopic
from kafkapy.client.assignors import GroupMember, assign_range, assign_round_robin
from kafkapy.client.errors import RequestTimedOut
from kafkapy.compat.kafka08 import (
    EARLIEST_TIME,
    LATEST_TIME,
    Blacklist,
    ConsumerConnector,
    ConsumerTimeout,
    FailedToSendMessage,
    KeyedMessage,
    Producer,
    QueueFull,
    SimpleConsumer,
    Whitelist,
)
from kafkapy.compat.kafka08.assignment import OLD_ROUND_ROBIN, deal, in_order_of_hashes
from kafkapy.errors import ConfigError, Error
from kafkapy.testing import Broker
from kafkapy.types import TopicPartition, java_string_hash
from tests.chaos_proxy import CALM, Chances, ChaosProxy
from tests.ports import free_port

DEADLINE_S = 60


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as started:
        yield started


@pytest.fixture
def topic(broker: Broker) -> str:
    name = f"page_visits-{uuid.uuid4()}"
    with Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(name, partitions=4)]).check()
    return name


def numbers(assigned: dict[str, list[TopicPartition]], topic: str = "T1") -> list[list[int]]:
    return [[each.partition for each in assigned[stream] if each.topic == topic] for stream in sorted(assigned)]


@pytest.mark.parametrize(
    ("count", "expected"),
    [(10, [[0, 1, 2, 3], [4, 5, 6], [7, 8, 9]]), (11, [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10]])],
)
def test_range_over_the_streams_of_two_consumers(count: int, expected: list[list[int]]) -> None:
    streams = {name: GroupMember(("T1",)) for name in ("C1-0", "C2-0", "C2-1")}
    assert numbers(assign_range(streams, {"T1": count})) == expected


def test_range_gives_the_first_stream_more_of_every_topic() -> None:
    streams = {name: GroupMember(("T1", "T2")) for name in ("C1-0", "C2-0", "C2-1")}
    assigned = assign_range(streams, {"T1": 10, "T2": 10})
    assert numbers(assigned, "T1") == numbers(assigned, "T2") == [[0, 1, 2, 3], [4, 5, 6], [7, 8, 9]]
    assert [len(each) for each in assigned.values()] == [8, 6, 6]


def test_round_robin_deals_partitions_in_order_of_their_hashes() -> None:
    streams = ["C1-0", "C1-1", "C2-0", "C2-1"]
    order = [5, 3, 0, 8, 2, 1, 4, 7, 6, 9]  # the article's, as an illustration
    assert list(deal(order, streams).values()) == [[5, 2, 6], [3, 1, 9], [0, 4], [8, 7]]
    assert [java_string_hash(f"T1-{number}") for number in range(10)] == list(range(2550976, 2550986))
    hashes = [java_string_hash(f"[T1,{number}]") for number in range(10)]
    assert hashes == list(range(-1610635167, -1610635167 + 310, 31))
    partitions = [TopicPartition("T1", number) for number in (5, 3, 0, 8, 2, 1, 4, 7, 6, 9)]
    assert [each.partition for each in in_order_of_hashes(partitions)] == list(range(10))
    members = {name: GroupMember(("T1",)) for name in streams}
    expected = [[0, 4, 8], [1, 5, 9], [2, 6], [3, 7]]
    assert numbers(OLD_ROUND_ROBIN.assign(members, {"T1": 10}, {})) == expected
    assert numbers(assign_round_robin(members, {"T1": 10})) == expected


def test_a_synchronous_producer_and_a_simple_consumer(broker: Broker, topic: str) -> None:
    settings = {
        "metadata.broker.list": broker.bootstrap_servers,
        "serializer.class": "kafka.serializer.StringEncoder",
        "partitioner.class": lambda key, count: int(key) % count,
        "request.required.acks": "1",
    }
    with Producer(settings) as producer:
        producer.send(KeyedMessage(topic, "first", key="1"))
        producer.send([KeyedMessage(topic, f"value {number}", key="5") for number in range(50)])
    with SimpleConsumer("localhost", broker.port, 10_000, 64 * 1000, "reader") as consumer:
        leaders = consumer.topic_metadata([topic])[topic]
        assert leaders == dict.fromkeys(range(4), ("localhost", broker.port))
        assert consumer.offsets_before(topic, 1, EARLIEST_TIME) == [0]
        assert consumer.offsets_before(topic, 1, LATEST_TIME) == [51]
        fetched = consumer.fetch([(topic, 1, 30, 1_000_000), (topic, 2, 0, 1_000_000)])
        messages = fetched[topic, 1]  # type: ignore[index]
        assert [each.offset for each in messages] == list(range(30, 51))
        assert messages.messages[0].message == b"value 29"
        assert messages.messages[-1].next_offset == messages.high_watermark == 51
        assert messages.size_in_bytes > 0
        assert fetched[topic, 2].messages == ()  # type: ignore[index]
        beyond = consumer.fetch([(topic, 1, 99, 1000)])[topic, 1]  # type: ignore[index]
        assert beyond.error is Error.OFFSET_OUT_OF_RANGE


def test_a_simple_consumer_asks_the_broker_at_its_address_only(broker: Broker, topic: str) -> None:
    """The broker advertises another address than that of the proxy."""
    with (
        ChaosProxy(free_port(), broker.port, seed=0) as proxy,
        SimpleConsumer("localhost", proxy.port, 2000) as consumer,
    ):
        assert consumer.offsets_before(topic, 0, LATEST_TIME) == [0]
        proxy.chances = Chances(drop=1.0)
        with pytest.raises(RequestTimedOut):
            consumer.offsets_before(topic, 0, LATEST_TIME)
        proxy.chances = CALM
        assert consumer.offsets_before(topic, 0, LATEST_TIME) == [0]


def test_an_asynchronous_producer_drops_what_its_queue_cannot_take(broker: Broker, topic: str) -> None:
    settings = {
        "metadata.broker.list": broker.bootstrap_servers,
        "producer.type": "async",
        "queue.buffering.max.messages": "3",
        "queue.buffering.max.ms": "60000",
        "queue.enqueue.timeout.ms": "0",
        "request.required.acks": "1",
        "delivery.timeout.ms": "120000",
    }
    producer = Producer(settings)
    for _ in range(3):
        producer.send(KeyedMessage(topic, b"v"))
    with pytest.raises(QueueFull):
        producer.send(KeyedMessage(topic, b"v"))
    producer.close()
    with SimpleConsumer("localhost", broker.port) as consumer:
        assert sum(consumer.offsets_before(topic, number, LATEST_TIME)[0] for number in range(4)) == 3


def test_a_message_that_cannot_be_sent(broker: Broker, topic: str) -> None:
    with (
        Producer({"bootstrap.servers": broker.bootstrap_servers, "max.request.size": 100}) as producer,
        pytest.raises(FailedToSendMessage),
    ):
        producer.send(KeyedMessage(topic, bytes(1000)))


def test_the_streams_of_a_connector_read_each_message_once(broker: Broker, topic: str) -> None:
    """A published example: a thread for each of twelve streams; then the connector is shut down."""
    count = 100
    with Producer({"metadata.broker.list": broker.bootstrap_servers, "request.required.acks": "1"}) as producer:
        producer.send([KeyedMessage(topic, b"%d" % number, key=b"%d" % number) for number in range(count)])
    group = f"group-{uuid.uuid4()}"
    settings = {
        "zookeeper.connect": "localhost:2181",
        "bootstrap.servers": broker.bootstrap_servers,
        "group.id": group,
        "zookeeper.session.timeout.ms": "400",
        "auto.commit.interval.ms": "1000",
        "auto.offset.reset": "smallest",
    }
    connector = ConsumerConnector(settings)
    streams = connector.create_message_streams({topic: 12})[topic]
    with pytest.raises(RuntimeError, match="at most once"):
        connector.create_message_streams({topic: 1})
    found: list[bytes | None] = []
    all_read = threading.Event()

    def read(stream: Iterator[object]) -> None:
        for each in stream:
            found.append(each.message)  # type: ignore[attr-defined]
            if len(found) >= count:
                all_read.set()

    threads = [threading.Thread(target=read, args=(stream,)) for stream in streams]
    for thread in threads:
        thread.start()
    assert all_read.wait(DEADLINE_S)
    connector.shutdown()
    for thread in threads:
        thread.join(DEADLINE_S)
        assert not thread.is_alive()
    assert sorted(int(each or b"") for each in found) == list(range(count))
    with Consumer(bootstrap_servers=broker.bootstrap_servers, group_id=group) as consumer:
        partitions = [TopicPartition(topic, number) for number in range(4)]
        ends = consumer.end_offsets(partitions)
        committed = consumer.committed(partitions)
        assert {each: 0 if offset is None else offset.offset for each, offset in committed.items()} == ends


def test_a_stream_without_messages_times_out_and_goes_on(broker: Broker, topic: str) -> None:
    settings = {
        "bootstrap.servers": broker.bootstrap_servers,
        "group.id": f"group-{uuid.uuid4()}",
        "auto.offset.reset": "smallest",
        "consumer.timeout.ms": "100",
        "partition.assignment.strategy": "roundrobin",
    }
    with ConsumerConnector(settings) as connector:
        (stream,) = connector.create_message_streams_by_filter(Whitelist(f"{topic[:-1]}."), 1)
        with pytest.raises(ConsumerTimeout):
            next(stream)
        with Producer({"bootstrap.servers": broker.bootstrap_servers, "request.required.acks": "1"}) as producer:
            producer.send(KeyedMessage(topic, b"late"))
        found = None
        while found is None:
            try:
                found = next(stream)
            except ConsumerTimeout:
                continue
        assert (found.topic, found.message) == (topic, b"late")
        connector.commit_offsets()


def test_filters_of_topics() -> None:
    assert [bool(Whitelist("a.*|b").compiled().search(name)) for name in ("ab", "b", "ba")] == [True, True, False]
    assert [bool(Blacklist("a.*|b").compiled().search(name)) for name in ("ab", "b", "ba")] == [False, False, True]


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"group.id": "g", "zookeeper.connect": "localhost:2181"}, "there is no ZooKeeper"),
        ({"bootstrap.servers": "localhost:1"}, "group.id"),
        ({"bootstrap.servers": "localhost:1", "group.id": "g", "offsets.storage": "zookeeper"}, "ZooKeeper"),
        ({"bootstrap.servers": "localhost:1", "group.id": "g", "auto.offset.reset": "none"}, "smallest or largest"),
        ({"bootstrap.servers": "localhost:1", "group.id": "g", "partition.assignment.strategy": "sticky"}, "range"),
    ],
)
def test_a_configuration_that_cannot_be_used(settings: dict[str, str], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        ConsumerConnector(settings)
