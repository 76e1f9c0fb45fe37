"""The tool `kafka-share-groups`: lists, describes and deletes share groups, and sets or deletes their start offsets."""

from __future__ import annotations

import sys
from typing import Any

from kafkapy.client.admin import Admin, ShareGroupDescription, ShareMemberDescription, SharePartitionOffset
from kafkapy.errors import ApiError, Error
from kafkapy.tools.bootstrap import BOOTSTRAP_SERVER, JSON, admin_properties
from kafkapy.tools.declaration import Example, Tool
from kafkapy.tools.group_actions import STATE, TIMEOUT, TO_DATETIME, TO_EARLIEST, TO_LATEST, GroupActions
from kafkapy.tools.group_description import assignment_text, coordinator_text, print_table
from kafkapy.tools.group_listing import CommandFailed, check_views, choose_states, print_listing, report_failure
from kafkapy.tools.java_names import java_text
from kafkapy.tools.json_output import print_json
from kafkapy.tools.offset_reset import OffsetReset, Plan, parse_partitions, print_plans
from kafkapy.tools.option import Arguments, Option, ToolError, UsageError
from kafkapy.tools.tool import run_tool, script_name
from kafkapy.types import TopicPartition

ACTIONS = ("list", "describe", "delete", "reset-offsets", "delete-offsets")
_VIEWS = ("members", "offsets", "state")
_SCENARIOS = ("to-datetime", "to-earliest", "to-latest")
_STATES = ("Stable", "Dead", "Empty")
# Errors whose message is printed without the name of their class.
_KNOWN_ERRORS = (
    Error.INVALID_GROUP_ID,
    Error.GROUP_ID_NOT_FOUND,
    Error.GROUP_AUTHORIZATION_FAILED,
    Error.NON_EMPTY_GROUP,
)
_TOPIC_ERRORS = (Error.TOPIC_AUTHORIZATION_FAILED, Error.UNKNOWN_TOPIC_OR_PARTITION)
Row = tuple[TopicPartition, SharePartitionOffset | None]


def check(arguments: Arguments) -> None:
    """Raises UsageError for a command line that Apache Kafka's tool refuses."""
    check_views(arguments)
    arguments.require("bootstrap-server")
    has_group, has_all = arguments.has("group"), arguments.has("all-groups")
    if arguments.has("describe"):
        if not has_group and not has_all:
            raise UsageError("Option [describe] takes one of these options: [all-groups], [group]")
        if sum(map(arguments.has, _VIEWS)) > 1:
            raise UsageError("Option [describe] takes at most one of these options: [members], [offsets], [state]")
        if arguments.values("state"):
            raise UsageError("Option [describe] does not take a value for [state]")
    if arguments.has("delete"):
        if not has_group and not has_all:
            raise UsageError("Option [delete] takes the options [group] or [all-groups]")
        if has_group and has_all:
            raise UsageError("Option [delete] takes either [group] or [all-groups], not both.")
        if arguments.has("topic"):
            raise UsageError("Option [delete] does not take the option: [topic]")
    if arguments.has("delete-offsets") and not (has_group and arguments.has("topic")):
        raise UsageError("Option [delete-offsets] takes the following options: [group], [topic]")
    if arguments.has("reset-offsets"):
        _check_reset(arguments)
    arguments.exclude("group", "all-groups", "list")
    arguments.exclude("topic", "list", "describe")
    if sum(map(arguments.has, ACTIONS)) != 1:
        flags = ", ".join(f"--{each}" for each in ACTIONS)
        raise UsageError(f"Command must include exactly one action: {flags}.")


