"""Results as files and tables: text, Parquet, Delta Lake, Apache Iceberg.

Each of them has the rows of a stream once. Spark's file sink keeps a log of valid files in the folder, so read Parquet
and text with Spark; Delta and Iceberg record the query and the number of the micro-batch in the table's own log.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame

FILES = ("parquet", "text")
LAKES = ("delta", "iceberg")
# The catalog of Iceberg's tables, in the folder of --output-path.
CATALOG = "lake"


def session_settings(arguments: Any) -> Iterator[tuple[str, str]]:
    """Yields the settings of a session that writes to the tables of the arguments' sinks."""
    sinks = vars(arguments).get("sink") or ()
    if "delta" in sinks:
        yield "spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension"
        yield "spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog"
    if "iceberg" in sinks:
        yield f"spark.sql.catalog.{CATALOG}", "org.apache.iceberg.spark.SparkCatalog"
        yield f"spark.sql.catalog.{CATALOG}.type", "hadoop"
        yield f"spark.sql.catalog.{CATALOG}.warehouse", arguments.output_path


def destination(arguments: Any, sink: str) -> str:
    """Returns a phrase for the folder or table that a sink writes to, such as `Delta table /data/quotes`."""
    if sink == "iceberg":
        return f"Iceberg table {arguments.output_table} in {arguments.output_path}"
    return f"Delta table {arguments.output_path}" if sink == "delta" else str(arguments.output_path)


def start_stream(writer: Any, arguments: Any, sink: str) -> Any:
    """Starts a stream into files or a table and returns its query; a table that does not exist is created."""
    writer = writer.format(sink).options(**_options(arguments))
    partitions = vars(arguments).get("partition_by")
    if partitions:
        writer = writer.partitionBy(*partitions)
    if sink == "iceberg":
        # Without it, a partitioned table would need sorted rows.
        return writer.option("fanout-enabled", "true").toTable(f"{CATALOG}.{arguments.output_table}")
    return writer.option("path", arguments.output_path).start()


def create_namespace(rows: DataFrame, arguments: Any) -> None:
    """Creates the namespace of the Iceberg table of --output-table, if it does not exist."""
    namespace = arguments.output_table.rpartition(".")[0]
    rows.sparkSession.sql(f"create namespace if not exists {CATALOG}.{namespace}")


def write_batch(rows: DataFrame, arguments: Any, sink: str) -> None:
    """Writes a batch to files or a table, which it replaces or extends as --save-mode says."""
    if sink == "iceberg":
        create_namespace(rows, arguments)
        table = rows.writeTo(f"{CATALOG}.{arguments.output_table}").options(**_options(arguments))
        exists = rows.sparkSession.catalog.tableExists(f"{CATALOG}.{arguments.output_table}")
        if exists and arguments.save_mode == "append":
            table.append()
        else:
            table.createOrReplace()
        return
    writer = rows.write.format(sink).options(**_options(arguments)).mode(arguments.save_mode)
    if sink == "delta" and arguments.save_mode == "overwrite":
        writer = writer.option("overwriteSchema", "true")
    writer.save(arguments.output_path)


def _options(arguments: Any) -> dict[str, str]:
    """Returns the options of --sink-option that are not a Kafka client's."""
    return {key: value for key, value in arguments.sink_option if not key.startswith("kafka.")}
