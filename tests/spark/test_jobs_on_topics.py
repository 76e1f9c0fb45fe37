"""The jobs from end to end: from a topic of a broker to console, topic, Parquet and dead letters."""

from __future__ import annotations

import json

import pytest

import hot_search
import stock_strategy
import word_count
from kafkapy.client import Producer
from kafkapy.errors import ApiError
from kafkapy_jobs.source import read_batch
from kafkapy_jobs.transactional_topic import QUERY_ID, TransactionalTopic
from tests.spark.test_hot_search import TOP_1, WINDOW_1, WINDOW_2
from tests.spark.test_stock_strategy import ROWS, STAGE_1
from tests.spark.topic_content import read_topic
from tests.spark.topic_records import START

START_MS = int(START.timestamp() * 1000)


@pytest.fixture
def words(topics):
    """Returns a function that makes the options of a job for a topic."""

    def options(topic, *more):
        return ["--bootstrap-server", topics.bootstrap, "--topic", topic, "--shuffle-partitions", "2", *more]

    return options


def test_hot_search_writes_each_window_once(spark, topics, words, tmp_path):
    """There are three partitions; a second run continues where the first one ended, and repeats nothing."""
    topic, output, letters, figures = topics.create(3), topics.create(), topics.create(), topics.create()

    def fill(texts, start_s):
        with Producer(bootstrap_servers=topics.bootstrap) as producer:
            for index, text in enumerate(texts):
                value = text.encode() if isinstance(text, str) else text
                producer.send(topic, value, partition=index % 3, timestamp=START_MS + (start_s + index) * 1000)

    def run(*more):
        paths = ["--checkpoint", f"{tmp_path}/checkpoint", "--trigger", "available-now"]
        paths += ["--progress-topic", figures, "--http", "127.0.0.1:0"]
        hot_search.main(words(topic, "--sink", "topic", "--output-topic", output, *paths, *more))

    fill([*WINDOW_1, b"\xff\xfe"], 0)
    run()
    fill(WINDOW_2, 300)
    fill([None], 600)
    run("--dead-letter-topic", letters)
    rows = [json.loads(value) for _, value, _ in read_topic(topics.bootstrap, output)]
    assert [(row["term"], row["count"]) for row in sorted(rows, key=lambda row: row["rank"])] == TOP_1
    ((_, value, headers),) = read_topic(topics.bootstrap, letters)
    assert (value, headers["error"]) == (b"\xff\xfe", b"not UTF-8")
    progress = [json.loads(value) for key, value, _ in read_topic(topics.bootstrap, figures) if key == b"topic"]
    assert sum(each["input_records"] for each in progress) == len(WINDOW_1) + 1 + len(WINDOW_2) + 1
    assert progress[-1]["lag_records"] == 0 and progress[-1]["batch_seconds"] > 0


def test_a_micro_batch_that_runs_again_is_written_once(spark, topics):
    """The batch is repeated by the same driver, by a successor, and by another one after an empty batch."""
    output = topics.create(2)
    context = spark.sparkContext
    context.setLocalProperty(QUERY_ID, "query-of-this-test")

    def rows(*texts):
        return spark.createDataFrame([(None, text.encode()) for text in texts], "key binary, value binary")

    def driver():
        return TransactionalTopic(output, {"bootstrap.servers": topics.bootstrap})

    first = driver()
    first(rows("a", "b"), 0)
    first(rows("a", "b"), 0)
    second = driver()
    second(rows("a", "b"), 0)
    second(rows(), 1)
    second(rows("c"), 2)
    driver()(rows("c"), 2)
    with pytest.raises(ApiError):  # a successor has fenced the first driver
        first(rows("d"), 3)
    context.setLocalProperty(QUERY_ID, None)
    assert sorted(value for _, value, _ in read_topic(topics.bootstrap, output)) == [b"a", b"b", b"c"]


def test_stock_strategy_reads_a_topic_and_writes_everywhere(spark, topics, words, tmp_path, capfd):
    topic, output, letters = topics.create(2), topics.create(), topics.create()
    topics.fill(topic, [each.encode() for each in ROWS], partition=None)
    topics.fill(topic, [b"", b"'x','000001'", b"\xff"], partition=0)
    sinks = ["--sink", "console", "--sink", "topic", "--sink", "parquet"]
    targets = ["--output-topic", output, "--output-path", f"{tmp_path}/stocks", "--dead-letter-topic", letters]
    stock_strategy.main(words(topic, "--days", "3", *sinks, *targets))
    out, err = capfd.readouterr()
    printed = out.splitlines()
    assert set(printed[:3]) == STAGE_1
    assert printed[3] == "历史新高:" and printed[5] == "历史新低:"
    assert {line.split(":")[0] for line in printed[6:]} == {"'600547'", "'600837'"}
    assert "3 rows left out (blank: 1, fewer than 8 fields: 1, not UTF-8: 1)" in err
    reasons = sorted(headers["error"] for _, _, headers in read_topic(topics.bootstrap, letters))
    assert reasons == [b"blank", b"fewer than 8 fields", b"not UTF-8"]
    stocks = {key: json.loads(value) for key, value, _ in read_topic(topics.bootstrap, output)}
    assert {key: stock["is_new_high"] for key, stock in stocks.items()} == {
        b"000001": True, b"600547": False, b"600837": False,
    }  # fmt: skip
    assert spark.read.parquet(f"{tmp_path}/stocks").where("is_new_low").count() == 2


def test_stock_strategy_reads_files(spark, topics, words, tmp_path, capfd):
    (tmp_path / "stock20170301.txt").write_text("\n".join(ROWS) + "\n\n")
    stock_strategy.main(["--source", "files", "--input", str(tmp_path / "stock20170301.txt")])
    assert set(capfd.readouterr().out.splitlines()[:3]) == STAGE_1


def test_words_of_files_are_a_batch_with_sinks_and_dead_letters(topics, tmp_path, capfd):
    output, letters = topics.create(), topics.create()
    (tmp_path / "wordcount.txt").write_bytes("hello kafka\nhello 世界\n".encode() + b"\xff\n")
    words = ["--bootstrap-server", topics.bootstrap, "--source", "files", "--input", str(tmp_path / "wordcount.txt")]
    sinks = ["--sink", "console", "--sink", "topic", "--output-topic", output, "--dead-letter-topic", letters]
    word_count.main([*words, *sinks])
    out, err = capfd.readouterr()
    assert out.splitlines() == ["hello: 2", "kafka: 1", "世界: 1"]
    assert "1 rows left out (not UTF-8: 1)" in err
    counts = {key: json.loads(value)["count"] for key, value, _ in read_topic(topics.bootstrap, output)}
    assert counts == {b"hello": 2, b"kafka": 1, "世界".encode(): 1}
    ((_, value, headers),) = read_topic(topics.bootstrap, letters)
    assert (value, headers["error"]) == (b"\xff", b"not UTF-8")


def test_several_topics_and_a_pattern_are_read(spark, topics):
    """The documents have the forms `topic1,topic2` and `topic.*`, with keys and values as text."""
    for name in ("forms1", "forms2"):
        topics.create(name=name)
        topics.fill(name, [f"value of {name}".encode()], key=b"key")
    for chosen in (["--topic", "forms1,forms2"], ["--topic-pattern", "forms.*"]):
        arguments = stock_strategy.parser().parse_args(["--bootstrap-server", topics.bootstrap, *chosen])
        rows = read_batch(spark, arguments).selectExpr("cast(key as string)", "cast(value as string)").collect()
        assert sorted(map(tuple, rows)) == [("key", "value of forms1"), ("key", "value of forms2")]