def _check_reset(arguments: Arguments) -> None:
    if arguments.has("dry-run") and arguments.has("execute"):
        raise UsageError("Option [reset-offsets] only accepts one of [execute] and [dry-run]")
    if not arguments.has("dry-run") and not arguments.has("execute"):
        raise UsageError("Option [reset-offsets] takes the option: [execute] or [dry-run]")
    if not arguments.has("group"):
        raise UsageError("Option [reset-offsets] takes the option: [group]")
    if not arguments.has("topic") and not arguments.has("all-topics"):
        raise UsageError("Option [reset-offsets] takes one of these options: [all-topics], [topic]")
    if not any(map(arguments.has, _SCENARIOS)):
        raise UsageError("Option [reset-offsets] takes one of these options: [to-datetime], [to-earliest], [to-latest]")
    for scenario in _SCENARIOS:
        arguments.exclude(scenario, *(other for other in _SCENARIOS if other != scenario))


def run(arguments: Arguments) -> int:
    """Carries out the action that the flags name; returns the exit code.

    The code is 0, or 1 after an error. If the program was started by the name of Apache Kafka's script, the code is
    always 0, because that script exits with 0 after errors too.
    """
    check(arguments)
    with Admin(admin_properties(arguments)) as admin:
        service = ShareGroups(admin, arguments)
        try:
            service.run()
        except (ApiError, CommandFailed) as error:
            report_failure("share", error)
            return 0 if script_name() else 1  # Apache Kafka's script exits with 0 after errors too
    return 0


