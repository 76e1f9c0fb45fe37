"""Wrong values of topics: each has a reason and none fails a query; a lost registry is an error of one line."""

from __future__ import annotations

import json

import msgpack
import pytest
from pyspark.errors import PySparkException

import access_log
import word_count
from hot_search import with_terms
from kafkapy_jobs.arguments import RegistryFormat
from kafkapy_jobs.program import error_line
from kafkapy_jobs.values import with_text
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
    """Returns a function that runs a job over a topic with one checkpoint, and returns the line of its error."""
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

    return main


def test_a_checkpoint_of_another_job_is_one_line(run):
    assert run(word_count) is None
    line = run(access_log)
    assert line.startswith("The checkpoint belongs to word-count, and this is access-log")
    assert "--checkpoint" in line and "\n" not in line
