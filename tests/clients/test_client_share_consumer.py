"""Our share consumer on kafkapy and on Apache Kafka: acknowledgements, renewals, sessions, callbacks, closing."""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kafkapy.client import (
    AcknowledgementError,
    AcknowledgeType,
    AsyncShareConsumer,
    ConcurrentUse,
    ConfigError,
    ConsumerRecord,
    NotSubscribed,
    Producer,
    ShareConsumer,
    TopicPartition,
    UnreadableRecords,
    WakeupError,
)
from kafkapy.client.admin import Admin, ConfigChange, ConfigResource, NewTopic, ResourceType, SharePartitionOffset
from kafkapy.errors import ApiError, Error
from tests.broker_process import BrokerProcess
from tests.peers import ApacheKafka

PROPERTIES = {
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "offsets.topic.num.partitions": "1",
    "group.share.min.heartbeat.interval.ms": "100",
    "group.share.heartbeat.interval.ms": "100",
    "group.share.assignment.interval.ms": "0",
    "group.share.min.record.lock.duration.ms": "1000",
}
WAIT_S = 60

pytestmark = [pytest.mark.peer, pytest.mark.timeout(240)]


class Queue:
    """A topic of its own, and the share group that reads it from its start; it makes the consumers of a test."""

    def __init__(self, bootstrap: str, partitions: int = 1, **group: str) -> None:
        self.bootstrap = bootstrap
        self.topic = f"topic-{uuid.uuid4()}"
        self.group = f"group-{self.topic}"
        self._consumers: list[ShareConsumer] = []
        changes = {"share.auto.offset.reset": "earliest", **{k.replace("_", "."): v for k, v in group.items()}}
        with Admin(bootstrap_servers=bootstrap) as admin:
            admin.create_topics([NewTopic(self.topic, partitions=partitions, replication_factor=1)]).check()
            resource = ConfigResource(ResourceType.GROUP, self.group)
            admin.incremental_alter_configs(
                {resource: [ConfigChange(name, value) for name, value in changes.items()]}
            ).check()

    def send(self, *values: str, partition: int = 0) -> None:
        """Appends one batch."""
        with Producer(bootstrap_servers=self.bootstrap, linger_ms=1000) as producer:
            for value in values:
                producer.send(self.topic, value, partition=partition)

    def consumer(self, **settings: object) -> ShareConsumer:
        """Returns a subscribed consumer, which `close` closes."""
        made = ShareConsumer(
            bootstrap_servers=self.bootstrap, group_id=self.group, value_deserializer="text", **settings
        )
        made.subscribe(self.topic)
        self._consumers.append(made)
        return made

    def explicit(self, **settings: object) -> ShareConsumer:
        return self.consumer(share_acknowledgement_mode="explicit", **settings)

    def close(self) -> None:
        for each in self._consumers:
            each.close()


def read(consumer: ShareConsumer, count: int = 1) -> list[ConsumerRecord]:
    """Polls until there are `count` records, which must be those of one poll in explicit mode."""
    found: list[ConsumerRecord] = []
    while len(found) < count:
        records = consumer.poll(WAIT_S)
        assert records, f"{len(found)} of {count}"
        found += records
    return found


def shown(records: list[ConsumerRecord]) -> list[tuple[str, int]]:
    return [(record.value, record.delivery_count) for record in records]


