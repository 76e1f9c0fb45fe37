"""The records of one range as Arrow batches: what a task of Spark does."""

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

# Spark's side of the pipe is quickest with batches of this size, and memory stays small.
BATCH_ROWS = 65_536
BATCH_BYTES = 16 << 20


def read_range(options: ReadOptions, columns: Sequence[str], wanted: OffsetRange) -> Iterator[Any]:
    """pyarrow.RecordBatch after RecordBatch of the range. The log may have lost its beginning since it was planned:
    DataLossError, or a warning and the rest."""
    import pyarrow as arrow  # Spark's workers have it

    schema = arrow_schema(columns)
    where, start, end = wanted
    properties = {"client.id": f"kafkapy-spark-{socket.gethostname()}", **options.properties}
    properties.pop("group.id", None)
    with RangeReader(properties) as reader:
        while start < end:
            try:
                for batch in reader.read(
                    where,
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
                # what came before its position is with Spark already
                start = _skip(options, wanted, start if reader.position is None else reader.position, error)


def _skip(options: ReadOptions, wanted: OffsetRange, start: int, error: NoOffsetForPartition) -> int:
    """Where to go on after the log has lost what comes next. DataLossError."""
    cluster = SourceCluster(options)
    try:
        first = cluster.earliest([wanted.where])[wanted.where]
        last = cluster.latest([wanted.where])[wanted.where]
    finally:
        cluster.close()
    if first <= start <= last:
        if isinstance(error, LogTruncated):
            report_loss(error.message, fails=options.fail_on_data_loss)
        return start  # else a leader that did not know yet how far it is
    report_loss(
        f"Offset {start} of partition {wanted.where} is out of range: it has {first} to {last}",
        fails=options.fail_on_data_loss,
    )
    return first if first > start else wanted.end
