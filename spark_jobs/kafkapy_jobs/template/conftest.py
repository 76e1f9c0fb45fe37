"""The Spark session of the tests, and the paths on which it finds the job and kafkapy's job library."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from kafkapy.tools.job_catalog import JOBS_DIRECTORY

FOLDERS = [str(Path(__file__).parent), str(JOBS_DIRECTORY)]
sys.path[:0] = FOLDERS


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    from pyspark.sql import SparkSession

    # Spark's Python workers import the job's functions from the same folders.
    os.environ["PYTHONPATH"] = os.pathsep.join([*FOLDERS, os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.log.level": "ERROR",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
    }
    session = SparkSession.builder.master("local[2]").appName("tests").config(map=settings).getOrCreate()
    yield session
    session.stop()
