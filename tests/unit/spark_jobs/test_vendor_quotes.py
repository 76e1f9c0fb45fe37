"""Quotes in vendors' files: encodings, headers, dates, codes, suspended stocks, and rows that cannot be used."""

from __future__ import annotations

import pytest

from kafkapy_jobs.vendor_quotes import parse_code, parse_day, parse_file, parse_number

ENGLISH = "date,code,name,open,high,low,close,volume\n2017-03-01,000001,平安银行,9.49,9.55,9.47,9.49,34650000\n"
CHINESE = "日期,股票代码,名称,收盘价,最高价,最低价,开盘价,前收盘,成交量(手)\n"
CHINESE += "2017/3/1,'000001,平安银行,9.49,9.55,9.47,9.49,9.48,346500\n"


def quotes(text, encoding="utf-8"):
    return list(parse_file(text.encode(encoding) if isinstance(text, str) else text))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "gbk", "gb18030"])
@pytest.mark.parametrize("text", [ENGLISH, CHINESE])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_encodings_and_headers(text, encoding, line_end):
    (quote,) = quotes(text.replace("\n", line_end), encoding)
    assert (quote.stock_code, quote.stock_name, quote.trade_day) == ("000001", "平安银行", "2017-03-01")
    assert (quote.open, quote.high, quote.low, quote.close) == (9.49, 9.55, 9.47, 9.49)
    assert quote.is_traded and quote.reason == "" and "平安银行" in quote.line


def test_rows_without_a_header_are_the_topics_quotes():
    rows = quotes("'海通证券','600837','2017-03-01 00:00:00.000',15.67,15.70,15.72,15.60,15.61\n\n,\n")
    assert [(row.stock_code, row.stock_name, row.trade_day, row.low) for row in rows] == [
        ("600837", "海通证券", "2017-03-01", 15.6)
    ]
    (row,) = quotes("'x','600837','20170301',1,1,2,1,1,5000\n")
    assert row.volume == 5000 and row.trade_day == "2017-03-01"


def test_other_delimiters_and_quoted_fields():
    (row,) = quotes('日期;代码;最高;最低;收盘\n2017-03-01;600837;"1,015.72";15.6;15.61\n')
    assert row.high == 1015.72
    (row,) = quotes("date\tcode\thigh\tlow\tclose\n20170301\tAAPL\t2\t1\t1.5\n")
    assert (row.stock_code, row.volume, row.is_traded) == ("AAPL", None, True)


@pytest.mark.parametrize(
    "prices",
    ["0,0,0,9.48,0", "9.48,9.48,9.48,9.48,0", "--,--,--,9.48,", ",,,,", "None,None,None,9.48,0", "0.0,0.0,0.0,0.0,0.0"],
)
def test_a_suspended_stock_is_a_good_row_without_trade(prices):
    (row,) = quotes(f"date,code,open,high,low,close,volume\n2017-03-01,1,{prices}\n")
    assert row.reason == "" and not row.is_traded and row.stock_code == "000001"


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("2017-02-30,1,2,1,1", "the trade date is not a date"),
        ("soon,1,2,1,1", "the trade date is not a date"),
        ("2017-03-01,,2,1,1", "no stock code"),
        ("2017-03-01,1,x,1,1", "high is not a number"),
        ("2017-03-01,1,1e999,1,1", "high is not a number"),
        ("2017-03-01,1,2,１,1", "low is not a number"),
        ("2017-03-01,1,1,2,1", "the lowest price is above the highest"),
        ("2017-03-01,1,1", "fewer than 5 fields"),
    ],
)
def test_rows_that_cannot_be_used(row, reason):
    assert [each.reason for each in quotes(f"date,code,high,low,close\n{row}\n2017-03-02,2,2,1,1\n")] == [reason, ""]


def test_files_that_cannot_be_used():
    assert [each.reason for each in quotes(b"\xff\xff\x80\x00\x80")] == ["not UTF-8, UTF-16 or GBK"]
    assert [each.reason for each in quotes("date,code,open\n")] == [
        "the header has no column high or high_price or 最高 or 最高价"
    ]
    assert quotes(b"") == quotes(b"\xef\xbb\xbf") == quotes(b"\n\n") == []


def test_codes_days_and_numbers():
    texts = ["000001.SZ", "sh600547", "1", "600547.ss", "BRK.B", "sz.000001"]
    assert [parse_code(text) for text in texts] == ["000001", "600547", "000001", "600547", "BRK.B", "000001"]
    days = ["2017-03-01 00:00:00.000", "2017/3/1", "20170301", "2017.3.1", "2017-0301", "201731", "170301", ""]
    assert [parse_day(text) for text in days] == ["2017-03-01"] * 4 + [None] * 4
    assert [parse_number(text) for text in ("1,234.5", "1e3", "nan", "1_0", "５", "")] == [1234.5, 1000, *[None] * 4]
