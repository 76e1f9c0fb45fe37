"""Reads records from a topic, by either data source, or from files, with the columns of Spark's own Kafka source."""

from __future__ import annotations

import sys
from typing import Any, NoReturn

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kafkapy_jobs.arguments import checkpoint_owner, fail

COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp")
_HEADERS = "array<struct<key string, value binary>>"
# The columns of records with their types, for tests and programs that make records themselves.
RECORD = "key binary, value binary, topic string, partition int, offset long, timestamp timestamp"


def read_stream(
    spark: SparkSession, arguments: Any, topic: str | None = None, *, has_headers: bool = False
) -> DataFrame:
    """Returns a stream of the records of `topic`, by default of the topic or pattern of the arguments.

    With `has_headers` there is the column `headers` too, an array of structs of key and value.
    """
    columns = [*COLUMNS, *(["headers"] if has_headers else [])]
    if arguments.source == "files":
        lines = _lines(spark.readStream.options(**dict(arguments.source_option)).text(arguments.input))
        return lines.withColumn("headers", F.lit(None).cast(_HEADERS)).select(*columns)
    options = topic_options(arguments, topic)
    if has_headers:
        options["includeHeaders"] = "true"
    if arguments.max_offsets:
        options["maxOffsetsPerTrigger"] = str(arguments.max_offsets)
    register(spark, arguments.source)
    return spark.readStream.format(arguments.source).options(**options).load().select(*columns)


def read_batch(spark: SparkSession, arguments: Any) -> DataFrame:
    """Returns the records that the source contains now."""
    if arguments.source == "files":
        return _lines(spark.read.options(**dict(arguments.source_option)).text(arguments.input))
    options = topic_options(arguments, None) | {"endingOffsets": arguments.ending_offsets}
    register(spark, arguments.source)
    return spark.read.format(arguments.source).options(**options).load().select(*COLUMNS)


def register(spark: SparkSession, source: str) -> None:
    """Registers the data source kafkapy in the session if it is the `source`.

    Spark's own data source comes with its jar.
    """
    if source == "kafkapy":
        try:
            from kafkapy import spark as kafkapy_spark
        except ModuleNotFoundError as error:
            refuse_python(error.name)
        kafkapy_spark.register(spark)


def refuse_python(missing: str | None) -> NoReturn:
    """Ends the program because this Python lacks the module `missing`, which belongs to kafkapy."""
    fail(
        f"{sys.executable} has no {missing}, which --source kafkapy needs: set PYSPARK_PYTHON to a Python that has "
        "kafkapy, or use `kafkapy jobs submit`"
    )


def connection_options(arguments: Any) -> dict[str, str]:
    """Returns the options that source and sink of a topic share: the servers, and the client's keys."""
    options = {key: value for key, value in arguments.source_option if key.startswith("kafka.")}
    return {"kafka.bootstrap.servers": arguments.bootstrap_server, **_command_config(arguments), **options}


def _command_config(arguments: Any) -> dict[str, str]:
    """Returns the keys in the file of --command-config as options of the data source.

    A password in a file is not visible to other users of the machine, as one in the command line is.
    """
    path = vars(arguments).get("command_config")
    if path is None:
        return {}
    from kafkapy.config.properties import read_properties
    from kafkapy.errors import ConfigError

    try:
        return {f"kafka.{key}": value for key, value in read_properties(path).items()}
    except ConfigError as error:
        fail(f"--command-config {path}: {error}")


def topic_options(arguments: Any, topic: str | None) -> dict[str, str]:
    """Returns the options of a reader of `topic`; None means the topic or the pattern of the arguments."""
    options = {**connection_options(arguments), "startingOffsets": arguments.starting_offsets}
    owner = checkpoint_owner(arguments)
    if arguments.source == "kafkapy" and owner:
        options["checkpointOwner"] = owner
    if topic is None and arguments.topic_pattern:
        options["subscribePattern"] = arguments.topic_pattern
    else:
        options["subscribe"] = topic or arguments.topic
    return options | dict(arguments.source_option)


def _lines(lines: DataFrame) -> DataFrame:
    """Converts lines into records, with the file's path as the topic and the file's time as the timestamp."""
    return lines.select(
        F.lit(None).cast("binary").alias("key"),
        F.col("value").cast("binary").alias("value"),
        F.col("_metadata.file_path").alias("topic"),
        F.lit(None).cast("int").alias("partition"),
        F.lit(None).cast("long").alias("offset"),
        F.col("_metadata.file_modification_time").alias("timestamp"),
    )
