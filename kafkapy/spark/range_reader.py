"""Reads the records of one range as Arrow batches, in a task of Spark."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from typing import Any

from kafkapy.client.columnar import RangeReader
from kafkapy.client.errors import LogTruncated, NoOffsetForPartition
from kafkapy.spark.columns import arrow_schema
from kafkapy.spark.data_loss import report_loss
from kafkapy.spark.options import ReadOptions
from kafkapy.spark.source_cluster import SourceCluster
from kafkapy.spark.stream_offset import OffsetRange
from kafkapy.spark.worker_overhead import shorten_tasks

# Spark reads batches of this size fastest, and they need little memory.
BATCH_ROWS = 65_536
BATCH_BYTES = 16 << 20


def read_range(options: ReadOptions, columns: Sequence[str], wanted: OffsetRange) -> Iterator[Any]:
    """Yields the records of a range as pyarrow.RecordBatches.

    If the log has lost some of the records since the range was planned, raises DataLossError, or logs a warning and
    yields the remaining records.
    """
    import pyarrow as arrow  # the driver does not need it

    shorten_tasks()
    schema = arrow_schema(columns)
    partition, start, end = wanted
    properties = {"client.id": f"kafkapy-spark-{socket.gethostname()}", **options.properties}
    properties.pop("group.id", None)
    with RangeReader(properties) as reader:
        while start < end:
            try:
                for batch in reader.read(
                    partition,
                    start,
                    end,
                    columns=columns,
                    max_rows=BATCH_ROWS,
                    max_bytes=BATCH_BYTES,
                    timeout=options.poll_timeout_ms / 1000,
                ):
                    rows = arrow.record_batch(batch)
                    yield rows if rows.schema.equals(schema) else rows.cast(schema)
                return
            except NoOffsetForPartition as error:
                # The records before the position were already returned to Spark.
                start = _skip(options, wanted, start if reader.position is None else reader.position, error)


def _skip(options: ReadOptions, wanted: OffsetRange, start: int, error: NoOffsetForPartition) -> int:
    """Returns the offset at which to continue after the records from `start` on could not be read because of `error`.

    The result is `start` itself if the log still has this offset. If the first offset of the log is above `start`, the
    result is the first offset. Otherwise it is the end of the range. Reports a loss if `start` is out of range or the
    log was truncated: raises DataLossError if failOnDataLoss is true, and logs a warning otherwise.
    """
    cluster = SourceCluster(options)
    try:
        first = cluster.earliest([wanted.partition])[wanted.partition]
        last = cluster.latest([wanted.partition])[wanted.partition]
    finally:
        cluster.close()
    if first <= start <= last:
        if isinstance(error, LogTruncated):
            report_loss(error.message, fails=options.fail_on_data_loss)
        return start  # if nothing was truncated, a new leader did not know the end of its log for a moment
    report_loss(
        f"Offset {start} of partition {wanted.partition} is out of range: it has {first} to {last}",
        fails=options.fail_on_data_loss,
    )
    return first if first > start else wanted.end
