"""SQL statements: several on one view of a topic, each of which is a query that appends to the console.

Values are JSON objects with the columns of `--schema`; other values become rows of nulls.
"""

from __future__ import annotations

from collections.abc import Sequence

from kafkapy_jobs.arguments import JobParser, add_session, add_source, fail
from kafkapy_jobs.program import run
from kafkapy_jobs.session import start_session
from kafkapy_jobs.sink import await_queries, show_stream
from kafkapy_jobs.source import read_stream
from kafkapy_jobs.values import columns_of_schema

TOPIC = "dyl_test01"
SCHEMA = "a string, b string, c string, d array<string>"
STATEMENTS = ("select * from dyl_test", "select *,'2' as e from dyl_test")


def parser() -> JobParser:
    options = JobParser(__doc__)
    options.add_argument("--view", default="dyl_test", metavar="NAME", help="default dyl_test")
    options.add_argument("--schema", default=SCHEMA, metavar="COLUMNS", help=f"in Spark's words; default {SCHEMA}")
    options.add_argument(
        "--statement", action="append", metavar="SQL", help="may be repeated; the default is two examples"
    )
    add_source(options, TOPIC, is_stream=True, value_formats=())
    add_session(options)
    return options


def main(words: Sequence[str] | None = None) -> None:
    arguments = parser().parse_args(words)
    if not arguments.schema.strip():
        fail("--schema is empty: the view needs columns")
    spark = start_session("sql-statements", arguments)
    columns_of_schema(read_stream(spark, arguments), arguments.schema).createOrReplaceTempView(arguments.view)
    statements = arguments.statement or STATEMENTS
    queries = [show_stream(spark.sql(each), arguments, f"sql-{number}") for number, each in enumerate(statements, 1)]
    await_queries(spark, queries)


if __name__ == "__main__":
    run(main)
