"""SQL job: a statement over a topic, both from a `.properties` file; rows go to the console.

The file is `--properties`, or what the driver's system property PropPath names (`--driver-java-options
-DPropPath=FILE`): a local file, or else one of Hadoop's file system. Without it, or what it does not say:

    master                    what spark-submit says, local if nothing does
    appName                   Test7
    className                 empty; taken and without effect
    kafka.bootstrap.servers   localhost:9092
    subscribe                 test
    tmpTable                  tmp
    sparksql                  select * from tmp
    schema                    empty; columns in Spark's words, such as `name string, age int`

Without a schema a value's JSON object (single quotes are taken too) becomes seven text columns `_1` to `_7`, empty
where it has no more members; values with none, with more than seven, and those that are no object, become seven empty
texts.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pyspark import SparkConf
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kafkapy_jobs.arguments import JobParser, add_session, add_source
from kafkapy_jobs.session import start_session
from kafkapy_jobs.source import read_stream

DEFAULTS = {
    "master": "",
    "appName": "Test7",
    "className": "",
    "kafka.bootstrap.servers": "localhost:9092",
    "subscribe": "test",
    "tmpTable": "tmp",
    "sparksql": "select * from tmp",
    "schema": "",
}
COLUMNS = 7
_LENIENT = {"allowSingleQuotes": "true"}


def parse_properties(text: str) -> dict[str, str]:
    """Keys and values of a `.properties` file: comments, continued lines, `=`, `:` or white space between the two."""
    joined = re.sub(r"\\\r?\n[ \t]*", "", text)
    found = {}
    for line in joined.splitlines():
        line = line.strip()
        if line and line[0] not in "#!":
            key, _, value = re.sub(r"\s*[=:]\s*|\s+", "\0", line, count=1).partition("\0")
            found[key] = value
    return found


def properties_path(option: str | None) -> str | None:
    """Where the file is: the option, or the driver's system property."""
    if option:
        return option
    java_options = SparkConf().get("spark.driver.extraJavaOptions", "") or ""
    found = re.search(r"-DPropPath=(\S+)", java_options)
    return found[1].strip("'\"") if found else None


def read_properties(path: str | None, arguments: Any) -> dict[str, str]:
    """The defaults with the file over them; a message if there is no such file."""
    if path is None:
        print("no properties file was given; the defaults are used", file=sys.stderr)
        return dict(DEFAULTS)
    text = Path(path).read_text() if Path(path).is_file() else _from_hadoop(path, arguments)
    if text is None:
        print(
            f"there is no properties file {path}, neither here nor in Hadoop's; the defaults are used", file=sys.stderr
        )
        return dict(DEFAULTS)
    return DEFAULTS | parse_properties(text)


def _from_hadoop(path: str, arguments: Any) -> str | None:
    """Hadoop's file system needs a session; the job's own, whose master the file may set, comes after it."""
    from pyspark.errors import AnalysisException

    spark = start_session("sql-job-properties", arguments)
    try:
        return str(spark.read.text(path, wholetext=True).first()["value"])
    except AnalysisException:
        return None
    finally:
        spark.stop()


def make_view(records: DataFrame, properties: Mapping[str, str]) -> None:
    """Makes the view that statements read."""
    rows = columns_of_schema(records, properties["schema"]) if properties["schema"] else seven_columns(records)
    rows.createOrReplaceTempView(properties["tmpTable"])


def seven_columns(records: DataFrame) -> DataFrame:
    """The members of each value's object as `_1` to `_7`, in their order."""
    text = F.try_validate_utf8(F.col("value").cast("string"))
    members = F.map_values(F.from_json(text, "map<string,string>", _LENIENT))
    size = F.coalesce(F.size(members), F.lit(0))
    columns = [
        F.when((size >= index) & (size <= COLUMNS), F.coalesce(F.get(members, F.lit(index - 1)), F.lit("")))
        .otherwise("")
        .alias(f"_{index}")
        for index in range(1, COLUMNS + 1)
    ]
    return records.select(*columns)


def columns_of_schema(records: DataFrame, schema: str) -> DataFrame:
    """The columns of a schema from each value's object; nulls where it has none, or is none."""
    text = F.try_validate_utf8(F.col("value").cast("string"))
    return records.select(F.from_json(text, schema, _LENIENT).alias("row")).select("row.*")


def parser() -> JobParser:
    options = JobParser(__doc__)
    options.add_argument("--properties", metavar="FILE", help="the properties file")
    add_source(options, "test", is_stream=True)
    add_session(options)
    return options


def main(words: Sequence[str] | None = None) -> None:
    arguments = parser().parse_args(words)
    properties = read_properties(properties_path(arguments.properties), arguments)
    arguments.bootstrap_server = properties["kafka.bootstrap.servers"]
    arguments.topic = properties["subscribe"]
    spark = start_session(properties["appName"], arguments, properties["master"])
    make_view(read_stream(spark, arguments), properties)
    show(spark.sql(properties["sparksql"]), arguments).awaitTermination()


def show(rows: DataFrame, arguments: Any, name: str = "sql") -> Any:
    """A query that appends rows to the console."""
    writer = rows.writeStream.format("console").outputMode("append").queryName(name).option("truncate", "false")
    if arguments.trigger == "available-now":
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=arguments.trigger).start()


if __name__ == "__main__":
    main()
