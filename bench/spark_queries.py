"""The set `reads` of `python -m bench.spark`, in one Spark session; prints seconds, CPU seconds and answers as JSON."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from bench.spark_driver import cpu_seconds, start

# Spark's own source always produces all columns; ours produces those of the given schema.
FORMS = ("kafka", "kafkapy", "kafkapy-columns")
COLUMNS = {"count": "offset bigint", "hot-search": "value binary, timestamp timestamp"}


def count(frame: Any) -> Any:
    return frame.count()


def hot_search(frame: Any) -> Any:
    """Returns the ten most frequent terms of each window of five minutes; ties are ordered by term."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    term = f.trim(f.col("value").cast("string"))
    counted = frame.groupBy(f.window("timestamp", "5 minutes").start.alias("start"), term.alias("term")).count()
    order = Window.partitionBy("start").orderBy(f.desc("count"), "term")
    top = counted.withColumn("rank", f.row_number().over(order)).where("rank <= 10").orderBy("start", "rank")
    return [[str(row.start), row.term, row["count"]] for row in top.collect()]


QUERIES = {"count": count, "hot-search": hot_search}


def measured(spark: Any, form: str, query: str, source: dict[str, str]) -> tuple[dict[str, float], Any]:
    began, cpu = time.monotonic(), sum(cpu_seconds())
    reader = spark.read.format(form.partition("-")[0]).options(**source)
    if form == "kafkapy-columns":
        reader = reader.schema(COLUMNS[query])
    answer = QUERIES[query](reader.load())
    figures = {"seconds": time.monotonic() - began, "cpu_seconds": sum(cpu_seconds()) - cpu}
    print(json.dumps({"form": form, "query": query, **figures}), file=sys.stderr, flush=True)
    return figures, answer


def main() -> None:
    bootstrap, topic, rounds = sys.argv[1:]
    spark = start()
    source = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic}
    found: dict[str, Any] = {form: {query: [] for query in QUERIES} for form in FORMS}
    agree = True
    for number in range(int(rounds) + 1):
        for query in QUERIES:
            answers = []
            for form in FORMS if number % 2 else reversed(FORMS):
                figures, answer = measured(spark, form, query, source)
                answers.append(answer)
                if number:
                    found[form][query].append(figures)
            agree = agree and all(answer == answers[0] for answer in answers)
    print(json.dumps({"spark": spark.version, "answers_agree": agree, **found}))
    spark.stop()


if __name__ == "__main__":
    main()
