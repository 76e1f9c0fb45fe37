"""The history of a cluster: bounded rings, curves, the samples of a running console, and the compacted topic."""

from __future__ import annotations

import json
import time

import pytest

from kafkapy.client import Producer
from kafkapy.client.admin import ConfigResource, ResourceType
from kafkapy.console.cluster_view import ClusterView
from kafkapy.console.curve import curve_of
from kafkapy.console.history import (
    COARSE_POINTS,
    COARSE_S,
    FINE_POINTS,
    FINE_S,
    MOST_CURVES,
    History,
    Ring,
    group_series,
    topic_series,
)
from kafkapy.console.sampler import HistoryTopic
from tests.console.conftest import faults, opened
from tests.console_process import ConsoleProcess

TOPIC = "__console_history"


def test_a_ring_has_the_newest_points_in_order():
    ring = Ring(4)
    for second in range(10):
        ring.add(second, {"a": second * 2.0} if second != 7 else {})
    assert ring.points("a") == [(6, 12.0), (7, None), (8, 16.0), (9, 18.0)]
    assert ring.points("b") == []


def test_the_series_of_a_ring_are_bounded_and_replaced_when_they_have_no_points():
    ring = Ring(3)
    ring.add(0, {f"old {number}": 1.0 for number in range(MOST_CURVES)})
    ring.add(1, {"new": 1.0})
    assert len(ring.names()) == MOST_CURVES
    assert "new" not in ring.names()
    for second in range(2, 7):
        ring.add(second, {"new": 1.0})
    assert ring.names() == ["new"]


def test_the_week_has_the_means_of_five_minutes():
    history = History()
    steps = int(COARSE_S / FINE_S)
    means = [history.add(number * FINE_S, {"a": float(number)}) for number in range(steps * 3 + 1)]
    found = [each for each in means if each is not None]
    assert [each["a"] for each in found] == [15.0, 45.5, 75.5]
    points = history.points("a", is_week=True, now_s=steps * 3 * FINE_S)
    assert points == [(300.0, 15.0), (610.0 - FINE_S, 45.5), (900.0, 75.5)]


def test_the_hour_has_no_older_points():
    history = History()
    for number in range(FINE_POINTS * 2):
        history.add(number * FINE_S, {"a": 1.0})
    points = history.points("a", now_s=FINE_POINTS * 2 * FINE_S + 600)
    assert points[0][0] == FINE_POINTS * FINE_S + 600
    assert len(points) == FINE_POINTS - 60


def test_a_curve_is_broken_where_points_are_missing():
    curve = curve_of("Lag", "records", [(0, 0.0), (10, 10.0), (20, None), (30, 5.0)])
    assert curve.lines == ["0.0,88.0 200.0,2.0", "600.0,45.0 600.0,45.0"]
    assert (curve.last, curve.highest) == (5.0, 10.0)
    assert json.loads(curve.data) == [[0, 10, 20, 30], [0.0, 10.0, None, 5.0]]
    assert curve_of("Lag", "records", []).lines == []


def await_page(visitor, path, expected, during=lambda: None):
    """Returns the page as soon as it has the expected text."""
    deadline = time.monotonic() + 90
    while True:
        during()
        reply = visitor.get(path)
        if expected in reply.text:
            return reply
        assert time.monotonic() < deadline, reply.plain
        time.sleep(0.5)


def test_the_history_survives_the_console(broker):
    view = ClusterView("test", {"bootstrap.servers": broker.bootstrap})
    store = HistoryTopic(view, "__other_history")
    assert store.read() == []
    now_s = time.time()
    store.write(now_s - COARSE_S * COARSE_POINTS - 1000, {"lag": 9.0})
    store.write(now_s - 600, {"lag": 1.0, "group billing": 2.5})
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        for value in (b"no point", b"[]", b'{"time": "x", "values": {}}', b"[" * 50_000, None):
            producer.send("__other_history", value, key=b"0")
    store.write(now_s - 300, {"lag": 3.0})
    view.forget()
    assert store.read() == [(now_s - 600, {"lag": 1.0, "group billing": 2.5}), (now_s - 300, {"lag": 3.0})]
    resource = ConfigResource(ResourceType.TOPIC, "__other_history")
    assert view.admin.describe_configs([resource])[resource]["cleanup.policy"].value == "compact"
    view.close()


@pytest.fixture(scope="module")
def remembering(broker, tmp_path_factory):
    """Yields a console whose history topic has two points of an earlier console."""
    view = ClusterView("test", {"bootstrap.servers": broker.bootstrap})
    for ago_s, lag in ((900, 50.0), (600, 70.0)):
        HistoryTopic(view, TOPIC).write(time.time() - ago_s, {"lag": lag, group_series("billing"): lag})
    view.close()
    arguments = ("--bootstrap-server", broker.bootstrap, "--name", "test", "--history-topic", TOPIC)
    with ConsoleProcess(tmp_path_factory.mktemp("remembering"), *arguments) as running:
        yield running


def test_a_new_console_shows_the_points_of_an_earlier_one(remembering):
    visitor = remembering.visitor()
    plain = await_page(visitor, "/c/test/history?span=week", "at most 70").plain
    assert "Lag of all groups 70 records now, at most 70" in plain
    assert "Lag 70 records now" in visitor.get("/c/test/history?span=week&group=billing").plain
    assert visitor.get("/c/test/history?span=year").status == 400


def test_a_running_console_samples_rates_and_lags(remembering, broker):
    visitor = remembering.visitor()
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        await_page(
            visitor, "/c/test/history?topic=empty", "<polyline", lambda: producer.send("empty", b"x", partition=0)
        )
    assert "<polyline" in visitor.get("/c/test/topics/empty/partitions").text
    assert "Lag in the last hour 140 records now" in visitor.get("/c/test/group?id=billing").plain
    overview = visitor.get("/c/test/").plain
    assert "Records written" in overview
    assert topic_series("empty") not in overview


def test_curves_are_plotted_in_a_browser_and_readable_without_script(browser, remembering):
    await_page(remembering.visitor(), "/c/test/history", "<polyline")
    place, problems = f"{remembering.origin}/c/test", []
    page = opened(browser, remembering, problems)
    page.goto(f"{place}/history?span=week&group=billing")
    page.locator(".plot .u-wrap canvas").first.wait_for()
    problems += faults(page)
    page.goto(f"{place}/")
    problems += faults(page)
    page.context.close()
    page = opened(browser, remembering, problems, java_script_enabled=False)
    page.goto(f"{place}/history?span=week")
    assert page.get_by_role("img", name="Lag of all groups over time").count() == 1
    page.context.close()
    assert problems == []
