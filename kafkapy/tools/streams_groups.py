"""The tool `kafka-streams-groups`: lists, describes and deletes streams groups, and sets or deletes their offsets."""

from __future__ import annotations

import re
from typing import Any

from kafkapy.client.admin import EARLIEST, LATEST, Admin, StreamsAssignment, StreamsGroupDescription
from kafkapy.client.coordinator import OffsetAndMetadata
from kafkapy.errors import ApiError, Error
from kafkapy.tools.bootstrap import BOOTSTRAP_SERVER, COMMAND_CONFIG, JSON, admin_properties
from kafkapy.tools.declaration import Example, Tool
from kafkapy.tools.group_actions import RESET_OPTIONS, STATE, TIMEOUT, GroupActions
from kafkapy.tools.group_description import print_table
from kafkapy.tools.group_listing import CommandFailed, check_views, choose_states, print_listing, report_failure
from kafkapy.tools.java_names import java_text
from kafkapy.tools.json_output import print_json
from kafkapy.tools.offset_deletion import (
    PARTITION_ERRORS,
    Outcomes,
    delete_committed,
    existing_partitions,
    print_outcomes,
)
from kafkapy.tools.offset_reset import STRATEGIES, OffsetReset, Plan, parse_partitions, plan_rows
from kafkapy.tools.option import Arguments, Option, ToolError, UsageError
from kafkapy.tools.tool import run_tool
from kafkapy.types import TopicPartition

ACTIONS = ("list", "describe", "delete", "reset-offsets", "delete-offsets")
_VIEWS = ("members", "offsets", "state")
_STATES = ("Empty", "NotReady", "Stable", "Assigning", "Reconciling", "Dead")
# Errors of the whole request, which are printed without the name of their class.
_KNOWN_ERRORS = (
    Error.INVALID_GROUP_ID,
    Error.GROUP_ID_NOT_FOUND,
    Error.GROUP_AUTHORIZATION_FAILED,
    Error.NON_EMPTY_GROUP,
)
_INTERNAL_TOPIC = re.compile(
    r".*(-changelog|-repartition|-subscription-registration-topic|-subscription-response-topic"
    r"|.-KTABLE-FK-JOIN-SUBSCRIPTION-(REGISTRATION|RESPONSE)-\d+-topic)",
    re.DOTALL,
)

OffsetRow = tuple[TopicPartition, OffsetAndMetadata | None, int, int]  # partition, committed, log end, lag


def check(arguments: Arguments) -> None:
    """Raises UsageError for a command line that Apache Kafka's tool refuses."""
    check_views(arguments)
    arguments.require("bootstrap-server")
    has = arguments.has
    has_group = has("group") or has("all-groups")
    if has("describe"):
        if not has_group:
            raise UsageError("Option [describe] takes one of these options: [all-groups], [group]")
        if sum(map(has, _VIEWS)) > 1:
            raise UsageError("Option [describe] takes at most one of these options: [members], [offsets], [state]")
        if arguments.values("state"):
            raise UsageError("Option [describe] does not take a value for [state]")
    if has("delete"):
        if not has_group:
            raise UsageError("Option [delete] takes one of these options: [all-groups], [group]")
        if has("input-topic") or has("all-input-topics"):
            raise UsageError("Kafka Streams does not support topic-specific offset deletion from a streams group.")
    if has("delete-offsets"):
        _check_delete_offsets(arguments)
    if has("reset-offsets"):
        _check_reset(arguments, has_group=has_group)
    _check_internal_topics(arguments)
    if (has("dry-run") or has("execute")) and not has("reset-offsets"):
        raise UsageError("Only Option [reset-offsets] accepts [execute] or [dry-run]")
    arguments.exclude("group", "all-groups", "list")
    arguments.exclude("input-topic", "list", "describe", "delete")
    if sum(map(has, ACTIONS)) != 1:
        *first, last = (f"--{each}" for each in ACTIONS)
        raise UsageError(f"Command must include exactly one action: {', '.join(first)}, or {last}.")


