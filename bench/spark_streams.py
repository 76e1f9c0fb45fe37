"""The set `streams` of `python -m bench.spark`: micro-batches and the hot search at constant rates of arrival.

For each rate and source, in turn: a query that only reads, with the durations of its micro-batches, in all and in the
phases that Spark reports; and a hot search over windows of one second, with the time from the end of each window to its
result. A micro-batch begins when the one before has ended. Prints milliseconds as JSON.
"""

from __future__ import annotations

import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from bench.quantiles import quantile
from bench.spark_driver import start

FORMS = ("kafka", "kafkapy")
RATES = (1_000, 100_000)
# The first micro-batches start workers and compile code: so many, and for so long, are not counted.
WARM_UP_BATCHES = 5
WARM_UP_S = 10.0
_START_S = 300.0
_SCHEMA = "value binary, timestamp timestamp"


@contextlib.contextmanager
def feed(bootstrap: str, topic: str, rate: int) -> Iterator[None]:
    process = subprocess.Popen([sys.executable, "-m", "bench.spark_feed", bootstrap, topic, str(rate)])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def percentiles(values_ms: Sequence[float]) -> dict[str, int]:
    """Returns the median and the 99th percentile in ms; neither without values."""
    return {f"p{share}_ms": round(quantile(values_ms, share / 100)) for share in (50, 99)} if values_ms else {}


def stream(spark: Any, form: str, bootstrap: str, topic: str) -> Any:
    reader = spark.readStream.format(form).option("kafka.bootstrap.servers", bootstrap).option("subscribe", topic)
    return reader.schema(_SCHEMA).load() if form == "kafkapy" else reader.load()


@contextlib.contextmanager
def running(writer: Any) -> Iterator[Any]:
    with tempfile.TemporaryDirectory(prefix="spark-streams-", ignore_cleanup_errors=True) as checkpoint:
        query = writer.trigger(processingTime="0 seconds").option("checkpointLocation", checkpoint).start()
        try:
            yield query
        finally:
            query.stop()


def warm_up(query: Any, count: Callable[[], int]) -> None:
    """Waits until `count()` is WARM_UP_BATCHES or more, and at least WARM_UP_S seconds have passed.

    Raises the error of a failed query, and TimeoutError if the results do not arrive.
    """
    began = time.monotonic()
    while count() < WARM_UP_BATCHES or time.monotonic() - began < WARM_UP_S:
        if not query.isActive:
            query.awaitTermination()
        if time.monotonic() - began > _START_S:
            raise TimeoutError(f"a query had {count()} results in {_START_S:g} s")
        time.sleep(0.1)


def micro_batches(spark: Any, form: str, bootstrap: str, topic: str, seconds: float) -> dict[str, Any]:
    """Returns the number of micro-batches that read records within `seconds` after the warm-up, and their durations."""
    frame = stream(spark, form, bootstrap, topic)
    with running(frame.select("value", "timestamp").writeStream.format("noop")) as query:
        warm_up(query, lambda: len(query.recentProgress))
        known = len(query.recentProgress)
        time.sleep(seconds)
        done = [each for each in query.recentProgress[known:] if each["numInputRows"]]
    found = [dict(each["durationMs"]) for each in done]
    rows = sum(each["numInputRows"] for each in done)
    whole = [each["triggerExecution"] for each in found]
    names = {name: None for each in found for name in each}
    phases = {name: round(statistics.mean(each.get(name, 0) for each in found), 1) for name in names}
    return {"batches": len(whole), "rows": rows, **percentiles(whole), "mean_of_phases_ms": phases}


def hot_search(spark: Any, form: str, bootstrap: str, topic: str, seconds: float) -> dict[str, Any]:
    """Returns percentiles of the time from the end of a window of one second to its ten most frequent terms.

    Only windows that end within `seconds` after the warm-up count.
    """
    from pyspark.sql import functions as f

    ends: dict[float, float] = {}

    def show(rows: Any, batch_id: int) -> None:
        counted = rows.collect()
        now = time.time()
        for row in counted:
            ends.setdefault(row["window"]["end"].timestamp(), now)

    terms = stream(spark, form, bootstrap, topic).select("timestamp", f.col("value").cast("string").alias("term"))
    counts = (
        terms.withWatermark("timestamp", "0 seconds").groupBy(f.window("timestamp", "1 second"), "term").count()
        .groupBy("window")
        .agg(f.slice(f.sort_array(f.collect_list(f.struct("count", "term")), asc=False), 1, 10).alias("top"))
    )  # fmt: skip
    with running(counts.writeStream.outputMode("append").foreachBatch(show)) as query:
        warm_up(query, lambda: len(ends))
        began = time.time()
        time.sleep(seconds)
    found = [(shown - end) * 1000 for end, shown in ends.items() if end >= began]
    return {"windows": len(found), **percentiles(found)}


def main() -> None:
    bootstrap, topic, seconds, *rates = sys.argv[1:]
    spark = start()
    told: dict[str, Any] = {}
    for rate in map(int, rates):
        place = f"{topic}-{rate}"
        with feed(bootstrap, place, rate):
            for form in FORMS:
                found = {
                    "micro-batches": micro_batches(spark, form, bootstrap, place, float(seconds)),
                    "hot-search": hot_search(spark, form, bootstrap, place, float(seconds)),
                }
                print(json.dumps({"rate": rate, "form": form, **found}), file=sys.stderr, flush=True)
                told.setdefault(f"{rate}/s", {})[form] = found
    print(json.dumps({"spark": spark.version, **told}))
    spark.stop()


if __name__ == "__main__":
    main()
