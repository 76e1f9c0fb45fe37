"""The tool `kafka-consumer-groups`: lists, describes and deletes groups, and sets or deletes their offsets."""

from __future__ import annotations

import sys
from typing import Any

from kafkapy.client.admin import Admin, GroupDescription, GroupListing, OffsetAndMetadata
from kafkapy.errors import ApiError, Error
from kafkapy.tools.bootstrap import BOOTSTRAP_SERVER, JSON, admin_properties
from kafkapy.tools.declaration import Example, Tool
from kafkapy.tools.group_actions import RESET_OPTIONS, STATE, TIMEOUT, GroupActions
from kafkapy.tools.group_description import (
    GroupOffsets,
    PartitionRow,
    print_members,
    print_notice,
    print_offsets,
    print_states,
    print_table,
)
from kafkapy.tools.java_names import java_text
from kafkapy.tools.json_output import print_json
from kafkapy.tools.offset_deletion import (
    PARTITION_ERRORS,
    Outcomes,
    delete_committed,
    existing_partitions,
    print_outcomes,
)
from kafkapy.tools.offset_reset import STRATEGIES, OffsetReset, Plan, parse_partitions, plan_rows, print_plans
from kafkapy.tools.option import Arguments, Option, ToolError, UsageError
from kafkapy.tools.tool import run_tool, script_name
from kafkapy.types import TopicPartition

ACTIONS = ("list", "describe", "delete", "reset-offsets", "delete-offsets", "validate-regex")
_VIEWS = ("members", "offsets", "state")
_STATES = (
    "Assigning",
    "Empty",
    "PreparingRebalance",
    "CompletingRebalance",
    "Dead",
    "Reconciling",
    "Stable",
)
_TYPES = ("Consumer", "Classic")
_CONSUMER_PROTOCOLS = ("consumer", "")
_NOT_EXECUTED = (
    "WARN: No action will be performed as the --execute option is missing. In version 5.0, this command will require "
    "either --dry-run or --execute to be specified. You should add the --dry-run option explicitly if you are "
    "scripting this command and want to keep the current default behavior without prompting."
)


def check(arguments: Arguments) -> None:
    """Raises UsageError for a command line that Apache Kafka's tool refuses."""
    one_action = f"Command must include exactly one action: {', '.join(f'--{each}' for each in ACTIONS)}"
    if not any(map(arguments.has, ACTIONS)):
        raise UsageError(one_action)
    if arguments.has("validate-regex"):
        return
    arguments.require("bootstrap-server")
    has_group = arguments.has("group") or arguments.has("all-groups")
    scope = "takes one of these options: [group], [all-groups]"
    if arguments.has("describe"):
        if not has_group:
            raise UsageError(f"Option [describe] {scope}")
        if sum(map(arguments.has, _VIEWS)) > 1:
            raise UsageError("Option [describe] takes at most one of these options: [members], [offsets], [state]")
        if arguments.values("state"):
            raise UsageError("Option [describe] does not take a value for [state]")
    if arguments.has("delete"):
        if not has_group:
            raise UsageError(f"Option [delete] {scope}")
        if arguments.has("topic"):
            raise UsageError("The consumer does not support topic-specific offset deletion from a consumer group.")
    if arguments.has("delete-offsets") and not (arguments.has("group") and arguments.has("topic")):
        raise UsageError("Option [delete-offsets] takes the following options: [group], [topic]")
    if arguments.has("reset-offsets"):
        _check_reset(arguments, has_group, scope)
    arguments.exclude("group", "all-groups", "list")
    arguments.exclude("topic", "list", "describe")
    if sum(map(arguments.has, ACTIONS)) != 1:
        raise UsageError(one_action)


def _check_reset(arguments: Arguments, has_group: bool, scope: str) -> None:
    if arguments.has("dry-run") and arguments.has("execute"):
        raise UsageError("Option [reset-offsets] only accepts one of [execute] and [dry-run]")
    if not arguments.has("dry-run") and not arguments.has("execute"):
        print(_NOT_EXECUTED, file=sys.stderr)
    if not has_group:
        raise UsageError(f"Option [reset-offsets] {scope}")
    for strategy in STRATEGIES:
        arguments.exclude(strategy, *(other for other in STRATEGIES if other != strategy))


