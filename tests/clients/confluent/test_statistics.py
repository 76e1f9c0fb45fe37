"""Statistics cover the time since those before them, and show the progress of a consumer as librdkafka does."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

PATIENCE_S = 60


class Statistics:
    """The statistics of a client that polls until they show something."""

    def __init__(self) -> None:
        self.received: list[dict[str, Any]] = []
        self.config = {"statistics.interval.ms": 200, "stats_cb": lambda text: self.received.append(json.loads(text))}

    def next(self, poll: Callable[[], object]) -> dict[str, Any]:
        """Polls until the next statistics, and returns them."""
        seen, end_s = len(self.received), time.monotonic() + PATIENCE_S
        while len(self.received) == seen:
            assert time.monotonic() < end_s, "no statistics"
            poll()
        return self.received[-1]


def send(producer: Any, topic: str, size: int, count: int = 1) -> None:
    for _ in range(count):
        producer.produce(topic, b"x" * size, partition=0)
    assert producer.flush(PATIENCE_S) == 0


def windows(statistics: Statistics, topic: str, name: str) -> list[dict[str, int]]:
    """Returns the windows of one quantity of a topic, in the order of the statistics."""
    topics = [found["topics"].get(topic) for found in statistics.received]
    return [each[name] for each in topics if each is not None]


def test_windows_begin_with_the_statistics_before(library, bootstrap, topic):
    statistics = Statistics()
    producer = library.top.Producer({"bootstrap.servers": bootstrap, **statistics.config})
    for size in (1000, 200):
        send(producer, topic, size)
    for _ in range(2):
        found = statistics.next(lambda: producer.poll(0.1))
    for name in ("batchcnt", "batchsize"):
        assert sum(each["cnt"] for each in windows(statistics, topic, name)) == 2
        last = windows(statistics, topic, name)[-1]
        assert (last["cnt"], last["sum"], last["avg"], last["max"]) == (0, 0, 0, 0)
    assert sum(each["sum"] for each in windows(statistics, topic, "batchcnt")) == 2
    assert found["txmsgs"] == 2
    assert all(broker["throttle"]["cnt"] == 0 for broker in found["brokers"].values())


def test_batches_are_those_of_the_topic(library, bootstrap, topic):
    statistics = Statistics()
    other = f"{topic}-other"
    producer = library.top.Producer({"bootstrap.servers": bootstrap, **statistics.config})
    send(producer, topic, 1000)
    send(producer, other, 10)
    for _ in range(2):
        statistics.next(lambda: producer.poll(0.1))
    for name, fits in ((topic, lambda size: size > 1000), (other, lambda size: size < 1000)):
        assert sum(each["cnt"] for each in windows(statistics, name, "batchcnt")) == 1
        assert fits(max(each["max"] for each in windows(statistics, name, "batchsize")))


def test_the_age_is_that_of_the_client(library, bootstrap):
    statistics = Statistics()
    began_s = time.monotonic()
    producer = library.top.Producer({"bootstrap.servers": bootstrap, **statistics.config})
    found = statistics.next(lambda: producer.poll(0.1))
    # Our clock counts whole milliseconds, so that an age may be up to 1 ms longer than the time that passed.
    assert 0 < found["age"] <= (time.monotonic() - began_s) * 1e6 + 1000


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@pytest.mark.parametrize("is_stored", [True, False])
def test_offsets_and_rebalances_of_a_consumer(library, bootstrap, topic, group, protocol, is_stored):
    send(library.top.Producer({"bootstrap.servers": bootstrap}), topic, 1, 5)
    conf = {
        "bootstrap.servers": bootstrap, "group.id": group, "group.protocol": protocol, "auto.offset.reset": "earliest",
        "enable.auto.commit": False, "enable.auto.offset.store": is_stored,
    }  # fmt: skip

    def read(statistics: Statistics, count: int) -> Any:
        consumer = library.top.Consumer({**conf, **statistics.config})
        consumer.subscribe([topic])
        messages: list[Any] = []
        while len(messages) < count:
            message = consumer.poll(PATIENCE_S)
            assert message is not None
            assert message.error() is None
            messages.append(message)
        consumer.pause(consumer.assignment())
        if not is_stored:
            consumer.store_offsets(messages[0])
        return consumer

    def offsets(found: dict[str, Any]) -> list[int]:
        partition = found["topics"][topic]["partitions"]["0"]
        names = ("app_offset", "stored_offset", "committed_offset", "consumer_lag", "consumer_lag_stored")
        return [partition[name] for name in names]

    statistics = Statistics()
    consumer = read(statistics, 3)
    statistics.next(lambda: consumer.poll(0.1))
    found = statistics.next(lambda: consumer.poll(0.1))
    assert offsets(found) == ([3, 3, -1001, -1, 2] if is_stored else [3, 1, -1001, -1, 4])
    assert found["cgrp"]["rebalance_cnt"] == 1
    consumer.commit(asynchronous=False)
    statistics.next(lambda: consumer.poll(0.1))
    found = statistics.next(lambda: consumer.poll(0.1))
    assert offsets(found) == ([3, 3, 3, 2, 2] if is_stored else [3, 1, 1, 4, 4])
    consumer.close()
    consumer = read(statistics, 1)
    statistics.next(lambda: consumer.poll(0.1))
    found = statistics.next(lambda: consumer.poll(0.1))
    assert offsets(found) == ([4, 4, 3, 2, 1] if is_stored else [2, 2, 1, 4, 3])
    consumer.unsubscribe()
    for _ in range(3):
        found = statistics.next(lambda: consumer.poll(0.1))
    assert found["cgrp"]["rebalance_cnt"] == 2
    consumer.close()
