"""Stock strategy: the stocks that are at an N-day high or low, from a topic or files of daily quotes.

The first stage finds, for each stock, the highest and the lowest price of the last N trading days and their dates; of
days with the same price the earliest. The second selects the stocks whose price of the last trading day is that highest
or lowest. It compares prices, not dates: a price that was reached before is a high too.

Trading days are those of the market: the dates on which any stock was traded, up to `--as-of`. A stock that was not
traded on the last of them is in the first stage only.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from kafkapy_jobs.arguments import JobParser, add_batch, count, date
from kafkapy_jobs.program import run
from kafkapy_jobs.quotes import good, with_quotes, without_quotes
from kafkapy_jobs.session import start_session
from kafkapy_jobs.sink import as_records, run_batch
from kafkapy_jobs.source import read_batch

TOPIC = "stock-quotes"


def trading_days(quotes: DataFrame, days: int | None, as_of: str | None) -> DataFrame:
    """Returns the quotes of the last `days` trading days up to `as_of`, with the last of these days as `last_day`.

    `days` None means all days, `as_of` (yyyy-MM-dd) None means the last day of the quotes.
    """
    if as_of is not None:
        quotes = quotes.where(F.col("trade_day") <= as_of)
    known = quotes.select("trade_day").distinct()
    if days is not None:
        known = known.orderBy(F.col("trade_day").desc()).limit(days)
    # A row that every task gets. A window over the whole market would put all rows into one partition.
    period = known.agg(F.min("trade_day").alias("first_day"), F.max("trade_day").alias("last_day"))
    inside = F.col("trade_day") >= F.col("first_day")
    return quotes.join(F.broadcast(period), inside).drop("first_day")


def strategy(
    quotes: DataFrame, days: int | None = None, as_of: str | None = None, minimum_days: int | None = None
) -> DataFrame:
    """Returns a row for each stock with its highest and lowest price and their dates (the first stage).

    `is_new_high` and `is_new_low` are True for the stocks that the second stage selects. A stock with fewer than
    `minimum_days` trading days in the period (default: `days`) has no N-day high or low yet, so that both are False.
    Duplicate rows do not change the result.
    """
    period = trading_days(quotes, days, as_of)
    is_today = F.col("trade_day") == F.col("last_day")
    found = period.groupBy("stock_code").agg(
        F.max_by("stock_name", "trade_day").alias("stock_name"),
        F.min(_extreme(-F.col("high"), "high")).alias("highest"),
        F.min(_extreme(F.col("low"), "low")).alias("lowest"),
        F.max(F.when(is_today, F.col("high"))).alias("high_today"),
        F.min(F.when(is_today, F.col("low"))).alias("low_today"),
        F.count_distinct("trade_day").alias("trading_days"),
        F.max("last_day").alias("as_of"),
    )
    has_history = F.col("trading_days") >= (minimum_days or days or 1)
    is_high = F.col("high_today") == F.col("highest.price")
    is_low = F.col("low_today") == F.col("lowest.price")
    return found.select(
        "stock_code",
        "stock_name",
        F.col("highest.price").alias("high_price"),
        F.col("lowest.price").alias("low_price"),
        F.col("highest.trade_date").alias("high_price_date"),
        F.col("lowest.trade_date").alias("low_price_date"),
        F.coalesce(is_high & has_history, F.lit(False)).alias("is_new_high"),
        F.coalesce(is_low & has_history, F.lit(False)).alias("is_new_low"),
        "trading_days",
        "as_of",
    )


def _extreme(order: Column, price: str) -> Column:
    """Returns a struct whose minimum is the best price and, of equal prices, the earliest date."""
    return F.struct(order.alias("order"), "trade_day", "trade_date", F.col(price).alias("price"))


def stock_info(row: Row) -> str:
    """Formats a stock with its highest and lowest price."""
    return (
        f"{row['stock_code']}: StockInfo [stockName={row['stock_name']}, stockCode={row['stock_code']}, "
        f"highPrice={row['high_price']}, lowPrice={row['low_price']}, "
        f"lowPriceDate={row['low_price_date']}, highPriceDate={row['high_price_date']}]"
    )


def lines(rows: list[Row]) -> list[str]:
    """Formats the first stage, followed by the new highs and the new lows of the second stage."""
    stocks = sorted(rows, key=lambda row: row["stock_code"])
    found = [stock_info(row) for row in stocks]
    for title, column in (("历史新高:", "is_new_high"), ("历史新低:", "is_new_low")):
        found.append(title)
        found += [stock_info(row) for row in stocks if row[column]]
    return found


def parser() -> JobParser:
    options = JobParser(__doc__)
    options.add_argument("--days", type=count, metavar="N", help="trading days; default: all")
    options.add_argument("--as-of", type=date, metavar="DATE", help="the last day; default: the last one with quotes")
    options.add_argument(
        "--minimum-days", type=count, metavar="N", help="a stock needs at least as many; default: --days"
    )
    return add_batch(options, TOPIC)


def main(words: Sequence[str] | None = None) -> None:
    arguments = parser().parse_args(words)
    spark = start_session("stock-strategy-calculator", arguments)
    rows = with_quotes(read_batch(spark, arguments), arguments.value_format).persist()
    found = strategy(good(rows), arguments.days, arguments.as_of, arguments.minimum_days).persist()
    plain = without_quotes(found)
    run_batch(rows, plain, as_records(plain, "stock_code"), arguments, lines, printed=found)


if __name__ == "__main__":
    run(main)
