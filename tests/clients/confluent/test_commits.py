"""Commits of confluent-kafka's consumer: when offsets are committed, and by which calls, with the original and ours."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.clients.confluent.test_clients import PATIENCE_S, consume, produce, wait_for


def settings(bootstrap: str, group: str, **more: Any) -> dict[str, Any]:
    conf = {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest"}
    return {**conf, **{name.replace("_", "."): value for name, value in more.items()}}


def committed(library, bootstrap: str, group: str, topic: str) -> list[int]:
    """Returns the committed offsets of the topic's three partitions; -1001 for none."""
    with library.top.Consumer(settings(bootstrap, group)) as consumer:
        partitions = [library.top.TopicPartition(topic, number) for number in range(3)]
        return [each.offset for each in consumer.committed(partitions, PATIENCE_S)]


def poll_for(consumer: Any, duration_s: float) -> None:
    end_s = time.monotonic() + duration_s
    while time.monotonic() < end_s:
        consumer.poll(0.1)


def test_an_asynchronous_commit_waits_for_the_coordinator_also_in_close(library, bootstrap, topic, group):
    produce(library, bootstrap, topic, 9)
    calls: list[Any] = []
    conf = settings(bootstrap, group, enable_auto_commit=False)
    consumer = library.top.Consumer({**conf, "on_commit": lambda error, partitions: calls.append((error, partitions))})
    consumer.assign([library.top.TopicPartition(topic, number, 0) for number in range(3)])
    message = consume(library, consumer, 1)[0]
    consumer.commit(message=message)
    consumer.close()
    assert [(error, [each.offset for each in partitions]) for error, partitions in calls] == [(None, [1])]
    assert committed(library, bootstrap, group, topic)[message.partition()] == 1


def test_an_asynchronous_commit_waits_for_the_coordinator_in_poll(library, bootstrap, topic, group):
    calls: list[Any] = []
    conf = settings(bootstrap, group, enable_auto_commit=False)
    consumer = library.top.Consumer({**conf, "on_commit": lambda error, partitions: calls.append(error)})
    consumer.assign([library.top.TopicPartition(topic, 0, 0)])
    for offset in (1, 2):
        consumer.commit(offsets=[library.top.TopicPartition(topic, 0, offset)])
    wait_for(lambda: calls, lambda: consumer.poll(0.1))
    consumer.close()
    assert set(calls) == {None}
    assert committed(library, bootstrap, group, topic)[0] == 2


def unassign(library, consumer: Any, topic: str) -> None:
    consumer.unassign()


def unassign_incrementally(library, consumer: Any, topic: str) -> None:
    consumer.incremental_unassign([library.top.TopicPartition(topic, number) for number in range(3)])


def assign_others(library, consumer: Any, topic: str) -> None:
    consumer.assign([library.top.TopicPartition("another-topic", 0)])


@pytest.mark.parametrize("give_up", [unassign, unassign_incrementally, assign_others])
def test_partitions_are_committed_before_the_program_gives_them_up(
    library, bootstrap, topic, group, give_up: Callable[[Any, Any, str], None]
):
    produce(library, bootstrap, topic, 9)
    calls: list[int] = []
    consumer = library.top.Consumer(
        {
            **settings(bootstrap, group, auto_commit_interval_ms=3_600_000),
            "on_commit": lambda error, partitions: calls.append(sum(each.offset for each in partitions)),
        }
    )
    consumer.assign([library.top.TopicPartition(topic, number) for number in range(3)])
    consume(library, consumer, 9)
    give_up(library, consumer, topic)
    wait_for(lambda: calls, lambda: consumer.poll(0.1))
    assert calls == [9]
    assert sum(max(each, 0) for each in committed(library, bootstrap, group, topic)) == 9
    consumer.close()


def test_stored_offsets_below_a_committed_one_are_not_committed(library, bootstrap, topic, group):
    produce(library, bootstrap, topic, 30)
    consumer = library.top.Consumer(settings(bootstrap, group, auto_commit_interval_ms=100))
    partition = library.top.TopicPartition(topic, 0)
    consumer.assign([partition])
    consume(library, consumer, 3)
    consumer.commit(offsets=[library.top.TopicPartition(topic, 0, 1000)], asynchronous=False)
    consumer.pause([partition])
    poll_for(consumer, 1)
    assert [each.offset for each in consumer.committed([partition], PATIENCE_S)] == [1000]
    with pytest.raises(library.top.KafkaException) as caught:
        consumer.commit(asynchronous=False)
    assert caught.value.args[0].code() == library.top.KafkaError._NO_OFFSET
    consumer.close()


def test_an_asynchronous_commit_without_an_offset_is_reported(library, bootstrap, topic, group):
    calls: list[Any] = []
    consumer = library.top.Consumer(
        {**settings(bootstrap, group), "on_commit": lambda error, partitions: calls.append((error, partitions))}
    )
    consumer.assign([library.top.TopicPartition(topic, 0, 0)])
    assert consumer.commit() is None
    wait_for(lambda: calls, lambda: consumer.poll(0.1))
    [(error, [partition])] = calls
    assert error.code() == library.top.KafkaError._NO_OFFSET
    assert (partition.topic, partition.partition, partition.offset) == (topic, 0, library.top.OFFSET_INVALID)
    consumer.close()


def test_the_leader_epoch_of_a_message_is_committed(library, bootstrap, topic, group):
    produce(library, bootstrap, topic, 9)
    with library.top.Consumer(settings(bootstrap, group)) as consumer:
        consumer.assign([library.top.TopicPartition(topic, 0, 0)])
        message = consume(library, consumer, 1)[0]
        consumer.commit(message=message, asynchronous=False)
        [found] = consumer.committed([library.top.TopicPartition(topic, 0)], PATIENCE_S)
        assert found.leader_epoch == message.leader_epoch() == 0


def test_partitions_are_assigned_and_unassigned_incrementally_only_once(library, bootstrap, topic, group):
    with library.top.Consumer(settings(bootstrap, group)) as consumer:
        first, second = library.top.TopicPartition(topic, 0, 0), library.top.TopicPartition(topic, 1, 0)
        consumer.incremental_assign([first])
        consumer.incremental_assign([second])
        with pytest.raises(library.top.KafkaException) as caught:
            consumer.incremental_assign([first])
        assert caught.value.args[0].code() == library.top.KafkaError._CONFLICT
        consumer.incremental_unassign([second])
        with pytest.raises(library.top.KafkaException) as caught:
            consumer.incremental_unassign([second])
        assert caught.value.args[0].code() == library.top.KafkaError._INVALID_ARG
        assert consumer.assignment() == [first]
