"""Reads records from a topic, by either data source, or from files, with the columns of Spark's own Kafka source."""

from __future__ import annotations

import sys
from typing import Any, NoReturn

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kafkapy_jobs.arguments import fail

COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp")


def read_stream(spark: SparkSession, arguments: Any, topic: str | None = None) -> DataFrame:
    """Returns a stream of the records of `topic`, by default of the topic or pattern of the arguments."""
    if arguments.source == "files":
        return _lines(spark.readStream.options(**dict(arguments.source_option)).text(arguments.input))
    options = _topic_options(arguments, topic)
    if arguments.max_offsets:
        options["maxOffsetsPerTrigger"] = str(arguments.max_offsets)
    register(spark, arguments.source)
    return spark.readStream.format(arguments.source).options(**options).load().select(*COLUMNS)


def read_batch(spark: SparkSession, arguments: Any) -> DataFrame:
    """Returns the records that the source contains now."""
    if arguments.source == "files":
        return _lines(spark.read.options(**dict(arguments.source_option)).text(arguments.input))
    options = _topic_options(arguments, None) | {"endingOffsets": arguments.ending_offsets}
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
            _refuse_python(error.name)
        kafkapy_spark.register(spark)


def require_broker(arguments: Any) -> None:
    """Ends the program, before a JVM starts, if no broker of the data source kafkapy accepts a connection."""
    given = vars(arguments)
    writes = "topic" in (given.get("sink") or ()) or given.get("dead_letter_topic")
    if given.get("source") == "kafka" or (given.get("source") == "files" and not writes):
        return
    if given.get("bootstrap_server") is None:  # a job's own file names it, which is read with a session
        return
    servers = connection_options(arguments)["kafka.bootstrap.servers"]
    try:
        from kafkapy.tools.bootstrap import await_broker
        from kafkapy.tools.option import ToolError
    except ModuleNotFoundError as error:
        _refuse_python(error.name)
    try:
        await_broker({"bootstrap.servers": servers})
    except ToolError as error:
        fail(f"--bootstrap-server {servers}: {error}")


def _refuse_python(missing: str | None) -> NoReturn:
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


def _topic_options(arguments: Any, topic: str | None) -> dict[str, str]:
    options = {**connection_options(arguments), "startingOffsets": arguments.starting_offsets}
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
