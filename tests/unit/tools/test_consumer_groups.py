"""The tool consumer-groups: its command line, and output and effect of each action with a simulated admin client."""

from __future__ import annotations

import json

import pytest

from kafkapy.client.admin import MemberDescription
from kafkapy.errors import ApiError
from kafkapy.tools.consumer_groups import TOOL, ConsumerGroups, check, validate_regex
from kafkapy.tools.option import Arguments, UsageError
from kafkapy.tools.option_parser import OptionParser
from kafkapy.types import TopicPartition
from tests.unit.tools.simulated_client import SimulatedAdmin, group

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
TOPICS = {"a": [(0, 100), (0, 50)], "b": [(5, 9)]}
MEMBER = MemberDescription("member-1", None, "client", "/127.0.0.1", (A0,))


def parsed(words: str) -> Arguments:
    return OptionParser(TOOL.all_options).parse(["--bootstrap-server", "localhost:9092", *words.split()])


def make_admin() -> SimulatedAdmin:
    return SimulatedAdmin(
        TOPICS,
        group("idle"),
        group("busy", "Stable", (MEMBER,)),
        committed={"idle": {A0: 30, B0: 9}, "busy": {A0: 60, A1: 50}},
    )


def act(words: str, admin: SimulatedAdmin | None = None) -> None:
    arguments = parsed(words)
    check(arguments)
    ConsumerGroups(admin or make_admin(), arguments, read_committed=False).run()


def table(text: str) -> list[list[str]]:
    """Returns the cells of a printed table without its header."""
    return [line.split() for line in text.splitlines() if line][1:]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "Command must include exactly one action"),
        ("--list --describe --all-groups", "Command must include exactly one action"),
        ("--describe", r"Option \[describe\] takes one of these options"),
        ("--describe --group g --members --state", r"Option \[describe\] takes at most one of these options"),
        ("--describe --group g --state stable", r"Option \[describe\] does not take a value for \[state\]"),
        ("--describe --group g --topic t", "can't be used with option"),
        ("--list --group g", "can't be used with option"),
        ("--delete", r"Option \[delete\] takes one of these options"),
        ("--delete --group g --topic t", "does not support topic-specific offset deletion"),
        ("--delete-offsets --group g", r"Option \[delete-offsets\] takes the following options"),
        ("--reset-offsets --to-latest", r"Option \[reset-offsets\] takes one of these options"),
        ("--reset-offsets --group g --dry-run --execute", r"only accepts one of \[execute\] and \[dry-run\]"),
        ("--reset-offsets --group g --dry-run --to-latest --to-earliest", "can't be used with option"),
    ],
)
def test_wrong_command_lines_are_refused(words: str, message: str):
    with pytest.raises(UsageError, match=message):
        check(parsed(words))


def test_a_server_is_required_unless_an_expression_is_validated(capsys: pytest.CaptureFixture[str]):
    parser = OptionParser(TOOL.all_options)
    with pytest.raises(UsageError, match="bootstrap-server"):
        check(parser.parse(["--list"]))
    check(parser.parse(["--validate-regex", "a.*"]))
    assert (validate_regex("a.*"), validate_regex("(")) == (0, 0)
    valid, invalid = capsys.readouterr().out.splitlines()
    assert valid == "The regular expression `a.*` is valid."
    assert invalid.startswith("The regular expression `(` is invalid: ")


def test_groups_are_listed_sorted_with_the_wanted_columns(capsys: pytest.CaptureFixture[str]):
    act("--list")
    assert capsys.readouterr().out.split() == ["busy", "idle"]
    admin = make_admin()
    act("--list --state stable,EMPTY --type classic", admin)
    assert (admin.list_options["states"], admin.list_options["types"]) == (["Stable", "Empty"], ["classic"])
    assert table(capsys.readouterr().out) == [["busy", "Classic", "Stable"], ["idle", "Classic", "Empty"]]
    with pytest.raises(UsageError, match=r"Invalid state list 'stabel'\. Valid states are: "):
        act("--list --state stabel")


def test_the_lag_is_the_distance_to_the_end(capsys: pytest.CaptureFixture[str]):
    act("--describe --group busy")
    assert table(capsys.readouterr().out) == [
        ["busy", "a", "0", "60", "100", "40", "member-1", "/127.0.0.1", "client"],
        ["busy", "a", "1", "50", "50", "0", "-", "-", "-"],
    ]


def test_a_missing_group_fails_unless_json_is_printed(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(ApiError, match="GROUP_ID_NOT_FOUND"):
        act("--describe --group nope")
    act("--describe --group nope --group idle --json")
    idle, missing = json.loads(capsys.readouterr().out)
    assert missing == {"group": "nope", "exists": False}
    assert [(each["partition"], each["lag"]) for each in idle["offsets"]] == [(0, 70), (0, 0)]


def test_groups_are_deleted_and_failures_named(capsys: pytest.CaptureFixture[str]):
    act("--delete --group idle")
    assert capsys.readouterr().out == "Deletion of requested consumer groups ('idle') was successful.\n"
    act("--delete --all-groups")
    printed = capsys.readouterr().out
    assert "* Group 'busy' could not be deleted due to: " in printed
    assert "These consumer groups were deleted successfully: 'idle'" in printed


def test_offsets_are_deleted_by_partition(capsys: pytest.CaptureFixture[str]):
    act("--delete-offsets --group busy --topic a --topic missing")
    printed = capsys.readouterr().out
    assert "Encountered some partition-level error" in printed
    statuses = {tuple(row[:2]): row[2] for row in table(printed[printed.index("TOPIC") :])}
    assert statuses == {("a", "0"): "Error:", ("a", "1"): "Successful", ("missing", "-"): "Error:"}
    act("--delete-offsets --group nope --topic a")
    assert "\nError: Group nope not found.\n" in capsys.readouterr().out


def test_a_reset_is_shown_and_only_executed_when_asked_for(capsys: pytest.CaptureFixture[str]):
    admin = make_admin()
    words = "--reset-offsets --group idle --all-topics --shift-by -10"
    act(words, admin)
    printed = capsys.readouterr()
    assert table(printed.out) == [["idle", "a", "0", "20"], ["idle", "b", "0", "5"]]
    assert "No action will be performed as the --execute option is missing" in printed.err
    assert admin.committed["idle"] == {A0: 30, B0: 9}
    act(f"{words} --execute", admin)
    assert admin.committed["idle"] == {A0: 20, B0: 5}
    assert not capsys.readouterr().err


def test_a_reset_of_an_active_group_is_refused(capsys: pytest.CaptureFixture[str]):
    admin = make_admin()
    act("--reset-offsets --all-groups --topic a:0 --to-latest --execute", admin)
    assert "Assignments can only be reset if the group 'busy' is inactive" in capsys.readouterr().out
    assert (admin.committed["busy"][A0], admin.committed["idle"][A0]) == (60, 100)


def test_an_exported_plan_names_the_group_only_if_there_are_several(capsys: pytest.CaptureFixture[str]):
    act("--reset-offsets --group idle --topic a --to-latest --dry-run --export")
    assert capsys.readouterr().out == "a,0,100\na,1,50\n\n"
    act("--reset-offsets --group idle --group other --topic b --to-earliest --dry-run --export")
    assert capsys.readouterr().out == "idle,b,0,5\nother,b,0,5\n\n"


def test_a_reset_needs_topics():
    with pytest.raises(UsageError, match="One of the reset scopes should be defined"):
        act("--reset-offsets --group idle --to-latest --dry-run")
