"""Click enrichment: clicks with the user's profile and the search that led to them, from three topics.

The keys of all three topics are users, and values are text; JSON is not parsed. Each click has one result:
with the user's last profile, and with the user's last search if it is at most `--within` older than the click. Both
are null if there are none. A profile with a null value removes the user's profile; a search or a click that is empty is
left out.

Within a micro-batch, records are joined in the order of their timestamps, so that a profile or a search that is only
read in a later micro-batch than a click does not change the click's result.

Needs PySpark 4.1 or newer, and protobuf.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from kafkapy_jobs.arguments import JobParser, add_stream, duration, milliseconds
from kafkapy_jobs.program import run
from kafkapy_jobs.report import observed
from kafkapy_jobs.session import require_stateful_processors, start_session
from kafkapy_jobs.sink import as_records, run_stream
from kafkapy_jobs.source import read_stream
from kafkapy_jobs.values import add_reason, or_null, valid_text, with_text

TOPIC = "clicks"
# At the same timestamp, profiles come first and clicks last.
KINDS = ("profile", "search", "click")
ENRICHED = "user string, page string, time timestamp, profile string, search string"


class LastOfUser(StatefulProcessor):
    """The state of each user: the last profile, and the last search with its time in milliseconds."""

    def __init__(self, within_ms: int) -> None:
        self._within_ms = within_ms

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._state = handle.getValueState("last", "profile string, search string, search_ms long")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        """Yields a row for each click, in the order of timestamps."""
        profile, search, search_ms = self._state.get() or (None, None, None)
        for row in sorted(rows, key=lambda row: (row["timestamp"], row["kind"], row["partition"], row["offset"])):
            if row["kind"] == 0:
                profile = row["text"]
            elif row["kind"] == 1:
                search, search_ms = row["text"], row["time_ms"]
            else:
                is_recent = search_ms is not None and row["time_ms"] - search_ms <= self._within_ms
                found = search if is_recent else None
                yield Row(user=key[0], page=row["text"], time=row["timestamp"], profile=profile, search=found)
        self._state.update((profile, search, search_ms))


def with_kinds(clicks: DataFrame, profiles: DataFrame, searches: DataFrame) -> DataFrame:
    """Returns the records of the three topics with `kind`, `user`, `text` and `reason`."""
    made = None
    for kind, records in enumerate((profiles, searches, clicks)):
        rows = with_text(records, "text").withColumn("user", valid_text("key")).withColumn("kind", F.lit(kind))
        if KINDS[kind] == "profile":
            rows = rows.withColumn("reason", F.when(F.col("value").isNotNull(), F.col("reason")))
        else:
            rows = add_reason(rows, F.trim("text") == "", "blank")
        rows = add_reason(rows, F.col("user").isNull(), "no user as the key")
        made = rows if made is None else made.unionByName(rows)
    assert made is not None
    return made


def enriched(rows: DataFrame, within_ms: int) -> DataFrame:
    """Returns the columns of ENRICHED, a row for each click; a stream needs the append mode."""
    good = rows.where(F.col("reason").isNull()).withColumn("time_ms", F.unix_millis("timestamp"))
    return good.groupBy("user").transformWithState(LastOfUser(within_ms), ENRICHED, "append", "none")


def lines(rows: list[Row]) -> list[str]:
    """Formats clicks with their user, profile and search; a missing one is shown as null."""
    shown = sorted(rows, key=lambda row: (row["time"], row["user"]))
    return [f"{row['user']} {row['page']} , profile:{or_null(row['profile'])}, search:{or_null(row['search'])}"
            for row in shown]  # fmt: skip


def parser() -> JobParser:
    options = JobParser(__doc__)
    options.add_argument("--profile-topic", default="user-profiles", metavar="NAME", help="default user-profiles")
    options.add_argument("--search-topic", default="user-searches", metavar="NAME", help="default user-searches")
    options.add_argument(
        "--within", type=duration, default=duration("1 s"), metavar="LENGTH", help="from search to click; default 1 s"
    )
    return add_stream(options, TOPIC, value_formats=())


def main(words: Sequence[str] | None = None) -> None:
    options = parser()
    arguments = options.parse_args(words)
    if arguments.source == "files":
        options.error("--source files has clicks only")
    require_stateful_processors()
    spark = start_session("click-enrichment", arguments)
    topics = (None, arguments.profile_topic, arguments.search_topic)
    rows = with_kinds(*(read_stream(spark, arguments, topic) for topic in topics))
    clicks = enriched(observed(rows), milliseconds(arguments.within))
    run_stream(rows, clicks, as_records(clicks, "user"), arguments, lines)


if __name__ == "__main__":
    run(main)