def _check_delete_offsets(arguments: Arguments) -> None:
    if not arguments.has("group") or not (arguments.has("input-topic") or arguments.has("all-input-topics")):
        raise UsageError(
            "Option [delete-offsets] takes the [group] and one of these options: [all-input-topics], [input-topic]"
        )
    groups = arguments.values("group")
    if len(groups) > 1:
        raise UsageError(
            f"Option [delete-offsets] supports only one [group] at a time, but found: [{', '.join(groups)}]"
        )


def _check_reset(arguments: Arguments, *, has_group: bool) -> None:
    if arguments.has("dry-run") and arguments.has("execute"):
        raise UsageError("Option [reset-offsets] only accepts one of [execute] and [dry-run]")
    if not arguments.has("dry-run") and not arguments.has("execute"):
        raise UsageError("Option [reset-offsets] takes the option: [execute] or [dry-run]")
    if not has_group:
        raise UsageError("Option [reset-offsets] takes one of these options: [all-groups], [group]")
    for strategy in STRATEGIES:
        arguments.exclude(strategy, *(other for other in STRATEGIES if other != strategy))


def _check_internal_topics(arguments: Arguments) -> None:
    has = arguments.has
    if has("delete-all-internal-topics"):
        if not has("reset-offsets") and not has("delete"):
            raise UsageError(
                "Option [delete-all-internal-topics] takes one of these options: [delete], [reset-offsets]"
            )
        if has("reset-offsets") and not has("execute"):
            raise UsageError("Option [delete-all-internal-topics] takes [execute] when [reset-offsets] is used.")
    elif has("delete-internal-topic") and not (has("reset-offsets") and has("execute")):
        raise UsageError("Option [delete-internal-topic] takes [reset-offsets] when [execute] is used.")


def run(arguments: Arguments) -> int:
    """Carries out the action that the flags name; returns the exit code: 1 after an error, otherwise 0."""
    check(arguments)
    with Admin(admin_properties(arguments)) as admin:
        try:
            StreamsGroups(admin, arguments).run()
        except (ApiError, CommandFailed) as error:
            report_failure("streams", error)
            return 1
    return 0


