"""A program for `kafkapy jobs submit`: the job `archive` writes to a table that others write to and change.

    kafkapy jobs submit table_writers.py --sink delta|iceberg PATH BOOTSTRAP TOPIC

The others are a thread of the same process, because the commits of two processes are atomic on HDFS and in object
stores, but not in the files of a local disk. Prints a JSON object: the numbers of rows, and the lines with which runs
of the job have ended.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import archive
from kafkapy.client import Producer
from kafkapy_jobs.program import error_line

RECORDS = 20  # of each run
RUNS = 6
# A conflict needs a commit of the others while a run commits, which they do several times in each run.
MOST_RUNS = 30
OTHERS = "others"
COLUMNS = (
    "cast(null as binary) as key", "cast('x' as binary) as value", f"'{OTHERS}' as topic", "0 as partition",
    "id as offset", "timestamp'2017-07-14 02:40:00' as timestamp",
    "cast(null as array<struct<key:string,value:binary>>) as headers", "'2017-07-14-02' as hour",
)  # fmt: skip


class Table:
    """The table of a sink, as its other users see it."""

    def __init__(self, sink: str, path: str) -> None:
        self._path = path
        self.is_delta = sink == "delta"
        self.name = f"delta.`{path}`" if self.is_delta else "lake.logs.archive"

    def append(self, number: int) -> None:
        """Appends a row with this number as its offset."""
        row = session().range(number, number + 1).selectExpr(*COLUMNS)
        if self.is_delta:
            row.write.format("delta").mode("append").save(self._path)
        else:
            row.writeTo(self.name).append()

    def set_property(self, number: int) -> None:
        self.sql(f"alter table {self.name} set tblproperties ('number' = '{number}')")

    def prepare_conflicts(self) -> None:
        """Lets a commit fail that meets another one. Delta does so for every change of the table's properties."""
        if not self.is_delta:
            self.sql(f"alter table {self.name} set tblproperties ('commit.retry.num-retries' = '0')")

    def change_columns(self) -> None:
        """Changes the columns, so that the rows of the job do not fit."""
        if self.is_delta:
            changed = session().range(1).select(F.lit(1).alias("value"))
            changed.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(self._path)
        else:
            self.sql(f"alter table {self.name} drop column headers")

    def counts(self) -> dict[str, list[int]]:
        """Returns the numbers of rows and of different offsets, by topic."""
        self.sql(f"refresh table {self.name}")
        offset = F.countDistinct("partition", "offset")
        found = session().table(self.name).groupBy("topic").agg(F.count("*"), offset).collect()
        return {row[0]: [row[1], row[2]] for row in found}

    def sql(self, text: str) -> None:
        session().sql(text).collect()


def session() -> SparkSession:
    return SparkSession.builder.getOrCreate()


@contextmanager
def repeated(action: Callable[[int], None]) -> Iterator[list[int]]:
    """Calls `action` with 0, 1, 2, ... in a thread, each number until it succeeds; yields the successful ones."""
    done: list[int] = []
    is_ending = threading.Event()

    def work() -> None:
        while not is_ending.is_set():
            try:
                action(len(done))
            except PySparkException:
                continue  # a conflict with the job
            done.append(len(done))

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield done
    finally:
        is_ending.set()
        thread.join()


def main() -> None:
    _, option, sink, path, bootstrap, topic = sys.argv
    table = Table(sink, path)
    words = [option, sink, "--bootstrap-server", bootstrap, "--topic", topic, "--output-path", path]
    words += ["--trigger", "available-now", "--time-zone", "UTC"]
    words += [] if table.is_delta else ["--output-table", "logs.archive"]
    sent = 0

    def send() -> None:
        nonlocal sent
        with Producer(bootstrap_servers=bootstrap) as producer:
            for _ in range(RECORDS):
                producer.send(topic, b"x", timestamp=1_500_000_000_000)
        sent += RECORDS

    def run() -> str | None:
        """Runs the job; returns the line of its error, None if it has none."""
        try:
            archive.main(words)
        except PySparkException as error:
            return error_line(error) or f"not one line: {error}"
        return None

    def send_and_run() -> str | None:
        send()
        return run()

    found: dict[str, Any] = {"first": send_and_run()}
    with repeated(table.append) as appended:
        found["beside appends"] = [send_and_run() for _ in range(RUNS)]
    table.prepare_conflicts()
    found["conflict"] = None
    with repeated(table.set_property):
        for _ in range(MOST_RUNS):
            found["conflict"] = send_and_run()
            if found["conflict"] is not None:
                break
    # On Spark 4.0 a run is one micro-batch, which is here the one that has failed.
    found["after the conflict"] = [run(), run()]
    found |= {"appended": len(appended), "sent": sent, "counts": table.counts()}
    table.change_columns()
    found["other columns"] = send_and_run()
    print(json.dumps(found))
    session().stop()


if __name__ == "__main__":
    main()
