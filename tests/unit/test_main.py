"""The program's first word: tools, versions, help and errors."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import pytest

from kafkapy import __version__
from kafkapy.__main__ import CLASSES, TOOLS, command_line, main
from tests.style.sources import ROOT


@pytest.mark.parametrize("word", ["--version", "-V", "-v", "version"])
def test_the_version_of_a_source_tree_names_the_tree(word: str, capsys: pytest.CaptureFixture[str]):
    assert main([word]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"kafkapy {__version__} (source tree {ROOT})",
        f"Python {platform.python_version()}, {platform.system()} {platform.machine()}; "
        "core: compiled in the source tree",
    ]


@pytest.mark.parametrize("redirections", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
def test_closed_streams_are_replaced(redirections: str, tmp_path: Path):
    """The file that the program opens later must not get the descriptor of a closed stream."""
    opened = tmp_path / "opened"
    program = (
        "import sys; from kafkapy.__main__ import main; code = main(['--version']); "
        f"file = open({str(opened)!r}, 'w'); print(code, file.fileno() > 2, file=file)"
    )
    command = ["sh", "-c", f'"$0" -c "$1" {redirections}', sys.executable, program]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr, opened.read_text()) == (0, "", "0 True\n")


@pytest.mark.parametrize(
    ("word", "suggestion"),
    [("topcs", "; did you mean topics?"), ("kafka-topcs.sh", "; did you mean topics?"), ("xyzzy", "")],
)
def test_an_unknown_tool_is_answered_in_two_lines(word: str, suggestion: str, capsys: pytest.CaptureFixture[str]):
    assert main([word]) == 1
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", f"kafkapy: unknown tool {word!r}{suggestion}\nSee `kafkapy --help`.\n")


def test_an_unknown_class_is_named_with_the_nearest(capsys: pytest.CaptureFixture[str]):
    assert main(["run-class", "kafka.tools.GetOffsetShel"]) == 1
    expected = "kafkapy: unknown class 'kafka.tools.GetOffsetShel'; did you mean kafka.tools.GetOffsetShell?\n"
    assert capsys.readouterr().err == expected


def test_help_goes_to_standard_output_and_a_missing_tool_to_standard_error(capsys: pytest.CaptureFixture[str]):
    assert (main(["help"]), main([])) == (0, 1)
    printed = capsys.readouterr()
    assert printed.out == printed.err
    assert printed.out.startswith("usage: kafkapy [--profile NAME] <tool> [arguments]")


@pytest.mark.parametrize(
    ("program", "words", "expected"),
    [
        ("/usr/bin/kafka-topics.sh", ["--list"], ["topics", "--list"]),
        ("kafka-e2e-latency", [], ["end-to-end-latency"]),
        ("kafka-run-class.sh", ["kafka.tools.GetOffsetShell", "--topic", "a"], ["get-offsets", "--topic", "a"]),
        ("kafka-run-class.sh", [], []),
        ("kafka-run-class.sh", ["-name", "x", "-loggc", "kafka.tools.JmxTool", "--one-time"], ["jmx", "--one-time"]),
        ("kafka-run-class.sh", ["-daemon", "kafka.Kafka", "x.properties"], ["server-start", "-daemon", "x.properties"]),
        ("kafkapy", ["run-class", "kafka.admin.TopicCommand", "--list"], ["topics", "--list"]),
        ("kafkapy", ["topics"], ["topics"]),
    ],
)
def test_the_programs_name_selects_the_tool(program: str, words: list[str], expected: list[str]):
    assert command_line(program, words) == expected


@pytest.mark.parametrize("words", [["--profile", "absent"], ["--profile=absent"]])
def test_a_profile_can_be_named_before_the_tool(words, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("KAFKAPY_PROFILE", "")  # restores the variable after the test
    assert main([*words, "topics", "--list"]) == 1
    path = tmp_path / "kafkapy" / "profiles" / "absent.properties"
    expected = f"there is no profile absent: {path} does not exist (profiles: none)\n"
    assert capsys.readouterr() == ("", expected)


def test_every_class_names_a_tool():
    assert set(CLASSES.values()) <= set(TOOLS)