class StreamsGroups(GroupActions):
    """The actions of the tool. Not thread-safe."""

    def list_groups(self) -> None:
        """Carries out `--list`: prints the groups."""
        states = choose_states(self._arguments, _STATES)
        found = self._admin.list_groups(types=["streams"], states=states, timeout=self._timeout)
        print_listing(self._arguments, found, shows_states=self._arguments.has("state"))

    def describe(self) -> None:
        """Carries out `--describe`: prints the offsets, members or states of the streams groups that the flags name."""
        verbose = self._arguments.has("verbose")
        shown: list[dict[str, Any]] = []
        for group in self._groups():
            described = self._admin.describe_streams_groups([group], timeout=self._timeout)[group]
            if self._arguments["json"]:
                offsets = [
                    {"topic": row[0].topic, "partition": row[0].partition, "lag": row[3]}
                    for row in self._offsets(described)
                ]
                shown.append(
                    {**described._asdict(), "coordinator": described.coordinator._asdict(), "offsets": offsets}
                )
            elif self._arguments.has("members"):
                if described.state != "Dead" and described.members:
                    _print_members(described, verbose=verbose)
            elif self._arguments.has("state"):
                _print_state(described, verbose=verbose)
            else:
                rows = self._offsets(described)
                if described.state != "Dead" and described.members:
                    _print_offsets(described, rows, verbose=verbose)
        if self._arguments["json"]:
            print_json(shown)

    def _offsets(self, group: StreamsGroupDescription) -> list[OffsetRow]:
        """Returns a row for each partition that the active tasks of the members read.

        A row is the partition, the committed offset with its metadata (None if there is no committed offset), the end
        offset, and the lag.
        """
        sources = {
            each.subtopology_id: (*each.source_topics, *(topic.name for topic in each.repartition_source_topics))
            for each in group.subtopologies
        }
        partitions = sorted(
            {
                TopicPartition(topic, number)
                for member in group.members
                for subtopology, numbers in member.assignment.active
                for topic in sources.get(subtopology, ())
                for number in numbers
            }
        )
        if not partitions:
            return []
        first = self._admin.list_offsets(dict.fromkeys(partitions, EARLIEST), timeout=self._timeout).check()
        end = self._admin.list_offsets(dict.fromkeys(partitions, LATEST), timeout=self._timeout).check()
        committed = self._committed(group.group_id)
        rows = []
        for partition in partitions:
            offset = committed.get(partition)
            begin = first[partition].offset if offset is None else offset.offset
            rows.append((partition, offset, end[partition].offset, end[partition].offset - begin))
        return rows

    def delete(self) -> None:
        """Carries out `--delete`: deletes groups, and with --delete-all-internal-topics their internal topics."""
        listed = {
            each.group_id: each.state for each in self._admin.list_groups(types=["streams"], timeout=self._timeout)
        }
        wanted = list(dict.fromkeys(self._groups()))
        failed: dict[str, str] = {}
        for group in wanted:
            if group not in listed:
                reason = f"Group '{group}' does not exist or is not a streams group."
                failed[group] = f"java.lang.IllegalArgumentException: {reason}"
            elif listed[group] == "Dead":
                failed[group] = f"java.lang.IllegalStateException: Streams group '{group}' group state is DEAD."
            elif listed[group] != "Empty":
                failed[group] = java_text(ApiError(Error.NON_EMPTY_GROUP, f"Streams group '{group}' is not EMPTY."))
        remaining = [group for group in wanted if group not in failed]
        internal = {}
        if self._arguments.has("delete-all-internal-topics") and remaining:
            internal = {group: topics for group in remaining if (topics := self._internal_topics(group))}
        results = self._admin.delete_groups(remaining, timeout=self._timeout)
        failed |= {group: java_text(error) for group, error in results.errors.items()}
        failures = {group: self._delete_topics(internal[group]) for group in results.values if group in internal}
        deleted = "', '".join(results.values)
        if not failed:
            print(f"Deletion of requested streams groups ('{deleted}') was successful.")
        else:
            print("\nError: Deletion of some streams groups failed:")
            for group, reason in failed.items():
                print(f"* Group '{group}' could not be deleted due to: {reason}")
            if deleted:
                print(f"\nThese streams groups were deleted successfully: '{deleted}'.")
        if failures:
            _print_internal_topics(failures)

    def _delete_topics(self, topics: list[str]) -> ApiError | None:
        """Deletes topics; prints those that cannot be deleted, and returns the first error."""
        results = self._admin.delete_topics(topics, timeout=self._timeout)
        for topic in (each for each in topics if each in results.errors):
            print(f"Failed to delete internal topic: {topic}")
        return next(iter(results.errors.values()), None)

    def _internal_topics(self, group: str) -> list[str]:
        """Returns the internal topics of a group whose names have the form that Kafka Streams chooses.

        Prints an error for each other internal topic, which is not deleted.
        """
        described = self._admin.describe_streams_groups([group], timeout=self._timeout)[group]
        sources = {topic for each in described.subtopologies for topic in each.source_topics}
        found = [
            topic.name
            for each in described.subtopologies
            for topic in (*each.repartition_source_topics, *each.changelog_topics)
            if topic.name not in sources
        ]
        for topic in found:
            if not _is_inferred(topic, group):
                print(
                    f"\nError: The internal topic '{topic}' is not inferred as internal and thus will not be deleted "
                    f"with the group '{group}'."
                )
        return [topic for topic in dict.fromkeys(found) if _is_inferred(topic, group)]

    def delete_offsets(self) -> None:
        """Carries out `--delete-offsets`: deletes committed offsets of input topics."""
        group = self._arguments["group"]
        outcomes: Outcomes = {}
        if self._arguments.has("all-input-topics"):
            partitions = list(self._input_offsets(group))
        else:
            partitions = existing_partitions(self._admin, self._arguments.values("input-topic"), outcomes)
        failure = delete_committed(self._admin, group, partitions, outcomes, self._timeout)
        if failure is None:
            print(f"Request succeeded for deleting offsets from group {group}.")
        elif failure.error in _KNOWN_ERRORS:
            print(f"\nError: {failure.error.message}")
        elif failure.error in PARTITION_ERRORS:
            print("\nError: Encountered some partition-level error, see the follow-up details.")
        else:
            print(f"\nError: Encountered some unknown error: {failure.error.name}")
        print_outcomes(sorted(outcomes.items(), key=lambda item: f"{item[0].topic}{item[0].partition}"))

    def reset_offsets(self) -> None:
        """Carries out `--reset-offsets`: prints new offsets of groups, and commits them if `--execute` is given."""
        groups = self._groups()
        results = self._admin.describe_streams_groups(groups, timeout=self._timeout)
        plans: dict[str, Plan] = {}
        for group in groups:
            error = results.errors.get(group)
            if error is not None and error.error is not Error.GROUP_ID_NOT_FOUND:
                raise error
            state = "Dead" if error is not None else results[group].state
            if state not in ("Empty", "Dead"):
                print(
                    f"\nError: Assignments can only be reset if the group '{group}' is inactive, but the current state "
                    f"is {state}."
                )
                plans[group] = {}
                continue
            plans[group] = self._reset(group)
            if self._arguments.has("execute") and error is None:
                self._delete_internal_topics(group)
        self._show(plans)

    def _reset(self, group: str) -> Plan:
        try:
            partitions = self._partitions_to_reset(group)
            committed = {partition: each.offset for partition, each in self._all_offsets(group).items()}
            plan = OffsetReset(self._admin, self._arguments).prepare(group, partitions, committed)
            if self._arguments.has("execute") and plan:
                self._admin.alter_group_offsets(group, plan, timeout=self._timeout).check()
        except ApiError as error:
            raise CommandFailed(error.message) from error
        except ToolError as error:
            raise CommandFailed(str(error)) from error
        return plan

    def _partitions_to_reset(self, group: str) -> list[TopicPartition]:
        if self._arguments.has("all-input-topics"):
            return list(self._input_offsets(group))
        if self._arguments.has("input-topic"):
            partitions = parse_partitions(self._admin, self._arguments.values("input-topic"))
            known = self._all_offsets(group)
            if all(partition in known for partition in partitions):
                return partitions
            print(f"\nError: One or more topics are not part of the group '{group}'.")
            return []
        if self._arguments.has("from-file"):
            return []
        raise UsageError("One of the reset scopes should be defined: --all-topics, --topic.")

    def _delete_internal_topics(self, group: str) -> None:
        """Deletes the internal topics that the flags name; called after the group's offsets were reset.

        An error is printed and not raised, because the offsets have already been committed: the reset has succeeded,
        and the caller still prints its result.
        """
        topics = self._arguments.values("delete-internal-topic")
        if self._arguments.has("delete-all-internal-topics"):
            topics = self._internal_topics(group)
        if not topics:
            return
        errors = self._admin.delete_topics(topics, timeout=self._timeout).errors
        error = next(iter(errors.values()), None)
        if error is not None:
            reason = f"due to {java_text(error)}"
            if error.error is Error.UNKNOWN_TOPIC_OR_PARTITION:
                reason = "because the topics do not exist."
            print(f"\nError: Deleting internal topics for group '{group}' failed {reason}")

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
        elif not plans:
            print()
        else:
            print_table(
                [
                    ("GROUP", -30, lambda row: row[0]),
                    ("TOPIC", -30, lambda row: row[1]),
                    ("PARTITION", -10, lambda row: row[2]),
                    ("NEW-OFFSET", -15, lambda row: row[3]),
                ],
                rows,
            )

    def _groups(self) -> list[str]:
        if not self._arguments.has("all-groups"):
            return list(self._arguments.values("group"))
        return [each.group_id for each in self._admin.list_groups(types=["streams"], timeout=self._timeout)]

    def _all_offsets(self, group: str) -> dict[TopicPartition, OffsetAndMetadata]:
        return self._admin.list_group_offsets([group], timeout=self._timeout)[group]

    def _committed(self, group: str) -> dict[TopicPartition, OffsetAndMetadata]:
        """Returns the committed offsets in the topics that the group's tasks read, including repartition topics."""
        described = self._admin.describe_streams_groups([group], timeout=self._timeout)[group]
        topics = {
            topic
            for each in described.subtopologies
            for topic in (*each.source_topics, *(internal.name for internal in each.repartition_source_topics))
        }
        return {partition: each for partition, each in self._all_offsets(group).items() if partition.topic in topics}

    def _input_offsets(self, group: str) -> dict[TopicPartition, OffsetAndMetadata]:
        """Returns the committed offsets in the group's source topics, without internal topics.

        Raises CommandFailed if the group does not exist.
        """
        described = self._admin.describe_streams_groups([group], timeout=self._timeout).values.get(group)
        if described is None:
            failure = ApiError(Error.GROUP_ID_NOT_FOUND, f"Group {group} not found.")
            raise CommandFailed(f"java.util.concurrent.ExecutionException: {java_text(failure)}")
        topics = {topic for each in described.subtopologies for topic in each.source_topics}
        return {partition: each for partition, each in self._all_offsets(group).items() if partition.topic in topics}


