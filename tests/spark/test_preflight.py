"""The checks before a session starts, against a broker and without a JVM."""

from __future__ import annotations

import json

import pytest

import hot_search
import stock_strategy
import stream_joins
from kafkapy_jobs.preflight import check_job


@pytest.fixture
def check(topics, capsys):
    """Returns a function that checks a job's options; it returns what was printed on standard error, and the status."""

    def run(job, *words):
        arguments = job.parser().parse_args(["--bootstrap-server", topics.bootstrap, *words])
        status = 0
        try:
            check_job("job", arguments)
        except SystemExit as ended:
            status = ended.code
        return capsys.readouterr().err, status

    return run


def test_a_job_says_what_it_reads_and_where_results_go(topics, check):
    topic, other = topics.create(3), topics.create()
    topics.fill(topic, [b"a", b"b"], partition=1)
    server = topics.bootstrap
    line = f"job: reads {topic} (3 partitions, 2 records now) on {server}; results go to standard output\n"
    assert check(hot_search, "--topic", topic) == (line, 0)
    sinks = ["--sink", "topic", "--output-topic", "top", "--sink", "parquet", "--output-path", "/tmp/p"]
    more = ["--checkpoint", "/tmp/c", "--dead-letter-topic", "letters", "--starting-offsets", "latest"]
    line = (
        f"job: reads {topic},{other} (4 partitions, 0 records now) on {server}; results go to topic top, /tmp/p; "
        "unreadable values to topic letters; the position is in /tmp/c\n"
    )
    assert check(hot_search, "--topic", f"{topic},{other}", *sinks, *more) == (line, 0)
    found, status = check(stream_joins, "--topic", topic, "--right-topic", other)
    assert status == 0 and f"reads {topic} (3 partitions, 2 records now) and {other} (1 partition, 0 rec" in found
    ends = json.dumps({topic: {"0": 0, "1": 1, "2": 0}})
    found, status = check(stock_strategy, "--topic", topic, "--ending-offsets", ends)
    assert status == 0 and "(3 partitions, 1 record now)" in found


def test_a_pattern_may_match_nothing_yet(topics, check):
    found, status = check(hot_search, "--topic-pattern", "nothing-.*")
    assert status == 0 and "reads topics nothing-.* (0 partitions, 0 records now)" in found


def test_a_misspelt_topic_is_one_line_with_the_nearest_name(topics, check):
    topics.create(name="searched-words")
    found, status = check(hot_search, "--topic", "serched-words")
    assert status == 1
    assert found == (
        f"--topic serched-words: there is no such topic on {topics.bootstrap}; did you mean searched-words?\n"
    )
    found, status = check(hot_search, "--topic", "%%%", "--starting-offsets", "latest")
    assert (status, found.count("\n")) == (1, 1)


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["--source-option", "startingOfsets=earliest"], "Unknown option 'startingOfsets'"),
        (["--source-option", "kafka.fetch.min.byte=1"], "did you mean 'kafka.fetch.min.bytes'?"),
        (["--starting-offsets", "{"], "startingOffsets"),
        (["--starting-offsets", '{"x": {"0": 1}}'], "you must specify all TopicPartitions"),
    ],
)
def test_a_wrong_option_of_the_source_is_one_line(topics, check, words, error):
    found, status = check(hot_search, "--topic", topics.create(), *words)
    assert (status, found.count("\n")) == (1, 1) and error in found


def test_files_have_to_exist(check, tmp_path):
    found, status = check(hot_search, "--source", "files", "--input", f"{tmp_path}/none.txt")
    assert (found, status) == (f"--input {tmp_path}/none.txt: there is no such file or folder\n", 1)
    for path in (str(tmp_path), f"{tmp_path}/*.txt", "hdfs://name/quotes"):
        found, status = check(hot_search, "--source", "files", "--input", path)
        assert (found, status) == (f"job: reads {path}; results go to standard output\n", 0)


def test_passwords_of_a_database_are_not_printed(topics, check):
    url = "jdbc:postgresql://h/stocks?password=secret"
    words = ["--sink", "jdbc", "--jdbc-url", url, "--jdbc-table", "t"]
    found, status = check(stock_strategy, "--topic", topics.create(), *words)
    assert status == 0 and "table t of jdbc:postgresql://h/stocks\n" in found and "secret" not in found
