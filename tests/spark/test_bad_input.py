"""Wrong values of topics: each has a reason and none fails a query; a lost registry is an error of one line."""

from __future__ import annotations

import json

import msgpack
import pytest
from pyspark.errors import PySparkException

import access_log
import hot_search
import stream_table
import word_count
from hot_search import with_terms
from kafkapy_jobs.arguments import RegistryFormat
from kafkapy_jobs.program import error_line
from kafkapy_jobs.values import with_text
from tests.spark.topic_content import read_topic
from tests.spark.topic_records import records, values

WRONG = {
    "text": [b"\xff\xfe", b"\xed\xa0\x80", "高考".encode()[:-1], None],
    "json": [
        b"", b" ", b"\xff", b"{", b"[1", b"{'a': 1}", b'{"term": NaN}', b'{"term": 01}', b"plain",
        b'{"term": "\x01"}', b"[" * 5000 + b"]" * 5000, b"\x00\x00\x00\x00\x01x", None,
    ],
    "msgpack": [
        b"", b"\xc1", b"\x81", b"\x93\x01", msgpack.packb({"term": b"\xff"}), msgpack.packb({1: "x"}),
        msgpack.packb(float("nan")), msgpack.packb(msgpack.ExtType(5, b"x")), msgpack.packb(msgpack.Timestamp(1)),
        b"\x91" * 5000 + b"\x01", msgpack.packb("a") + b"more", None,
    ],
}  # fmt: skip
# Spark gives a Python process ten seconds to start, which may be too few while other programs run.
TOO_BUSY_RUNS = 5
# Values that are valid in their format, but are not what a job expects.
ODD = {
    "json": [b"1", b"null", b"[]", b'{"term": null}', b'{"other": "x"}', b'"text"', b'{"term.x": 1}'],
    "msgpack": [msgpack.packb(each) for each in (1, None, [], {"term": None}, "text", 2**64 - 1)],
}


@pytest.mark.parametrize("form", WRONG)
def test_a_wrong_value_has_a_reason_and_fails_no_query(spark, form):
    wrong = WRONG[form]
    rows = with_text(records(spark, [*wrong, b"good" if form == "text" else _good(form)]), form)
    reasons = values(rows.orderBy("offset").collect(), "reason")
    assert [value for value, reason in zip(wrong, reasons, strict=False) if not reason] == []
    assert reasons[-1] is None


@pytest.mark.parametrize("form", ODD)
def test_a_value_of_another_form_has_no_term(spark, form):
    rows = with_terms(records(spark, [*ODD[form], _good(form)]), form).orderBy("offset").collect()
    assert values(rows, "reason") == [*["no term"] * len(ODD[form]), None]


def _good(form):
    return json.dumps({"term": "x"}).encode() if form == "json" else msgpack.packb({"term": "x"})


def test_a_registry_that_goes_away_ends_a_query_with_one_line(spark):
    rows = with_text(records(spark, [b"\0\0\0\0\1x"]), RegistryFormat("avro", "http://127.0.0.1:1"))
    with pytest.raises(PySparkException) as raised:
        rows.collect()
    line = error_line(raised.value)
    assert line is not None and "http://127.0.0.1:1" in line and "\n" not in line


@pytest.fixture
def run(spark, topics, tmp_path):
    """Returns a function that runs a job over a topic with one checkpoint, and returns the line of its error.

    The function has the name of the topic as its attribute `topic`.
    """
    topic = topics.create()
    topics.fill(topic, [b"1"], key=b"a")

    def main(job, *words):
        common = ("--bootstrap-server", topics.bootstrap, "--topic", topic, "--trigger", "available-now")
        for _ in range(TOO_BUSY_RUNS):
            try:
                job.main([*common, "--checkpoint", str(tmp_path / "checkpoint"), "--shuffle-partitions", "1", *words])
            except PySparkException as error:
                line = error_line(error) or str(error)
            else:
                return None
            if "the machine is too busy" not in line:
                break
        return line

    main.topic = topic
    return main


def test_a_checkpoint_of_another_job_is_one_line(run):
    assert run(word_count) is None
    line = run(access_log)
    assert line.startswith("The checkpoint belongs to word-count, and this is access-log")
    assert "--checkpoint" in line and "\n" not in line


@pytest.mark.parametrize(
    ("job", "words", "others"),
    [
        (hot_search, ("--window", "2 min"), ("--window", "3 min")),
        (stream_table, ("--as", "max"), ("--as", "max", "--window", "1 min")),
    ],
)
def test_a_checkpoint_of_the_same_job_with_other_options_is_one_line(run, job, words, others):
    """Without the check, the counts of windows of both lengths would be mixed."""
    assert run(job, *words) is None
    line = run(job, *others)
    mine, others_name = line.removeprefix("The checkpoint belongs to ").split(", which")[0].split(", and this is ")
    assert mine != others_name
    assert mine.split()[0] == others_name.split()[0]
    assert "--checkpoint" in line and "\n" not in line


def test_a_job_continues_with_the_same_options_in_other_words(run):
    assert run(hot_search, "--window", "2 min", "--top", "3") is None
    assert run(hot_search, "--window", "120 s", "--slide", "2m", "--top", "4", "--lateness", "5 min") is None


def test_a_checkpoint_of_other_options_is_one_line_for_files_too(run, tmp_path):
    """The names of owners belong to kafkapy's source; for other sources Spark compares the state's schema."""
    (tmp_path / "input").mkdir()
    (tmp_path / "input" / "first.txt").write_text("1\n")
    files = ("--source", "files", "--input", str(tmp_path / "input"))
    assert run(stream_table, "--as", "max", *files) is None
    (tmp_path / "input" / "second.txt").write_text("2\n")  # without it, there would be no micro-batch
    line = run(stream_table, "--as", "max", "--window", "1 min", *files)
    assert line.startswith("the checkpoint has the state of another job or of other options")
    assert "--checkpoint" in line and "\n" not in line


def test_a_job_continues_with_another_number_of_partitions_and_one_more_topic(run, topics):
    """The counts of the second topic are added to the state of the first run."""
    output, second = topics.create(), topics.create()
    topics.fill(second, [b"1", b"1"])
    sink = ("--sink", "topic", "--output-topic", output)
    assert run(word_count, *sink, "--shuffle-partitions", "2") is None
    assert run(word_count, *sink, "--shuffle-partitions", "5", "--topic", f"{run.topic},{second}") is None
    counts = [json.loads(value)["count"] for _, value, _ in read_topic(topics.bootstrap, output)]
    assert counts == [1, 3]


def test_a_checkpoint_of_another_topic_is_one_line(run, topics):
    assert run(word_count) is None
    line = run(word_count, "--topic", topics.create())
    assert f"{run.topic}-0 are gone" in line and "failOnDataLoss" in line and "\n" not in line