def _is_inferred(topic: str, group: str) -> bool:
    """Returns whether a name is one that Kafka Streams gives to an internal topic of the application `group`."""
    return topic.startswith(f"{group}-") and _INTERNAL_TOPIC.fullmatch(topic) is not None


def _print_internal_topics(failures: dict[str, ApiError | None]) -> None:
    """Prints whether the internal topics of each group were deleted.

    `failures` maps each group to the error of the deletion, or to None if all of the group's internal topics were
    deleted.
    """
    failed = {group: error for group, error in failures.items() if error is not None}
    if not failed:
        groups = "', '".join(failures)
        print(f"Deletion of associated internal topics of the streams groups ('{groups}') was successful.")
        return
    print("Deletion of some associated internal topics failed:")
    for group, error in failed.items():
        print(f"* Internal topics of the streams group '{group}' could not be deleted due to: {java_text(error)}")


def _print_notice(group: StreamsGroupDescription) -> None:
    if group.state == "Dead":
        print(f"\nError: Streams group '{group.group_id}' does not exist.")
    elif group.state == "Empty":
        print(f"\nError: Streams group '{group.group_id}' has no active members.")


def _print_state(group: StreamsGroupDescription, *, verbose: bool) -> None:
    _print_notice(group)
    node = group.coordinator
    columns: list[tuple[str, int, Any]] = [
        ("GROUP", 15, lambda row: row.group_id),
        ("COORDINATOR (ID)", 25, lambda row: f"{node.host}:{node.port} ({node.node_id})"),
        ("STATE", -25, lambda row: row.state),
    ]
    if verbose:
        columns += [
            ("GROUP-EPOCH", -15, lambda row: row.epoch),
            ("TARGET-ASSIGNMENT-EPOCH", -25, lambda row: row.assignment_epoch),
        ]
    columns.append(("#MEMBERS", 0, lambda row: len(row.members)))
    print_table(columns, [group], begins_with_a_line=False)


