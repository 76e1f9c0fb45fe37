"""Writes results: to the console, to a topic as JSON, to Parquet, to a database.

A result is a DataFrame; `as_records` turns it into keys and values of a topic. Each sink of a stream is a query of its
own with a checkpoint of its own, so that a sink that fails does not hold up the others' positions; each reads the topic
again. Parquet holds each row once (Spark's own log in the folder names the valid files, so read it with Spark), and so
does a topic, see `transactional_topic`; the console prints a batch again if a restarted driver repeats it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from kafkapy_jobs.arguments import AVAILABLE_NOW
from kafkapy_jobs.connect import ConsoleRows, is_remote, observed_rows, streams_of
from kafkapy_jobs.dead_letters import dead_letters
from kafkapy_jobs.live_page import LivePage
from kafkapy_jobs.observation import Observation
from kafkapy_jobs.report import Report, count_rejected, print_rejected
from kafkapy_jobs.source import connection_options, register
from kafkapy_jobs.tables import FILES, LAKES, create_namespace, start_stream, write_batch
from kafkapy_jobs.transactional_topic import TransactionalTopic

_TRANSACTIONS = "kafka.transactional.id"
# Turns the rows of a batch into lines of text.
Printer = Callable[[list[Row]], Iterable[str]]
# Turns the rows of a batch into a heading and entries, which are names and numbers in their order.
Ranking = Callable[[list[Row]], tuple[str, list[tuple[str, float]]]]
# Writes a micro-batch, of which it gets the rows and the number.
BatchSink = Callable[[DataFrame, int], None]


def print_rows(rows: list[Row], printer: Printer) -> None:
    """Prints rows and flushes standard output, so that the reader of a pipe sees them at once."""
    for line in printer(rows):
        print(line)
    sys.stdout.flush()


def as_records(result: DataFrame, key: str | Column) -> DataFrame:
    """Returns records with the column `key` as text and all columns as a JSON object without nulls."""
    columns = F.struct(*(F.col(name) for name in result.columns))
    return result.select(
        (F.col(key) if isinstance(key, str) else key).cast("string").cast("binary").alias("key"),
        F.to_json(columns).cast("binary").alias("value"),
    )


def run_stream(
    rows: DataFrame,
    result: DataFrame,
    records: DataFrame,
    arguments: Any,
    printer: Printer,
    *,
    mode: str = "append",
    ranking: Ranking | None = None,
    own_sinks: Mapping[str, BatchSink] | None = None,
) -> None:
    """Starts a query for each sink, and waits until the queries end.

    With --http and a `ranking`, the page shows the entries of the last rows that the console has printed.

    `console` gets the lines that `printer` makes of `result`, `topic` gets `records`, and all other sinks get `result`.
    `own_sinks` are sinks that only this job has, by name. One more query writes the `rows` with a `reason` to the topic
    of dead letters. `mode` is Spark's output mode.
    """
    page = LivePage(_title(arguments), vars(arguments).get("language", "en"))

    def show(found: list[Row]) -> None:
        print_rows(found, printer)
        if found and ranking is not None:
            page.show(*ranking(found))

    own = own_sinks or {}
    starts = [
        _start_of(_writer(result, arguments, sink, mode).foreachBatch(own[sink]))
        if sink in own
        else _stream_start(result, records, arguments, sink, show, mode)
        for sink in arguments.sink
    ]
    if arguments.dead_letter_topic:
        letters = dead_letters(rows.where(F.col("reason").isNotNull()))
        starts.append(_topic_writer(letters, arguments, "dead-letters", arguments.dead_letter_topic, "append").start)
    streams, report = streams_of(result.sparkSession), Report(arguments.sink[0])
    streams.addListener(report)
    if not is_remote():
        streams.resetTerminated()  # the failure of an earlier query must not end this job
    elif "console" in arguments.sink:
        streams.addListener(ConsoleRows("console", result.schema, show))
    try:
        with Observation(streams, arguments, page):
            queries = [start() for start in starts]
            run_ids = [str(query.runId) for query in queries]
            try:
                await_queries(result.sparkSession, queries)
            finally:
                report.await_end(run_ids)
    finally:
        streams.removeListener(report)


def _title(arguments: Any) -> str:
    return str(vars(arguments).get("topic_pattern") or vars(arguments).get("topic") or "kafkapy jobs")


def _stream_start(
    result: DataFrame, records: DataFrame, arguments: Any, sink: str, show: Callable[[list[Row]], None], mode: str
) -> Callable[[], StreamingQuery]:
    """Returns the function that starts the query of a sink."""
    if sink == "topic":
        return _start_of(_topic_writer(records, arguments, sink, arguments.output_topic, mode))
    if sink == "console" and is_remote():
        return _start_of(_writer(observed_rows(result), arguments, sink, mode).format("noop"))
    writer = _writer(result, arguments, sink, mode)
    if sink in (*FILES, *LAKES):
        if sink == "iceberg":
            create_namespace(result, arguments)
        return lambda: start_stream(writer, arguments, sink)
    return _start_of(writer.foreachBatch(lambda rows, batch_id: show(rows.collect())))


def _start_of(writer: Any) -> Callable[[], StreamingQuery]:
    start: Callable[[], StreamingQuery] = writer.start
    return start


def await_queries(spark: SparkSession, queries: list[StreamingQuery]) -> None:
    """Waits until all queries have ended, one has failed, or Ctrl-C is pressed.

    Stops the queries that still run.
    """
    try:
        if is_remote():
            streams_of(spark).await_end(queries)
        while any(query.isActive for query in queries):
            spark.streams.awaitAnyTermination()
            spark.streams.resetTerminated()
        for query in queries:
            query.awaitTermination()
    except KeyboardInterrupt:
        pass
    finally:
        for query in queries:
            query.stop()


def show_stream(rows: DataFrame, arguments: Any, name: str) -> StreamingQuery:
    """Starts a query that appends the rows to the console, in the form of Spark's tables, or as JSON on Connect."""
    if is_remote():
        shown = ConsoleRows(name, rows.schema, lambda found: print_rows(found, _json_lines))
        streams_of(rows.sparkSession).addListener(shown)
        remote = observed_rows(rows).writeStream.format("noop").outputMode("append").queryName(name)
        return _triggered(remote, arguments).start()
    writer = rows.writeStream.format("console").outputMode("append").queryName(name).option("truncate", "false")
    return _triggered(writer, arguments).start()


