"""Running tools: errors, exit codes, help, progress and statistics."""

from __future__ import annotations

import io
from dataclasses import replace
from importlib import import_module

import pytest

from kafkapy.__main__ import TOOLS
from kafkapy.errors import ApiError, ConfigError, Error
from kafkapy.tools.declaration import Example, Tool
from kafkapy.tools.option import Option, ToolError, UsageError
from kafkapy.tools.option_help import option_table
from kafkapy.tools.producer_stats import ProducerStats
from kafkapy.tools.progress import Progress
from kafkapy.tools.tool import run_tool


def make(run, **more) -> Tool:
    return Tool("trial", "Tries.", run, (Option("topic", "A topic.", "name"),), (Example("Try", "--topic a"),), **more)


def raiser(error: BaseException):
    def run(arguments):
        raise error

    return run


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ToolError("it went wrong"), "it went wrong"),
        (ApiError(Error.TOPIC_ALREADY_EXISTS, "Topic 'a' already exists."), "Topic 'a' already exists."),
        (ConfigError("Invalid value x"), "Invalid value x"),
        (FileNotFoundError(2, "No such file or directory", "f"), "No such file or directory: f"),
        (TimeoutError("Timed out\nafter 3 s"), "Timed out after 3 s"),
    ],
)
def test_an_error_is_one_line(capsys, error, line):
    assert run_tool(make(raiser(error)), ["--topic", "a"]) == 1
    assert capsys.readouterr().err == f"{line}\n"


def test_an_unexpected_error_names_the_variable_for_its_trace(capsys):
    assert run_tool(make(raiser(KeyError("x"))), ["--topic", "a"]) == 1
    assert capsys.readouterr().err == "KeyError: 'x' (for a trace, set KAFKAPY_TRACE=1)\n"


def test_an_interruption_is_exit_code_130():
    assert run_tool(make(raiser(KeyboardInterrupt())), ["--topic", "a"]) == 130


def test_the_exit_code_is_that_of_the_run(capsys):
    assert run_tool(make(lambda arguments: None), ["--topic", "a"]) == 0
    assert run_tool(make(lambda arguments: 3), ["--topic", "a"]) == 3
    assert run_tool(make(raiser(UsageError("no"))), ["--topic", "a"]) == 1
    assert capsys.readouterr().err == "no\nSee `kafkapy trial --help`.\n"
    assert run_tool(make(lambda arguments: None), []) == 1
    assert capsys.readouterr().err.startswith("Tries.\nOption ")


def test_an_unknown_flag_is_answered_with_the_nearest_one(capsys):
    assert run_tool(make(lambda arguments: None), ["--topi", "a"]) == 1
    assert capsys.readouterr().err == (
        "topi is not a recognized option\nDid you mean --topic? See `kafkapy trial --help`.\n"
    )


def test_the_name_of_kafkas_script_brings_the_table_of_options_as_in_kafka(capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["/usr/bin/kafka-trial.sh"])
    assert run_tool(make(lambda arguments: None), ["--foo"]) == 1
    assert capsys.readouterr().err.startswith("foo is not a recognized option\nOption ")


def test_minus_h_is_help_under_our_own_name_only(capsys, monkeypatch):
    trial = make(lambda arguments: None)
    assert run_tool(trial, ["--help"]) == 0
    page = capsys.readouterr().out
    for words in (["-h"], ["--topic", "a", "-h"]):
        assert run_tool(trial, words) == 0
        assert capsys.readouterr().out == page
    with_its_own = replace(trial, options=(Option("host", "The host.", "host", aliases=("h",)),))
    assert run_tool(with_its_own, ["-h", "a"]) == 0
    monkeypatch.setattr("sys.argv", ["/usr/bin/kafka-trial.sh"])
    assert run_tool(trial, ["-h"]) == 1
    assert capsys.readouterr().err.startswith("h is not a recognized option\nOption ")


@pytest.mark.parametrize("name", TOOLS)
def test_every_tool_prints_its_help_after_minus_h(name, capsys):
    module = import_module(TOOLS[name][0])
    pages = []
    for word in ("--help", "-h"):
        assert not module.main([word])
        pages.append(capsys.readouterr().out)
    assert pages[0] == pages[1] != ""


def test_the_table_of_flags_is_laid_out_as_joptsimples():
    options = (
        Option("topic", "The topic to write to, whose description is somewhat longer than a column.", "topic"),
        Option("batch-size", "Bytes.", "size", default=16384, is_required=True),
        Option("codec", "Which one.", "codec", argument_is_optional=True),
    )
    assert option_table(options).splitlines() == [
        "Option (* = required)          Description                                      ",
        "---------------------          -----------                                      ",
        "* --batch-size <String: size>  Bytes. (default: 16384)                          ",
        "--codec [String: codec]        Which one.                                       ",
        "--topic <String: topic>        The topic to write to, whose description is      ",
        "                                 somewhat longer than a column.                 ",
    ]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        raise OSError("no descriptor")


def test_progress_is_shown_on_terminals_only():
    stream = io.StringIO()
    with Progress(10, "records", stream) as progress:
        progress.advance(10)
    assert stream.getvalue() == ""
    terminal = Terminal()
    with Progress(10, "records", terminal) as progress:
        progress.advance(10)
    assert terminal.getvalue().endswith("\r\x1b[K")


def test_statistics_have_percentiles():
    stats = ProducerStats(4, 1_000_000)
    for latency in (1, 2, 3, 10):
        stats.record(latency, 1000, 0)
    assert stats.totals() | {"recordsPerSecond": 0, "megabytesPerSecond": 0} == {
        "records": 4,
        "recordsPerSecond": 0,
        "megabytesPerSecond": 0,
        "averageLatencyMs": 4.0,
        "maxLatencyMs": 10,
        "p50Ms": 3,
        "p95Ms": 10,
        "p99Ms": 10,
        "p99.9Ms": 10,
    }
    assert stats.total_line().endswith(
        "4.00 ms avg latency, 10.00 ms max latency, 3 ms 50th, 10 ms 95th, 10 ms 99th, 10 ms 99.9th."
    )
