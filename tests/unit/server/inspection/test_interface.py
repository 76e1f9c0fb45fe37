"""The pages of the inspection interface as a whole: limits on the pages that are made, failures, and lists in parts."""

import json
import threading
from types import SimpleNamespace

import pytest

from kafkapy import __version__
from kafkapy.protocol.messages.fetch import FetchRequest
from kafkapy.replica.fetch import FetchParams, FetchPartition, FetchResult
from kafkapy.server.fetch_session_cache import CachedPartition, FetchSessionCache
from kafkapy.server.inspection.interface import MOST_PAGES, Inspection
from kafkapy.server.large_fetches import MOST_ENTRIES, NOTE_INTERVAL_MS, FetchClient, LargeFetches
from kafkapy.types import TopicPartition
from tests.mock_clock import MockClock

ME = FetchClient("me", "User:alice", "10.0.0.1")
FOLLOWER = FetchClient("broker-2", "User:broker", "10.0.0.2")


@pytest.fixture
def services():
    clock = MockClock(1_000_000)
    sessions = FetchSessionCache(100, iter(range(1, 1000)).__next__)
    return SimpleNamespace(
        clock=clock,
        reactor=SimpleNamespace(monotonic_ms=clock.monotonic_ms()),
        node_id=4,
        cluster_id="a-cluster",
        quotas=None,
        mutation_quotas=None,
        fetch_sessions=SimpleNamespace(cache=sessions),
        large_fetches=LargeFetches(),
        replica_manager=SimpleNamespace(partitions={}),
    )


def read(inspection, path, query=""):
    """Returns the status and the content of a page, which is made on a thread of its own unless it is refused."""
    made = inspection.page(path, query)
    if hasattr(made, "resolve"):
        is_done = threading.Event()
        made.wake = is_done.set
        if made.response is None:
            assert is_done.wait(60)
        made = made.response
    return made.status, json.loads(bytes(made.body))


def test_a_broker_names_itself(services):
    expected = {"node_id": 4, "cluster_id": "a-cluster", "version": __version__}
    assert read(Inspection(services), "broker") == (200, expected)


def test_a_page_that_fails_is_an_error_and_is_not_counted_as_running(services, caplog):
    services.large_fetches = None
    inspection = Inspection(services)
    for _ in range(MOST_PAGES + 1):
        status, content = read(inspection, "large-fetches")
        assert (status, content["error"]) == (500, "The page could not be made; the broker's log has the reason.")
    assert "could not be made" in caplog.text


def test_too_many_pages_at_a_time_are_refused(services):
    goes_on = threading.Event()

    def listed():
        goes_on.wait(60)
        return []

    services.large_fetches = SimpleNamespace(listed=listed)
    inspection = Inspection(services)
    pending = [inspection.page("large-fetches", "") for _ in range(MOST_PAGES)]
    status, content = read(inspection, "broker")
    assert (status, content["error"]) == (503, f"{MOST_PAGES} pages are being made already. Try again.")
    ended = threading.Barrier(MOST_PAGES + 1)
    for each in pending:
        each.wake = ended.wait
    goes_on.set()
    ended.wait(60)
    assert read(inspection, "broker")[0] == 200


def fetch_partitions(*numbers):
    return {
        ("t", number): CachedPartition(
            "t", bytes(16), FetchRequest.FetchPartition(partition=number, fetch_offset=5, partition_max_bytes=99)
        )
        for number in numbers
    }


def test_the_places_of_sessions_are_read_in_parts(services):
    cache = services.fetch_sessions.cache
    cache.maybe_create(0, fetch_partitions(*range(7)), is_privileged=False, uses_topic_ids=False, client=ME)
    cache.maybe_create(0, fetch_partitions(9), is_privileged=True, uses_topic_ids=False, client=FOLLOWER)
    cache.maybe_create(0, fetch_partitions(8), is_privileged=False, uses_topic_ids=False)
    inspection = Inspection(services)
    found, start = [], 0
    while start is not None:
        status, page = read(inspection, "fetches", f"start={start}&limit=3")
        assert status == 200
        assert len(page["fetches"]) <= 3
        found += page["fetches"]
        start = page["next"]
    assert sorted(each["partition"] for each in found) == list(range(7))
    assert {(each["client_id"], each["fetch_offset"], each["partition_max_bytes"]) for each in found} == {("me", 5, 99)}
    assert len(read(inspection, "fetches", "topic=t&partition=3")[1]["fetches"]) == 1
    assert read(inspection, "fetches", "client_id=you")[1]["fetches"] == []


def note(services, client, number, size, *, partition_max_bytes=100, max_bytes=1000, partitions=None):
    params = FetchParams(max_wait_ms=0, min_bytes=0, max_bytes=max_bytes)
    asked = FetchPartition("t", number, 7, partition_max_bytes)
    result = FetchResult(records=bytes(size))
    services.large_fetches.note(lambda: client, params, [(asked, result)], partitions or {}, services.clock)


def test_only_batches_larger_than_a_limit_are_noted(services):
    inspection = Inspection(services)
    note(services, ME, 0, 100)
    note(services, ME, 1, 101)
    note(services, ME, 2, 1500, partition_max_bytes=2000)
    page = read(inspection, "large-fetches")[1]["large_fetches"]
    assert [(each["partition"], each["batch_bytes"], each["max_bytes"]) for each in page] == [
        (2, 1500, 1000),
        (1, 101, 1000),
    ]
    assert (page[0]["fetch_offset"], page[0]["user"], page[0]["host"]) == (7, "User:alice", "10.0.0.1")
    services.clock.advance(250)
    assert read(inspection, "large-fetches", "topic=t&partition=1")[1]["large_fetches"][0]["age_ms"] == 250


def test_a_later_fetch_of_the_same_client_replaces_the_earlier_one(services):
    for size in (101, 102):
        note(services, ME, 1, size)
    assert [each.batch_bytes for each in services.large_fetches.listed()] == [102]


def test_the_oldest_entries_are_dropped(services):
    for number in range(MOST_ENTRIES + 5):
        note(services, ME, number, 200)
    listed = services.large_fetches.listed()
    assert len(listed) == MOST_ENTRIES
    assert listed[0].partition == TopicPartition("t", 5)


def test_the_gate_serves_a_partition_for_a_while_after_a_note(services):
    partition = SimpleNamespace(large_fetch_noted_until_ms=0)
    note(services, ME, 1, 200, partitions={TopicPartition("t", 1): partition})
    assert partition.large_fetch_noted_until_ms == services.clock.monotonic_ms() + NOTE_INTERVAL_MS
