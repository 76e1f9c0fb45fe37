"""The options of the jobs: types, contradictions, and the messages for mistakes."""

from __future__ import annotations

import argparse
import re

import pytest

from kafkapy_jobs.arguments import (
    JobParser,
    add_batch,
    add_stream,
    add_windows,
    checkpoint_owner,
    count,
    duration,
    fail,
    key_value,
    length_or_zero,
    milliseconds,
    time_zone,
    trigger,
)


def stream(*words, **settings):
    parser = JobParser("A job.")
    add_windows(parser, "5 min", "1 min")
    return add_stream(parser, "words", **settings).parse_args(words)


def batch(*words):
    return add_batch(JobParser("A job."), "quotes").parse_args(words)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5 minutes", 300_000), ("1 min", 60_000), ("2m", 120_000), ("10s", 10_000), ("1 Second", 1000),
        ("500 ms", 500), ("1 millisecond", 1), ("3 h", 10_800_000), ("2 days", 172_800_000),
    ],
)  # fmt: skip
def test_lengths_of_time_have_units(text, expected):
    assert milliseconds(text) == expected and duration(text) == f"{expected} milliseconds"


@pytest.mark.parametrize("text", ["0 s", "5", "-1 s", "1.5 s", "soon", ""])
def test_other_lengths_are_refused(text):
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        milliseconds(text)
    with pytest.raises(argparse.ArgumentTypeError, match="is not a length of time"):
        duration(text)


def test_some_options_may_be_zero_and_a_trigger_may_be_a_word():
    assert length_or_zero(" 0 min") == length_or_zero("0") == "0 milliseconds"
    assert length_or_zero("1 s") == "1000 milliseconds"
    assert trigger("available-now") == "available-now" and trigger("2 s") == "2000 milliseconds"


@pytest.mark.parametrize(
    ("parse", "text"), [(count, "0"), (count, "x"), (count, "²"), (key_value, "=v"), (key_value, "k"), (time_zone, "X")]
)
def test_options_of_other_types_are_refused(parse, text):
    with pytest.raises(argparse.ArgumentTypeError):
        parse(text)


def test_options_are_parsed_by_their_type():
    assert count("1") == 1 and key_value("k=v=w") == ("k", "v=w") and time_zone("Asia/Shanghai") == "Asia/Shanghai"
    with pytest.raises(argparse.ArgumentTypeError, match=r"did you mean Asia/Shanghai\?"):
        time_zone("Asia/Shangai")


def test_the_defaults_of_a_stream():
    given = stream()
    assert (given.source, given.bootstrap_server, given.topic) == ("kafkapy", "localhost:9092", "words")
    assert (given.starting_offsets, given.value_format, given.trigger) == ("earliest", "text", "1000 milliseconds")
    assert (given.window, given.slide, given.lateness) == (
        "300000 milliseconds", "300000 milliseconds", "60000 milliseconds",
    )  # fmt: skip
    assert given.window_start == "0 milliseconds" and given.sink == ["console"] and not given.verbose
    assert given.shuffle_partitions == 4 and given.time_zone is None and given.delivery == "exactly-once"


def test_the_defaults_of_a_batch():
    given = batch()
    assert (given.ending_offsets, given.save_mode, given.sink) == ("latest", "overwrite", ["console"])
    assert "checkpoint" not in vars(given) and "trigger" not in vars(given)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--slid", "1 s"], "there is no option '--slid'; did you mean --slide?"),
        (["--slid=1 s"], "there is no option '--slid=1 s'; did you mean --slide?"),
        (["word"], "'word' belongs to no option"),
        (["--source", "files"], "--source files needs --input"),
        (["--source", "files", "--input", "x", "--max-offsets", "3"], "--max-offsets is of topics"),
        (["--slide", "6 min"], "--slide is longer than --window"),
        (["--slide", "1 min", "--window-start", "1 min"], "--window-start is not shorter than --slide"),
        (["--sink", "topic", "--checkpoint", "c"], "--sink topic needs --output-topic"),
        (["--sink", "topic", "--output-topic", "t"], "--sink topic needs --checkpoint"),
        (["--sink", "parquet", "--checkpoint", "c"], "--sink parquet needs --output-path"),
        (["--dead-letter-topic", "t"], "--dead-letter-topic needs --checkpoint"),
        (["--topic", "a", "--topic-pattern", "b"], "not allowed with argument"),
    ],
)
def test_mistakes_are_named(capsys, words, message):
    with pytest.raises(SystemExit):
        stream(*words)
    assert message in capsys.readouterr().err


def test_what_goes_together_is_accepted():
    given = stream("--slide", "1 min", "--window-start", "59 s", "--sink", "console", "--sink", "console")
    assert given.sink == ["console"] and given.window_start == "59000 milliseconds"
    files = ("--source", "files", "--input", "x", "--dead-letter-topic", "t", "--sink", "topic", "--output-topic", "o")
    assert stream(*files, files_at_once=True).checkpoint is None
    assert batch("--sink", "parquet", "--output-path", "p", "--dead-letter-topic", "t").sink == ["parquet"]


def test_rows_that_later_ones_replace_have_no_files(capsys):
    with pytest.raises(SystemExit):
        stream("--sink", "parquet", is_final=False)
    assert "invalid choice: 'parquet'" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        batch("--sink", "jdbc", "--jdbc-url", "u")
    assert "--sink jdbc needs --jdbc-table" in capsys.readouterr().err


def test_a_job_with_one_format_has_no_option_for_it(capsys):
    assert "value_format" not in vars(stream(value_formats=()))
    assert stream(value_formats=("json", "msgpack")).value_format == "json"


def test_a_failure_is_one_line_and_the_status_1(capsys):
    with pytest.raises(SystemExit) as ended:
        fail("the cause")
    assert ended.value.code == 1 and capsys.readouterr() == ("", "the cause\n")


def test_a_checkpoint_belongs_to_a_job_and_the_options_of_its_state():
    windows = "--window '300000 milliseconds' --slide '60000 milliseconds' --window-start '0 milliseconds'"
    arguments = stream("--slide", "1 min", "--max-offsets", "5", "--lateness", "9 s")
    assert checkpoint_owner(arguments) == "", "a program without a job's name"
    arguments.job_name = "trends"
    assert checkpoint_owner(arguments) == f"trends {windows}"
    parser = JobParser("A job.")
    parser.add_argument("--tenant", dest="by")
    parser.fix_in_checkpoint("--tenant")
    add_windows(parser, "1 min", "0 s", slides=False)
    add_stream(parser, "words")
    for words, own in (((), ""), (("--tenant", "my key"), " --tenant 'my key'")):
        arguments = parser.parse_args(words)
        arguments.job_name = "other"
        windows = "--window '60000 milliseconds' --window-start '0 milliseconds'"
        assert checkpoint_owner(arguments) == f"other{own} {windows}"


def test_a_checkpoint_of_a_batch_or_a_job_without_such_options_belongs_to_the_job():
    arguments = batch()
    arguments.job_name = "strategy"
    assert checkpoint_owner(arguments) == "strategy"
