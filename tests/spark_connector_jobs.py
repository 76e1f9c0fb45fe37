"""Runs the same small jobs through Spark's own Kafka source and through kafkapy, and prints their results as JSON.

`tests/spark_connector.py` starts it in an environment that has both sources.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from kafkapy.spark import register
from tests.spark_session import start_session


def batch(spark: Any, form: str, bootstrap: str, topic: str, target: str) -> dict[str, Any]:
    """Reads a topic, and writes to another topic how many records have each value.

    Returns the schema and the number of the rows that were read, a digest of them, and the records that were written.
    """
    source = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic, "includeHeaders": "true"}
    frame = spark.read.format(form).options(**source).load()
    rows = sorted(str(row) for row in frame.selectExpr("*", "CAST(value AS STRING) AS text").collect())
    words = frame.selectExpr("CAST(value AS STRING) AS word").groupBy("word").count().orderBy("word")
    written = words.selectExpr("word AS key", "CAST(count AS STRING) AS value")
    sink = {"kafka.bootstrap.servers": bootstrap, "topic": f"{target}-{form}"}
    written.write.format(form).options(**sink).mode("append").save()
    back = {**source, "subscribe": f"{target}-{form}"}
    again = (
        spark.read.format(form).options(**back).load().selectExpr("CAST(key AS STRING) k", "CAST(value AS STRING) v")
    )
    return {
        "schema": frame.schema.simpleString(),
        "rows": len(rows),
        "digest": hashlib.sha256("\n".join(rows).encode()).hexdigest(),
        "written": sorted(([row.k, row.v] for row in again.collect()), key=str),
    }


def stream(spark: Any, form: str, bootstrap: str, topic: str, target: str) -> dict[str, Any]:
    """Copies the available records of a topic to another topic by a streaming query; returns the copies' digest.

    The format "kafkapy" writes them in transactions.
    """
    with tempfile.TemporaryDirectory() as checkpoint:
        source = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic, "startingOffsets": "earliest"}
        frame = spark.readStream.format(form).options(**source).load().select("key", "value")
        sink = {"kafka.bootstrap.servers": bootstrap, "topic": f"{target}-{form}"}
        if form == "kafkapy":
            sink["kafka.transactional.id"] = target
        writer = frame.writeStream.format(form).options(**sink, checkpointLocation=checkpoint)
        writer.trigger(availableNow=True).start().awaitTermination(120)
    copied = spark.read.format(form).options(**{**source, "subscribe": f"{target}-{form}"}).load()
    pairs = sorted(str((row.key, row.value)) for row in copied.collect())
    return {"rows": len(pairs), "digest": hashlib.sha256("\n".join(pairs).encode()).hexdigest()}


def main() -> None:
    bootstrap, topic = sys.argv[1:]
    spark = start_session(
        Path(tempfile.mkdtemp(prefix="connector-")), settings={"spark.jars": os.environ["SPARK_JARS"]}
    )
    register(spark)
    found = {
        form: {
            "batch": batch(spark, form, bootstrap, topic, "batch"),
            "stream": stream(spark, form, bootstrap, topic, "stream"),
        }
        for form in ("kafka", "kafkapy")
    }
    spark.stop()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
