"""Reports the rows that a job left out: values that could not be read, rows that came too late."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Iterable
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.listener import StreamingQueryListener

# Name of the observation that counts rows with a `reason`.
REJECTED = "rejected"
# Spark delivers the last events of a query after its end, within this time.
_LAST_EVENTS_S = 10.0


def observed(rows: DataFrame) -> DataFrame:
    """Returns the rows, and makes the query count those with a `reason`.

    The report reads the count from the query's progress.
    """
    return rows.observe(REJECTED, F.count("reason").alias("rows"))


class Report(StreamingQueryListener):
    """Prints a line on standard error for each micro-batch of the query `name` that left rows out.

    A job has a query for each sink; because all of them leave out the same rows, only one is reported. Spark
    calls the methods on its listener thread, except `await_end`.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._ended: set[str] = set()
        self._has_ended = threading.Condition()

    def await_end(self, run_ids: Iterable[str]) -> None:
        """Waits until the last events of these runs have been delivered.

        As a result, everything is reported, and Spark does not call a program that has ended.
        """
        awaited = set(run_ids)
        with self._has_ended:
            self._has_ended.wait_for(lambda: awaited <= self._ended, _LAST_EVENTS_S)

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802 (Spark's name)
        pass

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        progress = event.progress
        if progress.name != self._name:
            return
        rejected = progress.observedMetrics.get(REJECTED)
        late = sum(operator.numRowsDroppedByWatermark for operator in progress.stateOperators)
        if late or (rejected and rejected["rows"]):
            count = rejected["rows"] if rejected else 0
            print(f"{progress.name} batch {progress.batchId}: {count} unreadable, {late} too late", file=sys.stderr)

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        pass

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        with self._has_ended:
            self._ended.add(str(event.runId))
            self._has_ended.notify_all()


def count_rejected(rows: DataFrame) -> Counter[str]:
    """Counts the rows of a batch for each `reason`."""
    found = rows.where(F.col("reason").isNotNull()).groupBy("reason").count().collect()
    return Counter({row["reason"]: row["count"] for row in found})


def print_rejected(rejected: Counter[str]) -> None:
    """Prints one line on standard error with the number of rows for each reason; prints nothing if there are none."""
    if rejected:
        reasons = ", ".join(f"{reason}: {count}" for reason, count in sorted(rejected.items()))
        print(f"{rejected.total()} rows left out ({reasons})", file=sys.stderr)
