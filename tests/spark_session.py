"""A Spark session for tests and benchmarks: small, on loopback, with this repository's kafkapy in its Python
workers."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.driver.memory": "1g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    "spark.log.level": "ERROR",
    "spark.sql.streaming.pollingDelay": "10ms",
    # The jobs' transformWithState needs it.
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    # Runs are too short for the second compiler to pay off.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


def prepare_environment() -> None:
    """Sets the environment variables that Spark's JVM and, through it, its Python workers inherit."""
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join(
        filter(None, (str(ROOT), str(ROOT / "spark_jobs"), os.environ.get("PYTHONPATH")))
    )


def start_session(directory: Path, master: str = "local[2]", settings: Mapping[str, str] | None = None) -> Any:
    """Starts the process's Spark session, which writes below `directory`."""
    prepare_environment()
    from pyspark.sql import SparkSession  # a slow import that most tests do not need

    builder = SparkSession.builder.master(master).appName("kafkapy")
    local = {"spark.sql.warehouse.dir": str(directory / "warehouse"), "spark.local.dir": str(directory / "local")}
    for key, value in {**SETTINGS, **local, **(settings or {})}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
