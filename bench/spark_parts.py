"""The set `parts` of `python -m bench.spark`: the hot search in growing parts, to see where its time goes.

`read` fetches, decodes and hands the rows over to the JVM; `text` also converts the values to text and finds their
windows; `counts` also counts them in each task, and exchanges the counts (the shuffle); `top` is the whole query.
Prints, for each form and part, seconds and the CPU seconds of the JVM and of the Python workers.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

from bench.spark_driver import cpu_seconds, start
from bench.spark_queries import COLUMNS, FORMS, hot_search


def _consumed(frame: Any) -> None:
    frame.write.format("noop").mode("overwrite").save()


def _text(frame: Any) -> Any:
    from pyspark.sql import functions as f

    start = f.window("timestamp", "5 minutes").start.alias("start")
    return frame.select(start, f.trim(f.col("value").cast("string")).alias("term"))


PARTS: dict[str, Callable[[Any], Any]] = {
    "read": lambda frame: _consumed(frame.select("value", "timestamp")),
    "text": lambda frame: _consumed(_text(frame)),
    "counts": lambda frame: _consumed(_text(frame).groupBy("start", "term").count()),
    "top": hot_search,
}


def measured(spark: Any, form: str, part: str, source: dict[str, str]) -> dict[str, float]:
    reader = spark.read.format(form.partition("-")[0]).options(**source)
    if form == "kafkapy-columns":
        reader = reader.schema(COLUMNS["hot-search"])
    began, cpu = time.monotonic(), cpu_seconds()
    PARTS[part](reader.load())
    after = cpu_seconds()
    figures = {"seconds": time.monotonic() - began, "jvm_cpu_s": after.jvm - cpu.jvm,
               "python_cpu_s": after.python - cpu.python}  # fmt: skip
    print(json.dumps({"form": form, "part": part, **figures}), file=sys.stderr, flush=True)
    return figures


def main() -> None:
    bootstrap, topic, rounds = sys.argv[1:]
    spark = start()
    source = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic}
    found: dict[str, Any] = {form: {part: [] for part in PARTS} for form in FORMS}
    for number in range(int(rounds) + 1):
        for part in PARTS:
            for form in FORMS if number % 2 else reversed(FORMS):
                figures = measured(spark, form, part, source)
                if number:  # the first round warms up
                    found[form][part].append(figures)
    print(json.dumps({"spark": spark.version, **found}))
    spark.stop()


if __name__ == "__main__":
    main()