def _print_members(group: StreamsGroupDescription, *, verbose: bool) -> None:
    _print_notice(group)
    columns: list[tuple[str, int, Any]] = [("GROUP", 15, lambda member: group.group_id)]
    if verbose:
        # Apache Kafka's tool prints no blank between the topology's epoch and the member.
        columns += [
            ("TARGET-ASSIGNMENT-EPOCH", -25, lambda member: group.assignment_epoch),
            (f"{'TOPOLOGY-EPOCH':<15}MEMBER", 30, lambda member: f"{group.topology_epoch!s:<15}{member.member_id}"),
            ("MEMBER-PROTOCOL", -15, lambda member: "classic" if member.is_classic else "streams"),
            ("MEMBER-EPOCH", -15, lambda member: member.epoch),
        ]
    else:
        columns.append(("MEMBER", 15, lambda member: member.member_id))
    columns += [
        ("PROCESS", 15, lambda member: member.process_id),
        ("CLIENT-ID", 15, lambda member: member.client_id),
        (
            "ASSIGNMENTS",
            0,
            lambda member: _tasks(member.assignment) + (_tasks(member.target, "TARGET-") if verbose else ""),
        ),
    ]
    print_table(columns, group.members, begins_with_a_line=False)


def _tasks(assignment: StreamsAssignment, prefix: str = "") -> str:
    """Returns the tasks of a member as text, such as `ACTIVE: 0:[0,1]; ` (subtopology 0, partitions 0 and 1).

    It has a list for each kind of tasks (active, standby, warm-up) that the member has; `prefix` precedes the name of
    the kind. Returns "" if there are no tasks.
    """
    shown = ""
    for kind, tasks in assignment._asdict().items():
        if tasks:
            listed = "".join(f"{name}:[{','.join(map(str, numbers))}]; " for name, numbers in tasks)
            shown += f"{prefix}{kind.upper()}: {listed}"
    return shown


