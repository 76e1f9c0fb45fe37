"""Replaying records into a new topic, and the comparison of topics and of clusters."""

from __future__ import annotations

import pytest

from kafkapy.client import Consumer, Producer
from kafkapy.client.admin import NewTopic
from tests.broker_process import BrokerProcess
from tests.console.test_changes import admin, apply, editor, made, review  # noqa: F401
from tests.console_process import ConsoleProcess, Visitor


@pytest.fixture(scope="module")
def second_broker(tmp_path_factory):
    with BrokerProcess(tmp_path_factory.mktemp("second-broker"), {}) as running:
        yield running


@pytest.fixture(scope="module")
def changing(broker, second_broker, tmp_path_factory):
    arguments = ("--cluster", f"test={broker.bootstrap}", "--cluster", f"second={second_broker.bootstrap}")
    with ConsoleProcess(tmp_path_factory.mktemp("changing"), *arguments, "--allow-changes") as running:
        yield running


def records(bootstrap: str, topic: str, partitions: int) -> list:
    keys = [(topic, number) for number in range(partitions)]
    with Consumer(
        bootstrap_servers=bootstrap, auto_offset_reset="earliest", isolation_level="read_committed"
    ) as consumer:
        consumer.assign(keys)
        ends = consumer.end_offsets(keys)
        found: list = []
        while any(consumer.position(key) < end for key, end in ends.items()):
            found += consumer.poll(1.0)
    return sorted(found, key=lambda each: (each.partition, each.offset))


def test_a_filtered_range_is_replayed_after_a_dry_run(editor, broker, admin):  # noqa: F811
    fields = {"topic": "orders", "target": "replayed", "operation": "contains", "text": "customer-3"}
    fields["configuration"] = "retention.ms=-1"
    reviewed = review(editor, "replay", **fields)
    assert "This dry run has found 43 records" in reviewed.plain
    assert "--create --topic replayed --partitions 3 --replication-factor 1" in reviewed.plain
    assert "replayed" not in admin.list_topics()
    reply = apply(editor, "replay", reviewed)
    assert "43 records of the topic orders were written to the topic replayed" in reply.plain
    original = [each for each in records(broker.bootstrap, "orders", 3) if b"customer-3" in each.value]
    again = records(broker.bootstrap, "replayed", 3)
    shown = [(each.partition, each.key, each.value, each.timestamp, each.headers) for each in again]
    assert shown == [(each.partition, each.key, each.value, each.timestamp, each.headers) for each in original]


def test_a_replay_has_a_partition_a_start_and_an_end(editor):  # noqa: F811
    fields = {"topic": "orders", "target": "never", "partition": "1", "from": "time", "at": "1700000000100"}
    reviewed = review(editor, "replay", **fields, until="1700000000200")
    # The partition has the timestamps 1, 4, 7, … after the first one.
    assert "has found 34 records" in reviewed.plain


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"target": "orders"}, "Topic 'orders' already exists."),
        ({"target": "a topic"}, "Topic name is invalid"),
        ({"target": ""}, "The field target is empty."),
        ({"target": "never", "from": "soon"}, "from is one of oldest, offset, time"),
        ({"target": "never", "partition": "3"}, "partition is a whole number from 0 to 2"),
        ({"target": "never", "until": "soon"}, "is not a time"),
        ({"target": "never", "text": "x", "operation": "less"}, "is not a number"),
        ({"target": "never", "configuration": "no.such.key=1"}, "no.such.key"),
    ],
)
def test_a_replay_that_cannot_be_made_is_refused(editor, admin, fields, reason):  # noqa: F811
    reply = review(editor, "replay", topic="orders", **fields)
    assert reply.status >= 400
    assert reason in reply.plain
    assert "never" not in admin.list_topics()


@pytest.mark.parametrize(("name", "most"), [("MOST_REPLAYED", 99), ("MOST_REPLAYED_BYTES", 5_000)])
def test_a_replay_is_bounded(broker, monkeypatch, name, most):
    from kafkapy.console.changes import replay
    from kafkapy.console.cluster_view import ClusterView
    from kafkapy.console.problem import Problem

    monkeypatch.setattr(replay, name, most)
    view = ClusterView("test", {"bootstrap.servers": broker.bootstrap})
    with pytest.raises(Problem, match=r"are selected\. Choose a shorter range"):
        replay.REPLAY.plan(view, {"topic": "orders", "target": "never"})
    view.close()


def fill(bootstrap: str, topic: str, values: dict[str, str | None]) -> None:
    with Producer(bootstrap_servers=bootstrap) as producer:
        for key, value in values.items():
            producer.send(topic, value, key=key, partition=0)


def test_two_topics_are_compared_by_their_properties_and_content(editor, admin, broker):  # noqa: F811
    configs = {"retention.ms": "86400000"}
    admin.create_topics([NewTopic("left", 1, 1), NewTopic("right", 2, 1, configs=configs)]).check()
    fill(broker.bootstrap, "left", {"a": "1", "b": "2", "<b>": "3"})
    fill(broker.bootstrap, "right", {"a": "1", "b": None, "c": "4", "d": "5"})
    reply = editor.get("/c/test/compare?topic=left&with=right&content=1")
    assert "partitions 1 2" in reply.plain
    assert "retention.ms 604800000 86400000" in reply.plain
    assert "segment.bytes" not in reply.plain
    expected = "1 key with the same last value, 1 with another value, 1 only in left of test, 2 only in right of test."
    assert expected in reply.plain
    assert "Such as &lt;b&gt;, b, c, d" in reply.text.replace('<span class="mono text">', "")
    assert "segment.bytes" in editor.get("/c/test/compare?topic=left&with=right&all=1").plain


def test_two_clusters_are_compared(editor, admin, broker, second_broker):  # noqa: F811
    from kafkapy.client import Admin

    admin.create_topics([NewTopic(name, 1, 1) for name in ("common", "only-here", "longer")]).check()
    with Admin(bootstrap_servers=second_broker.bootstrap) as other:
        configs = {"cleanup.policy": "compact"}
        topics = [NewTopic("common", 1, 1), NewTopic("only-there", 4, 1), NewTopic("longer", 1, 1, configs=configs)]
        other.create_topics(topics).check()
    fill(second_broker.bootstrap, "longer", {"a": "1", "b": "2"})
    plain = ""
    while "only-here" not in plain or "only-there" not in plain:  # the console shows values for two seconds
        plain = editor.get("/c/test/compare?other=second").plain
    assert "only-here partitions 1 –" in plain
    assert "only-there partitions – 4" in plain
    assert "longer offsets from the first to the end 0 2 cleanup.policy – compact" in plain
    assert "common" not in plain
    same = editor.get("/c/test/compare?topic=common&other=second&content=1").plain
    assert "0 keys with the same last value, 0 with another value, 0 only in" in same


@pytest.mark.parametrize(
    ("query", "status", "reason"),
    [
        ("topic=orders", 400, "this is the same topic twice"),
        ("with=orders", 400, "Name the topic to compare with, too."),
        ("topic=orders&with=absent", 404, "The topic 'absent' does not exist."),
        ("other=nowhere", 404, "This console has no cluster 'nowhere'"),
    ],
)
def test_a_comparison_without_sense_is_refused(editor, query, status, reason):  # noqa: F811
    reply = editor.get(f"/c/test/compare?{query}")
    assert reply.status == status
    assert reason in reply.plain


def test_a_visitor_without_a_login_compares_nothing(changing):
    assert Visitor(changing.origin).get("/c/test/compare?other=second", follow=False).status == 303
