"""A program that copies a topic by a stream of the data source, in transactions: for tests that kill it."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.spark_session import start_session


def main(bootstrap: str, source: str, target: str, checkpoint: str, batch: str, trigger: str) -> None:
    """Copies records until it is killed or, if `trigger` is available-now, until all are copied."""
    from kafkapy.spark import register

    with tempfile.TemporaryDirectory(prefix="kafkapy-copy-", ignore_cleanup_errors=True) as scratch:
        spark = start_session(Path(scratch))
        register(spark)
        records = (
            spark.readStream.format("kafkapy")
            .option("kafka.bootstrap.servers", bootstrap)
            .option("subscribe", source)
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", batch)
            .load()
        )
        writer = (
            records.select("key", "value")
            .writeStream.format("kafkapy")
            .option("kafka.bootstrap.servers", bootstrap)
            .option("kafka.transactional.id", "copy")
            .option("kafka.batch.size", "4096")
            .option("topic", target)
            .option("checkpointLocation", checkpoint)
        )
        now = trigger == "available-now"
        writer = writer.trigger(availableNow=True) if now else writer.trigger(processingTime=trigger)
        writer.start().awaitTermination()
        spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
