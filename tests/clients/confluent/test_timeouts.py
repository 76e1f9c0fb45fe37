"""Time-outs of calls: their default, no limit for -1, and one time-out for all requests of a call."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from kafkapy._core.client.fetched_records import ConsumerRecord
from kafkapy.client.admin import Results
from kafkapy.compat.confluent_kafka import _client
from kafkapy.types import TopicPartition as Place
from tests.harness.stub_node import StubNode

PATIENCE_S = 30
DAY_S = 24 * 60 * 60


@pytest.fixture
def silent():
    """Yields the address of a node that accepts connections and responds to no request."""
    with StubNode() as node:
        node.answers = dict.fromkeys(node.answers, lambda request, version: None)
        yield f"127.0.0.1:{node.port}"


def test_an_operation_of_the_admin_client_ends_after_the_time_out_of_the_socket(library, silent):
    admin = library.module("admin").AdminClient({"bootstrap.servers": silent, "socket.timeout.ms": 500})
    with pytest.raises(library.top.KafkaException) as caught:
        admin.describe_cluster().result(PATIENCE_S)
    assert caught.value.args[0].code() == library.top.KafkaError._TIMED_OUT


class Recorded:
    """A client whose methods return nothing useful, and whose time-outs are recorded."""

    def __init__(self) -> None:
        self.timeouts: list[float] = []

    def _note(self, timeout: float) -> None:
        self.timeouts.append(timeout)

    def beginning_offsets(self, places: list[Place], timeout: float) -> dict[Place, int]:
        self._note(timeout)
        return dict.fromkeys(places, 0)

    end_offsets = beginning_offsets

    def offsets_for_times(self, wanted: dict[Place, int], timeout: float) -> dict[Place, ConsumerRecord]:
        self._note(timeout)
        return {}

    committed = offsets_for_times

    def lacks(self, place: Place, left_s: Any) -> bool:
        return False

    def list_groups(self, timeout: float) -> list[Any]:
        self._note(timeout)
        return []

    def describe_groups(self, names: list[str], timeout: float) -> Results[Any, Any]:
        self._note(timeout)
        return Results()

    describe_topics = describe_groups

    def describe_cluster(self, timeout: float) -> Any:
        self._note(timeout)
        return type("Description", (), {"cluster_id": "c", "controller": None, "brokers": ()})()


@pytest.fixture
def calls(ours, monkeypatch):
    """Yields the recorded client and the calls by name, each of which has a parameter for the time-out in seconds.

    A second passes whenever the time is read.
    """
    conf = {"bootstrap.servers": "127.0.0.1:1"}
    consumer = ours.top.Consumer({**conf, "group.id": "g"})
    admin = ours.module("admin").AdminClient(conf)
    recorded = Recorded()
    place = ours.top.TopicPartition("t", 0, 5)
    inner, consumer._client = consumer._client, recorded
    for client in (consumer, admin):
        monkeypatch.setattr(client, "_admin", lambda: recorded)
    seconds = itertools.count()
    monkeypatch.setattr(_client, "time", type("Time", (), {"monotonic": lambda: float(next(seconds))}))
    yield (
        recorded,
        {
            "get_watermark_offsets": lambda timeout: consumer.get_watermark_offsets(place, timeout),
            "offsets_for_times": lambda timeout: consumer.offsets_for_times([place], timeout),
            "committed": lambda timeout: consumer.committed([place], timeout),
            "cluster_id": lambda timeout: consumer.cluster_id(timeout),
            "list_topics": lambda timeout: consumer.list_topics(timeout=timeout),
            "list_groups": lambda timeout: admin._list_groups(timeout=timeout),
        },
    )
    monkeypatch.undo()
    consumer._client = inner
    consumer.close()


def test_minus_one_means_no_limit(calls):
    recorded, by_name = calls
    for name, call in by_name.items():
        recorded.timeouts.clear()
        call(-1)
        assert min(recorded.timeouts) > 20 * DAY_S, name


def test_the_requests_of_a_call_share_its_time_out(calls):
    recorded, by_name = calls
    for name in ("get_watermark_offsets", "list_topics", "list_groups"):
        recorded.timeouts.clear()
        by_name[name](10)
        assert recorded.timeouts == [9.0, 8.0], name
        recorded.timeouts.clear()
        by_name[name](1)
        assert recorded.timeouts == [0.0, 0.0], name


def test_the_records_and_the_commit_of_a_transaction_share_its_time_out(ours, monkeypatch):
    producer = ours.top.Producer({"bootstrap.servers": "127.0.0.1:1", "transactional.id": "t"})
    timeouts: list[float | None] = []
    inner, producer._client = producer._client, type("Recorded", (), {"commit_transaction": timeouts.append})
    seconds = itertools.count(0, 3)
    with monkeypatch.context() as patch:
        patch.setattr(producer, "flush", lambda timeout: 0)
        patch.setattr(producer, "_transact", lambda call: call())
        patch.setattr(_client, "time", type("Time", (), {"monotonic": lambda: float(next(seconds))}))
        for timeout in (10, 2, -1):
            producer.commit_transaction(timeout)
    producer._client = inner
    producer.close()
    assert timeouts == [7.0, 0.0, None]
