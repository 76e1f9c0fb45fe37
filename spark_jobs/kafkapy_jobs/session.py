"""The Spark session of a job."""

from __future__ import annotations

from typing import Any

from pyspark import SparkConf
from pyspark.sql import SparkSession

# transformWithState keeps its state in RocksDB only, and a checkpoint is bound to its provider: so all jobs take it.
STATE_STORE = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def start_session(name: str, arguments: Any, master: str = "") -> SparkSession:
    """A session with the job's name. What spark-submit was given stays; the master too, unless a job's own file names
    another."""
    given = SparkConf()
    settings = {
        "spark.sql.shuffle.partitions": str(arguments.shuffle_partitions),
        "spark.sql.streaming.stateStore.providerClass": STATE_STORE,
        "spark.sql.session.timeZone": arguments.time_zone,
    }
    builder = SparkSession.builder.appName(name)
    if master:
        builder = builder.master(master)
    for key, value in settings.items():
        if value is not None and not given.contains(key):
            builder = builder.config(key, value)
    return builder.getOrCreate()
