"""Figures of a stream's queries, from the progress that Spark reports: for Prometheus, for a topic, and for a page."""

from __future__ import annotations

import datetime
import json
import threading
from collections.abc import Mapping
from typing import Any

from pyspark.sql.streaming.listener import StreamingQueryListener

from kafkapy_jobs.live_page import LivePage, PageServer
from kafkapy_jobs.report import REJECTED
from kafkapy_jobs.source import connection_options

# Name, help text and kind of each figure.
METRICS = (
    ("lag_records", "Records of the topics that no micro-batch has read yet.", "gauge"),
    ("event_time_age_seconds", "Age of the newest record of the last micro-batch, by its timestamp.", "gauge"),
    ("input_records_per_second", "Records that arrived per second.", "gauge"),
    ("processed_records_per_second", "Records per second of the time that a micro-batch took.", "gauge"),
    ("batch_seconds", "Duration of the last micro-batch.", "gauge"),
    ("state_rows", "Rows of the state of all operators.", "gauge"),
    ("state_bytes", "Memory of the state of all operators.", "gauge"),
    ("batches_total", "Micro-batches since the start.", "counter"),
    ("input_records_total", "Records read since the start.", "counter"),
    ("late_rows_total", "Rows left out since the start, because they were too late.", "counter"),
    ("unreadable_rows_total", "Values that could not be read since the start.", "counter"),
)
_PREFIX = "kafkapy_job_"


def figures(progress: Mapping[str, Any], now: datetime.datetime) -> dict[str, float]:
    """Returns the figures of one micro-batch by name.

    `progress` is the JSON of Spark's StreamingQueryProgress, and `now` is the present time. The lag and the age of the
    newest record are missing, and other figures are 0, if Spark does not report them. Spark before 4.2 does not report
    the lag.
    """
    operators = progress.get("stateOperators") or []
    rejected = (progress.get("observedMetrics") or {}).get(REJECTED) or {}
    found: dict[str, float] = {
        "batches": 1,
        "input_records": progress.get("numInputRows", 0),
        "late_rows": sum(operator.get("numRowsDroppedByWatermark", 0) for operator in operators),
        "unreadable_rows": rejected.get("rows", 0),
        "state_rows": sum(operator.get("numRowsTotal", 0) for operator in operators),
        "state_bytes": sum(operator.get("memoryUsedBytes", 0) for operator in operators),
        "batch_seconds": (progress.get("durationMs") or {}).get("triggerExecution", 0) / 1000,
        # A rate that cannot be computed, as that of the first batch, is missing in the JSON.
        "input_records_per_second": progress.get("inputRowsPerSecond") or 0.0,
        "processed_records_per_second": progress.get("processedRowsPerSecond") or 0.0,
    }
    lags = partition_lags(progress)
    if lags:
        found["lag_records"] = sum(lags.values())
    newest = (progress.get("eventTime") or {}).get("max")
    if newest:
        found["event_time_age_seconds"] = max(0.0, (now - datetime.datetime.fromisoformat(newest)).total_seconds())
    return found


def partition_lags(progress: Mapping[str, Any]) -> dict[str, int]:
    """Returns the unread records of each partition whose latest offset is known."""
    lags: dict[str, int] = {}
    for source in progress.get("sources") or []:
        ends, latest = _offsets(source.get("endOffset")), _offsets(source.get("latestOffset"))
        lags |= {place: max(0, latest[place] - ends[place]) for place in ends.keys() & latest.keys()}
    return lags


def _offsets(offset: Any) -> dict[str, int]:
    """Returns the offsets by `topic-partition`; {} for the offset of a source that does not read topics."""
    if isinstance(offset, str):
        offset = json.loads(offset)
    if not isinstance(offset, dict):
        return {}
    return {
        f"{topic}-{number}": value
        for topic, by_number in offset.items()
        if isinstance(by_number, dict) and not topic.startswith("$")
        for number, value in by_number.items()
        if isinstance(value, int)
    }


class Figures:
    """The last figures of each query, and their sums since the start. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last: dict[str, dict[str, float]] = {}
        self._totals: dict[str, dict[str, float]] = {}

    def add(self, query: str, found: Mapping[str, float]) -> None:
        """Adds the figures of a micro-batch."""
        with self._lock:
            self._last[query] = dict(found)
            totals = self._totals.setdefault(query, {})
            for name, _, kind in METRICS:
                if kind == "counter":
                    totals[name] = totals.get(name, 0) + found.get(name.removesuffix("_total"), 0)

    def prometheus(self) -> str:
        """Returns all figures in Prometheus' text format."""
        with self._lock:
            values = {query: {**last, **self._totals[query]} for query, last in self._last.items()}
        lines = []
        for name, text, kind in METRICS:
            rows = [(query, found[name]) for query, found in sorted(values.items()) if name in found]
            if rows:
                lines += [f"# HELP {_PREFIX}{name} {text}", f"# TYPE {_PREFIX}{name} {kind}"]
                lines += [f'{_PREFIX}{name}{{query="{_label(query)}"}} {value:.10g}' for query, value in rows]
        return "".join(f"{line}\n" for line in lines)


def _label(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


class Observer(StreamingQueryListener):
    """Passes the figures of every micro-batch of a job to Prometheus, to a topic and to the page.

    Spark calls the methods on its listener thread.
    """

    def __init__(self, page: LivePage | None = None, producer: Any = None, topic: str = "") -> None:
        """`page` is updated with the rates. `producer` writes the figures to `topic`. Both may be None."""
        self.figures = Figures()
        self._page = page
        self._producer = producer
        self._topic = topic

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802 (Spark's name)
        pass

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        progress = json.loads(event.progress.json)
        query = progress.get("name") or progress["id"]
        found = figures(progress, datetime.datetime.now(datetime.UTC))
        self.figures.add(query, found)
        if self._page is not None and progress.get("inputRowsPerSecond") is not None:
            self._page.add_rate(query, found["input_records_per_second"])
        if self._producer is not None:
            record = {"query": query, "batch": progress["batchId"], "timestamp": progress["timestamp"], **found}
            record["partition_lags"] = partition_lags(progress)
            self._producer.send(self._topic, json.dumps(record).encode(), key=query.encode())

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        pass

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        pass


class Observation:
    """A context manager that observes the queries of a session, as the options --http and --progress-topic say."""

    def __init__(self, streams: Any, arguments: Any, page: LivePage) -> None:
        """`streams` has the queries of the session; `page` is served if --http is among `arguments`."""
        given = vars(arguments)
        self._streams = streams
        self._address = given.get("http")
        self._topic = given.get("progress_topic")
        self._arguments = arguments
        self._page = page
        self._observer: Observer | None = None
        self._producer: Any = None
        self._server: PageServer | None = None

    def __enter__(self) -> Observation:
        if self._topic:
            from kafkapy.client import Producer

            options = connection_options(self._arguments)
            self._producer = Producer({key.removeprefix("kafka."): value for key, value in options.items()})
        if self._address or self._topic:
            self._observer = Observer(self._page, self._producer, self._topic or "")
            self._streams.addListener(self._observer)
        if self._address and self._observer is not None:
            self._server = PageServer(self._address, self._page, self._observer.figures.prometheus)
            self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._observer is not None:
            self._streams.removeListener(self._observer)
        if self._producer is not None:
            self._producer.close()
        if self._server is not None:
            self._server.stop()
