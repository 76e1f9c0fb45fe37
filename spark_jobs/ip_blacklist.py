"""IP blacklist: addresses with too many requests within a minute, from a topic of accesses; entries expire.

A value is an address. Minutes are aligned to the epoch, so a burst across two minutes is not recognised. Every
micro-batch in which an address is at or above the threshold lists it again, and its time on the list restarts. A
compacted topic holds the list: the address is the key, and a null value removes it. `--sink redis` holds it as keys
`blacklist:ADDRESS`, whose values are the requests, and which Redis removes when the entry ends.

Needs PySpark 4.1 or newer, and protobuf.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from kafkapy_jobs.arguments import (
    JobParser,
    add_stream,
    count,
    duration,
    fail,
    length_or_zero,
    milliseconds,
)
from kafkapy_jobs.connect import is_remote
from kafkapy_jobs.program import run
from kafkapy_jobs.redis_list import RedisList, connect
from kafkapy_jobs.report import observed
from kafkapy_jobs.session import require_stateful_processors, start_session
from kafkapy_jobs.sink import run_stream
from kafkapy_jobs.source import read_stream
from kafkapy_jobs.values import add_reason, member, trimmed, with_text

TOPIC = "access-log"
REDIS_URL = "redis://localhost:6379/0"
ENTRY = "ip string, is_listed boolean, requests long, time timestamp, until timestamp"


class Blacklist(StatefulProcessor):
    """The state of each address: its requests in each minute that may still change, and the end of its entry.

    A minute may change until the watermark has passed it. Times are event time in milliseconds; timers expire at the
    end of the entry and of each counted minute.
    """

    def __init__(self, threshold: int, expiry_ms: int) -> None:
        self._threshold = threshold
        self._expiry_ms = expiry_ms

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._minutes = handle.getMapState("minutes", "minute long", "requests long")
        self._until = handle.getValueState("until", "until long")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        """Yields a row for each minute of these requests that is at or above the threshold."""
        newest: dict[int, int] = {}
        counts: dict[int, int] = {}
        for row in rows:
            time = row["time_ms"]
            minute = time // 60_000
            newest[minute] = max(time, newest.get(minute, 0))
            counts[minute] = counts.get(minute, 0) + 1
        for minute in sorted(counts):
            known = self._minutes.getValue((minute,))
            if known is None:
                self._handle.registerTimer((minute + 1) * 60_000)
            requests = (known[0] if known else 0) + counts[minute]
            self._minutes.updateValue((minute,), (requests,))
            if requests >= self._threshold:
                until = newest[minute] + self._expiry_ms
                self._extend(until)
                yield self._entry(key[0], True, requests, newest[minute], until)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:  # noqa: N802, N803
        """Removes the minutes that are over, and the address from the list when its entry ends."""
        now = expiredTimerInfo.getExpiryTimeInMs()
        for (minute,) in list(self._minutes.keys()):
            if (minute + 1) * 60_000 <= now:
                self._minutes.removeKey((minute,))
        until = self._until.get()
        if until is not None and until[0] <= now:
            self._until.clear()
            yield self._entry(key[0], False, None, now, None)

    def _extend(self, until: int) -> None:
        """Extends the address's entry until `until`.

        An earlier timer may remain, because it does not end an entry that ends later.
        """
        known = self._until.get()
        if known is None or known[0] < until:
            self._until.update((until,))
            self._handle.registerTimer(until)

    def _entry(self, ip: str, is_listed: bool, requests: int | None, time: int, until: int | None) -> Row:
        import datetime

        def moment(ms: int | None) -> datetime.datetime | None:
            return None if ms is None else datetime.datetime.fromtimestamp(ms / 1000, datetime.UTC)

        return Row(ip=ip, is_listed=is_listed, requests=requests, time=moment(time), until=moment(until))


def with_addresses(records: DataFrame, value_format: str = "text", field: str = "client") -> DataFrame:
    """Adds `ip`, the address, and `reason`, which says why a value is not an address."""
    rows = with_text(records, value_format).withColumn("ip", trimmed(member(value_format, field)))
    is_address = F.col("ip").rlike(r"^(\d{1,3}(\.\d{1,3}){3}|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*)$")
    return add_reason(rows, ~F.coalesce(is_address, F.lit(False)), "not an address")


def blacklist(rows: DataFrame, threshold: int, expiry_ms: int, lateness: str) -> DataFrame:
    """Returns (ip, is_listed, requests, time, until) of new and ended entries; a stream needs the append mode."""
    addresses = rows.where(F.col("reason").isNull()).withWatermark("timestamp", lateness)
    addresses = addresses.select("ip", "timestamp", F.unix_millis("timestamp").alias("time_ms"))
    return addresses.groupBy("ip").transformWithState(Blacklist(threshold, expiry_ms), ENTRY, "append", "eventTime")


def lines(rows: list[Row]) -> list[str]:
    """Formats a new entry as a line for its request and a line for the entry, and an ended entry as one line."""
    found = []
    for row in sorted(rows, key=lambda row: (row["time"], row["ip"])):
        if row["is_listed"]:
            found.append(f"请求时间:{row['time']:%H:%M:%S},IP:{row['ip']},请求次数:{row['requests']}")
            found.append(f"ip:{row['ip']}被加入到黑名单,请求次数为:{row['requests']}")
        else:
            found.append(f"ip:{row['ip']}被移出黑名单")
    return found


def list_records(entries: DataFrame) -> DataFrame:
    """Returns records with the address as the key and the entry as JSON, or null at its end, as the value."""
    record = F.struct("ip", "requests", "time", "until")
    value = F.when(F.col("is_listed"), F.to_json(record).cast("binary"))
    return entries.select(F.col("ip").cast("binary").alias("key"), value.alias("value"))


def parser() -> JobParser:
    options = JobParser(__doc__)
    options.add_argument("--threshold", type=count, default=60, metavar="N", help="requests in a minute; default 60")
    options.add_argument("--expiry", type=duration, default=duration("30 min"), metavar="LENGTH", help="default 30 min")
    options.add_argument(
        "--lateness", type=length_or_zero, default=duration("10 s"), metavar="LENGTH", help="default 10 s; may be 0 s"
    )
    options.add_argument("--field", default="client", metavar="NAME", help="of JSON and msgpack values; default client")
    options.add_argument("--redis-url", default=REDIS_URL, metavar="URL", help=f"of --sink redis; default {REDIS_URL}")
    return add_stream(options, TOPIC, more_sinks=("redis",))


def main(words: Sequence[str] | None = None) -> None:
    arguments = parser().parse_args(words)
    require_stateful_processors()
    has_redis = "redis" in arguments.sink
    if has_redis and is_remote():
        fail("--sink redis writes from the driver, which with --remote is the server: use another sink")
    own_sinks = {"redis": RedisList(connect(arguments.redis_url))} if has_redis else {}
    spark = start_session("ip-blacklist-checker", arguments)
    rows = with_addresses(read_stream(spark, arguments), arguments.value_format, arguments.field)
    entries = blacklist(observed(rows), arguments.threshold, milliseconds(arguments.expiry), arguments.lateness)
    run_stream(rows, entries, list_records(entries), arguments, lines, own_sinks=own_sinks)


if __name__ == "__main__":
    run(main)
