"""The table of Apache Kafka's scripts in docs/compatibility.md names every tool of ours that has a script."""

from __future__ import annotations

from docs.kafka_scripts import SCRIPTS, script_table
from kafkapy.__main__ import RUN_CLASS, script_names


def test_every_script_has_a_tool_or_a_substitute_and_not_both():
    assert len(list(script_table())) == len(SCRIPTS) + 2
    assert [script.name for script in SCRIPTS if script.instead and script.name in script_names()] == []


def test_every_tool_with_the_name_of_a_script_is_in_the_table():
    names = [script.name for script in SCRIPTS]
    assert sorted({*script_names(), RUN_CLASS} - {*names}) == []
    assert names == sorted(names)
