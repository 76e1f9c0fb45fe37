"""The archive of a topic: each record once, in the partition of its hour, over several runs."""

from __future__ import annotations

import datetime

import pytest

import archive
from tests.spark.topic_content import read_topic
from tests.spark.topic_records import values

START_MS = int(datetime.datetime(2017, 5, 1, 23, 59, 58, tzinfo=datetime.UTC).timestamp() * 1000)


@pytest.fixture
def run(topics, tmp_path):
    """Returns a function that archives what a topic has now, with the options of the sink."""

    def job(topic, *words):
        common = ["--bootstrap-server", topics.bootstrap, "--topic", topic, "--trigger", "available-now"]
        archive.main([*common, "--output-path", f"{tmp_path}/archive", *words])

    return job


def fill(topics, topic, first, count):
    for number in range(first, first + count):
        headers = [("n", str(number).encode())]
        topics.fill(
            topic, [f"v{number}".encode()], partition=number % 2, timestamp=START_MS + number * 1000, headers=headers
        )


def test_text_has_a_line_for_each_value(spark, topics, run, tmp_path):
    topic, letters = topics.create(), topics.create()
    topics.fill(topic, ["高考".encode(), b"two\nlines", b"\xff", None, b"b"], timestamp=START_MS)
    run(topic, "--sink", "text", "--dead-letter-topic", letters)
    lines = spark.read.text(f"{tmp_path}/archive").orderBy("value").collect()
    assert values(lines, "value", "hour") == [("b", "2017-05-01-23"), ("高考", "2017-05-01-23")]
    reasons = [headers["error"] for _, _, headers in read_topic(topics.bootstrap, letters)]
    assert reasons == [b"a line break", b"not UTF-8", b"null value"]


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ([], "--sink parquet needs --output-path"),
        (["--output-path", "/x", "--sink", "parquet", "--sink", "text"], "only one of --sink parquet, text, delta"),
        (["--output-path", "/x", "--sink", "iceberg"], "--sink iceberg needs --output-table"),
        (["--output-path", "/x", "--sink", "iceberg", "--output-table", "a"], "the name is NAMESPACE.TABLE"),
    ],
)
def test_wrong_options_are_refused(capsys, words, error):
    with pytest.raises(SystemExit):
        archive.main(words)
    assert error in capsys.readouterr().err


def test_the_position_is_beside_the_files():
    arguments = archive.parser().parse_args(["--output-path", "/data/archive/"])
    assert (arguments.sink, arguments.checkpoint) == (["parquet"], "/data/archive/_checkpoint")
    arguments = archive.parser().parse_args(["--output-path", "/data", "--checkpoint", "/c"])
    assert arguments.checkpoint == "/c"
