"""Jobs on Spark Connect, where the job is a client of the server that runs its queries.

The server runs the function of `foreachBatch`, so that its output would be in the server's log. The rows for the
console come to the client as an observation instead, with the progress of their micro-batch. The client polls the
progress: in PySpark 4.3.0 the thread that receives events for listeners ends when a query has run Python.
"""

from __future__ import annotations

import datetime
import json
import sys
import time
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.listener import StreamingQueryListener, StreamingQueryProgress
from pyspark.sql.types import DataType, DateType, DoubleType, FloatType, StructType, TimestampType
from pyspark.sql.utils import is_remote

__all__ = ["CONSOLE", "ConsoleRows", "PolledStreams", "is_remote", "observed_rows", "rows_of", "streams_of"]

# Name of the observation with the rows of a micro-batch.
CONSOLE = "console_rows"
# Between two looks at the progress of queries. Spark keeps the progress of the last 100 micro-batches.
_POLL_S = 0.25
_JSON = {"ignoreNullFields": "false", "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}


def observed_rows(result: DataFrame) -> DataFrame:
    """Returns the rows, and makes the query report them, as JSON, with the progress of each micro-batch."""
    row = F.to_json(F.struct(*(F.col(name) for name in result.columns)), _JSON)
    return result.observe(CONSOLE, F.collect_list(row).alias("rows"))


def rows_of(texts: Sequence[str], schema: StructType) -> list[Row]:
    """Returns the rows whose JSON `observed_rows` has reported in `texts`, with the columns of `schema`.

    The values are those that `collect` returns: timestamps are local and have no zone.
    """
    make = Row(*schema.fieldNames())
    found = map(json.loads, texts)
    return [make(*(_value(row[field.name], field.dataType) for field in schema.fields)) for row in found]


def _value(value: Any, kind: DataType) -> Any:
    if value is None:
        return None
    if isinstance(kind, TimestampType):
        return datetime.datetime.fromisoformat(value).astimezone().replace(tzinfo=None)
    if isinstance(kind, DateType):
        return datetime.date.fromisoformat(value)
    if isinstance(kind, (DoubleType, FloatType)):
        return float(value)  # NaN and the infinities are text in JSON
    return value


class ConsoleRows(StreamingQueryListener):
    """Shows the observed rows of the query `name`."""

    def __init__(self, name: str, schema: StructType, show: Callable[[list[Row]], None]) -> None:
        """`schema` is that of the rows; `show` is called with the rows of each micro-batch."""
        self._name = name
        self._schema = schema
        self._show = show

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802 (Spark's name)
        pass

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        progress = event.progress
        found = progress.observedMetrics.get(CONSOLE) if progress.name == self._name else None
        if found and found["rows"]:
            self._show(rows_of(found["rows"], self._schema))

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        pass

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        pass


class PolledStreams:
    """The listeners of the queries of a session of Spark Connect. Not thread-safe."""

    def __init__(self) -> None:
        self._listeners: list[StreamingQueryListener] = []
        self._next: dict[str, int] = {}

    def addListener(self, listener: StreamingQueryListener) -> None:  # noqa: N802 (Spark's name)
        self._listeners.append(listener)

    def removeListener(self, listener: StreamingQueryListener) -> None:  # noqa: N802
        self._listeners.remove(listener)

    def await_end(self, queries: Sequence[Any]) -> None:
        """Passes the progress of the queries to the listeners until all have ended.

        Raises StreamingQueryException as soon as one has failed.
        """
        waiting = list(queries)
        while waiting:
            ended = [query for query in waiting if not query.isActive]  # before the look at their last progress
            for query in waiting:
                self._pass_on(query)
            for query in ended:
                waiting.remove(query)
                for listener in list(self._listeners):
                    listener.onQueryTerminated(SimpleNamespace(runId=query.runId))
                query.awaitTermination()
            if not ended:
                time.sleep(_POLL_S)

    def _pass_on(self, query: Any) -> None:
        """Passes the progress of the micro-batches that have ended since the last call to the listeners."""
        for progress in query.recentProgress:
            run, batch = str(progress.runId), progress.batchId
            due = self._next.get(run, batch)
            if batch < due:
                continue
            if batch > due:
                print(f"{progress.name}: the results of {batch - due} micro-batches are not shown", file=sys.stderr)
            self._next[run] = batch + 1
            event = SimpleNamespace(progress=with_plain_metrics(progress))
            for listener in list(self._listeners):
                listener.onQueryProgress(event)


def with_plain_metrics(progress: StreamingQueryProgress) -> StreamingQueryProgress:
    """Returns the progress with observed metrics by name, which a server sends as values with their schema."""
    found = json.loads(progress.json)
    metrics = found.get("observedMetrics") or {}
    for name, row in metrics.items():
        if row.keys() == {"values", "schema"}:
            names = [field["name"] for field in row["schema"]["fields"]]
            metrics[name] = dict(zip(names, row["values"], strict=True))
    return StreamingQueryProgress.fromJson(found)


_POLLED = PolledStreams()


def streams_of(spark: SparkSession) -> Any:
    """Returns the object to which listeners of a session's queries are added: Spark's own, or with Connect one of ours.

    A program has one session of Connect.
    """
    return _POLLED if is_remote() else spark.streams
