"""The set `writes` of `python -m bench.spark`: generated rows go to topics; prints seconds and CPU seconds as JSON.

The form `noop` only generates the rows, so that the costs of the sinks can be told from those of their input.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from bench.spark_driver import cpu_seconds, start

SINKS = ("kafka", "kafkapy")
FORMS = ("noop", *SINKS)


def measured(spark: Any, form: str, bootstrap: str, topic: str, rows: int) -> dict[str, float]:
    """Writes rows with keys of up to 5 bytes and values of 100 bytes from four tasks.

    All values are the same literal, which costs the least to generate. Returns the seconds and the CPU seconds of the
    write.
    """
    frame = spark.range(0, rows, 1, 4).selectExpr("cast(id % 100000 as string) as key", f"'{100 * 'x'}' as value")
    began, cpu = time.monotonic(), sum(cpu_seconds())
    options = {"kafka.bootstrap.servers": bootstrap, "topic": topic}
    writer = frame.write.format(form)
    if form == "noop":
        writer.mode("overwrite").save()
    else:
        writer.options(**options).mode("append").save()
    figures = {"seconds": time.monotonic() - began, "cpu_seconds": sum(cpu_seconds()) - cpu}
    print(json.dumps({"form": form, **figures}), file=sys.stderr, flush=True)
    return figures


def main() -> None:
    bootstrap, topic, rounds, rows = sys.argv[1:]
    spark = start()
    found: dict[str, list[dict[str, float]]] = {form: [] for form in FORMS}
    for number in range(int(rounds) + 1):
        for form in FORMS if number % 2 else reversed(FORMS):
            figures = measured(spark, form, bootstrap, f"{topic}-{form}", int(rows))
            if number:  # the first round warms up
                found[form].append(figures)
    counts = {
        form: spark.read.format("kafka").option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", f"{topic}-{form}").load().count()
        for form in SINKS
    }  # fmt: skip
    is_complete = set(counts.values()) == {int(rows) * (int(rounds) + 1)}
    print(json.dumps({"spark": spark.version, "is_complete": is_complete, **found}))
    spark.stop()


if __name__ == "__main__":
    main()
