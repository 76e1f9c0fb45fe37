"""The Spark session of a job."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any

import pyspark
from pyspark.sql import GroupedData, SparkSession

from kafkapy_jobs.arguments import fail
from kafkapy_jobs.connect import is_remote
from kafkapy_jobs.preflight import check_job
from kafkapy_jobs.tables import session_settings

# transformWithState keeps its state in RocksDB only, and a checkpoint is bound to its provider: so all jobs use it.
STATE_STORE = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
# It warns at every look-up of a key that has no state yet, which is every new key.
STATE_SERVERS = (
    "org.apache.spark.sql.execution.python.streaming.TransformWithStateInPySparkStateServer",
    "org.apache.spark.sql.execution.python.TransformWithStateInPySparkStateServer",  # before Spark 4.1
)
# It logs the stack trace of the error that ends a query, which the program itself reports.
_QUERY_EXECUTIONS = (
    "org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution",
    "org.apache.spark.sql.execution.streaming.MicroBatchExecution",  # before Spark 4.1
)


def require_stateful_processors() -> None:
    """Ends the program if this PySpark has no `transformWithState` over rows."""
    if not hasattr(GroupedData, "transformWithState"):
        fail(
            "this job keeps its state with transformWithState, which PySpark has from version 4.1 on; "
            f"this is {pyspark.__version__}"
        )


def start_session(name: str, arguments: Any, master: str = "") -> SparkSession:
    """Starts a session with the job's name.

    The settings of spark-submit take precedence over those of the job. So does its `--master`, unless `master` is
    given. With Spark Connect, the server determines the master and the level of the log. Ends the program if a broker,
    a topic or a file that the job needs cannot be reached.
    """
    arguments.job_name = name
    check_job(name, arguments)
    builder = SparkSession.builder.appName(name)
    if master and not is_remote():
        builder = builder.master(master)
    for key, value in session_settings(arguments):
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    # Python learns spark-submit's settings from the JVM, so they can be compared only now.
    is_given = spark.conf.getAll.__contains__ if is_remote() else spark.sparkContext.getConf().contains
    for key, value in _settings(arguments):
        if not is_given(key):
            spark.conf.set(key, value)
    if arguments.time_zone:
        spark.conf.set("spark.sql.session.timeZone", arguments.time_zone)
        # Rows that are collected have dates of this process's zone.
        os.environ["TZ"] = arguments.time_zone
        time.tzset()
    if not is_remote():
        _set_log_levels(spark, is_verbose=arguments.verbose)
    return spark


def _settings(arguments: Any) -> Iterator[tuple[str, str]]:
    yield "spark.sql.shuffle.partitions", str(arguments.shuffle_partitions)
    yield "spark.sql.streaming.stateStore.providerClass", STATE_STORE
    if hasattr(arguments, "trigger"):  # streams have no adaptive execution, and Spark warns if it is on
        yield "spark.sql.adaptive.enabled", "false"


def _set_log_levels(spark: SparkSession, *, is_verbose: bool) -> None:
    """Silences loggers of Spark whose messages tell the user nothing new."""
    log4j = spark.sparkContext._jvm.org.apache.logging.log4j
    levels = dict.fromkeys(STATE_SERVERS, log4j.Level.ERROR)
    if not is_verbose:
        levels |= dict.fromkeys(_QUERY_EXECUTIONS, log4j.Level.OFF)
    for name, level in levels.items():
        log4j.core.config.Configurator.setLevel(name, level)