@pytest.fixture(scope="module")
def servers(kafka_43: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    kafka = ApacheKafka(kafka_43, tmp_path_factory.mktemp("kafka"), heap=("-Xmx512M",), properties=PROPERTIES)
    with BrokerProcess(tmp_path_factory.mktemp("kafkapy"), PROPERTIES) as ours, kafka as theirs:
        yield {"kafkapy": ours.bootstrap, "kafka": theirs.bootstrap}


@pytest.fixture(params=["kafkapy", "kafka"])
def make(request: pytest.FixtureRequest, servers: dict[str, str]) -> Iterator[Callable[..., Queue]]:
    """Yields a function that makes a queue; its consumers are closed at the end."""
    queues: list[Queue] = []

    def create(partitions: int = 1, **group: str) -> Queue:
        queues.append(Queue(servers[request.param], partitions, **group))
        return queues[-1]

    yield create
    for each in queues:
        each.close()


def test_records_are_accepted_by_the_next_poll_or_commit(make: Callable[..., Queue]) -> None:
    queue = make()
    queue.send("a", "b", "c")
    first = queue.consumer()
    assert first.acquisition_lock_timeout_ms is None
    assert shown(read(first)) == [("a", 1), ("b", 1), ("c", 1)]
    assert first.acquisition_lock_timeout_ms == 30000
    queue.send("d")
    assert shown(read(first)) == [("d", 1)]
    assert first.commit() == {TopicPartition(queue.topic, 0): None}
    assert first.commit() == {}
    queue.send("e")
    assert shown(read(first)) == [("e", 1)]
    first.close()  # the last record was not accepted
    second = queue.consumer()
    assert shown(read(second)) == [("e", 2)]


def test_every_type_of_acknowledgement(make: Callable[..., Queue]) -> None:
    queue = make()
    queue.send("accepted", "released", "rejected")
    consumer = queue.explicit()
    records = read(consumer)
    assert len(records) == 3
    for record, kind in zip(records, (AcknowledgeType.REJECT, AcknowledgeType.RELEASE, 3), strict=True):
        consumer.acknowledge(record, kind)
    consumer.acknowledge(records[0])  # overrides the first one
    released = read(consumer)
    assert shown(released) == [("released", 2)]
    consumer.acknowledge(released[0])
    assert consumer.commit() == {TopicPartition(queue.topic, 0): None}
    queue.send("next")
    assert shown(read(consumer)) == [("next", 1)]


def test_states_that_do_not_allow_a_call(make: Callable[..., Queue]) -> None:
    queue = make()
    queue.send("a", "b")
    consumer = queue.explicit()
    first, second = read(consumer)
    consumer.acknowledge(first)
    with pytest.raises(AcknowledgementError, match="All records must be acknowledged in explicit acknowledgement mode"):
        consumer.poll(0.1)
    assert consumer.commit() == {TopicPartition(queue.topic, 0): None}
    with pytest.raises(AcknowledgementError, match="The record cannot be acknowledged"):
        consumer.acknowledge(first)
    with pytest.raises(AcknowledgementError, match="All records must be acknowledged"):
        consumer.poll(0.1)
    consumer.acknowledge(second)
    assert not consumer.poll(0.1)
    implicit = queue.consumer()
    with pytest.raises(AcknowledgementError, match="Implicit acknowledgement of delivery is being used"):
        implicit.acknowledge(first)
    consumer.unsubscribe()
    with pytest.raises(NotSubscribed, match="Consumer is not subscribed to any topics"):
        consumer.poll(0.1)


def test_a_renewed_record_is_returned_again_and_outlives_its_lock(make: Callable[..., Queue]) -> None:
    queue = make(share_record_lock_duration_ms="5000")
    queue.send("slow", "fast")
    consumer, other = queue.explicit(), queue.explicit()
    slow, fast = read(consumer)
    consumer.acknowledge(slow, AcknowledgeType.RENEW)
    consumer.acknowledge(fast)
    for _ in range(4):  # 6 seconds, with a lock of 5 seconds
        (renewed,) = read(consumer)
        assert shown([renewed]) == [("slow", 1)]
        assert consumer.acquisition_lock_timeout_ms == 5000
        assert not other.poll(1.5)
        consumer.acknowledge(renewed, AcknowledgeType.RENEW)
    (renewed,) = read(consumer)
    consumer.acknowledge(renewed)
    assert consumer.commit() == {TopicPartition(queue.topic, 0): None}


def test_an_expired_lock_delivers_the_record_to_another_member(make: Callable[..., Queue]) -> None:
    queue = make(share_record_lock_duration_ms="1000")
    queue.send("a")
    slow, other = queue.explicit(), queue.explicit()
    (record,) = read(slow)
    (taken,) = read(other)
    assert shown([record, taken]) == [("a", 1), ("a", 2)]
    slow.acknowledge(record)
    (error,) = slow.commit().values()
    assert error is not None and error.error is Error.INVALID_RECORD_STATE


def test_the_callback_gets_offsets_and_errors_and_must_not_call(make: Callable[..., Queue]) -> None:
    queue = make(share_record_lock_duration_ms="3000")
    partition = TopicPartition(queue.topic, 0)
    queue.send("a", "b", "c")
    consumer, other = queue.explicit(), queue.explicit()
    calls: list[tuple[dict[TopicPartition, frozenset[int]], Error | None]] = []
    refused: list[Exception] = []

    def on_commit(offsets: dict[TopicPartition, frozenset[int]], error: Exception | None) -> None:
        calls.append((offsets, error and error.error))
        try:
            consumer.poll(0)
        except AcknowledgementError as problem:
            refused.append(problem)
            raise

    consumer.set_acknowledgement_commit_callback(on_commit)
    a, b, c = read(consumer)
    consumer.acknowledge(a)
    consumer.acknowledge(b, AcknowledgeType.REJECT)
    consumer.commit_async()
    (taken,) = read(other)  # the lock of the third record has expired
    assert shown([taken]) == [("c", 2)]
    consumer.acknowledge(c)
    consumer.commit()
    assert calls == [({partition: {0, 1}}, None), ({partition: {2}}, Error.INVALID_RECORD_STATE)]
    assert len(refused) == 2 and "acknowledgement commit callback" in str(refused[0])


def test_members_share_one_partition_and_stop_without_loss(make: Callable[..., Queue]) -> None:
    queue = make(2)
    for start in range(0, 200, 20):
        queue.send(*(str(number) for number in range(start, start + 20)), partition=start // 20 % 2)
    seen: list[str] = []

    def work() -> None:
        with ShareConsumer(
            bootstrap_servers=queue.bootstrap,
            group_id=queue.group,
            share_acquire_mode="record_limit",
            max_poll_records=5,
            value_deserializer="text",
        ) as consumer:
            consumer.subscribe([queue.topic])
            while len(seen) < 200:
                records = consumer.poll(0.5)
                assert len(records) <= 5
                seen.extend(record.value for record in records)
            consumer.commit()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(WAIT_S)
    assert sorted(map(int, seen)) == list(range(200))


def test_batches_are_whole_unless_the_number_of_records_is_limited(make: Callable[..., Queue]) -> None:
    queue = make()
    queue.send(*"abcdef")
    limited = queue.explicit(max_poll_records=2, share_acquire_mode="record_limit")
    records = read(limited)
    assert shown(records) == [("a", 1), ("b", 1)]
    for record in records:
        limited.acknowledge(record, AcknowledgeType.RELEASE)
    limited.commit()
    whole = queue.explicit(max_poll_records=2)
    assert [record.value for record in read(whole)][:2] == ["a", "b"]


def test_a_record_that_cannot_be_deserialized_is_released_or_rejected(make: Callable[..., Queue]) -> None:
    queue = make()
    queue.send("1", "no number", "3")
    consumer = queue.explicit()
    consumer._value_deserializer = lambda topic, data: int(data)
    (one,) = read(consumer)
    consumer.acknowledge(one)
    with pytest.raises(UnreadableRecords, match="at offsets 1 cannot be read") as raised:
        read(consumer)
    assert raised.value.ranges == [(1, 1)] and isinstance(raised.value.__cause__, ValueError)
    consumer.acknowledge_offset(raised.value.partition, 1, AcknowledgeType.REJECT)
    (three,) = read(consumer)
    assert three.value == 3
    consumer.acknowledge(three)
    assert consumer.commit() == {TopicPartition(queue.topic, 0): None}
    queue.send("4")
    assert shown(read(consumer)) == [(4, 1)]


def test_control_records_are_acknowledged_as_gaps(make: Callable[..., Queue]) -> None:
    queue = make()
    with Producer(bootstrap_servers=queue.bootstrap, transactional_id=queue.group) as producer:
        producer.init_transactions()
        for value in "ab":
            producer.begin_transaction()
            producer.send(queue.topic, value, partition=0)
            producer.commit_transaction()
    consumer = queue.consumer()
    assert shown(read(consumer, 2)) == [("a", 1), ("b", 1)]
    assert not consumer.poll(1.0)
    queue.send("c")
    assert [(record.offset, record.value) for record in read(consumer)] == [(4, "c")]


def test_a_wakeup_ends_a_poll_and_loses_no_record(make: Callable[..., Queue]) -> None:
    queue = make()
    consumer = queue.consumer()
    timer = threading.Timer(0.2, consumer.wakeup)
    timer.start()
    with pytest.raises(WakeupError):
        consumer.poll(WAIT_S)
    timer.join()
    queue.send("a")
    assert shown(read(consumer)) == [("a", 1)]


def test_a_second_thread_is_refused(make: Callable[..., Queue]) -> None:
    """The refusal has the text of Java's share consumer."""
    is_inside, may_leave = threading.Event(), threading.Event()

    def hold(offsets: object, error: ApiError | None) -> None:
        is_inside.set()
        may_leave.wait(WAIT_S)

    queue = make()
    queue.send("a", "b")
    consumer = queue.explicit()
    consumer.set_acknowledgement_commit_callback(hold)
    for record in consumer.poll(WAIT_S):
        consumer.acknowledge(record)
    thread = threading.Thread(target=consumer.commit)
    thread.start()
    assert is_inside.wait(WAIT_S)
    for call in (consumer.commit, consumer.subscription, consumer.poll, consumer.close):
        with pytest.raises(ConcurrentUse, match="KafkaShareConsumer is not safe for multi-threaded access") as refusal:
            call()
        assert str(refusal.value).endswith(f"otherThread(id: {thread.ident})")
    may_leave.set()
    thread.join(WAIT_S)
    assert consumer.subscription() == {queue.topic}


def test_iteration_returns_record_by_record(make: Callable[..., Queue]) -> None:
    queue = make()
    queue.send("a", "b", "c")
    consumer = queue.consumer()
    found = iter(consumer)
    assert [next(found).value, next(found).value] == ["a", "b"]
    assert consumer.commit() == {TopicPartition(queue.topic, 0): None}
    assert [record.value for record in consumer.poll()] == ["c"]
    consumer.close()
    assert shown(read(queue.consumer())) == [("c", 2)]


def test_the_consumer_for_asyncio(make: Callable[..., Queue]) -> None:
    queue = make()
    queue.send("a", "b")

    async def consume() -> list[str]:
        settings = {"share_acknowledgement_mode": "explicit", "value_deserializer": "text"}
        async with AsyncShareConsumer(bootstrap_servers=queue.bootstrap, group_id=queue.group, **settings) as consumer:
            consumer.subscribe([queue.topic])
            with pytest.raises(asyncio.TimeoutError):
                async with asyncio.timeout(0.01):
                    await consumer.poll(WAIT_S)
            values = []
            async for record in consumer:
                values.append(record.value)
                consumer.acknowledge(record)
                if len(values) == 2:
                    break
            assert await consumer.commit() == {TopicPartition(queue.topic, 0): None}
            return values

    assert asyncio.run(consume()) == ["a", "b"]


def test_share_groups_are_administered(make: Callable[..., Queue]) -> None:
    queue = make(2)
    first, second = TopicPartition(queue.topic, 0), TopicPartition(queue.topic, 1)
    queue.send(*"abcdef")
    consumer = queue.explicit()
    records = read(consumer)
    for record in records[:4]:
        consumer.acknowledge(record)
    consumer.commit()
    with Admin(bootstrap_servers=queue.bootstrap) as admin:
        (listed,) = [each for each in admin.list_groups(types=["share"]) if each.group_id == queue.group]
        assert (listed.type, listed.state, listed.protocol_type) == ("Share", "Stable", "share")
        described = admin.describe_share_groups([queue.group])[queue.group]
        (member,) = described.members
        assert (described.state, described.assignor, member.epoch) == ("Stable", "simple", described.epoch)
        assert (member.topics, member.partitions) == ((queue.topic,), (first, second))
        with pytest.raises(ApiError, match="Group missing not found") as raised:
            _ = admin.describe_share_groups(["missing"])["missing"]
        assert raised.value.error is Error.GROUP_ID_NOT_FOUND
        offsets = admin.list_share_group_offsets([queue.group])[queue.group]
        assert offsets[first] == SharePartitionOffset(0, 0, 2)  # the batch that was acquired starts at 0
        with pytest.raises(ApiError) as raised:
            admin.alter_share_group_offsets(queue.group, {first: 1})
        assert raised.value.error is Error.NON_EMPTY_GROUP
        consumer.close()
        admin.alter_share_group_offsets(queue.group, {first: 1, second: 0}).check()
        offsets = admin.list_share_group_offsets({queue.group: [first]})[queue.group]
        assert {partition: each and each.start_offset for partition, each in offsets.items()} == {first: 1}
        results = admin.delete_share_group_offsets(queue.group, [queue.topic, "missing"])
        assert results.values == {queue.topic: None}
        assert results.errors["missing"].error is Error.UNKNOWN_TOPIC_OR_PARTITION
        assert admin.list_share_group_offsets([queue.group])[queue.group] == {}
        admin.delete_groups([queue.group]).check()
        assert queue.group not in [each.group_id for each in admin.list_groups()]


def test_keys_of_consumer_groups_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"auto.offset.reset, isolation.level cannot be set when using a share group"):
        ShareConsumer(
            bootstrap_servers="localhost:9", group_id="g", isolation_level="read_committed", auto_offset_reset="latest"
        )
    with pytest.raises(ConfigError, match=r"You must provide a valid group.id"):
        ShareConsumer(bootstrap_servers="localhost:9")
