"""Word count: the number of occurrences of each word in files or, as they arrive, in the records of a topic.

With a checkpoint, the counts of a topic continue after a restart; each micro-batch prints the words whose counts it
changed.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from kafkapy_jobs.arguments import JobParser, add_stream
from kafkapy_jobs.program import run
from kafkapy_jobs.report import observed
from kafkapy_jobs.session import start_session
from kafkapy_jobs.sink import as_records, run_batch, run_stream
from kafkapy_jobs.source import read_batch, read_stream
from kafkapy_jobs.values import member, with_text

TOPIC = "streams-foo"


def word_counts(rows: DataFrame, separator: str = r"\s+", *, lower_case: bool = False, field: str = "") -> DataFrame:
    """Returns the columns word and count, without blank words.

    The words are in the rows' `text`, or in the member `field` of it.
    """
    text = F.col("text") if not field else member("json", field)
    words = F.explode(F.split(F.lower(text) if lower_case else text, separator)).alias("word")
    return rows.select(words).where(F.trim("word") != "").groupBy("word").agg(F.count(F.lit(1)).alias("count"))


def lines(rows: list[Row]) -> list[str]:
    """Formats the counts as `word: count`, in the order of the words."""
    return [f"{row['word']}: {row['count']}" for row in sorted(rows, key=lambda row: row["word"])]


def parser() -> JobParser:
    options = JobParser(__doc__)
    options.add_argument("--separator", default=r"\s+", metavar="EXPRESSION", help="between words; default white space")
    options.add_argument("--lower-case", action="store_true", help="count without regard to case")
    options.add_argument(
        "--field", default="", metavar="NAME", help="of JSON and msgpack values; default: the whole text"
    )
    return add_stream(options, TOPIC, is_final=False, files_at_once=True)


def main(words: Sequence[str] | None = None) -> None:
    arguments = parser().parse_args(words)
    spark = start_session("word-count", arguments)

    def counts(rows: DataFrame) -> DataFrame:
        return word_counts(rows, arguments.separator, lower_case=arguments.lower_case, field=arguments.field)

    if arguments.source == "files":
        rows = with_text(read_batch(spark, arguments), arguments.value_format).persist()
        found = counts(rows).persist()
        run_batch(rows, found, as_records(found, "word"), arguments, lines)
        return
    rows = with_text(read_stream(spark, arguments), arguments.value_format)
    found = counts(observed(rows))
    run_stream(rows, found, as_records(found, "word"), arguments, lines, mode="update")


if __name__ == "__main__":
    run(main)
