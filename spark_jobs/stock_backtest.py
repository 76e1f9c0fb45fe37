"""Stock back-test: the signals of rules over daily quotes in a range of dates, and the returns that followed them.

Quotes are read from a topic, or from vendors' CSV files (UTF-8, UTF-16 or GBK, with or without a header). The rules are
N-day highs and lows for each N of `--days`, `--rule NAME=CONDITION`, and the table `[rules]` of a TOML file:

    [rules]
    golden-cross = "crosses_above(average(close, 5), average(close, 20))"
    volume-burst = "volume > 2 * average(volume, 20) and close > previous(close)"

A day without a trade of a stock (no volume, or a price that is not positive) is no quote. Windows are the last trading
days of the market (the dates on which any stock was traded, so that holidays do not count), or with `--calendar stock`
those of the stock itself.
"""

from __future__ import annotations

import argparse
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from kafkapy_jobs import backtest, stock_rules
from kafkapy_jobs.arguments import JobParser, add_session, add_sinks, add_source, counts, date, fail, key_value
from kafkapy_jobs.program import run
from kafkapy_jobs.session import start_session
from kafkapy_jobs.shipping import ship
from kafkapy_jobs.sink import as_records, run_batch
from kafkapy_jobs.stock_rules import EVERY_DAY, RuleError, compile_rule
from kafkapy_jobs.vendor_source import VALUE_FORMATS, read_quotes

TOPIC = "stock-quotes"
_SIGNAL = (
    "stock_code string, stock_name string, rule string, trade_day string, close double, days long, "
    "gains array<double>, wins array<long>, known array<long>"
)
_DAYS_OF_A_PLOT = 62  # more days are shown by month


def read_rules(path: str) -> dict[str, str]:
    """Returns the rules of a TOML file; ends the program if it has none."""
    try:
        found = tomllib.loads(Path(path).read_text("utf-8")).get("rules")
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        fail(f"--rules {path}: {error}")
    if not isinstance(found, dict) or not found or not all(isinstance(rule, str) for rule in found.values()):
        fail(f'--rules {path}: there is no table [rules] with lines such as burst = "volume > 2 * average(volume, 20)"')
    return found


def rules_of(arguments: Any) -> dict[str, str]:
    """Returns the conditions of all rules by name; ends the program if one of them cannot be understood."""
    rules = {}
    for days in arguments.days or ([] if arguments.rules or arguments.rule else [20, 60, 250]):
        rules[f"high-{days}"] = f"high >= highest(high, {days})"
        rules[f"low-{days}"] = f"low <= lowest(low, {days})"
    rules |= (read_rules(arguments.rules) if arguments.rules else {}) | dict(arguments.rule)
    for name, text in rules.items():
        try:
            compile_rule(text)
        except RuleError as error:
            fail(f"rule {name}: {error}")
    return rules


def backtest_signals(
    quotes: DataFrame,
    rules: Mapping[str, str],
    horizons: Sequence[int],
    start: str,
    end: str,
    calendar: Sequence[str] | None,
) -> DataFrame:
    """Returns the signals of all stocks, and a row of the rule EVERY_DAY for each stock.

    `quotes` are those of traded days. Of several quotes of a stock and day, the last in the topic or files counts.
    """
    ship(stock_rules)
    return quotes.groupBy("stock_code").applyInArrow(_signals_of(rules, horizons, start, end, calendar), _SIGNAL)


def _signals_of(
    rules: Mapping[str, str], horizons: Sequence[int], start: str, end: str, calendar: Sequence[str] | None
) -> Callable[[Any], Any]:
    """Returns the function that computes the signals of one stock; it runs on executors."""
    find, compiled = stock_rules.signals, {name: compile_rule(text) for name, text in rules.items()}

    def signals_of(quotes: Any) -> Any:
        import pyarrow as pa

        def place(row: Any) -> Any:
            return row["topic"] or "", row["partition"] or 0, row["offset"] or 0

        rows = sorted(quotes.to_pylist(), key=place)
        code, name = rows[0]["stock_code"], max(rows, key=lambda row: row["trade_day"])["stock_name"]
        found = [
            {"stock_code": code, "stock_name": name, **signal._asdict()}
            for signal in find({row["trade_day"]: row for row in rows}, compiled, horizons, start, end, calendar)
        ]
        numbers = {"gains": pa.list_(pa.float64()), "wins": pa.list_(pa.int64()), "known": pa.list_(pa.int64())}
        kinds = {"stock_code": pa.string(), "stock_name": pa.string(), "rule": pa.string(), "trade_day": pa.string()}
        kinds |= {"close": pa.float64(), "days": pa.int64(), **numbers}
        return pa.Table.from_pylist(found, schema=pa.schema(list(kinds.items())))

    return signals_of


def sums(signals: DataFrame) -> DataFrame:
    """Returns the sums for each rule and each horizon, whose index is the column `position`.

    `days` is the number of signals; of these, the returns of `known` are known. `gain` is the sum of the known returns,
    and `wins` the number of the positive ones.
    """
    values = F.posexplode(F.arrays_zip("gains", "wins", "known")).alias("position", "value")
    return (
        signals.select("rule", "days", values)
        .groupBy("rule", "position")
        .agg(
            F.sum("days").alias("days"),
            F.sum("value.gains").alias("gain"),
            F.sum("value.wins").alias("wins"),
            F.sum("value.known").alias("known"),
        )
    )