class ShareGroups(GroupActions):
    """The actions of the tool. Not thread-safe."""

    def list_groups(self) -> None:
        """Carries out `--list`: prints the groups."""
        states = choose_states(self._arguments, _STATES)
        found = self._admin.list_groups(types=["share"], states=states, timeout=self._timeout)
        print_listing(self._arguments, found, shows_states=self._arguments.has("state"))

    def describe(self) -> None:
        """Carries out `--describe`: prints the offsets, members or states of the share groups that the flags name."""
        groups = self._groups()
        described = self._admin.describe_share_groups(groups, timeout=self._timeout).check()
        ordered = [described[group] for group in sorted(described)]
        verbose = self._arguments.has("verbose")
        if self._arguments["json"]:
            print_json([self._as_json(each) for each in ordered])
            return
        for each in ordered:
            if self._arguments.has("members"):
                if _is_shown(each, len(each.members)):
                    _print_members(each, verbose=verbose)
            elif self._arguments.has("state"):
                _is_shown(each, 1)
                _print_state(each, verbose=verbose)
            else:
                self._print_offsets(each.group_id, verbose=verbose)

    def _as_json(self, group: ShareGroupDescription) -> dict[str, Any]:
        offsets = [
            {"topic": partition.topic, "partition": partition.partition, **(offset._asdict() if offset else {})}
            for partition, offset in self._rows(group.group_id)
        ]
        members = [{**each._asdict(), "partitions": list(map(str, each.partitions))} for each in group.members]
        return {
            **group._asdict(), "coordinator": group.coordinator._asdict(), "members": members, "offsets": offsets,
        }  # fmt: skip

    def _rows(self, group: str) -> list[Row]:
        found = self._admin.list_share_group_offsets([group], timeout=self._timeout)[group]
        return sorted(found.items(), key=lambda item: item[0])

    def _print_offsets(self, group: str, *, verbose: bool) -> None:
        rows = self._rows(group)
        if not rows:
            print(f"\nShare group '{group}' has no offset information.")
            return
        columns: list[tuple[str, int, Any]] = [
            ("GROUP", 15, lambda row: group),
            ("TOPIC", 15, lambda row: row[0].topic),
            ("PARTITION", -10, lambda row: row[0].partition),
            ("LEADER-EPOCH", -13, lambda row: row[1] and row[1].leader_epoch),
            ("START-OFFSET", -13, lambda row: row[1] and row[1].start_offset),
            ("LAG", 0, lambda row: row[1] and row[1].lag),
        ]
        print_table([each for each in columns if verbose or each[0] != "LEADER-EPOCH"], rows)

    def delete(self) -> None:
        """Carries out `--delete`: deletes groups."""
        listed = {each.group_id: each.state for each in self._admin.list_groups(types=["share"], timeout=self._timeout)}
        wanted = list(listed) if self._arguments.has("all-groups") else self._arguments.values("group")
        failed: dict[str, str] = {}
        for group in dict.fromkeys(wanted):
            if group not in listed:
                failed[group] = f"java.lang.IllegalArgumentException: Group '{group}' is not a share group."
            elif listed[group] == "Dead":
                failed[group] = f"java.lang.IllegalStateException: Share group '{group}' group state is DEAD."
            elif listed[group] != "Empty":
                failed[group] = java_text(ApiError(Error.NON_EMPTY_GROUP, f"Share group '{group}' is not EMPTY."))
        results = self._admin.delete_groups(
            [group for group in dict.fromkeys(wanted) if group not in failed], timeout=self._timeout
        )
        failed |= {group: java_text(error) for group, error in results.errors.items()}
        deleted = ", ".join(f"'{group}'" for group in results.values)
        if not failed:
            print(f"Deletion of requested share groups ({deleted}) was successful.")
            return
        print("\nError: Deletion of some share groups failed:")
        for group, reason in failed.items():
            print(f"* Group '{group}' could not be deleted due to: {reason}")
        if deleted:
            print(f"\nThese share groups were deleted successfully: {deleted}")

    def delete_offsets(self) -> None:
        """Carries out `--delete-offsets`: deletes the group's start offsets in the topics that the flags name."""
        group, topics = self._arguments["group"], self._arguments.values("topic")
        outcomes: dict[str, ApiError | None] = {}
        try:
            results = self._admin.delete_share_group_offsets(group, dict.fromkeys(topics), timeout=self._timeout)
            outcomes = {topic: results.errors.get(topic) for topic in topics}
            failure = next(iter(results.errors.values()), None)
        except ApiError as error:
            outcomes = dict.fromkeys(topics, error)
            failure = error
        if failure is not None and failure.error in _KNOWN_ERRORS:
            print(f"\nError: {failure.message}")
        elif failure is not None and failure.error not in _TOPIC_ERRORS:
            print(f"\nError: Encounter some unknown error: {java_text(failure)}")
        print_table(
            [
                ("TOPIC", 15, lambda row: row[0]),
                ("STATUS", 0, lambda row: "Successful" if row[1] is None else f"Error: {row[1].message}"),
            ],
            sorted(outcomes.items(), key=lambda item: item[0]),
        )

    def reset_offsets(self) -> None:
        """Carries out `--reset-offsets`: prints new start offsets, and sets them if `--execute` is given."""
        group = self._arguments["group"]
        results = self._admin.describe_share_groups([group], timeout=self._timeout)
        failure = results.errors.get(group)
        if failure is not None and failure.error is not Error.GROUP_ID_NOT_FOUND:
            raise ToolError(failure.message)
        if failure is None and results[group].state not in ("Empty", "Dead"):
            raise ToolError(f"Share group '{group}' is not empty.")
        try:
            plan = self._plan(group)
            if self._arguments.has("execute"):
                self._admin.alter_share_group_offsets(group, plan, timeout=self._timeout).check()
        except ApiError as error:
            raise CommandFailed(error.message) from error
        except ToolError as error:
            raise CommandFailed(str(error)) from error
        print_plans({group: plan})

    def _plan(self, group: str) -> Plan:
        if self._arguments.has("topic"):
            partitions = parse_partitions(self._admin, self._arguments.values("topic"))
        else:
            partitions = [partition for partition, _ in self._rows(group)]
        return OffsetReset(self._admin, self._arguments).prepare(group, partitions, {})

    def _groups(self) -> list[str]:
        if not self._arguments.has("all-groups"):
            return list(self._arguments.values("group"))
        return [each.group_id for each in self._admin.list_groups(types=["share"], timeout=self._timeout)]


