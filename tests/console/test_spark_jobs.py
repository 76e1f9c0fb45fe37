"""The page of running Spark jobs, from the records that jobs write for each micro-batch."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

from kafkapy.client import Admin, Producer
from kafkapy.client.admin import NewTopic
from kafkapy.console.spark_jobs import DEFAULT_JOBS_TOPIC, queries_in
from tests.console.conftest import faults, opened
from tests.console.screens import Screen

NOW = datetime.now(UTC)


def record(query: str, batch: int, ago_s: float, **figures: object) -> bytes:
    timestamp = (NOW - timedelta(seconds=ago_s)).isoformat().replace("+00:00", "Z")
    return json.dumps({"query": query, "batch": batch, "timestamp": timestamp, **figures}).encode()


def test_the_queries_have_their_micro_batches_in_the_order_of_time():
    values = [
        record("b", 2, 10, lag_records=5, partition_lags={"t-0": 5}),
        record("a", 1, 50, state_rows=7),
        record("b", 1, 20, lag_records=9, partition_lags={"t-0": 9}),
        *(None, b"", b"[]", b"{}", b"[" * 50_000, record("x", 1, 1).replace(b'"timestamp": "2', b'"timestamp": "x')),
        b'{"query": "x", "batch": "y", "timestamp": "2026-01-01T00:00:00Z"}',
        b'{"query": "nan", "batch": 1, "timestamp": "2026-01-01T00:00:00Z", "lag_records": NaN, "state_rows": "many"}',
    ]
    found = queries_in(values)
    assert [each.name for each in found] == ["a", "b", "nan"]
    assert [each.number for each in found[1].batches] == [1, 2]
    assert found[1].partition_lags == {"t-0": 5}
    assert found[2].last.figures == {}
    now_ms = int(NOW.timestamp() * 1000)
    assert not found[1].is_silent(now_ms)
    assert found[1].is_silent(now_ms + 120_000)
    assert found[2].is_silent(now_ms)


def test_a_job_is_shown_with_its_figures_and_curves(visitor, broker, browser, console):
    empty = visitor.get("/c/test/jobs")
    assert (empty.status, f"--progress-topic {DEFAULT_JOBS_TOPIC}" in empty.plain) == (200, True)
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        admin.create_topics([NewTopic(DEFAULT_JOBS_TOPIC, 2, 1)]).check()
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        for number in range(6):
            figures = {"input_records_per_second": 10.0 * number, "batch_seconds": 0.5, "lag_records": 100 - number}
            value = record("<counts>", number, -3600 - number, **figures, partition_lags={"orders-0": 94})
            producer.send(DEFAULT_JOBS_TOPIC, value, key=b"counts", partition=number % 2).result()
        producer.send(DEFAULT_JOBS_TOPIC, record("ended", 7, 3600), partition=0).result()
        producer.send(DEFAULT_JOBS_TOPIC, b"no job", partition=0).result()
    problems: list[str] = []
    page = opened(browser, console, problems)
    page.goto(f"{console.origin}/c/test/jobs")
    for _ in range(100):  # the empty list is kept for a moment
        if page.get_by_role("link", name="<counts>").count():
            break
        page.wait_for_timeout(300)
        page.reload()
    cells = page.locator("tbody tr td").all_inner_texts()
    assert cells[:3] == ["<counts>", "running", "5"]
    assert cells[3:7] == ["50", "–", "0.5", "95"]
    assert cells[9:12] == ["ended", "silent", "7"]
    problems += faults(page)
    Screen(page, f"{console.origin}/c/test").go(page.get_by_role("link", name="<counts>"))
    page.locator(".plot .u-wrap canvas").first.wait_for()
    assert page.locator(".scroll tbody td").all_inner_texts()[:2] == ["orders-0", "94"]
    problems += faults(page)
    page.context.close()
    assert problems == []
    assert visitor.get("/c/test/jobs?query=absent").status == 404
