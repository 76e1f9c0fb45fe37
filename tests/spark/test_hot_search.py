"""The hot search: the two windows of a published example, more than ten terms, ties, late records, and bad values."""

from __future__ import annotations

import datetime
from itertools import pairwise

import msgpack
import pytest
from pyspark.sql import Row
from pyspark.sql import functions as F

from hot_search import RULE, first_of, lines, parser, ranking, top_terms, with_terms
from tests.spark.topic_records import SCHEMA, at, record, records, run_stream, values

FIVE_MINUTES = "5 minutes"
WINDOW_1 = [
    "高考", "国考", "国考", "高考作文", "上海高考作文", "高考", "中国大学排名", "清华大学", "北京大学",
    "计算机专业怎么样", "计算机专业怎么样", "武汉大学", "清华大学", "武汉大学",
]  # fmt: skip
WINDOW_2 = [
    "人民的名义", "人民的名义", "达康书记", "人民的名义", "高考后怎么放松", "kafka 实战", "kafka 实战",
    "kafka 入门与实践", "kafka 入门与实践", "kafka 入门与实践", "特斯拉", "Kafka",
    "kafka 入门与实践", "kafka 入门与实践",
]  # fmt: skip
TOP_1 = [
    ("高考", 2), ("计算机专业怎么样", 2), ("清华大学", 2), ("武汉大学", 2), ("国考", 2),
    ("高考作文", 1), ("北京大学", 1), ("中国大学排名", 1), ("上海高考作文", 1),
]  # fmt: skip
TOP_2 = [
    ("kafka 入门与实践", 5), ("人民的名义", 3), ("kafka 实战", 2),
    ("高考后怎么放松", 1), ("达康书记", 1), ("特斯拉", 1), ("Kafka", 1),
]  # fmt: skip


def top(rows, window=FIVE_MINUTES, slide=None, limit=10, normalise=("trim",), lateness="1 minute"):
    return top_terms(rows, window, slide or window, lateness, limit, normalise)


def ranked(found):
    ordered = found.orderBy("window_start", "rank").collect()
    assert all(row["rank"] == 1 or row["rank"] == before["rank"] + 1 for before, row in pairwise(ordered))
    return values(ordered, "term", "count")


def of_text(spark, texts):
    return with_terms(records(spark, texts))


@pytest.mark.parametrize(("texts", "expected"), [(WINDOW_1, TOP_1), (WINDOW_2, TOP_2)], ids=["first", "second"])
def test_the_documents_windows(spark, texts, expected):
    found = top(of_text(spark, texts))
    assert ranked(found) == expected
    assert {row["window_start"].timestamp() % 300 for row in found.collect()} == {0}, "aligned to the epoch"


def test_the_order_of_records_does_not_matter(spark):
    assert ranked(top(of_text(spark, sorted(WINDOW_1)))) == TOP_1


def test_the_most_frequent_ten_of_more_are_taken_and_not_the_ten_greatest_words(spark):
    """The published program has `sortByKey(false).take(10)`, which would omit `a` and `b`, the most frequent terms."""
    texts = [term for index, term in enumerate("abcdefghijkl") for _ in range(12 - index)]
    assert ranked(top(of_text(spark, texts))) == [(term, 12 - index) for index, term in enumerate("abcdefghij")]
    assert ranked(top(of_text(spark, texts), limit=3)) == [("a", 12), ("b", 11), ("c", 10)]


def test_ties_at_the_edge_go_by_term_descending(spark):
    texts = [f"term-{number:02d}" for number in range(15)]
    assert ranked(top(of_text(spark, texts), limit=4)) == [(f"term-{number}", 1) for number in (14, 13, 12, 11)]


def test_both_ways_to_the_first_entries_of_a_group_are_one(spark):
    """Spark before 4.2 lacks `max_by` with a limit, so `first_of` uses another function there."""
    rows = spark.createDataFrame([(count, f"t{count % 7}") for count in range(40)], "count long, term string")
    entry = F.struct("count", "term")
    bounded = rows.agg(first_of(entry, 5).alias("top")).first()["top"]
    gathered = rows.agg(F.slice(F.sort_array(F.collect_list(entry), asc=False), 1, 5).alias("top")).first()["top"]
    assert bounded == gathered
    assert [each["count"] for each in bounded] == [39, 38, 37, 36, 35]


def test_terms_keep_case_and_inner_spaces_and_lose_those_around(spark):
    texts = ["  Kafka", "Kafka\t ", "kafka", "kafka  实战", "kafka 实战", "   ", ""]
    assert ranked(top(of_text(spark, texts))) == [("Kafka", 2), ("kafka 实战", 1), ("kafka  实战", 1), ("kafka", 1)]


def test_normalisation_is_chosen(spark):
    texts = [" Kafka", "kafka", "kafka  实战", "Kafka 实战"]
    found = top(of_text(spark, texts), normalise=("trim", "spaces", "lower"))
    assert ranked(found) == [("kafka 实战", 2), ("kafka", 2)]


