"""Reads quotes from vendors' files or from a topic, with the reason of each row that cannot be used."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kafkapy_jobs import vendor_quotes
from kafkapy_jobs.shipping import ship
from kafkapy_jobs.source import COLUMNS, RECORD, read_batch
from kafkapy_jobs.vendor_quotes import VendorQuote

VALUE_FORMATS = ("text", "json")
_QUOTE = (
    "stock_code string, stock_name string, trade_day string, previous_close double, open double, high double, "
    "low double, close double, volume double, is_traded boolean, reason string"
)


def read_quotes(spark: SparkSession, arguments: Any) -> DataFrame:
    """Returns the quotes that the source has now, with the columns of their records and of `VendorQuote`.

    `reason` is null for good rows. A file may have any number of rows, in the encodings and with the headers that
    `vendor_quotes` knows; a record of a topic is one row.
    """
    if arguments.source == "files":
        options = {"recursiveFileLookup": "true", **dict(arguments.source_option)}
        files = spark.read.format("binaryFile").options(**options).load(arguments.input)
        records = files.select(
            F.lit(None).cast("binary").alias("key"),
            F.col("content").alias("value"),
            F.col("path").alias("topic"),
            F.lit(None).cast("int").alias("partition"),
            F.lit(None).cast("long").alias("offset"),
            F.col("modificationTime").alias("timestamp"),
        )
        return with_quotes(records, "file")
    return with_quotes(read_batch(spark, arguments), arguments.value_format)


def with_quotes(records: DataFrame, form: str) -> DataFrame:
    """Returns a row for each quote of `records`, whose values have the form `text`, `json` or `file`."""
    ship(vendor_quotes)
    return records.select(*COLUMNS).mapInArrow(_parser(form), f"{RECORD}, {_QUOTE}")


def _parser(form: str) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Returns the function that parses batches of Arrow; it runs on executors."""
    parse = {"file": vendor_quotes.parse_file, "json": vendor_quotes.parse_object, "text": vendor_quotes.parse_line}[
        form
    ]
    fields = VendorQuote._fields[:-1]
    is_file = form == "file"

    def parse_batches(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        kinds = dict.fromkeys(fields, pa.float64()) | dict.fromkeys(
            ("stock_code", "stock_name", "trade_day", "reason"), pa.string()
        )
        kinds["is_traded"] = pa.bool_()
        for batch in batches:
            for start in range(0, batch.num_rows, 1 if is_file else batch.num_rows):
                part = batch.slice(start, 1) if is_file else batch
                found = [
                    (index, quote)
                    for index, value in enumerate(part.column("value").to_pylist())
                    for quote in parse(value)
                ]
                same = part.take(pa.array([index for index, _ in found], pa.int64()))
                columns = dict(zip(same.schema.names, same.columns, strict=True))
                if is_file:
                    columns["value"] = pa.array([quote.line.encode() for _, quote in found], pa.binary())
                for name in fields:
                    values = [getattr(quote, name) for _, quote in found]
                    columns[name] = pa.array([value if value != "" else None for value in values], kinds[name])
                yield pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))

    return parse_batches
