"""Stock alerts: the strategy as a stream, with the rows of a published example, repeated and late rows, and a
restart."""

from __future__ import annotations

from pyspark.sql import Row

from kafkapy_jobs.quotes import good, with_quotes
from stock_alerts import alerts, lines
from tests.spark.test_stock_strategy import ROWS, row
from tests.spark.topic_records import record, run_stream, values


def test_alerts_of_the_last_day_are_the_second_stage_and_come_once(spark, tmp_path):
    """The days arrive in order; then the last day is repeated, with a higher price too, and a late day arrives."""
    before = [record(text, offset=index) for index, text in enumerate(ROWS[2::3] + ROWS[1::3])]
    today = [record(text, offset=6 + index) for index, text in enumerate(ROWS[0::3])]
    higher = record(row("000001", "2017-03-01", 9.60, 9.50, "平安银行"), offset=9)
    late = record(row("000001", "2017-02-28", 99, 1), offset=10)
    next_day = record(row("000001", "2017-03-02", 99, 1), offset=11)

    def transform(records):
        return alerts(good(with_quotes(records)), 3)

    found = run_stream(spark, tmp_path, [before, today, [*today, higher]], transform)
    assert [sorted(values(rows, "stock_code", "kind", "price")) for rows in found] == [
        [("'000001'", "new high", 9.55), ("'600547'", "new low", 36.6), ("'600837'", "new low", 15.6)],
        [("'000001'", "new high", 9.6)],
    ]
    after_restart = run_stream(spark, tmp_path, [[late, next_day]], transform)
    assert [sorted(values(rows, "kind", "price")) for rows in after_restart] == [[("new high", 99.0), ("new low", 1.0)]]


def test_an_alert_is_a_line():
    alert = Row(
        stock_code="'1'",
        stock_name="'n'",
        kind="new high",
        price=9.5,
        trade_date="'2017-03-01'",
        trade_day="2017-03-01",
    )
    assert lines([alert]) == ["'1' 'n' 历史新高: 9.5 '2017-03-01'"]
