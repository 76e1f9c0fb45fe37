"""The data source `kafkapy`, with which Spark reads and writes topics, in batches and streams, without a jar.

    from kafkapy.spark import register

    register(spark)
    words = spark.readStream.format("kafkapy").option("kafka.bootstrap.servers", "localhost:9092")...

Columns and options are those of Spark's own Kafka source (docs/spark.md).
"""

from __future__ import annotations

from typing import Any

from kafkapy.spark.columns import FORMAT
from kafkapy.spark.progress import PartitionProgress, partition_progress

__all__ = ["FORMAT", "PartitionProgress", "partition_progress", "register"]

_PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


def register(spark: Any) -> None:
    """Registers the format in a session, unless Spark has found it among the installed packages, and enables filters
    for data sources in Python (Spark 4.1 and later), which the option `pushFilters` needs.
    """
    from pyspark.errors import AnalysisException
    from pyspark.sql.datasource import DataSourceReader  # PySpark is not installed everywhere

    from kafkapy.spark.source import KafkapySource

    if hasattr(DataSourceReader, "pushFilters"):
        spark.conf.set(_PUSHDOWN, "true")
    if _is_known(spark):  # Spark warns if a data source replaces one that it has found
        return
    try:
        spark.dataSource.register(KafkapySource)
    except AnalysisException as error:
        if "DATA_SOURCE_ALREADY_EXISTS" not in str(error):  # Spark 4.0 refuses a second registration
            raise


def _is_known(spark: Any) -> bool:
    """Returns whether Spark knows the format; False for a session of Spark Connect, which cannot be asked."""
    session = getattr(spark, "_jsparkSession", None)
    return session is not None and bool(session.sessionState().dataSourceManager().dataSourceExists(FORMAT))