def _is_shown(group: ShareGroupDescription, count: int) -> bool:
    """Returns whether the table about a group, which has `count` rows, is to be printed.

    It is printed if it has rows and the group exists. Prints a message about a group that does not exist or has no
    members.
    """
    if group.state == "Dead":
        print(f"\nError: Share group '{group.group_id}' does not exist.")
    elif group.state == "Empty":
        sys.stdout.flush()
        print(f"\nShare group '{group.group_id}' has no active members.", file=sys.stderr)
    return group.state != "Dead" and count > 0


def _print_state(group: ShareGroupDescription, *, verbose: bool) -> None:
    columns: list[tuple[str, int, Any]] = [
        ("GROUP", 15, lambda row: row.group_id),
        ("COORDINATOR (ID)", 25, lambda row: coordinator_text(row.coordinator)),
        ("STATE", -15, lambda row: row.state),
    ]
    if verbose:
        columns += [
            ("GROUP-EPOCH", -12, lambda row: row.epoch),
            ("ASSIGNMENT-EPOCH", -17, lambda row: row.assignment_epoch),
        ]
    columns.append(("#MEMBERS", 0, lambda row: len(row.members)))
    print_table(columns, [group])


def _print_members(group: ShareGroupDescription, *, verbose: bool) -> None:
    columns: list[tuple[str, int, Any]] = [
        ("GROUP", 15, lambda member: group.group_id),
        ("CONSUMER-ID", 15, lambda member: member.member_id),
        ("HOST", 15, lambda member: member.host),
        ("CLIENT-ID", 15, lambda member: member.client_id),
        ("#PARTITIONS", -12, lambda member: len(member.partitions)),
    ]
    if verbose:
        columns.append(("MEMBER-EPOCH", -13, lambda member: member.epoch))
    columns.append(("ASSIGNMENT", 0, _assignment))
    print_table(columns, sorted(group.members, key=lambda member: member.member_id))


def _assignment(member: ShareMemberDescription) -> str:
    return assignment_text(member.partitions) if member.partitions else ""


OPTIONS = (
    BOOTSTRAP_SERVER,
    Option("group", "The share group to act on; may be repeated with --describe and --delete.", "share group"),
    Option(
        "topic",
        "A topic whose offsets are reset or deleted. With --reset-offsets partitions can be named: `topic1:0,1,2`.",
        "topic",
    ),
    Option("all-topics", "Reset the offsets of all topics of the group."),
    Option("list", "List all share groups."),
    Option("describe", "Describe share groups: their offsets, members or states."),
    Option("all-groups", "Act on all share groups."),
    Option("delete", "Delete share groups without members."),
    TIMEOUT,
    Option(
        "command-config", "A file with the client's configuration.", "command config property file", completes="file"
    ),
    Option(
        "reset-offsets",
        "Set the start offsets of a share group without members. --dry-run shows the plan, --execute carries it out. "
        "One of --to-datetime, --to-earliest, --to-latest selects the offsets, and --all-topics or --topic the "
        "partitions.",
    ),
    Option("delete-offsets", "Delete the offsets of a share group without members for whole topics."),
    Option("dry-run", "With --reset-offsets: only show the result."),
    Option("execute", "With --reset-offsets: set the offsets."),
    TO_DATETIME,
    TO_EARLIEST,
    TO_LATEST,
    Option("members", "With --describe: the members and their partitions."),
    Option("offsets", "With --describe: the start offset and the lag of each partition; the default."),
    STATE,
    Option("verbose", "With --describe: print more, such as epochs."),
    JSON,
)
TOOL = Tool(
    name="share-groups",
    description="This tool helps to list, describe, reset and delete share groups.",
    run=run,
    options=OPTIONS,
    examples=(
        Example("All share groups with their state", "--bootstrap-server localhost:9092 --list --state"),
        Example("The lag of a share group", "--bootstrap-server localhost:9092 --describe --group workers"),
        Example(
            "Read a topic again from its beginning",
            "--bootstrap-server localhost:9092 --reset-offsets --group workers --topic tasks --to-earliest --execute",
        ),
    ),
)


def main(arguments: list[str]) -> int:
    return run_tool(TOOL, arguments)
