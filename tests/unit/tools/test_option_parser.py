"""The parsers of command lines in the manner of joptsimple and argparse4j."""

from __future__ import annotations

import pytest

from kafkapy.security.acl import PatternType
from kafkapy.tools.argument_parser import ArgumentParser
from kafkapy.tools.option import INTEGER, LONG, Option, UsageError, parse_key_values
from kafkapy.tools.option_parser import OptionParser

OPTIONS = (
    Option("topic", "a topic", "topic"),
    Option("partitions", "how many", "count", INTEGER),
    Option("offset", "where", "offset", LONG),
    Option("config", "a key", "key=value"),
    Option("list", "a switch"),
    Option("codec", "may lack its value", "codec", argument_is_optional=True),
    Option("brokers", "ids", "ids", INTEGER, separator=","),
    Option("verbose", "a short switch", aliases=("v",)),
    Option("time", "when", "time", default="-1", aliases=("t",)),
    Option("help", "help"),
)


def parse(text: str, *more: Option):
    return OptionParser((*OPTIONS, *more)).parse(text.split())


@pytest.mark.parametrize("text", ["--topic a", "--topic=a", "-topic a", "-topic=a"])
def test_a_value_may_be_given_in_every_form(text):
    assert parse(text)["topic"] == "a"


def test_negative_values_are_values():
    assert parse("--offset -1 -t -2")["offset"] == -1
    assert parse("-t-2")["time"] == "-2"


def test_a_value_may_look_like_a_flag():
    assert parse("--topic --list")["topic"] == "--list"


def test_values_of_a_repeated_flag_are_kept_in_their_order():
    assert parse("--config a=b --list --config c=d").values("config") == ["a=b", "c=d"]
    with pytest.raises(UsageError, match="Found multiple arguments for option config, but you asked for only one"):
        parse("--config a=b --config c=d")["config"]


def test_an_optional_value_may_be_left_out():
    assert parse("--codec --list")["codec"] is None
    assert parse("--codec --list").has("codec")
    assert parse("--codec lz4")["codec"] == "lz4"


def test_an_optional_number_may_be_negative():
    size = Option("header-size", "may lack its value", "bytes", INTEGER, 0, argument_is_optional=True)
    assert parse("--header-size -1 --list", size)["header-size"] == -1
    assert parse("--header-size -v", size)["header-size"] == 0
    assert parse("--header-size --list", size).has("list")


def test_defaults_are_no_arguments():
    arguments = parse("")
    assert arguments["time"] == "-1"
    assert not arguments.has("time")
    assert arguments.values("time") == ["-1"]


@pytest.mark.parametrize(("default", "text"), [(None, ""), (5, "5"), ("\t", r"\t"), (PatternType.LITERAL, "LITERAL")])
def test_defaults_are_shown_as_the_user_types_them(default, text):
    assert Option("flag", "Text.", "value", default=default).default_text == text


def test_separated_values_are_divided():
    assert parse("--brokers 1,2,3").values("brokers") == [1, 2, 3]


def test_words_after_two_dashes_are_no_flags():
    assert parse("a -- --list").positionals == ("a", "--list")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("--zoo x", "zoo is not a recognized option"),
        ("--top x", "top is not a recognized option"),
        ("--topic", "Option topic requires an argument"),
        ("--partitions many", "Cannot parse argument 'many' of option partitions"),
        ("--partitions 3000000000", "Cannot parse argument '3000000000' of option partitions"),
    ],
)
def test_errors_have_joptsimples_text(text, message):
    with pytest.raises(UsageError) as caught:
        parse(text)
    assert str(caught.value) == message


def test_required_flags_may_be_missing_with_help():
    required = Option("group", "a group", "group", is_required=True)
    with pytest.raises(UsageError, match=r"Missing required option\(s\) \[group\]"):
        parse("--list", required)
    assert parse("--help", required).has("help")


def test_combinations_of_flags_are_checked():
    arguments = parse("--topic a --list")
    arguments.require("topic")
    arguments.require_one_of("topic", "offset")
    with pytest.raises(UsageError, match=r'Missing required argument "\[offset\]"'):
        arguments.require("offset")
    with pytest.raises(UsageError, match=r'Option "\[topic\]" can\'t be used with option "\[list\]"'):
        arguments.exclude("topic", "list")
    with pytest.raises(UsageError, match=r"Exactly one of the following arguments is required: \[topic\], \[list\]"):
        arguments.require_one_of("topic", "list")


def test_pairs_are_parsed():
    assert parse_key_values(["a=b", "c=d=e", "f", "g="]) == {"a": "b", "c": "d=e", "f": "", "g": ""}
    with pytest.raises(UsageError, match="Missing value for key f"):
        parse_key_values(["f"], accepts_missing=False)


PERF = ArgumentParser(
    (
        Option("topic", "", "TOPIC", is_required=True),
        Option("num-records", "", "NUM", LONG, is_required=True),
        Option("record-size", "", "SIZE", INTEGER, group="payload"),
        Option("payload-file", "", "FILE", group="payload"),
        Option("producer-props", "", "PROP", is_many=True),
        Option("config", "", "FILE", aliases=("c",)),
        Option("level", "", "LEVEL", choices=("low", "high")),
        Option("help", "", aliases=("h",)),
    ),
    groups=("payload",),
)


def test_argparse4j_takes_abbreviations_and_many_values():
    arguments = PERF.parse(["--num-rec", "-1", "--record-size=3", "--producer-props", "a=b", "c=d", "--top", "t"])
    assert arguments["num-records"] == -1
    assert arguments["record-size"] == 3
    assert arguments.values("producer-props") == ["a=b", "c=d"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("--num-records 1 --record-size 1", "argument --topic is required"),
        ("--topic t --num-records 1", "one of the arguments --record-size --payload-file is required"),
        (
            "--topic t --num-records 1 --record-size 1 --payload-file f",
            "argument --payload-file: not allowed with argument --record-size",
        ),
        ("--topic t --num-records 1 --record-size 1 --zoo", "unrecognized arguments: '--zoo'"),
    ],
)
def test_errors_have_argparse4js_text(text, message):
    with pytest.raises(UsageError) as caught:
        PERF.parse(text.split())
    assert str(caught.value) == message