def _json_lines(rows: list[Row]) -> list[str]:
    return [json.dumps(row.asDict(recursive=True), ensure_ascii=False, default=str) for row in rows]


def run_batch(
    rows: DataFrame,
    result: DataFrame,
    records: DataFrame,
    arguments: Any,
    printer: Printer,
    *,
    printed: DataFrame | None = None,
) -> None:
    """Writes the result of a batch to each sink, and the rejected rows to the topic of dead letters.

    `rows` are all rows; those with a `reason` are rejected, and their number is reported. `parquet` and `jdbc` get
    `result`, `topic` gets `records`, `console` the lines that `printer` makes of `printed`, or of `result` if it is
    None. Rows and results are read more than once, so the caller persists them.
    """
    rejected = count_rejected(rows)
    print_rejected(rejected)
    if rejected and arguments.dead_letter_topic:
        write_topic(dead_letters(rows.where(F.col("reason").isNotNull())), arguments, arguments.dead_letter_topic)
    for sink in arguments.sink:
        if sink == "console":
            print_rows((result if printed is None else printed).collect(), printer)
        elif sink == "topic":
            write_topic(records, arguments, arguments.output_topic)
        elif sink in (*FILES, *LAKES):
            write_batch(result, arguments, sink)
        else:
            options = {"url": arguments.jdbc_url, "dbtable": arguments.jdbc_table, **dict(arguments.sink_option)}
            # The table is emptied rather than dropped, so that its grants, indexes and views stay.
            result.write.format("jdbc").options(**options, truncate="true").mode(arguments.save_mode).save()


def write_topic(records: DataFrame, arguments: Any, topic: str) -> None:
    """Appends records to a topic by the data source of `--source`, or by kafkapy's if the source is files."""
    source = _topic_format(arguments)
    register(records.sparkSession, source)
    records.write.format(source).options(**_topic_options(arguments, topic)).mode("append").save()


def _topic_format(arguments: Any) -> str:
    return "kafka" if arguments.source == "kafka" else "kafkapy"


def _topic_options(arguments: Any, topic: str) -> dict[str, str]:
    return {**connection_options(arguments), **dict(arguments.sink_option), "topic": topic}


def _topic_writer(records: DataFrame, arguments: Any, sink: str, topic: str, mode: str) -> Any:
    """Returns a writer of a stream to a topic.

    Spark's own connector has no transactions, so it writes every record at least once. On Spark Connect, and in jobs
    with many results, the tasks write in transactions, which the data source commits.
    """
    source = _topic_format(arguments)
    writer = _writer(records, arguments, sink, mode)
    if source == "kafkapy" and arguments.delivery == "exactly-once":
        options = {**connection_options(arguments), **dict(arguments.sink_option)}
        # With Spark Connect, the producer of the driver would have to run on the server.
        if is_remote() or vars(arguments).get("is_written_by_tasks"):
            options = {_TRANSACTIONS: "kafkapy-jobs", **options, "topic": topic}
            register(records.sparkSession, source)
            return writer.format(source).options(**options)
        return writer.foreachBatch(TransactionalTopic(topic, {_client_key(key): options[key] for key in options}))
    register(records.sparkSession, source)
    return writer.format(source).options(**_topic_options(arguments, topic))


def _client_key(key: str) -> str:
    """Returns the client's key that an option of the data source sets: the option without `kafka.` in front."""
    return key.removeprefix("kafka.")


def _writer(rows: DataFrame, arguments: Any, sink: str, mode: str) -> Any:
    writer = rows.writeStream.outputMode(mode).queryName(sink)
    if arguments.checkpoint:
        writer = writer.option("checkpointLocation", f"{arguments.checkpoint.rstrip('/')}/{sink}")
    return _triggered(writer, arguments)


def _triggered(writer: Any, arguments: Any) -> Any:
    if arguments.trigger == AVAILABLE_NOW:
        return writer.trigger(availableNow=True)
    return writer.trigger(processingTime=arguments.trigger)
