"""Figures of a stream's micro-batches, for Prometheus, for a topic and for the page."""

from __future__ import annotations

import datetime
import json
import socket
import urllib.error
import urllib.request
from argparse import Namespace
from types import SimpleNamespace

import pytest
from prometheus_client.parser import text_string_to_metric_families

from kafkapy_jobs.live_page import LivePage, PageServer
from kafkapy_jobs.observation import Figures, Observation, Observer, figures, partition_lags

NOW = datetime.datetime(2026, 1, 1, 12, 0, 30, tzinfo=datetime.UTC)
PROGRESS = {
    "id": "1",
    "name": "console",
    "batchId": 7,
    "timestamp": "2026-01-01T12:00:00.000Z",
    "numInputRows": 40,
    "inputRowsPerSecond": 20.0,
    "processedRowsPerSecond": 80.0,
    "durationMs": {"triggerExecution": 500, "addBatch": 400},
    "eventTime": {"max": "2026-01-01T12:00:00.000Z", "watermark": "2026-01-01T11:59:00.000Z"},
    "stateOperators": [
        {"numRowsTotal": 5, "memoryUsedBytes": 1000, "numRowsDroppedByWatermark": 2},
        {"numRowsTotal": 1, "memoryUsedBytes": 10, "numRowsDroppedByWatermark": 1},
    ],
    "observedMetrics": {"rejected": {"rows": 3}},
    "sources": [
        {"endOffset": '{"t": {"0": 10, "1": 5}, "$ids": {"t": "x"}}', "latestOffset": {"t": {"0": 14, "1": 5}}},
        {"endOffset": {"logOffset": 3}, "latestOffset": None},
    ],
}  # fmt: skip


def test_the_figures_of_a_micro_batch():
    assert figures(PROGRESS, NOW) == {
        "batches": 1, "input_records": 40, "late_rows": 3, "unreadable_rows": 3, "state_rows": 6, "state_bytes": 1010,
        "batch_seconds": 0.5, "input_records_per_second": 20.0, "processed_records_per_second": 80.0,
        "lag_records": 4, "event_time_age_seconds": 30.0,
    }  # fmt: skip
    assert partition_lags(PROGRESS) == {"t-0": 4, "t-1": 0}


def test_what_spark_does_not_report_is_missing():
    found = figures({"id": "1", "sources": [{"endOffset": '{"t": {"0": 1}}'}]}, NOW)
    assert "lag_records" not in found and "event_time_age_seconds" not in found
    assert found["input_records_per_second"] == 0


def test_prometheus_reads_the_last_figures_and_the_totals():
    kept = Figures()
    kept.add('a"b', figures(PROGRESS, NOW))
    kept.add('a"b', figures({**PROGRESS, "numInputRows": 2}, NOW))
    samples = [sample for family in text_string_to_metric_families(kept.prometheus()) for sample in family.samples]
    assert {sample.labels["query"] for sample in samples} == {'a"b'}
    values = {sample.name: sample.value for sample in samples}
    assert values["kafkapy_job_input_records_total"] == 42 and values["kafkapy_job_batches_total"] == 2
    assert values["kafkapy_job_late_rows_total"] == 6 and values["kafkapy_job_lag_records"] == 4
    assert Figures().prometheus() == ""


class Producer:
    def __init__(self):
        self.sent = []

    def send(self, topic, value, *, key):
        self.sent.append((topic, key, json.loads(value)))


def test_a_record_for_each_micro_batch():
    producer, page = Producer(), LivePage("t", clock=lambda: 1.0)
    observer = Observer(page, producer, "progress")
    observer.onQueryProgress(SimpleNamespace(progress=SimpleNamespace(json=json.dumps(PROGRESS))))
    ((topic, key, record),) = producer.sent
    assert (topic, key) == ("progress", b"console")
    assert record["batch"] == 7 and record["lag_records"] == 4 and record["partition_lags"] == {"t-0": 4, "t-1": 0}
    assert "Records per second" in page.html()


@pytest.mark.parametrize(("language", "texts"), [("en", "Records per second"), ("zh", "每秒记录数")])
def test_the_page_has_bars_a_curve_and_the_readers_language(language, texts):
    page = LivePage("words-search", language, clock=lambda: 1_500_000_000.0)
    assert "<svg" not in page.html()
    page.show("until <12:05>", [("高考", 5), ("kafka", 2)])
    for rate in (10.0, 30.0):
        page.add_rate("console", rate)
        page.add_rate("topic", 99.0)
    html = page.html()
    assert texts in html and "until &lt;12:05&gt;" in html and "高考" in html and f'lang="{language}"' in html
    assert html.count("<svg") == 2 and html.count("<polyline") == 1 and 'http-equiv="refresh"' in html


def read(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.read().decode(), answer.headers["Content-Type"]


class Streams:
    def __init__(self):
        self.listeners = []
        self.addListener = self.listeners.append
        self.removeListener = self.listeners.remove


def test_the_server_has_the_page_and_the_metrics():
    page = LivePage("t")
    server = PageServer("127.0.0.1:0", page, lambda: "metric 1\n")
    server.start()
    url = f"http://127.0.0.1:{server.port}"
    assert read(f"{url}/?x")[0].startswith("<!doctype html>")
    assert read(f"{url}/metrics") == ("metric 1\n", "text/plain; version=0.0.4; charset=utf-8")
    with pytest.raises(urllib.error.HTTPError):
        read(f"{url}/other")
    server.stop()


@pytest.mark.parametrize("address", ["127.0.0.1:x", "no-such-host.invalid:1", "127.0.0.1:99999"])
def test_an_address_that_cannot_be_used_is_one_line(address, capsys):
    with pytest.raises(SystemExit):
        PageServer(address, LivePage("t"), str)
    assert capsys.readouterr().err.startswith(f"--http {address}: ")


def test_a_job_is_observed_while_its_queries_run():
    streams = Streams()
    with Observation(streams, Namespace(http=None, progress_topic=None), LivePage("t")):
        assert streams.listeners == []
    with Observation(streams, Namespace(http="127.0.0.1:0"), LivePage("t")):
        assert len(streams.listeners) == 1
    assert streams.listeners == []


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this machine has no IPv6")
def test_the_page_may_have_an_address_of_ipv6():
    server = PageServer("[::1]:0", LivePage("t"), str)
    server.start()
    try:
        with socket.create_connection(("::1", server.port), 10):
            pass
    finally:
        server.stop()
