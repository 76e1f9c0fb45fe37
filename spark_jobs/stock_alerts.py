"""Stock alerts: new N-day highs and lows as the quotes arrive on a topic; stock_strategy as a stream.

The state of a stock is the extremes of its last N trading days. A quote at or beyond all of them is an alert, once for
each price: a quote that arrives twice causes one alert. Trading days are those of the stock itself, because a stream
has no calendar of the market; a day that arrives after N newer ones of its stock is ignored. For quotes that arrive in
the order of their dates, the alerts of a day are the second stage of the strategy for stocks that are traded every day.

Needs PySpark 4.1 or newer, and protobuf.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from kafkapy_jobs.arguments import JobParser, add_stream, count
from kafkapy_jobs.program import run
from kafkapy_jobs.quotes import good, with_quotes, without_quotes
from kafkapy_jobs.report import observed
from kafkapy_jobs.session import require_stateful_processors, start_session
from kafkapy_jobs.sink import as_records, run_stream
from kafkapy_jobs.source import read_stream

TOPIC = "stock-quotes"
ALERT = "stock_code string, stock_name string, kind string, price double, trade_date string, trade_day string"


class ExtremesOfDays(StatefulProcessor):
    """The state of each stock: the highest and lowest price of each of its last `days` trading days."""

    def __init__(self, days: int, minimum_days: int) -> None:
        self._days = days
        self._minimum_days = minimum_days

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._state = handle.getMapState("extremes", "trade_day string", "high double, low double")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        """Yields alerts for the new quotes of a stock, in the order of their dates and then of their arrival."""
        known = {day[0]: tuple(prices) for day, prices in self._state.iterator()}
        before = dict(known)
        arrived = sorted(rows, key=lambda row: (row["trade_day"], row["partition"] or 0, row["offset"] or 0))
        for row in arrived:
            yield from self._add(known, row)
        for day in before.keys() - known.keys():
            self._state.removeKey((day,))
        for day, prices in known.items():
            if before.get(day) != prices:
                self._state.updateValue((day,), prices)

    def _add(self, known: dict[str, tuple[float, float]], row: Row) -> Iterator[Row]:
        day, high, low = row["trade_day"], row["high"], row["low"]
        old_high, old_low = known.get(day, (float("-inf"), float("inf")))
        known[day] = max(high, old_high), min(low, old_low)
        for old_day in sorted(known)[: -self._days]:
            del known[old_day]
        if day not in known or day != max(known) or len(known) < self._minimum_days:
            return
        if high > old_high and high >= max(prices[0] for prices in known.values()):
            yield self._alert(row, "new high", high)
        if low < old_low and low <= min(prices[1] for prices in known.values()):
            yield self._alert(row, "new low", low)

    def _alert(self, row: Row, kind: str, price: float) -> Row:
        return Row(
            stock_code=row["stock_code"],
            stock_name=row["stock_name"],
            kind=kind,
            price=price,
            trade_date=row["trade_date"],
            trade_day=row["trade_day"],
        )


def alerts(quotes: DataFrame, days: int, minimum_days: int | None = None) -> DataFrame:
    """Returns a row for each new high or low of `quotes`, a stream.

    The query needs the append mode. A stock has no alerts before its `minimum_days`th trading day (default: `days`).
    """
    processor = ExtremesOfDays(days, minimum_days or days)
    return quotes.groupBy("stock_code").transformWithState(processor, ALERT, "append", "none")


def lines(rows: list[Row]) -> list[str]:
    """Formats each alert as a line."""
    titles = {"new high": "历史新高", "new low": "历史新低"}
    ordered = sorted(rows, key=lambda row: (row["trade_day"], row["stock_code"], row["kind"]))
    return [
        f"{row['stock_code']} {row['stock_name']} {titles[row['kind']]}: {row['price']} {row['trade_date']}"
        for row in ordered
    ]


def parser() -> JobParser:
    options = JobParser(__doc__)
    options.add_argument("--days", type=count, default=20, metavar="N", help="trading days of a stock; default 20")
    options.add_argument(
        "--minimum-days", type=count, metavar="N", help="a stock needs at least as many; default: --days"
    )
    options.fix_in_checkpoint("--days")
    return add_stream(options, TOPIC)


def main(words: Sequence[str] | None = None) -> None:
    arguments = parser().parse_args(words)
    require_stateful_processors()
    spark = start_session("stock-alerts", arguments)
    rows = with_quotes(read_stream(spark, arguments), arguments.value_format)
    found = alerts(good(observed(rows)), arguments.days, arguments.minimum_days)
    records = as_records(without_quotes(found), "stock_code")
    run_stream(rows, found, records, arguments, lines)


if __name__ == "__main__":
    run(main)
