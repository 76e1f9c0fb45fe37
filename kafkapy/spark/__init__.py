"""Spark reads topics and writes to them, in batches and streams, without a jar: the data source `kafkapy`.

    from kafkapy.spark import register

    register(spark)
    words = spark.readStream.format("kafkapy").option("kafka.bootstrap.servers", "localhost:9092")...

Columns and options are those of Spark's own Kafka source (docs/spark.md).
"""

from __future__ import annotations

from typing import Any

from kafkapy.spark.progress import PartitionProgress, partition_progress

__all__ = ["FORMAT", "PartitionProgress", "partition_progress", "register"]

FORMAT = "kafkapy"
_PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


def register(spark: Any) -> None:
    """Makes the format known to a session, and from Spark 4.1 on lets data sources in Python take filters, for the
    option `pushFilters`. Without it Spark finds the format by itself where kafkapy is installed.
    """
    from pyspark.errors import AnalysisException
    from pyspark.sql.datasource import DataSourceReader  # of Spark's programs only

    from kafkapy.spark.source import KafkapySource

    if hasattr(DataSourceReader, "pushFilters"):
        spark.conf.set(_PUSHDOWN, "true")
    try:
        spark.dataSource.register(KafkapySource)
    except AnalysisException as error:
        if "DATA_SOURCE_ALREADY_EXISTS" not in str(error):  # found by itself already, which Spark 4.0 takes amiss
            raise
