"""The flags of older releases: the flags that replace them today, and the warnings about them."""

from __future__ import annotations

from importlib import import_module

import pytest

from kafkapy.__main__ import TOOLS
from kafkapy.tools.declaration import Tool
from kafkapy.tools.old_flags import OLD_FLAGS, translate
from kafkapy.tools.tool import parse

# Command lines from the documentation of old releases, and the command lines of today with the same meaning.
EXAMPLES = [
    ("console-producer", "--broker-list a:1 --topic t --old-producer", "--bootstrap-server a:1 --topic t"),
    (
        "console-consumer",
        "--bootstrap-server a:1 --whitelist t.* --new-consumer --from-beginning",
        "--bootstrap-server a:1 --include t.* --from-beginning",
    ),
    (
        "console-consumer",
        "--bootstrap-server a:1 --blacklist=a,b --delete-consumer-offsets --csv-reporter-enabled --metrics-dir /tmp",
        "--bootstrap-server a:1 --include (?!(?:a|b)$).*",
    ),
    ("console-consumer", "--topic t --fetch-size 9", "--topic t --command-property max.partition.fetch.bytes=9"),
    ("consumer-groups", "--new-consumer --bootstrap-server a:1 --list", "--bootstrap-server a:1 --list"),
    ("topics", "--bootstrap-server a:1 --list --disable-rack-aware", "--bootstrap-server a:1 --list"),
    (
        "producer-perf-test",
        "--broker-list a:1 --topics t --messages 9 --message-size 3 --threads 2 --compression-codec 2 --sync",
        "--bootstrap-server a:1 --topic t --num-records 9 --record-size 3 --command-property compression.type=snappy "
        "--throughput -1",
    ),
    (
        "consumer-perf-test",
        "--broker-list a:1 --topic t --messages 9 --threads 1",
        "--bootstrap-server a:1 --topic t --messages 9",
    ),
    ("get-offsets", "--broker-list a:1 --topic t --time -1 --max-wait-ms 5", "--broker-list a:1 --topic t --time -1"),
    ("acls", "--authorizer-properties zookeeper.connect=z:2181 --list", "--zookeeper z:2181 --list"),
    ("acls", "--authorizer-properties zookeeper.set.acl=true --list", "--list"),
]


def tool_named(name: str) -> Tool:
    found: Tool = import_module(TOOLS[name][0]).TOOL
    return found


@pytest.mark.parametrize(("tool", "old", "today"), EXAMPLES)
def test_an_old_command_line_is_translated_with_a_line_for_each_flag(tool, old, today, capsys):
    assert " ".join(translate(tool, old.split())) == today
    lines = capsys.readouterr().err.splitlines()
    flags = {word.partition("=")[0] for word in old.split() if word.startswith("--")}
    assert len(lines) == len([flag for flag in flags if flag.removeprefix("--") in OLD_FLAGS[tool]])
    assert all(" is a flag of older releases" in line for line in lines)


@pytest.mark.parametrize("tool", OLD_FLAGS)
def test_the_words_of_today_are_flags_of_the_tool(tool, capsys):
    options = {flag for option in tool_named(tool).options for flag in option.flags}
    for name, flag in OLD_FLAGS[tool].items():
        assert f"--{name}" not in options, f"{tool} --{name} is a flag of today"
        if flag.rewrite is not None:
            new, value = flag.rewrite("zookeeper.connect=1" if name == "authorizer-properties" else "1")
            assert new in options, (tool, name, new)
            assert value.endswith("1") or name == "blacklist" or name == "compression-codec"
            assert new in flag.instead


def test_a_command_line_of_today_is_left_alone(capsys):
    words = ["--bootstrap-server", "a:1", "--topic", "whitelist", "--", "--whitelist-x"]
    assert translate("console-consumer", words) == words
    assert translate("storage", ["--whitelist", "x"]) == ["--whitelist", "x"]
    assert capsys.readouterr().err == ""


def test_the_line_names_the_flag_of_today(capsys):
    translate("console-producer", ["--broker-list", "a:1", "--queue-size", "9", "--old-producer"])
    assert capsys.readouterr().err.splitlines() == [
        "--broker-list is a flag of older releases; today's is --bootstrap-server.",
        "--queue-size is a flag of older releases and is ignored; use --max-memory-bytes.",
        "--old-producer is a flag of older releases and is ignored.",
    ]


def test_a_flag_at_the_end_without_its_value_is_left_to_the_parser(capsys):
    assert translate("console-producer", ["--broker-list"]) == ["--bootstrap-server", ""]


@pytest.mark.parametrize(("tool", "old"), [(tool, old) for tool, old, _ in EXAMPLES])
def test_the_parser_accepts_what_an_old_command_line_stands_for(tool, old, capsys, monkeypatch):
    monkeypatch.setattr("kafkapy.tools.zookeeper.brokers.servers_in_zookeeper", lambda *of: "broker:9092")
    parse(tool_named(tool), translate(tool, old.split()))


def test_a_blacklist_excludes_whole_names():
    import re

    _, expression = OLD_FLAGS["console-consumer"]["blacklist"].rewrite("secret,tmp.*")
    names = ["secret", "secrets", "tmp1", "orders"]
    assert [name for name in names if re.fullmatch(expression, name)] == ["secrets", "orders"]
