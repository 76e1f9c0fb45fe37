"""The data source `kafkapy`, with which Spark reads and writes topics, in batches and streams, without a jar.

    from kafkapy.spark import register

    register(spark)
    words = spark.readStream.format("kafkapy").option("kafka.bootstrap.servers", "localhost:9092")...

It has the columns and options of Spark's own Kafka source (docs/spark.md).
"""

from __future__ import annotations

from typing import Any

from kafkapy.spark.columns import FORMAT
from kafkapy.spark.progress import PartitionProgress, partition_progress

__all__ = ["FORMAT", "PartitionProgress", "partition_progress", "register", "registry_columns"]

_PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


def register(spark: Any) -> None:
    """Registers the data source `kafkapy` in a Spark session, unless Spark has found it among the installed packages.

    Also enables filters for data sources in Python (Spark 4.1 and later), which the option `pushFilters` needs. Raises
    RuntimeError if this PySpark is too old.
    """
    import pyspark  # is not installed everywhere
    from pyspark.errors import AnalysisException

    try:
        from pyspark.sql.datasource import DataSourceReader
    except ModuleNotFoundError:
        raise RuntimeError(
            f"The data source kafkapy needs PySpark 4, and this is {pyspark.__version__}: pip install 'pyspark>=4,<5'"
        ) from None

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


def registry_columns(rows: Any, schema: str, url: str, form: str, *, column: str = "value") -> Any:
    """Decodes the values in one column of the DataFrame `rows`. Each value names its schema in a schema registry.

    Returns a DataFrame with the columns of `rows`, the columns of `schema` (in Spark's DDL) and the column `error`. A
    column of `schema` is null if the value does not have it. `error` says why a value cannot be decoded, and is null
    otherwise. A query fails if the registry cannot be reached.

    url: the address of the registry, such as http://localhost:8081.
    form: avro, protobuf or json-schema; executors need its library (the extra `schemas`).
    column: the column of the values.
    """
    from pyspark.sql import functions

    from kafkapy.spark.schemas import registry_text

    decoded = rows.withColumn("decoded", registry_text(functions.col(column), url, form))
    parsed = decoded.withColumn("parsed", functions.from_json("decoded.text", schema))
    return parsed.select(*rows.columns, "parsed.*", functions.col("decoded.error").alias("error"))


def _is_known(spark: Any) -> bool:
    """Returns whether the session knows the data source `kafkapy`; False for Spark Connect, which cannot be asked."""
    session = getattr(spark, "_jsparkSession", None)
    return session is not None and bool(session.sessionState().dataSourceManager().dataSourceExists(FORMAT))