def with_returns(signals: DataFrame, horizons: Sequence[int]) -> DataFrame:
    """Returns the signals with a column for each horizon; a return that is not known yet is null."""
    returns = [
        F.when(F.get("known", F.lit(index)) > 0, F.get("gains", F.lit(index))).alias(f"return_{days}")
        for index, days in enumerate(horizons)
    ]
    rows = signals.where(F.col("rule") != EVERY_DAY)
    return rows.select("stock_code", "stock_name", "rule", "trade_day", "close", *returns)


def _describe(quotes: DataFrame, arguments: Any, rules: Mapping[str, str]) -> tuple[backtest.Backtest, list[str]]:
    """Returns what is tested, and the trading days of the market; ends the program if there are none in the range."""
    days = sorted(row["trade_day"] for row in quotes.select("trade_day").distinct().collect())
    inside = [day for day in days if (arguments.start or "") <= day <= (arguments.end or "9999")]
    if not inside:
        limits = f"{arguments.start or 'the first'} and {arguments.end or 'the last day'}"
        fail(f"there is no quote of a traded stock between {limits}")
    tested = quotes.where(F.col("trade_day").between(inside[0], inside[-1]))
    numbers = tested.agg(F.count_distinct("stock_code").alias("stocks"), F.count(F.lit(1)).alias("quotes")).first()
    assert numbers is not None
    test = backtest.Backtest(rules, arguments.horizons, inside[0], inside[-1], numbers["stocks"], numbers["quotes"])
    return test, days


def _write_report(path: str, found: list[backtest.RuleResult], test: backtest.Backtest, signals: DataFrame) -> None:
    by_day = [
        (row["trade_day"], row["count"]) for row in signals.groupBy("trade_day").count().orderBy("trade_day").collect()
    ]
    periods: dict[str, int] = {}
    for day, count in by_day:
        period = day if len(by_day) <= _DAYS_OF_A_PLOT else day[:7]
        periods[period] = periods.get(period, 0) + count
    last = signals.where(F.col("trade_day") == test.last_day).collect()
    rows = [(row["rule"], row["stock_code"], row["stock_name"] or "", row["close"]) for row in last]
    Path(path).write_text(backtest.report(found, test, list(periods.items()), rows), "utf-8")


def printer(found: list[backtest.RuleResult], test: backtest.Backtest) -> Callable[[list[Row]], Iterator[str]]:
    """Returns the printer of the signals of the last day, after the results of the rules."""

    def lines(rows: list[Row]) -> Iterator[str]:
        yield f"{test.first_day} to {test.last_day}: {test.quotes} quotes of {test.stocks} stocks"
        yield from backtest.lines(found, test)
        yield f"signals of {test.last_day}:"
        for row in sorted(rows, key=lambda row: (row["rule"], row["stock_code"])):
            yield f"{row['rule']} {row['stock_code']} {row['stock_name'] or ''}: {row['close']}"

    return lines


def parser() -> JobParser:
    options = JobParser(__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    group = options.add_argument_group("rules")
    group.add_argument(
        "--days", type=counts, metavar="N,N", help="N-day highs and lows; default 20,60,250 without rules"
    )
    group.add_argument("--rules", metavar="FILE", help="a TOML file with the table [rules]")
    group.add_argument(
        "--rule", type=key_value, action="append", default=[], metavar="NAME=CONDITION", help="may be repeated"
    )
    group.add_argument("--from", type=date, dest="start", metavar="DATE", help="the first day; default: of the quotes")
    group.add_argument("--to", type=date, dest="end", metavar="DATE", help="the last day; default: of the quotes")
    group.add_argument(
        "--horizons", type=counts, default=[1, 5, 20], metavar="N,N", help="trading days of returns; default 1,5,20"
    )
    group.add_argument(
        "--calendar", choices=("market", "stock"), default="market", help="whose trading days count; default market"
    )
    group.add_argument("--report", metavar="FILE", help="writes an HTML page with plots")
    add_source(options, TOPIC, is_stream=False, value_formats=VALUE_FORMATS)
    add_sinks(options, is_stream=False)
    add_session(options)
    return options


def main(words: Sequence[str] | None = None) -> None:
    arguments = parser().parse_args(words)
    rules = rules_of(arguments)
    spark = start_session("stock-backtest", arguments)
    rows = read_quotes(spark, arguments).persist()
    quotes = rows.where("reason is null and is_traded")
    test, days = _describe(quotes, arguments, rules)
    calendar = days if arguments.calendar == "market" else None
    signals = backtest_signals(quotes, rules, arguments.horizons, test.first_day, test.last_day, calendar).persist()
    found = backtest.results([row.asDict() for row in sums(signals).collect()], rules, arguments.horizons)
    result = with_returns(signals, arguments.horizons)
    if arguments.report:
        _write_report(arguments.report, found, test, result)
    last = result.where(F.col("trade_day") == test.last_day)
    run_batch(rows, result, as_records(result, "stock_code"), arguments, printer(found, test), printed=last)


if __name__ == "__main__":
    run(main)
