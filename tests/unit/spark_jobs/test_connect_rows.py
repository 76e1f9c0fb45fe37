"""Rows of a query on Spark Connect, which come to the client as JSON with the progress of a micro-batch."""

from __future__ import annotations

import datetime
import json
import math
import os
import time
import uuid
from types import SimpleNamespace

import pytest
from pyspark.sql import Row
from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.types import DateType, DoubleType, LongType, StringType, StructField, StructType, TimestampType

from kafkapy_jobs.connect import CONSOLE, ConsoleRows, PolledStreams, rows_of, with_plain_metrics
from kafkapy_jobs.observation import figures

SCHEMA = StructType(
    [
        StructField("term", StringType()),
        StructField("count", LongType()),
        StructField("share", DoubleType()),
        StructField("day", DateType()),
        StructField("end", TimestampType()),
    ]
)
TEXT = '{"term":"高考","count":3,"share":"NaN","day":"2017-05-01","end":"2017-05-01T12:05:00.250000Z"}'
NULLS = '{"term":null,"count":null,"share":null,"day":null,"end":null}'


@pytest.fixture
def shanghai(monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Shanghai")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_rows_are_those_that_collect_returns(shanghai):
    assert os.environ["TZ"] == "Asia/Shanghai"
    row, nulls = rows_of([TEXT, NULLS], SCHEMA)
    assert (row["term"], row["count"], row["day"]) == ("高考", 3, datetime.date(2017, 5, 1))
    assert row["end"] == datetime.datetime(2017, 5, 1, 20, 5, 0, 250_000)
    assert math.isnan(row["share"])
    assert list(nulls) == [None] * 5


def test_only_the_rows_of_the_own_query_are_shown():
    shown = []
    listener = ConsoleRows("console", StructType([StructField("n", LongType())]), shown.append)
    for name, metrics in [
        ("console", {CONSOLE: Row(rows=['{"n":1}'])}),
        ("topic", {CONSOLE: Row(rows=['{"n":2}'])}),
        ("console", {CONSOLE: Row(rows=[])}),
        ("console", {}),
    ]:
        listener.onQueryProgress(SimpleNamespace(progress=SimpleNamespace(name=name, observedMetrics=metrics)))
    assert [[row["n"] for row in rows] for rows in shown] == [[1]]


def progress(batch, **metrics):
    """Returns the progress of a micro-batch as a server of Spark Connect sends it."""
    fields = {name: {"values": [value], "schema": {"fields": [{"name": "rows"}]}} for name, value in metrics.items()}
    ids = {"id": str(uuid.UUID(int=1)), "runId": str(uuid.UUID(int=2)), "name": "q", "batchId": batch}
    times = {"timestamp": "2017-05-01T12:00:00.000Z", "batchDuration": 1, "durationMs": {}, "stateOperators": []}
    ends = {"sources": [], "sink": {"description": "s", "numOutputRows": 0}, "observedMetrics": fields}
    return StreamingQueryProgress.fromJson({**ids, **times, **ends})


def query(*batches, failure=None):
    """Returns a query that has ended after these micro-batches; a `failure` is raised."""

    def end():
        if failure is not None:
            raise failure

    return SimpleNamespace(
        runId="run", isActive=False, recentProgress=[progress(each) for each in batches], awaitTermination=end
    )


def recorder():
    """Returns a listener, and the lists of the numbers of its micro-batches and of its ended runs."""
    batches, ended = [], []
    listener = SimpleNamespace(
        onQueryProgress=lambda event: batches.append(event.progress.batchId),
        onQueryTerminated=lambda event: ended.append(event.runId),
    )
    return listener, batches, ended


def test_each_micro_batch_is_passed_on_once_and_missing_ones_are_reported(capsys):
    streams = PolledStreams()
    listener, batches, ended = recorder()
    streams.addListener(listener)
    streams.await_end([query(3, 3, 4)])
    streams.await_end([query(4, 7)])
    assert batches == [3, 4, 7] and ended == ["run", "run"]
    assert capsys.readouterr().err == "q: the results of 2 micro-batches are not shown\n"
    streams.removeListener(listener)
    streams.await_end([query(8)])
    assert batches == [3, 4, 7]


def test_the_failure_of_a_query_is_raised():
    with pytest.raises(RuntimeError, match="no topic"):
        PolledStreams().await_end([query(0, failure=RuntimeError("no topic"))])


def test_observed_metrics_have_names():
    plain = with_plain_metrics(with_plain_metrics(progress(1, rejected=2)))
    assert plain.observedMetrics["rejected"]["rows"] == 2
    assert figures(json.loads(plain.json), datetime.datetime.now(datetime.UTC))["unreadable_rows"] == 2