def run(arguments: Arguments) -> int:
    """Carries out the action that the flags name, such as --list; returns the exit code.

    The code is 0, or 1 after an error. If the program was started by the name of Apache Kafka's script, the code is
    always 0, because that script exits with 0 after errors too.
    """
    if arguments.has("zookeeper"):
        return _run_with_zookeeper(arguments)
    check(arguments)
    if arguments.has("validate-regex"):
        return validate_regex(arguments["validate-regex"])
    properties = admin_properties(arguments)
    isolation = arguments["isolation-level"] or properties.pop("isolation.level", "read_uncommitted")
    with Admin(properties) as admin:
        service = ConsumerGroups(admin, arguments, read_committed=isolation == "read_committed")
        try:
            service.run()
        except (ApiError, ToolError) as error:
            reason = java_text(error) if isinstance(error, ApiError) else str(error)
            print(f"\nError: Executing consumer group command failed due to {reason}")
            return 0 if script_name() else 1  # Apache Kafka's script exits with 0 after errors too
    return 0


def _run_with_zookeeper(arguments: Arguments) -> int:
    """Carries out the action on the groups that use ZooKeeper; returns the exit code.

    The code is 0, or 1 after an error. If the program was started by the name of Apache Kafka's script, the code is
    always 0, because that script exits with 0 after errors too.
    """
    from kafkapy.tools.zookeeper.errors import ZooKeeperRequestError  # seldom needed
    from kafkapy.tools.zookeeper.group_command import run as run_with_zookeeper

    try:
        is_done = run_with_zookeeper(arguments)
    except (ApiError, ZooKeeperRequestError) as error:
        print(f"Error while executing consumer group command {error}")
        is_done = False
    return 0 if is_done or script_name() else 1  # Apache Kafka's script exits with 0 after errors too


def validate_regex(expression: str) -> int:
    """Carries out `--validate-regex`: prints whether the broker's parser accepts an expression.

    Returns 0, the exit code.
    """
    from kafkapy.coordinator.group.topic_pattern import PatternError, TopicPattern

    try:
        TopicPattern(expression)
        print(f"The regular expression `{expression}` is valid.")
    except PatternError as error:
        print(f"The regular expression `{expression}` is invalid: {error}.")
    return 0