def test_a_sliding_window_counts_a_record_in_each_window_that_it_belongs_to(spark):
    rows = with_terms(spark.createDataFrame([record("a", 30), record("b", 90)], records(spark, ["x"]).schema))
    found = top(rows, window="2 minutes", slide="1 minute").orderBy("window_start", "rank").collect()
    # at 0:30: windows from -1:00 and 0:00; at 1:30: from 0:00 and 1:00
    assert values(found, "term", "count") == [("a", 1), ("b", 1), ("a", 1), ("b", 1)]
    lengths = {row["window_end"] - row["window_start"] for row in found}
    assert lengths == {datetime.timedelta(minutes=2)}


def test_what_is_no_text_is_set_aside_with_the_reason(spark):
    rows = of_text(spark, ["高考", b"\xff\xfe\x80", None, "高考".encode()[:-1], ""])
    assert values(rows.orderBy("offset").collect(), "reason") == [None, "not UTF-8", None, "not UTF-8", None]
    assert ranked(top(rows)) == [("高考", 1)]


def test_json_and_msgpack(spark):
    json = ['{"term": "高考"}', '{"other": 1}', "{not json", None, b"\xff"]
    rows = with_terms(records(spark, json), "json")
    assert values(rows.orderBy("offset").collect(), "reason") == [None, "no term", "not JSON", None, "not UTF-8"]
    assert ranked(top(rows)) == [("高考", 1)]
    packed = [msgpack.packb({"term": "高考"}), msgpack.packb(7), b"\xc1", None]
    rows = with_terms(records(spark, packed), "msgpack")
    assert values(rows.orderBy("offset").collect(), "reason") == [None, "no term", "not msgpack", None]
    assert ranked(top(rows)) == [("高考", 1)]


def test_windows_of_a_stream_close_once_behind_the_watermark(spark, tmp_path):
    """Late records count until the watermark has passed their window; an empty value advances time."""
    first = [record(text, index) for index, text in enumerate(WINDOW_1)]
    second = [record(text, 300 + index) for index, text in enumerate(WINDOW_2)]
    batches = [
        first,
        [*second, record("late and counted", 200)],
        [record("", 370)],  # time is 370, so the watermark is 310: the next batch closes the first window
        [record("特斯拉", 320)],
        [record("too late", 100)],
        [record(None, 800)],
    ]
    found = run_stream(spark, tmp_path, batches, lambda rows: top(with_terms(rows), limit=20))
    first_window, second_window = (sorted(rows, key=lambda row: row["rank"]) for rows in found)
    by_count = sorted([*TOP_1, ("late and counted", 1)], key=lambda entry: (entry[1], entry[0]), reverse=True)
    assert values(first_window, "term", "count") == by_count
    expected = [(term, 2 if term == "特斯拉" else count) for term, count in TOP_2]
    by_count = sorted(expected, key=lambda entry: (entry[1], entry[0]), reverse=True)
    assert values(second_window, "term", "count") == by_count


def test_output_is_the_documents():
    end = datetime.datetime(2017, 5, 1, 12, 5)
    rows = [
        Row(window_end=end, rank=2, term="国考", count=1),
        Row(window_end=end, rank=1, term="高考", count=2),
    ]
    assert RULE == "====================================="
    assert lines(rows) == [RULE, "时间:[2017-05-01 12:05:00],热搜词如下:", "高考:2", "国考:1", RULE]
    assert lines([]) == []
    assert lines(rows, "en")[1] == "Most searched until 2017-05-01 12:05:00:"
    assert ranking(rows, "zh") == ("时间:[2017-05-01 12:05:00],热搜词如下:", [("高考", 2), ("国考", 1)])


def test_the_example_data_has_fourteen_terms_in_each_window():
    assert (len(WINDOW_1), len(WINDOW_2)) == (14, 14)
    assert at(0).timestamp() % 300 == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--windwo", "5 min"], "there is no option '--windwo'; did you mean --window?"),
        (["--window", "1 min", "--slide", "2 min"], "--slide is longer than --window"),
        (["--window", "soon"], "'soon' is not a length of time"),
        (["--lateness", "-1 s"], "--lateness"),
        (["--time-zone", "Asia/Shanghia"], "there is no time zone 'Asia/Shanghia'; did you mean Asia/Shanghai?"),
        (["hot"], "'hot' belongs to no option"),
        (["--source", "files", "--input", "x", "--max-offsets", "3"], "--max-offsets is of topics"),
        (["--top", "0"], "'0' is not a whole number from 1"),
        (["--sink", "topic"], "--sink topic needs --output-topic"),
        (["--sink", "parquet", "--output-path", "x"], "--sink parquet needs --checkpoint"),
        (["--dead-letter-topic", "d"], "--dead-letter-topic needs --checkpoint"),
        (["--source", "files"], "--source files needs --input"),
    ],
)
def test_bad_arguments_are_named(words, message, capsys):
    with pytest.raises(SystemExit):
        parser().parse_args(words)
    assert message in capsys.readouterr().err


def test_windows_can_be_shifted(spark):
    rows = with_terms(spark.createDataFrame([record("a", seconds) for seconds in (3, 4, 13)], SCHEMA))
    found = top_terms(rows, "10 seconds", "10 seconds", "1 second", 3, window_start="4 seconds")
    ends = {row["window_end"].timestamp() - at(0).timestamp(): row["count"] for row in found.collect()}
    assert ends == {4: 1, 14: 2}
