"""Tables, YAML, and when output is aligned and coloured."""

from __future__ import annotations

import io
import json
import sys

import pytest

from kafkapy.tools.short.output import Problem, Table, print_fields, print_table, table_lines
from kafkapy.tools.short.yaml_text import yaml_text

TABLE = Table(("NAME", "UNDER-REPLICATED", "IDS"), [("one", 0, [1, 2]), ("twelve\x1b", Problem(12), []), (None, 3, [])])


class Terminal(io.StringIO):
    """A text stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_table_is_aligned_with_numbers_to_the_right():
    assert table_lines(TABLE, is_aligned=True, has_colours=False) == [
        "NAME        UNDER-REPLICATED  IDS",
        "one                        0  1,2",
        "twelve\\x1b                12  -",
        "-                          3  -",
    ]


def test_a_program_gets_tabs(capsys):
    print_table(TABLE)
    assert capsys.readouterr().out.splitlines()[:2] == ["NAME\tUNDER-REPLICATED\tIDS", "one\t0\t1,2"]


@pytest.mark.parametrize(("variable", "is_coloured"), [("", True), ("1", False)])
def test_colours_are_for_terminals(variable, is_coloured, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("NO_COLOR", variable)
    monkeypatch.setenv("TERM", "xterm")
    print_table(TABLE)
    print_fields({"name": 1, "other": True})
    lines = terminal.getvalue().splitlines()
    assert lines[0].startswith("\x1b[1mNAME") is is_coloured
    assert ("\x1b[31m" in lines[2]) is is_coloured
    assert lines[-1].endswith("yes")


def test_a_table_can_be_a_document(capsys):
    print_table(TABLE, "json")
    found = json.loads(capsys.readouterr().out)
    assert found[1] == {"name": "twelve\x1b", "underReplicated": 12, "ids": []}
    print_table(TABLE, "yaml")
    assert capsys.readouterr().out.startswith("- name: one\n  underReplicated: 0\n  ids:\n    - 1\n    - 2\n- name: ")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({}, "{}\n"),
        ([], "[]\n"),
        (None, "null\n"),
        ({"a": {"b": [1, {"c": None}]}, "d": []}, "a:\n  b:\n    - 1\n    - c: null\nd: []\n"),
        ([[1, 2], []], "- - 1\n  - 2\n- []\n"),
        (
            ["yes", "No", "plain", "1", "a: b", "", "- x", "grün\n", "localhost:1"],
            '- "yes"\n- "No"\n- plain\n- "1"\n- "a: b"\n- ""\n- "- x"\n- "grün\\n"\n- "localhost:1"\n',
        ),
        ({"1": True, "x y": 1.5}, '"1": true\n"x y": 1.5\n'),
    ],
)
def test_yaml_is_written_in_blocks(value, expected):
    assert yaml_text(value) == expected