class ConsumerGroups(GroupActions):
    """The actions of kafka-consumer-groups on the groups that the flags name. Not thread-safe."""

    def __init__(self, admin: Admin, arguments: Arguments, *, read_committed: bool) -> None:
        super().__init__(admin, arguments)
        self._offsets = GroupOffsets(admin, read_committed=read_committed, timeout=self._timeout)

    def list_groups(self) -> None:
        """Carries out `--list`: prints the groups."""
        arguments = self._arguments
        states = _chosen(arguments.values("state"), _STATES, "state list", "states")
        types = _chosen(arguments.values("type"), _TYPES, "types list", "types")
        found = self._admin.list_groups(
            states=states,
            types=[each.lower() for each in types],
            protocol_types=_CONSUMER_PROTOCOLS,
            timeout=self._timeout,
        )
        found = sorted(each for each in found if each.type in ("", *_TYPES))
        columns: list[tuple[str, int, Any]] = [
            ("GROUP", _column_width(15, [each.group_id for each in found]), _group_id)
        ]
        if arguments.has("type"):
            columns.append(("TYPE", _column_width(10, [each.type for each in found]), lambda group: group.type))
        if arguments.has("state"):
            columns.append(("STATE", _column_width(10, [each.state for each in found]), lambda group: group.state))
        if arguments["json"]:
            print_json([each._asdict() for each in found])
        elif len(columns) == 1:
            for each in found:
                print(each.group_id)
        else:
            print_table(columns, found, begins_with_a_line=False)

    def describe(self) -> None:
        """Carries out `--describe`: prints the offsets, members or states of groups."""
        described = self._described(self._groups(), accepts_missing=self._arguments.has("json"))
        if self._arguments["json"]:
            self._describe_as_json(described)
            return
        verbose, shows_members = self._arguments.has("verbose"), self._arguments.has("members")
        shows_offsets = not shows_members and not self._arguments.has("state")
        for group, description in described.items():
            rows = self._rows(description) if shows_offsets and description else []
            print_notice(group, description and description.state)
            if description is None or description.state == "Dead":
                continue
            if not shows_members and not shows_offsets:
                print_states([description], verbose=verbose)
            elif description.members and shows_members:
                print_members(description, verbose=verbose)
            elif rows:
                print_offsets(rows, verbose=verbose)

    def _describe_as_json(self, described: dict[str, GroupDescription | None]) -> None:
        shown: list[dict[str, Any]] = []
        for group, description in described.items():
            if description is None:
                shown.append({"group": group, "exists": False})
                continue
            members = [
                {**each._asdict(), "partitions": list(map(str, each.partitions))} for each in description.members
            ]
            for member in members:
                member["target"] = None if member["target"] is None else list(map(str, member["target"]))
            rows = [{**each._asdict(), "lag": each.lag} for each in self._rows(description)]
            coordinator = description.coordinator._asdict()
            shown.append(
                {
                    **description._asdict(),
                    "exists": True,
                    "coordinator": coordinator,
                    "members": members,
                    "offsets": rows,
                }
            )
        print_json(shown)

    def _rows(self, description: GroupDescription) -> list[PartitionRow]:
        return self._offsets.rows(description, self._committed(description.group_id))

    def delete(self) -> None:
        """Carries out `--delete`: deletes groups."""
        results = self._admin.delete_groups(self._groups(), timeout=self._timeout)
        deleted = "', '".join(results.values)
        if not results.errors:
            print(f"Deletion of requested consumer groups ('{deleted}') was successful.")
            return
        print("\nError: Deletion of some consumer groups failed:")
        for group, error in results.errors.items():
            print(f"* Group '{group}' could not be deleted due to: {java_text(error)}")
        if results.values:
            print(f"\nThese consumer groups were deleted successfully: '{deleted}'")

    def delete_offsets(self) -> None:
        """Carries out `--delete-offsets`: deletes committed offsets of a group."""
        group = self._arguments["group"]
        outcomes: Outcomes = {}
        partitions = existing_partitions(self._admin, self._arguments.values("topic"), outcomes)
        failure = delete_committed(self._admin, group, partitions, outcomes, self._timeout)
        if failure is None:
            print(f"Request succeeded for deleting offsets from group {group}.")
        elif failure.error in PARTITION_ERRORS:
            print("\nError: Encountered some partition-level error, see the follow-up details.")
        else:
            print(f"\nError: {failure.message}")
        print_outcomes(sorted(outcomes.items()))

    def reset_offsets(self) -> None:
        """Carries out `--reset-offsets`: prints new offsets of groups, and commits them if `--execute` is given."""
        arguments = self._arguments
        reset = OffsetReset(self._admin, arguments)
        plans: dict[str, Plan] = {}
        for group, description in self._described(self._groups(), accepts_missing=True).items():
            if description is not None and description.state not in ("Empty", "Dead"):
                print(
                    f"\nError: Assignments can only be reset if the group '{group}' is inactive, but the current state "
                    f"is {description.state}."
                )
                plans[group] = {}
                continue
            committed = {partition: each.offset for partition, each in self._committed(group).items()}
            plans[group] = reset.prepare(group, self._partitions_to_reset(committed), committed)
            if arguments.has("execute") and plans[group]:
                self._admin.alter_group_offsets(group, plans[group], timeout=self._timeout).check()
        self._show(plans)

    def _partitions_to_reset(self, committed: dict[TopicPartition, int]) -> list[TopicPartition]:
        if self._arguments.has("all-topics"):
            return list(committed)
        if self._arguments.has("topic"):
            return parse_partitions(self._admin, self._arguments.values("topic"))
        if self._arguments.has("from-file"):
            return []
        raise UsageError("One of the reset scopes should be defined: --all-topics, --topic.")

    def _show(self, plans: dict[str, Plan]) -> None:
        rows = plan_rows(plans)
        if self._arguments["json"]:
            names = ("group", "topic", "partition", "new_offset")
            print_json([dict(zip(names, row, strict=True)) for row in rows])
        elif self._arguments.has("export"):
            is_single = len(self._arguments.values("group")) == 1
            for row in rows:
                print(",".join(map(str, row[1:] if is_single else row)))
            print()
        else:
            print_plans(plans)

    def _groups(self) -> list[str]:
        if not self._arguments.has("all-groups"):
            return list(dict.fromkeys(self._arguments.values("group")))
        found = self._admin.list_groups(protocol_types=_CONSUMER_PROTOCOLS, timeout=self._timeout)
        return sorted(each.group_id for each in found if each.type in ("", *_TYPES))

    def _described(self, groups: list[str], *, accepts_missing: bool) -> dict[str, GroupDescription | None]:
        """Returns the descriptions of groups by name, in the order of names.

        If `accepts_missing` is set, the description of a group that does not exist is None. Otherwise the method raises
        ApiError GROUP_ID_NOT_FOUND for such a group.
        """
        results = self._admin.describe_groups(groups, timeout=self._timeout)
        for error in results.errors.values():
            if not accepts_missing or error.error is not Error.GROUP_ID_NOT_FOUND:
                raise error
        return {group: results.values.get(group) for group in sorted(groups)}

    def _committed(self, group: str) -> dict[TopicPartition, OffsetAndMetadata]:
        return self._admin.list_group_offsets([group], timeout=self._timeout)[group]


def _group_id(group: GroupListing) -> str:
    return group.group_id


def _column_width(least: int, texts: list[str]) -> int:
    """Returns the width of a column of `texts`: 10 more than the longest of them, and at least `least` + 10."""
    return max([least, *map(len, texts)]) + 10


