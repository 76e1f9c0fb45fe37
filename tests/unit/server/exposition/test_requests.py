"""The metrics of requests by API."""

from __future__ import annotations

from types import SimpleNamespace

from kafkapy._core.reactor.reactor import FOLLOWER_FETCHES
from kafkapy.protocol.api import ApiKey
from kafkapy.server.exposition.requests import Meter, RequestMetrics


def read(*meters):
    reactor = SimpleNamespace(idle_us=lambda: 0, request_meters=lambda: list(meters))
    return RequestMetrics(SimpleNamespace(reactor=reactor), SimpleNamespace())._read_meters()


def test_a_fetch_counts_for_consumers_or_for_followers():
    produce = (ApiKey.PRODUCE, 3, 30, 300, [3, 0])
    fetch = (ApiKey.FETCH, 5, 50, 500, [4, 1])
    assert read(produce, fetch) == {
        "Produce": Meter(*produce[1:]),
        "Fetch": Meter(*fetch[1:]),
        "FetchConsumer": Meter(*fetch[1:]),
    }
    of_followers = (FOLLOWER_FETCHES, 2, 20, 200, [1, 1])
    assert read(fetch, of_followers) == {
        "Fetch": Meter(*fetch[1:]),
        "FetchConsumer": Meter(3, 30, 300, [3, 0]),
        "FetchFollower": Meter(*of_followers[1:]),
    }


def test_a_follower_that_was_counted_during_the_reading_makes_no_number_negative():
    found = read((ApiKey.FETCH, 1, 10, 100, [1, 0]), (FOLLOWER_FETCHES, 2, 20, 200, [1, 1]))
    assert found["FetchConsumer"] == Meter(0, 0, 0, [0, 0])