def _print_offsets(group: StreamsGroupDescription, rows: list[Any], *, verbose: bool) -> None:
    _print_notice(group)
    columns: list[tuple[str, int, Any]] = [
        ("GROUP", 15, lambda row: group.group_id),
        ("TOPIC", 15, lambda row: row[0].topic),
        ("PARTITION", -10, lambda row: row[0].partition),
    ]
    if verbose:
        columns += [
            ("CURRENT-OFFSET", -15, lambda row: row[1] and row[1].offset),
            ("LEADER-EPOCH", -15, lambda row: row[1].leader_epoch if row[1] and row[1].leader_epoch >= 0 else None),
            ("LOG-END-OFFSET", -15, lambda row: row[2]),
        ]
    columns.append(("OFFSET-LAG", -15 if verbose else 0, lambda row: row[3]))
    print_table(columns, rows, begins_with_a_line=False)


OPTIONS = (
    BOOTSTRAP_SERVER,
    Option("group", "The streams group to act on; may be repeated.", "streams group"),
    Option(
        "input-topic",
        "An input topic whose offsets are reset or deleted; may be repeated. Partitions can be named: `topic1:0,1,2`.",
        "topic",
    ),
    Option("all-input-topics", "Reset or delete the offsets of all source topics of the topology."),
    Option("list", "List all streams groups."),
    Option("describe", "Describe streams groups: their offsets, members or states."),
    Option("all-groups", "Act on all streams groups."),
    Option("delete", "Delete streams groups without members, with all their offsets."),
    Option("delete-offsets", "Delete offsets of one streams group for input topics."),
    TIMEOUT,
    COMMAND_CONFIG,
    STATE,
    Option("members", "With --describe: the members and their tasks."),
    Option("offsets", "With --describe: the lag of each partition; the default."),
    Option(
        "reset-offsets",
        "Set the offsets of streams groups without members. --dry-run shows the plan, --execute carries it out. One of "
        "--to-datetime, --by-duration, --to-earliest, --to-latest, --shift-by, --from-file, --to-current, --to-offset "
        "selects the offsets, and --all-input-topics or --input-topic the partitions (not with --from-file).",
    ),
    *RESET_OPTIONS,
    Option("delete-internal-topic", "With --reset-offsets --execute: delete this internal topic; may be repeated.", ""),
    Option(
        "delete-all-internal-topics",
        "With --delete, or with --reset-offsets --execute: delete all internal topics of the groups.",
    ),
    Option("verbose", "With --describe: print more, such as epochs, target tasks and committed offsets."),
    Option("dry-run", "With --reset-offsets: only show the result."),
    Option("execute", "With --reset-offsets: set the offsets."),
    Option("export", "With --reset-offsets: show the result as CSV."),
    JSON,
)
TOOL = Tool(
    name="streams-groups",
    description="This tool helps to list, or describe streams groups.",
    run=run,
    options=OPTIONS,
    examples=(
        Example("All streams groups with their state", "--bootstrap-server localhost:9092 --list --state"),
        Example("The tasks of each member", "--bootstrap-server localhost:9092 --describe --group words --members"),
        Example(
            "Process all records again, with empty state stores",
            "--bootstrap-server localhost:9092 --reset-offsets --group words --all-input-topics --to-earliest "
            "--execute --delete-all-internal-topics",
        ),
    ),
)


def main(arguments: list[str]) -> int:
    return run_tool(TOOL, arguments)