def _chosen(words: list[str], known: tuple[str, ...], what: str, plural: str) -> list[str]:
    """Returns the names in `words`, in the spelling of `known`; case is ignored.

    Each word is a name, or several names separated by commas. Raises UsageError for a name that is not in `known`. The
    message calls the names by the nouns `what` and `plural`, such as "state" and "states".
    """
    wanted = [each.strip() for word in words for each in word.split(",")]
    by_name = {each.lower(): each for each in known}
    if any(each.lower() not in by_name for each in wanted):
        raise UsageError(f"Invalid {what} '{','.join(words)}'. Valid {plural} are: {', '.join(known)}")
    return [by_name[each.lower()] for each in wanted]


_EXAMPLE = "Example: --bootstrap-server localhost:9092 --describe --group group1"
OPTIONS = (
    BOOTSTRAP_SERVER,
    Option(
        "zookeeper",
        "The address of ZooKeeper, or of a listener for its clients, as HOST:PORT[,HOST:PORT...][/CHROOT]: lists, "
        "describes or deletes the groups of consumers that use ZooKeeper, as in Kafka 0.9 to 1.1.",
        "hosts",
        is_deprecated=True,
    ),
    Option("group", "The consumer group we wish to act on.", "consumer group"),
    Option(
        "topic",
        "The topic whose consumer group information should be deleted or topic whose should be included in the reset "
        "offset process. In `reset-offsets` case, partitions can be specified using this format: `topic1:0,1,2`, where "
        "0,1,2 are the partition to be included in the process. Reset-offsets also supports multiple topic inputs.",
        "topic",
    ),
    Option("all-topics", "Consider all topics assigned to a group in the `reset-offsets` process."),
    Option("list", "List all consumer groups."),
    Option(
        "describe",
        "Describe consumer group and list offset lag (number of messages not yet processed) related to given group.",
    ),
    Option("all-groups", "Apply to all consumer groups."),
    Option("delete", "Delete groups with all their offsets; --group may be repeated."),
    TIMEOUT,
    Option(
        "command-config",
        "Property file containing configs to be passed to Admin Client. With isolation.level=read_committed the log "
        "end is the last stable offset.",
        "command config property file",
        completes="file",
    ),
    Option(
        "reset-offsets",
        "Set the offsets of groups without members. --dry-run (the default) shows the plan, --execute carries it out, "
        "--export shows it as CSV. One of --to-datetime, --by-duration, --to-earliest, --to-latest, --shift-by, "
        "--from-file, --to-current, --to-offset selects the offsets, and --all-topics or --topic the partitions (not "
        "with --from-file).",
    ),
    Option(
        "delete-offsets",
        "Delete offsets of consumer group. Supports one consumer group at the time, and multiple topics.",
    ),
    Option("dry-run", "Only show results without executing changes on Consumer Groups."),
    Option("execute", "Execute operation. Supported operations: reset-offsets."),
    Option("export", "Export operation execution to a CSV file. Supported operations: reset-offsets."),
    *RESET_OPTIONS,
    Option("members", f"Describe members of the group.\n{_EXAMPLE} --members"),
    Option(
        "verbose", "Print more about each group: members' assignments, epochs.\n" + _EXAMPLE + " --members --verbose"
    ),
    Option("offsets", f"Describe the partitions of the group with their lag; the default.\n{_EXAMPLE} --offsets"),
    STATE,
    Option(
        "type",
        "With --list the types of all groups, or those of these types: classic, consumer",
        "",
        argument_is_optional=True,
    ),
    Option(
        "validate-regex",
        "Validate that the syntax of the provided regular expression is valid according to the RE2 format.",
        "regex",
    ),
    Option(
        "isolation-level",
        "read_committed counts the lag up to the last stable offset.",
        "",
        choices=("read_committed", "read_uncommitted"),
        is_ours=True,
    ),
    JSON,
)
TOOL = Tool(
    name="consumer-groups",
    description=(
        "This tool helps to list all consumer groups, describe a consumer group, delete consumer group info, or reset "
        "consumer group offsets."
    ),
    run=run,
    options=OPTIONS,
    examples=(
        Example("All groups with their state", "--bootstrap-server localhost:9092 --list --state"),
        Example("The lag of a group", "--bootstrap-server localhost:9092 --describe --group readers"),
        Example(
            "Read a topic again from its beginning",
            "--bootstrap-server localhost:9092 --reset-offsets --group readers --topic prices --to-earliest --execute",
        ),
        Example(
            "Read the last hour again; only print the plan",
            "--bootstrap-server localhost:9092 --reset-offsets --group readers --all-topics "
            "--by-duration PT1H --dry-run",
        ),
    ),
)


def main(arguments: list[str]) -> int:
    return run_tool(TOOL, arguments)
