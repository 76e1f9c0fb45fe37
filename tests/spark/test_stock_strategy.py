"""The stock strategy: the nine rows of the example in the job's specification, and each of its special cases."""

from __future__ import annotations

import msgpack
import pytest
from pyspark.sql import Row
from pyspark.sql import functions as F

from kafkapy_jobs.dead_letters import dead_letters
from kafkapy_jobs.quotes import COLUMNS, good, with_quotes, without_quotes
from kafkapy_jobs.report import count_rejected
from stock_strategy import lines, parser, stock_info, strategy
from tests.spark.topic_records import records, values

ROWS = """\
'平安银行','000001','2017-03-01 00:00:00.000',9.4800,9.4900,9.5500,9.4700,9.4900
'平安银行','000001','2017-02-28 00:00:00.000',9.4300,9.4300,9.5100,9.4200,9.4800
'平安银行','000001','2017-02-27 00:00:00.000',9.5000,9.5000,9.5000,9.4200,9.4300
'山东黄金','600547','2017-03-01 00:00:00.000',37.0700,36.7000,36.8800,36.6000,36.8200
'山东黄金','600547','2017-02-28 00:00:00.000',37.4500,37.1100,37.2400,36.9000,37.0700
'山东黄金','600547','2017-02-27 00:00:00.000',37.5100,37.5500,37.9900,37.4000,37.4500
'海通证券','600837','2017-03-01 00:00:00.000',15.6700,15.7000,15.7200,15.6000,15.6100
'海通证券','600837','2017-02-28 00:00:00.000',15.7400,15.7200,15.8300,15.6400,15.6700
'海通证券','600837','2017-02-27 00:00:00.000',15.8100,15.7700,15.9000,15.6500,15.7400
""".splitlines()
STAGE_1 = {
    "'000001': StockInfo [stockName='平安银行', stockCode='000001', highPrice=9.55, lowPrice=9.42, "
    "lowPriceDate='2017-02-27 00:00:00.000', highPriceDate='2017-03-01 00:00:00.000']",
    "'600837': StockInfo [stockName='海通证券', stockCode='600837', highPrice=15.9, lowPrice=15.6, "
    "lowPriceDate='2017-03-01 00:00:00.000', highPriceDate='2017-02-27 00:00:00.000']",
    "'600547': StockInfo [stockName='山东黄金', stockCode='600547', highPrice=37.99, lowPrice=36.6, "
    "lowPriceDate='2017-03-01 00:00:00.000', highPriceDate='2017-02-27 00:00:00.000']",
}


def row(code, day, high, low, name="x"):
    return f"'{name}','{code}','{day} 00:00:00.000',1.0,1.0,{high},{low},1.0"


def found(spark, texts, **options):
    return strategy(good(with_quotes(records(spark, texts))), **options).collect()


def signals(rows):
    highs = {each["stock_code"].strip("'"): each["high_price"] for each in rows if each["is_new_high"]}
    lows = {each["stock_code"].strip("'"): each["low_price"] for each in rows if each["is_new_low"]}
    return highs, lows


def test_the_documents_rows(spark):
    rows = found(spark, ROWS, days=3)
    assert set(map(stock_info, rows)) == STAGE_1
    assert signals(rows) == ({"000001": 9.55}, {"600837": 15.6, "600547": 36.6})
    assert {each["as_of"] for each in rows} == {"2017-03-01"}


def test_the_order_of_rows_does_not_matter_and_all_days_are_the_default(spark):
    assert set(map(stock_info, found(spark, sorted(ROWS)))) == STAGE_1


def test_a_row_that_comes_twice_changes_nothing(spark):
    assert set(map(stock_info, found(spark, ROWS + ROWS[:1]))) == STAGE_1


def test_of_equal_prices_the_earliest_date_is_kept_and_the_second_stage_goes_by_price(spark):
    rows = found(spark, [row("1", "2017-03-01", 5, 3), row("1", "2017-03-02", 4, 2), row("1", "2017-03-03", 5, 2)])
    (stock,) = rows
    assert (stock["high_price_date"], stock["low_price_date"]) == (
        "'2017-03-01 00:00:00.000'",
        "'2017-03-02 00:00:00.000'",
    )
    assert signals(rows) == ({"1": 5.0}, {"1": 2.0})


def test_a_stock_with_a_single_row_has_its_dates(spark):
    (stock,) = found(spark, ROWS[:1])
    assert stock["high_price_date"] == stock["low_price_date"] == "'2017-03-01 00:00:00.000'"
    assert (stock["is_new_high"], stock["is_new_low"]) == (True, True)
    (stock,) = found(spark, ROWS[:1], days=3)
    assert (stock["is_new_high"], stock["is_new_low"]) == (False, False), "one day of three is no history"


def test_days_and_the_last_day_are_parameters(spark):
    rows = found(spark, ROWS, days=2, as_of="2017-02-28")
    assert signals(rows) == ({"000001": 9.51}, {"000001": 9.42, "600547": 36.9, "600837": 15.64})
    assert signals(found(spark, ROWS, days=2, as_of="2017-03-05")) == signals(found(spark, ROWS, days=2))
    assert found(spark, ROWS, as_of="2017-01-01") == []


