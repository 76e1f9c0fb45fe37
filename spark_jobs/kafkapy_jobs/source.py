"""Records from a topic, by either data source, or from files: always with the columns of Spark's own Kafka source."""

from __future__ import annotations

import sys
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kafkapy_jobs.arguments import fail

COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp")


def read_stream(spark: SparkSession, arguments: Any, topic: str | None = None) -> DataFrame:
    """What arrives on `topic`, by default the topic or pattern of the arguments."""
    if arguments.source == "files":
        return _lines(spark.readStream.options(**dict(arguments.source_option)).text(arguments.input))
    options = _topic_options(arguments, topic)
    if arguments.max_offsets:
        options["maxOffsetsPerTrigger"] = str(arguments.max_offsets)
    register(spark, arguments.source)
    return spark.readStream.format(arguments.source).options(**options).load().select(*COLUMNS)


def read_batch(spark: SparkSession, arguments: Any) -> DataFrame:
    """What is there now."""
    if arguments.source == "files":
        return _lines(spark.read.options(**dict(arguments.source_option)).text(arguments.input))
    options = _topic_options(arguments, None) | {"endingOffsets": arguments.ending_offsets}
    register(spark, arguments.source)
    return spark.read.format(arguments.source).options(**options).load().select(*COLUMNS)


def register(spark: SparkSession, source: str) -> None:
    """Makes the data source known to the session; Spark's own comes with its jar."""
    if source == "kafkapy":
        try:
            from kafkapy import spark as kafkapy_spark
        except ModuleNotFoundError as error:
            fail(
                f"{sys.executable} has no {error.name}, which --source kafkapy needs: set PYSPARK_PYTHON to a Python "
                "that has kafkapy, or use `kafkapy jobs submit`"
            )
        kafkapy_spark.register(spark)


def connection_options(arguments: Any) -> dict[str, str]:
    """What source and sink of a topic have in common: the servers, and options such as security."""
    options = {key: value for key, value in arguments.source_option if key.startswith("kafka.")}
    return {"kafka.bootstrap.servers": arguments.bootstrap_server, **options}


def _topic_options(arguments: Any, topic: str | None) -> dict[str, str]:
    options = {"kafka.bootstrap.servers": arguments.bootstrap_server, "startingOffsets": arguments.starting_offsets}
    if topic is None and arguments.topic_pattern:
        options["subscribePattern"] = arguments.topic_pattern
    else:
        options["subscribe"] = topic or arguments.topic
    return options | dict(arguments.source_option)


def _lines(lines: DataFrame) -> DataFrame:
    """Lines as records: the file is the topic, and its time the record's."""
    return lines.select(
        F.lit(None).cast("binary").alias("key"),
        F.col("value").cast("binary").alias("value"),
        F.col("_metadata.file_path").alias("topic"),
        F.lit(None).cast("int").alias("partition"),
        F.lit(None).cast("long").alias("offset"),
        F.col("_metadata.file_modification_time").alias("timestamp"),
    )
