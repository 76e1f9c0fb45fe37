"""The records of one range as Arrow batches: what a task of Spark does."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from typing import Any

from kafkapy.client.fetcher import NoOffsetForPartition
from kafkapy.spark.columns import arrow_schema
from kafkapy.spark.data_loss import report_loss
from kafkapy.spark.options import ReadOptions
from kafkapy.spark.partition_reader import PartitionReader
from kafkapy.spark.source_cluster import SourceCluster
from kafkapy.spark.stream_offset import OffsetRange

# Spark's side of the pipe is quickest with batches of this size, and memory stays small.
BATCH_ROWS = 65_536


def read_range(options: ReadOptions, columns: Sequence[str], wanted: OffsetRange) -> Iterator[Any]:
    """pyarrow.RecordBatch after RecordBatch of the range. The log may have lost its beginning since it was planned:
    DataLossError, or a warning and the rest."""
    import pyarrow as arrow  # Spark's workers have it

    schema = arrow_schema(columns)
    where, start, end = wanted
    while start < end:
        properties = {"client.id": f"kafkapy-spark-{socket.gethostname()}", **options.properties}
        try:
            with PartitionReader(
                properties, where.topic, where.partition, start, end, columns=tuple(columns), batch_rows=BATCH_ROWS
            ) as reader:
                for batch in reader:
                    rows = arrow.record_batch(batch)
                    yield (
                        rows
                        if rows.schema.equals(schema)
                        else arrow.RecordBatch.from_arrays(rows.columns, schema=schema)
                    )
            return
        except NoOffsetForPartition:
            start = _skip(options, wanted, start)


def _skip(options: ReadOptions, wanted: OffsetRange, start: int) -> int:
    """Where to go on after the log has lost what comes next."""
    cluster = SourceCluster(options)
    try:
        first = cluster.earliest([wanted.where])[wanted.where]
        last = cluster.latest([wanted.where])[wanted.where]
    finally:
        cluster.close()
    report_loss(
        f"Offset {start} of partition {wanted.where} is out of range: it has {first} to {last}",
        fails=options.fail_on_data_loss,
    )
    return first if first > start else wanted.end