def test_only_the_last_trading_days_of_the_market_count(spark):
    texts = [row("1", "2017-02-01", 99, 1), *(row("1", f"2017-03-0{day}", 5 + day, 3 + day) for day in (1, 2, 3))]
    assert signals(found(spark, texts, days=3)) == ({"1": 8.0}, {})
    assert signals(found(spark, texts, days=4)) == ({}, {})


def test_a_stock_that_was_not_traded_on_the_last_day_is_in_the_first_stage_only(spark):
    rows = found(spark, [row("1", "2017-03-01", 5, 3), row("2", "2017-03-02", 4, 2)])
    assert {each["stock_code"] for each in rows} == {"'1'", "'2'"}
    assert signals(rows) == ({"2": 4.0}, {"2": 2.0})


def test_quotes_and_leading_zeros_belong_to_the_data_and_machines_get_neither(spark):
    rows = strategy(good(with_quotes(records(spark, ROWS[:1]))))
    assert rows.first()["stock_code"] == "'000001'"
    plain = without_quotes(rows).first()
    assert (plain["stock_code"], plain["stock_name"]) == ("000001", "平安银行")
    assert plain["high_price_date"] == "2017-03-01 00:00:00.000"


MALFORMED = [
    ("", "blank"),
    ("   ", "blank"),
    (None, "null value"),
    (b"'\xff','1','2017-03-01',1,1,1,1,1", "not UTF-8"),
    ("'x','000001'", "fewer than 8 fields"),
    ("'x','1','2017-03-01',1,1,1,1", "fewer than 8 fields"),
    ("'x','1','2017-03-01',1,1,1,1,", "fewer than 8 fields"),
    ("'x','1','2017-03-01',1,1,,1,1", "the highest price is not a number"),
    ("'x','1','2017-03-01',1,1,NaN,1,1", "the highest price is not a number"),
    ("'x','1','2017-03-01',1,1,1e999,1,1", "the highest price is not a number"),
    ("'x','1','2017-03-01',1,1,1,low,1", "the lowest price is not a number"),
    ("'x','1','2017-03-01',10.0,0,0,0,10.0", "the highest or lowest price is not positive"),
    ("'x','1','2017-03-01',1,1,1,-0.5,1", "the highest or lowest price is not positive"),
    ("'x','1','yesterday',1,1,1,1,1", "the trade date is not a date"),
    ("'x','1','2017-02-30 00:00:00.000',1,1,1,1,1", "the trade date is not a date"),
]


def test_malformed_rows_are_counted_by_their_reason(spark):
    rows = with_quotes(records(spark, [*(text for text, _ in MALFORMED), ROWS[0], ROWS[0] + ",ninth"]))
    reasons = values(rows.orderBy("offset").collect(), "reason")
    assert reasons == [*(reason for _, reason in MALFORMED), None, None]
    assert count_rejected(rows)["fewer than 8 fields"] == 3


def test_dead_letters_are_the_record_with_its_reason_and_whereabouts(spark):
    rows = with_quotes(records(spark, [ROWS[0], b"\xff,x"]))
    (letter,) = dead_letters(rows.where(F.col("reason").isNotNull())).collect()
    headers = {header["key"]: bytes(header["value"]).decode() for header in letter["headers"]}
    assert bytes(letter["value"]) == b"\xff,x"
    assert headers["error"] == "not UTF-8"
    assert (headers["topic"], headers["partition"], headers["offset"]) == ("t", "0", "1")
    assert headers["timestamp"] == "2017-05-01T12:00:01.000Z"


@pytest.mark.parametrize("value_format", ["json", "msgpack"])
def test_objects_are_quotes_as_well(spark, value_format):
    import json

    quotes = [
        dict(zip(COLUMNS, ("平安银行", "000001", "2017-03-01", 9.48, 9.49, high, 9.4, 9.49), strict=True))
        for high in (9.5, 9.55)
    ]
    write = msgpack.packb if value_format == "msgpack" else (lambda value: json.dumps(value).encode())
    rows = with_quotes(records(spark, [*map(write, quotes), write({"stock_code": "1"}), b"\xc1"]), value_format)
    reasons = values(rows.orderBy("offset").collect(), "reason")
    assert reasons == [None, None, "fewer than 8 fields", "not msgpack" if value_format == "msgpack" else "not UTF-8"]
    (stock,) = strategy(good(rows)).collect()
    assert (stock["stock_code"], stock["high_price"]) == ("000001", 9.55)


def test_prices_print_without_trailing_zeros():
    stock = Row(
        stock_code="c", stock_name="n", high_price=15.9, low_price=36.6, low_price_date="d", high_price_date="e",
        is_new_high=True, is_new_low=False,
    )  # fmt: skip
    info = "c: StockInfo [stockName=n, stockCode=c, highPrice=15.9, lowPrice=36.6, lowPriceDate=d, highPriceDate=e]"
    assert lines([stock]) == [info, "历史新高:", info, "历史新低:"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--as-of", "1st of March"], "'1st of March' is not a date such as 2017-03-01"),
        (["--days", "-3"], "--days"),
        (["--sink", "jdbc"], "--sink jdbc needs --jdbc-url"),
        (["--dayz", "3"], "did you mean --days?"),
    ],
)
def test_bad_arguments_are_named(words, message, capsys):
    with pytest.raises(SystemExit):
        parser().parse_args(words)
    assert message in capsys.readouterr().err
