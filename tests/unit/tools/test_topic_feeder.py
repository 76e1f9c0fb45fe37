"""The feeder of topics: rate, end, timestamps, value formats, failed deliveries."""

from __future__ import annotations

import json
from itertools import islice

import msgpack
import pytest

from kafkapy.tools.sample_data import Sample, search_terms
from kafkapy.tools.topic_feeder import TopicFeeder
from tests.mock_clock import MockClock


class RecordedProducer:
    """A producer that stores its records; every delivery ends with `failure`."""

    def __init__(self, failure=None):
        self.records = []
        self.failure = failure

    def send(self, topic, value, key, *, timestamp, on_delivery):
        self.records.append((topic, value, key, timestamp))
        on_delivery(None, self.failure)

    def flush(self):
        return True


class Hands(MockClock):
    """A clock whose `wait` advances it."""

    def wait(self, seconds):
        self.advance(int(seconds * 1000))


def feeder(producer, hands, samples=None, **options):
    return TopicFeeder(producer, "t", samples or search_terms(0), clock=hands, wait=hands.wait, **options)


@pytest.mark.parametrize(
    ("rate", "count", "seconds"), [(1000, 5000, 5), (50, 100, 2), (0.5, 3, 6), (20_000, 60_000, 3)]
)
def test_records_are_sent_at_the_rate(rate, count, seconds):
    producer, hands = RecordedProducer(), Hands()
    assert feeder(producer, hands, rate=rate).feed(count) == count
    assert len(producer.records) == count
    assert abs(hands.monotonic_ms() - seconds * 1000) <= 1000 / rate + 20


def test_without_a_rate_it_does_not_wait():
    producer, hands = RecordedProducer(), Hands()
    feeder(producer, hands).feed(2500)
    assert (len(producer.records), hands.monotonic_ms()) == (2500, 0)


def test_it_ends_when_it_is_stopped():
    producer, hands = RecordedProducer(), Hands()
    fed = feeder(producer, hands, rate=1000)
    turn = hands.wait

    def wait(seconds):
        turn(seconds)
        if hands.monotonic_ms() >= 100:
            fed.stop()

    hands.wait = wait
    fed = feeder(producer, hands, rate=1000)
    assert 80 <= fed.feed() <= 120


def test_timestamps_may_have_a_fixed_distance():
    producer = RecordedProducer()
    feeder(producer, Hands(), start_ms=1000, step_ms=250).feed(3)
    assert [timestamp for *_, timestamp in producer.records] == [1000, 1250, 1500]


@pytest.mark.parametrize(
    ("value_format", "read"), [("text", bytes.decode), ("json", json.loads), ("msgpack", msgpack.unpackb)]
)
def test_values_are_text_or_objects(value_format, read):
    producer = RecordedProducer()
    sample = Sample("键", "文字", {"a": "文字"})
    feeder(producer, Hands(), iter([sample]), value_format=value_format).feed(1)
    (_, value, key, timestamp) = producer.records[0]
    assert read(value) == ("文字" if value_format == "text" else {"a": "文字"})
    assert (key, timestamp) == ("键".encode(), None)


def test_a_failed_delivery_ends_it():
    producer = RecordedProducer(failure=TimeoutError("gone"))
    with pytest.raises(TimeoutError, match="gone"):
        feeder(producer, Hands()).feed()
    assert len(producer.records) <= len(list(islice(search_terms(0), 1000)))
