"""The back-test: vendors' files in several encodings and a topic, rules as data, and results in every place."""

from __future__ import annotations

import json
import random

import pytest

import stock_backtest
from kafkapy_jobs.stock_rules import EVERY_DAY, compile_rule, signals
from kafkapy_jobs.vendor_source import with_quotes
from stock_backtest import backtest_signals, sums, with_returns
from tests.spark.topic_content import read_topic
from tests.spark.topic_records import records, values

DAYS = [f"2017-03-{day:02d}" for day in (1, 2, 3, 6, 7, 8, 9, 10, 13, 14)]
RULES = {"high-3": "high >= highest(high, 3)", "burst": "volume > 1.5 * average(volume, 4)"}


def market(seed=4):
    """Returns rows (code, day, open, high, low, close, volume) of three stocks; one is suspended on some days."""
    chance = random.Random(seed)
    rows = []
    for code in ("000001", "600547", "600837"):
        for day in DAYS:
            prices = sorted(round(chance.uniform(9, 12), 2) for _ in range(4))
            row = (code, day, prices[1], prices[3], prices[0], prices[2], chance.randrange(100, 900))
            rows.append((code, day, 0, 0, 0, prices[2], 0) if code == "600547" and day in DAYS[3:6] else row)
    return rows


def as_text(row):
    code, day, opened, high, low, close, volume = row
    return f"'x','{code}','{day} 00:00:00.000',1.0,{opened},{high},{low},{close},{volume}"


def as_csv(rows):
    head = "日期,代码,名称,开盘价,最高价,最低价,收盘价,成交量(手)\n"
    return head + "".join(f"{day},{code},平安,{','.join(map(str, numbers))}\n" for code, day, *numbers in rows)


def expected(rules, horizons, start, end):
    compiled = {name: compile_rule(rule) for name, rule in rules.items()}
    found = set()
    for code in ("000001", "600547", "600837"):
        own = {
            day: {"open": opened, "high": high, "low": low, "close": close, "volume": volume}
            for each, day, opened, high, low, close, volume in market()
            if each == code and high
        }
        for each in signals(own, compiled, horizons, start, end, DAYS):
            if each.rule != EVERY_DAY:
                gains = [gain if known else None for gain, known in zip(each.gains, each.known, strict=True)]
                found.add((code, each.rule, each.trade_day, each.close, *gains))
    return found


def test_signals_of_a_topic_are_those_of_the_rules(spark):
    rows = with_quotes(records(spark, list(map(as_text, market()))), "text")
    quotes = rows.where("reason is null and is_traded")
    assert quotes.count() == 27
    found = backtest_signals(quotes, RULES, [1, 3], DAYS[2], DAYS[8], DAYS).persist()
    columns = ("stock_code", "rule", "trade_day", "close", "return_1", "return_3")
    assert set(values(with_returns(found, [1, 3]).collect(), *columns)) == expected(RULES, [1, 3], DAYS[2], DAYS[8])
    totals = {(row["rule"], row["position"]): row for row in sums(found).collect()}
    assert totals[EVERY_DAY, 0]["days"] == 18 and totals[EVERY_DAY, 0]["known"] == 18
    assert {rule for rule, _ in totals} == {*RULES, EVERY_DAY}


def test_json_values_and_rows_that_cannot_be_used(spark):
    good = {"stock_code": "1", "trade_date": "2017-03-01", "high": 2, "low": 1, "close": 1.5, "note": {}}
    texts = [json.dumps(good), json.dumps({**good, "high": "x"}), "[1]", "{", None]
    found = with_quotes(records(spark, texts), "json").orderBy("offset").collect()
    assert values(found, "reason") == [None, "high is not a number", "not a JSON object", "not JSON", "null value"]
    assert values(found[:1], "stock_code", "high", "volume", "is_traded") == [("000001", 2.0, None, True)]
    texts = ["", "date,code,high", b"\xff\xff\xff"]
    found = with_quotes(records(spark, texts), "text").orderBy("offset").collect()
    assert values(found, "reason") == ["blank", "a header", "not UTF-8, UTF-16 or GBK"]


@pytest.fixture
def files(tmp_path):
    """Writes the market in a file for each stock, each in another encoding; returns their folder."""
    folder = tmp_path / "quotes"
    folder.mkdir()
    rows = market()
    for index, encoding in enumerate(("gbk", "utf-8-sig", "utf-16")):
        text = as_csv(rows[index * len(DAYS) : (index + 1) * len(DAYS)])
        (folder / f"{encoding}.csv").write_bytes(
            (text + ("2017-03-15,,1,1,1,1,1,1\n" if not index else "")).encode(encoding)
        )
    return folder


def test_files_of_vendors_become_a_table_a_topic_and_a_report(spark, topics, files, tmp_path, capfd):
    output, letters = topics.create(), topics.create()
    (tmp_path / "rules.toml").write_text(f'[rules]\nburst = "{RULES["burst"]}"\n')
    stock_backtest.main([
        "--bootstrap-server", topics.bootstrap, "--source", "files", "--input", str(files), "--days", "3",
        "--rules", f"{tmp_path}/rules.toml", "--rule", "up=close > previous(close)", "--from", DAYS[2], "--to", DAYS[8],
        "--horizons", "1,3", "--report", f"{tmp_path}/report.html", "--sink", "console", "--sink", "topic",
        "--output-topic", output, "--sink", "parquet", "--output-path", f"{tmp_path}/signals",
        "--dead-letter-topic", letters,
    ])  # fmt: skip
    out, err = capfd.readouterr()
    lines = out.splitlines()
    assert lines[0] == f"{DAYS[2]} to {DAYS[8]}: 18 quotes of 3 stocks"
    assert [line.split("  ")[0] for line in lines[1:7]] == ["rule", "high-3", "low-3", "burst", "up", EVERY_DAY]
    assert lines[7] == f"signals of {DAYS[8]}:"
    assert "1 rows left out (no stock code: 1)" in err
    rules = {**RULES, "low-3": "low <= lowest(low, 3)", "up": "close > previous(close)"}
    rows = expected(rules, [1, 3], DAYS[2], DAYS[8])
    columns = ("stock_code", "rule", "trade_day", "close", "return_1", "return_3")
    assert set(values(spark.read.parquet(f"{tmp_path}/signals").collect(), *columns)) == rows
    written = [json.loads(value) for _, value, _ in read_topic(topics.bootstrap, output)]
    assert {tuple(row.get(name) for name in columns) for row in written} == rows
    ((_, value, headers),) = read_topic(topics.bootstrap, letters)
    assert value == b"2017-03-15,,1,1,1,1,1,1" and headers["error"] == b"no stock code"
    page = (tmp_path / "report.html").read_text("utf-8")
    assert page.count("<svg") == 2 and "平安" in page and "volume &gt; 1.5 * average(volume, 4)" in page


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["--rule", "x=close"], "rule x: 'close' is a number and not a condition"),
        (["--rules", "none.toml"], "--rules none.toml: "),
        (["--days", "0"], "is not a whole number from 1"),
        (["--from", "March"], "'March' is not a date"),
    ],
)
def test_wrong_rules_end_the_program_before_a_session_starts(capsys, words, error):
    with pytest.raises(SystemExit):
        stock_backtest.main(words)
    assert error in capsys.readouterr().err


def test_a_range_without_quotes_is_one_line(spark, topics, files, capfd):
    words = ["--source", "files", "--input", str(files), "--from", "2018-01-01"]
    with pytest.raises(SystemExit):
        stock_backtest.main(words)
    assert "there is no quote of a traded stock between 2018-01-01 and the last day" in capfd.readouterr().err
