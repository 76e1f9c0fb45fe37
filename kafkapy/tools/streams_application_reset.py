"""The tool `kafka-streams-application-reset`: resets a Kafka Streams application, so that it processes its input again.

It moves the committed offsets of the input topics to a chosen position and the committed offsets of intermediate topics
to the end, and deletes internal topics.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from kafkapy.client.admin import EARLIEST, LATEST, Admin
from kafkapy.errors import ApiError, Error
from kafkapy.tools.bootstrap import admin_properties
from kafkapy.tools.declaration import Example, Tool
from kafkapy.tools.java_names import java_text
from kafkapy.tools.offset_reset import parse_datetime, parse_duration
from kafkapy.tools.option import LONG, Arguments, Option, ToolError
from kafkapy.tools.tool import run_tool
from kafkapy.types import TopicPartition

_POSITIONS = ("to-offset", "to-datetime", "by-duration", "to-earliest", "to-latest", "from-file", "shift-by")
_INTERNAL = re.compile(
    r".*-(changelog|repartition|subscription-registration-topic|subscription-response-topic)"
    r"|.+-KTABLE-FK-JOIN-SUBSCRIPTION-(REGISTRATION|RESPONSE)-\d+-topic",
    re.DOTALL,
)
Offsets = dict[TopicPartition, int]


def check(arguments: Arguments) -> None:
    """Raises UsageError for flags that exclude each other."""
    for name in _POSITIONS:
        arguments.exclude(name, *(each for each in _POSITIONS if each != name))
    arguments.exclude("config-file", "command-config")


def run(arguments: Arguments) -> int:
    """Resets the application; returns the exit code: 1 if a topic of the command line does not exist, otherwise 0."""
    check(arguments)
    config = "command-config"
    if arguments.has("config-file"):
        config = "config-file"
        print(
            "Option --config-file has been deprecated and will be removed in a future version. Use --command-config "
            "instead."
        )
    with Admin(admin_properties(arguments, config)) as admin:
        try:
            return _Reset(admin, arguments).run()
        except ApiError as error:
            raise ToolError(f"ERROR: {java_text(error)}") from error


class _Reset:
    """One run of the tool: resets the offsets and deletes the internal topics of one application. Not thread-safe."""

    def __init__(self, admin: Admin, arguments: Arguments) -> None:
        self._admin = admin
        self._arguments = arguments
        self._group: str = arguments["application-id"]
        self._inputs: list[str] = arguments.values("input-topics")
        self._intermediates: list[str] = arguments.values("intermediate-topics")
        self._topics: Collection[str] = ()

    def run(self) -> int:
        if self._arguments.has("intermediate-topics"):
            print("WARN: `--intermediate-topics` is deprecated and will be removed in a future release")
        self._remove_members()
        self._topics = self._admin.list_topics()
        if self._arguments.has("dry-run"):
            print("----Dry run displays the actions which will be performed when running Streams Reset Tool----")
        code = self._reset_offsets()
        self._delete_internal_topics()
        return code

    def _remove_members(self) -> None:
        """Removes the members of the group if --force is set; otherwise raises ToolError if there are members."""
        found = self._admin.describe_groups([self._group])
        error = found.errors.get(self._group)
        if error is not None and error.error is Error.GROUP_ID_NOT_FOUND:
            return
        members = found[self._group].members
        if not members:
            return
        if not self._arguments.has("force"):
            names = ", ".join(f"{each.member_id} ({each.host})" for each in members)
            raise ToolError(
                f"ERROR: java.lang.IllegalStateException: Consumer group '{self._group}' is still active and has "
                f"following members: [{names}]. Make sure to stop all running application instances before running the "
                "reset tool. You can use option '--force' to remove active members from the group."
            )
        print(f"Force deleting all active members in the group: {self._group}")
        for failure in self._admin.remove_group_members(self._group).errors.values():
            if failure.error is not Error.UNKNOWN_MEMBER_ID:  # such a member has left by itself
                raise failure

    def _reset_offsets(self) -> int:
        """Moves the group's offsets in the input and intermediate topics that exist; only prints them with --dry-run.

        Returns the exit code, which is 1 if a topic does not exist.
        """
        if not self._inputs and not self._intermediates:
            print("No input or intermediate topics specified. Skipping seek.")
            return 0
        if self._inputs:
            print(f"Reset-offsets for input topics {_java_list(self._inputs)}")
        if self._intermediates:
            print(f"Seek-to-end for intermediate topics {_java_list(self._intermediates)}")
        code = 0
        for kind, names, label in (("input", self._inputs, "Topic: "), ("intermediate", self._intermediates, "Topic:")):
            missing = [name for name in names if name not in self._topics]
            if missing:
                print(f"Following {kind} topics are not found, skipping them")
                for name in missing:
                    print(f"{label}{name}")
                code = 1
        inputs = self._partitions(self._inputs)
        intermediates = [each for each in self._partitions(self._intermediates) if each not in inputs]
        if not inputs and not intermediates:
            return code
        try:
            offsets = {**self._input_offsets(inputs), **self._intermediate_offsets(intermediates)}
        except (ToolError, OSError):
            print("ERROR: Resetting offsets failed.", file=sys.stderr)
            raise
        if not self._arguments.has("dry-run"):
            self._admin.alter_group_offsets(self._group, offsets).check()
        print("Done.")
        return code

    def _partitions(self, names: Sequence[str]) -> list[TopicPartition]:
        existing = [name for name in dict.fromkeys(names) if name in self._topics]
        found = self._admin.describe_topics(existing).check() if existing else {}
        return [TopicPartition(name, each.partition) for name in found for each in found[name].partitions]

    def _ends(self, partitions: Collection[TopicPartition], end: int) -> Offsets:
        found = self._admin.list_offsets(dict.fromkeys(partitions, end)).check() if partitions else {}
        return {each: found[each].offset for each in partitions}

    def _intermediate_offsets(self, partitions: Sequence[TopicPartition]) -> Offsets:
        if partitions:
            print(f"Following intermediate topics offsets will be reset to end (for consumer group {self._group})")
            for name in dict.fromkeys(each.topic for each in partitions):
                print(f"Topic: {name}")
        return self._ends(partitions, LATEST)

    def _input_offsets(self, partitions: Sequence[TopicPartition]) -> Offsets:
        if not partitions:
            return {}
        print(f"Following input topics offsets will be reset to (for consumer group {self._group})")
        offsets = self._chosen(partitions)
        for topic, number in partitions:
            print(f"Topic: {topic} Partition: {number} Offset: {offsets[TopicPartition(topic, number)]}")
        return offsets

    def _chosen(self, partitions: Sequence[TopicPartition]) -> Offsets:
        """Returns the new offset of each partition, as a flag such as --to-latest or --to-offset determines it.

        Without such a flag, the new offset is the earliest offset of the partition.
        """
        arguments = self._arguments
        if arguments.has("to-offset"):
            return self._within_range(dict.fromkeys(partitions, arguments["to-offset"]))
        if arguments.has("to-latest"):
            return self._ends(partitions, LATEST)
        if arguments.has("shift-by"):
            positions = self._ends(partitions, LATEST)
            committed = self._admin.list_group_offsets([self._group])[self._group]
            positions.update((each, committed[each].offset) for each in partitions if each in committed)
            return self._within_range({each: offset + arguments["shift-by"] for each, offset in positions.items()})
        if arguments.has("to-datetime"):
            return self._at_time(partitions, _parse_with_prefixed_error(parse_datetime, arguments["to-datetime"]))
        if arguments.has("by-duration"):
            return self._at_time(partitions, int(time.time() * 1000) - parse_duration(arguments["by-duration"]))
        if arguments.has("from-file"):
            return self._planned(partitions)
        return self._ends(partitions, EARLIEST)

    def _at_time(self, partitions: Sequence[TopicPartition], timestamp: int) -> Offsets:
        offsets = self._ends(partitions, timestamp)
        late = [each for each in partitions if offsets[each] < 0]
        for topic, number in late:
            print(
                f"Partition {number} from topic {topic} is empty, without a committed record. Falling back to latest "
                "known offset."
            )
        return {**offsets, **self._ends(late, LATEST)}

    def _planned(self, partitions: Sequence[TopicPartition]) -> Offsets:
        plan = read_plan(self._arguments["from-file"])
        wanted = {each: plan[each] for each in partitions if each in plan}
        absent = [str(each) for each in partitions if each not in plan]
        if absent:
            raise ToolError(f"ERROR: the reset plan lacks partitions of the input topics: {', '.join(absent)}")
        return self._within_range(wanted)

    def _within_range(self, wanted: Mapping[TopicPartition, int]) -> Offsets:
        """Returns `wanted` with each offset outside of its partition replaced by the nearer end of the partition.

        Prints each offset that is replaced. As Apache Kafka's tool does, it also prints each offset that equals an end
        of its partition.
        """
        starts, ends = self._ends(list(wanted), EARLIEST), self._ends(list(wanted), LATEST)
        offsets: Offsets = {}
        for each, offset in wanted.items():
            if starts[each] < offset < ends[each]:
                offsets[each] = offset
                continue
            is_late = offset >= ends[each]
            offsets[each] = ends[each] if is_late else starts[each]
            what = "higher than latest" if is_late else "lower than earliest"
            print(f"New offset ({offset}) is {what} offset. Value will be set to {offsets[each]}")
        return offsets

    def _delete_internal_topics(self) -> None:
        """Deletes the internal topics that the command line names, or else all internal topics that were found.

        With --dry-run it only prints their names. Raises ToolError if a topic that the command line names is not an
        internal topic, or if a topic cannot be deleted.
        """
        inferred = [name for name in self._topics if self._is_internal(name)]
        specified: list[str] = self._arguments.values("internal-topics")
        if not set(specified) <= set(inferred):
            raise ToolError(
                "ERROR: java.lang.IllegalArgumentException: Invalid topic specified in the --internal-topics option. "
                "Ensure that the topics specified are all internal topics. Do a dry run without the --internal-topics "
                "option to see the list of all internal topics that can be deleted."
            )
        topics = specified or inferred
        print(f"Deleting {'specified' if specified else 'inferred'} internal topics {_java_list(topics)}")
        if topics and not self._arguments.has("dry-run"):
            failed = self._admin.delete_topics(topics).errors
            for name, error in failed.items():
                print(f"ERROR: deleting topic {name!s}\n{java_text(error)}", file=sys.stderr)
            if failed:
                raise ToolError("ERROR: java.lang.RuntimeException: Encountered an error deleting one or more topics")
        print("Done.")

    def _is_internal(self, name: str) -> bool:
        if name in self._inputs or name in self._intermediates or not name.startswith(f"{self._group}-"):
            return False
        return _INTERNAL.fullmatch(name) is not None


def read_plan(path: str) -> Offsets:
    """Returns the offsets in a file with lines TOPIC,PARTITION,OFFSET.

    Raises ToolError if the file is empty or a line has another form, and OSError if it cannot be read.
    """
    lines = Path(path).read_text().splitlines()
    prefix = "ERROR: java.text.ParseException: "
    if not lines:
        raise ToolError(f"{prefix}Error parsing reset plan CSV file. It is empty,")
    plan: Offsets = {}
    for line in lines:
        words = line.split(",")
        if len(words) != 3:
            raise ToolError(f"{prefix}Reset plan CSV file is not following the format `TOPIC,PARTITION,OFFSET`.")
        try:
            plan[TopicPartition(words[0], int(words[1]))] = int(words[2])
        except ValueError:
            raise ToolError(f"ERROR: {line} of the reset plan is not TOPIC,PARTITION,OFFSET") from None
    return plan


def _parse_with_prefixed_error(parse: Callable[[str], int], text: str) -> int:
    try:
        return parse(text)
    except ToolError as error:
        raise ToolError(f"ERROR: {error}") from None


def _java_list(names: Sequence[str]) -> str:
    return f"[{', '.join(names)}]"


TOOL = Tool(
    name="streams-application-reset",
    description=(
        "This tool helps to quickly reset an application in order to reprocess its data from scratch.\n"
        "* It resets offsets of input topics, by default to the earliest available offset.\n"
        '* It deletes the internal topics that Kafka Streams has created (topics starting with "<application.id>-"). '
        'If the topics that --dry-run shows are unsuitable, "--internal-topics" names a subset.\n'
        "* It deletes neither output topics nor the local state of the application's instances: call "
        "KafkaStreams#cleanUp() in the application, or delete the directory of state.dir. The output is wrong "
        "otherwise.\n"
        "* Members that stopped without leaving block the tool until their session ends; --force removes them.\n\n"
        "The changes cannot be undone: run the tool with --dry-run first."
    ),
    run=run,
    options=(
        Option(
            "application-id",
            "REQUIRED: The Kafka Streams application ID (application.id).",
            "id",
            is_required=True,
        ),
        Option(
            "bootstrap-server",
            "The brokers to connect to first, as HOST1:PORT1,HOST2:PORT2; $KAFKAPY_BOOTSTRAP_SERVERS and the profile "
            "replace the default.",
            "server to connect to",
            default="localhost:9092",
        ),
        Option(
            "input-topics",
            "Comma-separated list of user input topics. For these topics, the tool by default will reset the offset to "
            "the earliest available offset. Reset to other offset position by appending other reset offset option, "
            "ex: --input-topics foo --shift-by 5",
            "list",
            separator=",",
        ),
        Option(
            "intermediate-topics",
            "[deprecated] Comma-separated list of intermediate user topics (topics that are input and output topics). "
            "For these topics, the tool will skip to the end.",
            "list",
            separator=",",
            is_deprecated=True,
        ),
        Option(
            "internal-topics",
            "Comma-separated list of internal topics to delete. Must be a subset of the internal topics marked for "
            "deletion by the default behaviour (do a dry-run without this option to view these topics).",
            "list",
            separator=",",
        ),
        Option("to-offset", "Reset offsets to a specific offset.", "", LONG),
        Option("to-datetime", "Reset offsets to offset from datetime. Format: 'YYYY-MM-DDThh:mm:ss.sss'", ""),
        Option("by-duration", "Reset offsets to offset by duration from current timestamp. Format: 'PnDTnHnMnS'", ""),
        Option("to-earliest", "Reset offsets to earliest offset."),
        Option("to-latest", "Reset offsets to latest offset."),
        Option("from-file", "Reset offsets to values defined in CSV file.", "", completes="file"),
        Option(
            "shift-by",
            "Reset offsets shifting current offset by 'n', where 'n' can be positive or negative",
            "number-of-offsets",
            LONG,
        ),
        Option(
            "config-file",
            "(DEPRECATED) Property file containing configs to be passed to admin clients and embedded consumer. This "
            "option will be removed in a future version. Use --command-config instead.",
            "file name",
            completes="file",
            is_deprecated=True,
        ),
        Option(
            "command-config",
            "Config properties file to be passed to admin clients and embedded consumer.",
            "file name",
            completes="file",
        ),
        Option(
            "force",
            "Force the removal of members of the consumer group (intended to remove stopped members if a long session "
            "timeout was used). Make sure to shut down all stream applications when this option is specified to avoid "
            "unexpected rebalances.",
        ),
        Option("dry-run", "Display the actions that would be performed without executing the reset commands."),
    ),
    examples=(
        Example(
            "What a reset would do",
            "--bootstrap-server localhost:9092 --application-id wordcount --input-topics lines --dry-run",
        ),
    ),
)


def main(arguments: list[str]) -> int:
    return run_tool(TOOL, arguments)
