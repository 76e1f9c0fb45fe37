"""The Spark session of a job."""

from __future__ import annotations

import os
import time
from typing import Any

import pyspark
from pyspark.sql import GroupedData, SparkSession

from kafkapy_jobs.arguments import fail

# transformWithState keeps its state in RocksDB only, and a checkpoint is bound to its provider: so all jobs take it.
STATE_STORE = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def require_stateful_processors() -> None:
    """Ends the program if this PySpark has no `transformWithState` over rows."""
    if not hasattr(GroupedData, "transformWithState"):
        fail(
            "this job keeps state by transformWithState, which is there from PySpark 4.1 on; "
            f"this is {pyspark.__version__}"
        )


def start_session(name: str, arguments: Any, master: str = "") -> SparkSession:
    """A session with the job's name. What spark-submit was given stays; the master too, unless a job's own file names
    another."""
    builder = SparkSession.builder.appName(name)
    if master:
        builder = builder.master(master)
    spark = builder.getOrCreate()
    # Only now it can be known: Python has spark-submit's settings from the JVM.
    given = spark.sparkContext.getConf()
    settings = {
        "spark.sql.shuffle.partitions": str(arguments.shuffle_partitions),
        "spark.sql.streaming.stateStore.providerClass": STATE_STORE,
    }
    for key, value in settings.items():
        if not given.contains(key):
            spark.conf.set(key, value)
    if arguments.time_zone:
        spark.conf.set("spark.sql.session.timeZone", arguments.time_zone)
        # Rows that are collected have dates of this process's zone.
        os.environ["TZ"] = arguments.time_zone
        time.tzset()
    return spark
