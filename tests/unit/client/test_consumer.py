"""The consumer's methods: subscription, positions, deserializers, interceptors, wake-ups and closing."""

from __future__ import annotations

import re

import pytest

from kafkapy.client import (
    ConfigError,
    OffsetAndMetadata,
    RequestTimedOut,
    SubscriptionError,
    SubscriptionPattern,
    TopicPartition,
    UnreadableRecords,
    WakeupError,
)
from kafkapy.errors import Error
from kafkapy.protocol.api import ApiKey
from tests.harness.client_log import LogBrokers

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.fixture
def brokers():
    harness = LogBrokers()
    harness.fill("t", [f"a{number}" for number in range(25)], [f"b{number}" for number in range(5)])
    yield harness
    harness.close()


def consumer_of(brokers, **settings):
    made = brokers.consumer(**{"auto_offset_reset": "earliest", **settings})
    made.partitions_for("t")
    return made


def poll(consumer):
    for _ in range(100):
        found = consumer.poll(0.5)
        if found:
            return found
    raise AssertionError("no records")


def test_records_are_deserialized_by_topic(brokers):
    seen = []

    def deserialize(topic, data):
        seen.append((topic, data))
        return data if data is None else data.decode().upper()

    with consumer_of(brokers, key_deserializer=deserialize, value_deserializer=deserialize) as consumer:
        consumer.assign([T1])
        records = poll(consumer)
        assert [(each.key, each.value) for each in records] == [(None, f"B{number}") for number in range(5)]
        assert records.by_partition() == {T1: list(records)}
    assert seen[:2] == [("t", None), ("t", b"b0")]


def test_a_record_that_cannot_be_deserialized_loses_no_record(brokers):
    """The records before it are returned, and the position stays at it until a seek, as with Java's consumer."""

    def deserialize(topic, data):
        if data == b"b2":
            raise ValueError("not a value")
        return data

    with consumer_of(brokers, value_deserializer=deserialize) as consumer:
        consumer.assign([T1])
        assert [each.offset for each in poll(consumer)] == [0, 1]
        for _ in range(2):
            with pytest.raises(UnreadableRecords, match="at offsets 2 cannot be read: not a value") as raised:
                poll(consumer)
            assert consumer.position(T1) == 2
        assert isinstance(raised.value.__cause__, ValueError)
        consumer.seek(raised.value.partition, raised.value.ranges[0][1] + 1)
        assert [each.offset for each in poll(consumer)] == [3, 4]


def test_interceptors_see_records_and_the_end(brokers):
    calls = []

    class Interceptor:
        def on_consume(self, records):
            calls.append(len(records))
            return records[1:]

        def close(self):
            calls.append("closed")

    with consumer_of(brokers, interceptor_classes=[Interceptor]) as consumer:
        consumer.assign([T1])
        assert [each.offset for each in poll(consumer)] == [1, 2, 3, 4]
        assert not consumer.poll(0.1)
    assert calls == [5, "closed"]


def test_iteration_returns_record_by_record_and_follows_seeks(brokers):
    with consumer_of(brokers) as consumer:
        consumer.assign([T0])
        records = iter(consumer)
        assert [next(records).offset for _ in range(12)] == list(range(12))
        consumer.seek(T0, 3)
        assert next(records).offset == 3
        consumer.seek_to_end([T0])
        brokers.logs[T0].append("new")
        consumer.seek_to_beginning()
        assert next(records).offset == 0
        consumer.unsubscribe()
        assert consumer.assignment() == frozenset()


def test_positions_are_looked_up_and_checked(brokers):
    with consumer_of(brokers) as consumer:
        consumer.assign([T0, ("t", 1)])
        assert consumer.assignment() == {T0, T1}
        consumer.seek_to_end([T0])
        assert (consumer.position(T0), consumer.position(T1)) == (25, 0)
        consumer.seek(T1, OffsetAndMetadata(4, "", 3))
        assert consumer.position(T1) == 4
        with pytest.raises(ValueError, match="negative"):
            consumer.seek(T0, -1)
        with pytest.raises(ValueError, match="negative"):
            consumer.seek_to_time(-5)
        with pytest.raises(ValueError, match="No current assignment for partition t-7"):
            consumer.position(TopicPartition("t", 7))


def test_a_position_that_is_not_found_in_time_is_a_time_out(brokers):
    brokers.offset_errors[T0] = [Error.NOT_LEADER_OR_FOLLOWER] * 1000
    with consumer_of(brokers) as consumer:
        consumer.assign([T0])
        with pytest.raises(RequestTimedOut, match="2 s expired before the position for partition t-0"):
            consumer.position(T0, 2)


def test_partitions_of_a_topic_are_requested_again(brokers):
    with consumer_of(brokers) as consumer:
        assert [each.partition for each in consumer.partitions_for("t")] == [0, 1]
        brokers.add_topic("t", [(1, 0)] * 3)
        assert len(consumer.partitions_for("t")) == 3
        assert consumer.partitions_for("absent") == ()
        brokers.down.add(1)
        with pytest.raises(RequestTimedOut, match="metadata of topic t"):
            consumer.partitions_for("t", 2)


def test_the_kinds_of_subscription_exclude_each_other(brokers):
    with consumer_of(brokers, group_id="g") as consumer:
        consumer.assign([T0])
        with pytest.raises(SubscriptionError):
            consumer.subscribe("t")
    with consumer_of(brokers, group_id="g") as consumer:
        consumer.subscribe("t")
        assert consumer.subscription() == {"t"}
        with pytest.raises(SubscriptionError):
            consumer.assign([T0])
        brokers.add_topic("u", [(1, 0)])
        consumer.subscribe(re.compile("^[tu]$"))
        consumer.partitions_for("u")
        assert consumer.subscription() == {"t", "u"}
        with pytest.raises(ConfigError, match="Subscribe to RE2/J pattern is not supported"):
            consumer.subscribe(SubscriptionPattern("t"))
        consumer._subscription.unsubscribe()
    with consumer_of(brokers) as consumer, pytest.raises(ConfigError, match=r"group\.id"):
        consumer.subscribe("t")


def test_a_wakeup_ends_the_next_call_that_blocks_once(brokers):
    with consumer_of(brokers) as consumer:
        consumer.assign([T0])
        consumer.wakeup()
        with pytest.raises(WakeupError):
            consumer.poll(10)
        assert poll(consumer)
        consumer.wakeup()
        consumer.forget_wakeup()
        assert poll(consumer)
        consumer.wakeup()
        with pytest.raises(WakeupError):
            consumer.end_offsets([T0])


def test_internal_topics_match_a_pattern_only_if_configured(brokers):
    metadata = brokers.answers[ApiKey.METADATA]

    def mark_internal(request, version):
        response = metadata(request, version)
        for topic in response.topics:
            topic.is_internal = topic.name == "internal"
        return response

    brokers.answers[ApiKey.METADATA] = mark_internal
    brokers.add_topic("internal", [(1, 0)])
    for excluded, expected in ((True, {"t"}), (False, {"t", "internal"})):
        with consumer_of(brokers, group_id="g", exclude_internal_topics=excluded) as consumer:
            consumer.subscribe(re.compile(""))
            consumer.partitions_for("internal")
            assert consumer.subscription() == expected
            consumer._subscription.unsubscribe()
