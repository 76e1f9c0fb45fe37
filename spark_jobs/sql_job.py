"""SQL job: a statement over a topic, both from a `.properties` file; the console shows the rows.

The file is `--properties`, or the one in the driver's system property PropPath (`--driver-java-options
-DPropPath=FILE`): a local file, or one of Hadoop's file system. The defaults without a file, or for missing keys:

    master                    that of spark-submit, or local
    appName                   Test7
    className                 empty; without effect
    kafka.bootstrap.servers   localhost:9092
    subscribe                 test
    tmpTable                  tmp
    sparksql                  select * from tmp
    schema                    empty; columns in Spark's words, such as `name string, age int`

`--bootstrap-server` and `--topic`, if given, take precedence over the file.

Without a schema the members of a value's JSON object (single quotes are accepted) become seven text columns `_1` to
`_7`; missing members are empty texts. A value that is not an object, or has no members or more than seven, becomes
seven empty texts.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pyspark import SparkContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kafkapy_jobs.arguments import JobParser, add_session, add_source
from kafkapy_jobs.connect import is_remote
from kafkapy_jobs.program import run
from kafkapy_jobs.session import start_session
from kafkapy_jobs.sink import await_queries, show_stream
from kafkapy_jobs.source import read_stream
from kafkapy_jobs.values import LENIENT, columns_of_schema, valid_text

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


def parse_properties(text: str) -> dict[str, str]:
    """Parses a `.properties` file, with comments, continued lines, and `=`, `:` or white space after the key."""
    joined = re.sub(r"\\\r?\n[ \t]*", "", text)
    found = {}
    for line in joined.splitlines():
        line = line.strip()
        if line and line[0] not in "#!":
            key, _, value = re.sub(r"\s*[=:]\s*|\s+", "\0", line, count=1).partition("\0")
            found[key] = value
    return found


def properties_path(option: str | None) -> str | None:
    """Returns the path of the file, from the option or from the driver's system property; None without a file.

    With Spark Connect there is no driver here, and only the option counts.
    """
    if option or is_remote():
        return option
    # The session, whose master the file may set, is created later: this starts only the driver's JVM.
    SparkContext._ensure_initialized()
    path: str | None = SparkContext._jvm.java.lang.System.getProperty("PropPath")
    return path


def read_properties(path: str | None, arguments: Any) -> dict[str, str]:
    """Returns the properties of the file, and defaults for the properties that it lacks.

    Prints a message if there is no file.
    """
    if path is None:
        print("no properties file was given; the defaults are used", file=sys.stderr)
        return dict(DEFAULTS)
    text = Path(path).read_text("utf-8") if Path(path).is_file() else _from_hadoop(path, arguments)
    if text is None:
        print(
            f"there is no properties file {path}, neither here nor in Hadoop's; the defaults are used", file=sys.stderr
        )
        return dict(DEFAULTS)
    return DEFAULTS | parse_properties(text)


def _from_hadoop(path: str, arguments: Any) -> str | None:
    """Reads a file of Hadoop's file system; returns None if it does not exist.

    Uses a session of its own, because the file may set the master of the job's session.
    """
    from pyspark.errors import AnalysisException

    spark = start_session("sql-job-properties", arguments)
    try:
        return str(spark.read.text(path, wholetext=True).first()["value"])
    except AnalysisException:
        return None
    finally:
        spark.stop()


def make_view(records: DataFrame, properties: Mapping[str, str]) -> None:
    """Creates the view that statements read, named by the property tmpTable."""
    rows = columns_of_schema(records, properties["schema"]) if properties["schema"] else seven_columns(records)
    rows.createOrReplaceTempView(properties["tmpTable"])


def seven_columns(records: DataFrame) -> DataFrame:
    """Returns the members of each value's object as `_1` to `_7`, in their order."""
    members = F.map_values(F.from_json(valid_text("value"), "map<string,string>", LENIENT))
    size = F.coalesce(F.size(members), F.lit(0))
    columns = [
        F.when((size >= index) & (size <= COLUMNS), F.coalesce(F.get(members, F.lit(index - 1)), F.lit("")))
        .otherwise("")
        .alias(f"_{index}")
        for index in range(1, COLUMNS + 1)
    ]
    return records.select(*columns)


def parser() -> JobParser:
    options = JobParser(__doc__)
    options.add_argument("--properties", metavar="FILE", help="the properties file")
    add_source(options, DEFAULTS["subscribe"], is_stream=True, value_formats=())
    add_session(options)
    # The command line takes precedence over the file, and the file over these defaults.
    options.set_defaults(bootstrap_server=None, topic=None)
    return options


def main(words: Sequence[str] | None = None) -> None:
    arguments = parser().parse_args(words)
    properties = read_properties(properties_path(arguments.properties), arguments)
    arguments.bootstrap_server = arguments.bootstrap_server or properties["kafka.bootstrap.servers"]
    arguments.topic = arguments.topic or properties["subscribe"]
    spark = start_session(properties["appName"], arguments, properties["master"])
    make_view(read_stream(spark, arguments), properties)
    await_queries(spark, [show_stream(spark.sql(properties["sparksql"]), arguments, "sql")])


if __name__ == "__main__":
    run(main)
