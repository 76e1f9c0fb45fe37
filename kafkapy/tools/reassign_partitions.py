"""The tool `kafka-reassign-partitions`: moves replicas to other brokers and to other log directories.

Errors of the command line are printed to standard error, all later errors to standard output, as by Apache Kafka's
tool.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence

from kafkapy.client.admin import Admin, Replica
from kafkapy.controller.placement import place_replicas
from kafkapy.errors import ApiError, Error
from kafkapy.named_tuple import NamedTuple
from kafkapy.tools.bootstrap import COMMAND_CONFIG, SERVERS_HELP, ZOOKEEPER_AND_SERVERS, admin_properties
from kafkapy.tools.declaration import Example, Tool
from kafkapy.tools.java_names import java_text
from kafkapy.tools.option import LONG, Arguments, Option, ToolError, UsageError
from kafkapy.tools.reassignment_file import check_plan, duplicates, fail, plan_text, plural, read_plan, read_topics
from kafkapy.tools.reassignment_progress import (
    current_replicas,
    directory_lines,
    error_lines,
    is_moving,
    ongoing_lines,
    partition_lines,
    present_directories,
    replica_directories,
    replica_name,
)
from kafkapy.tools.reassignment_throttles import clear_throttles, moves_of, throttle_log_dirs, throttle_moves
from kafkapy.tools.replicas import replicas_of
from kafkapy.tools.tool import run_tool
from kafkapy.types import TopicPartition

_ACTIONS = ("generate", "execute", "verify", "cancel", "list")
# The flags that each action requires.
_REQUIRED = {
    "verify": ("reassignment-json-file",),
    "generate": ("topics-to-move-json-file", "broker-list"),
    "execute": ("reassignment-json-file",),
    "cancel": ("reassignment-json-file",),
    "list": (),
}
# The flags that each action accepts in addition to the required ones, --bootstrap-server and --command-config.
_PERMITTED = {
    "verify": ("preserve-throttles",),
    "generate": ("disable-rack-aware",),
    "execute": (
        "additional",
        "throttle",
        "replica-alter-log-dirs-throttle",
        "timeout",
        "disallow-replication-factor-change",
    ),
    "cancel": ("bootstrap-controller", "preserve-throttles", "timeout"),
    "list": ("bootstrap-controller",),
}
# Pause between two attempts to move a replica into a log directory of a broker that does not have the replica yet.
_PAUSE_S = 0.1


class _Broker(NamedTuple):
    """A live broker to which replicas may be assigned, in the form that the placement of replicas expects.

    `rack` is None if the broker has no rack, or if racks are to be ignored. This tool never sets `fenced` and
    `accepts_replicas`, so that every broker counts as a possible target.
    """

    broker_id: int
    rack: str | None
    fenced: bool = False
    accepts_replicas: bool = True


def check(arguments: Arguments) -> str:
    """Returns the name of the action's flag, such as "execute".

    Raises UsageError for a command line that Apache Kafka's tool refuses.
    """
    given = [action for action in _ACTIONS if arguments.has(action)]
    if len(given) != 1:
        shown = ", ".join(f"--{action}" for action in _ACTIONS)
        raise UsageError(f"Command must include exactly one action: {shown}")
    action = given[0]
    if arguments.has("bootstrap-server") and arguments.has("bootstrap-controller"):
        raise UsageError("Please don't specify both --bootstrap-server and --bootstrap-controller")
    if not arguments.has("bootstrap-server") and not arguments.has("bootstrap-controller"):
        raise UsageError("Please specify either --bootstrap-server or --bootstrap-controller")
    arguments.require(*_REQUIRED[action])
    accepted = {action, "bootstrap-server", "zookeeper", "command-config", *_REQUIRED[action], *_PERMITTED[action]}
    for name in arguments.given:
        if name not in accepted:
            raise UsageError(f'Option "[{name}]" can\'t be used with action "[{action}]"')
    return action


def run(arguments: Arguments) -> int:
    """Carries out the action that the flags name; returns the exit code: 1 after an error, otherwise 0."""
    action = _ACTION_FUNCTIONS[check(arguments)]
    with Admin(admin_properties(arguments)) as admin:
        try:
            action(admin, arguments)
        except ToolError as error:
            print(error)
        except ApiError as error:
            print(f"Error: {java_text(error)}")
        else:
            return 0
    return 1


def generate(admin: Admin, arguments: Arguments) -> None:
    """Carries out --generate: prints the present replicas of the topics, and a plan for new ones, as JSON.

    The plan places the replicas of the topics in --topics-to-move-json-file on the brokers of --broker-list.
    """
    brokers = _broker_list(arguments["broker-list"])
    topics = read_topics(arguments["topics-to-move-json-file"])
    described = admin.describe_topics(topics)
    for name, error in described.errors.items():
        if error.error is Error.UNKNOWN_TOPIC_OR_PARTITION:
            raise ApiError(error.error, f"Topic {name} not found.")
        raise error
    current = replicas_of(described.values.values())
    directories = present_directories(admin, current)
    usable = candidates(admin, brokers, is_rack_aware=not arguments.has("disable-rack-aware"))
    proposed: dict[TopicPartition, tuple[int, ...]] = {}
    for topic in described.values.values():
        try:
            placed = place_replicas(usable, len(topic.partitions), len(topic.partitions[0].replicas), random.randrange)
        except ApiError as error:
            fail(error.message)
        proposed.update({TopicPartition(topic.name, number): replicas for number, replicas in enumerate(placed)})
    print(f"Current partition replica assignment\n{plan_text(current, directories)}\n")
    print(f"Proposed partition reassignment configuration\n{plan_text(proposed, {})}")


def _broker_list(text: str) -> list[int]:
    brokers = []
    for word in text.split(","):
        try:
            brokers.append(int(word))
        except ValueError:
            fail(f'For input string: "{word}"')
    twice = duplicates(brokers)
    if twice:
        fail(f"Broker list contains duplicate entries: {twice}")
    return brokers


def candidates(admin: Admin, brokers: Sequence[int], *, is_rack_aware: bool) -> list[_Broker]:
    """Returns the live brokers whose ids are in `brokers`.

    If `is_rack_aware` is False, the result does not contain their racks. Raises ToolError if `is_rack_aware` is True
    and some of these brokers have a rack while others have none.
    """
    live = [node for node in admin.describe_cluster().brokers if node.node_id in brokers]
    if is_rack_aware and 0 < sum(node.rack is None for node in live) < len(live):
        fail(
            "Not all brokers have rack information. Add --disable-rack-aware in command line to make replica "
            "assignment without rack information."
        )
    return [_Broker(node.node_id, node.rack if is_rack_aware else None) for node in live]


def execute(admin: Admin, arguments: Arguments) -> None:
    """Carries out --execute: begins the reassignments and the directory moves in the user's JSON file."""
    plan = read_plan(arguments["reassignment-json-file"])
    check_plan(plan)
    ongoing = admin.list_partition_reassignments()
    if ongoing and not arguments.has("additional"):
        raise ToolError(
            "Cannot execute because there is an existing partition assignment.  Use --additional to override this and "
            "create a new partition assignment in addition to the existing one. The --additional flag can also be used "
            "to change the throttle by resubmitting the current reassignment."
        )
    current = _check_existing(admin, plan.replicas)
    shown = plan_text(current, present_directories(admin, current))
    print(f"Current partition replica assignment\n\n{shown}\n")
    print("Save this to use as the --reassignment-json-file option during rollback")
    rate, log_dirs_rate = arguments["throttle"], arguments["replica-alter-log-dirs-throttle"]
    if rate >= 0 or log_dirs_rate >= 0:
        print(
            "Warning: You must run --verify periodically, until the reassignment completes, to ensure the throttle is "
            "removed."
        )
    if rate >= 0:
        throttle_moves(admin, moves_of(ongoing, plan.replicas, current), rate)
    if log_dirs_rate >= 0:
        throttle_log_dirs(admin, plan.directories, log_dirs_rate)
    results = admin.alter_partition_reassignments(
        plan.replicas, allow_replication_factor_change=not arguments.has("disallow-replication-factor-change")
    )
    if results.errors:
        raise ToolError("\n".join(["Error reassigning partition(s):", *error_lines(results.errors)]))
    partitions = sorted(plan.replicas)
    print(f"Successfully started partition reassignment{plural(partitions)} for {','.join(map(str, partitions))}")
    if plan.directories:
        _move_between_directories(admin, plan.directories, arguments["timeout"])


def _check_existing(
    admin: Admin, wanted: Mapping[TopicPartition, Sequence[int]]
) -> dict[TopicPartition, tuple[int, ...]]:
    """Returns the present replicas of the partitions in `wanted`, whose values are the new replicas' broker ids.

    Raises ToolError if a new replica is on an unknown broker, and ApiError for a partition that does not exist.
    """
    live = {node.node_id for node in admin.describe_cluster().brokers}
    unknown = sorted({broker for replicas in wanted.values() for broker in replicas} - live)
    if unknown:
        fail(f"Unknown broker id {unknown[0]}")
    current = current_replicas(admin, wanted)
    unknown_topics = sorted({partition.topic for partition in wanted} - {partition.topic for partition in current})
    if unknown_topics and admin.describe_topics(unknown_topics).errors:
        raise ApiError(Error.UNKNOWN_TOPIC_OR_PARTITION, f"Topic {unknown_topics[0]} not found.")
    missing = [str(partition) for partition in sorted(wanted) if partition not in current]
    if missing:
        raise ApiError(Error.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition: {', '.join(missing)}")
    return current


def verify(admin: Admin, arguments: Arguments) -> None:
    """Carries out --verify: prints how far the reassignments and the moves of log directories in the JSON file are.

    Removes all throttles if the cluster has no reassignment in progress and none of the file's replicas is being moved
    to another directory, unless --preserve-throttles is given.
    """
    plan = read_plan(arguments["reassignment-json-file"])
    ongoing = admin.list_partition_reassignments()
    current = current_replicas(admin, [partition for partition in plan.replicas if partition not in ongoing])
    print("\n".join(partition_lines(plan.replicas, ongoing, current)))
    directories = replica_directories(admin, plan.directories)
    print("\n".join(directory_lines(plan.directories, directories)))
    is_done = not ongoing and not any(map(is_moving, directories.values()))
    if is_done and not arguments.has("preserve-throttles"):
        clear_throttles(admin, plan.topics, _targets(plan.replicas))


def cancel(admin: Admin, arguments: Arguments) -> None:
    """Carries out --cancel: cancels those reassignments and directory moves of the JSON file that are in progress.

    Removes the throttles too, unless --preserve-throttles is given.
    """
    plan = read_plan(arguments["reassignment-json-file"])
    active = sorted(admin.list_partition_reassignments(plan.replicas)) if plan.partitions else []
    if active:
        results = admin.alter_partition_reassignments(dict.fromkeys(active))
        if results.errors:
            head = f"Error cancelling partition reassignment{plural(results.errors)} for:"
            raise ToolError("\n".join([head, *error_lines(results.errors)]))
        shown = ",".join(map(str, active))
        print(f"Successfully cancelled partition reassignment{plural(active)} for: {shown}")
    else:
        print("None of the specified partition reassignments are active.")
    found = replica_directories(admin, plan.directories)
    # A move is cancelled by a move back into the directory that the replica is in.
    back = {
        replica: each.current for replica, each in found.items() if each.current is not None and each.future is not None
    }
    if back:
        _move_between_directories(admin, back, arguments["timeout"])
    else:
        print("None of the specified partition moves are active.", end="")
    if not arguments.has("preserve-throttles"):
        clear_throttles(admin, plan.topics, _targets(plan.replicas))


def list_reassignments(admin: Admin, arguments: Arguments) -> None:
    """Prints all reassignments in progress."""
    print("\n".join(ongoing_lines(admin.list_partition_reassignments())))


_ACTION_FUNCTIONS: dict[str, Callable[[Admin, Arguments], None]] = {
    "generate": generate,
    "execute": execute,
    "verify": verify,
    "cancel": cancel,
    "list": list_reassignments,
}


def _move_between_directories(admin: Admin, wanted: Mapping[Replica, str], timeout_ms: int) -> None:
    """Asks the brokers to move replicas into other log directories, until all moves have begun.

    `wanted` has the path of the new directory of each replica. A broker that does not have a replica yet is asked
    again. Raises ToolError after `timeout_ms`.
    """
    pending = dict(wanted)
    deadline = time.monotonic() + timeout_ms / 1000
    while True:
        results = admin.alter_replica_log_dirs(pending)
        for replica, error in results.errors.items():
            if error.error is not Error.REPLICA_NOT_AVAILABLE:
                fail(f"Failed to alter dir for {replica_name(replica)}")
        for replica in sorted(results.values, key=_by_broker):
            print(
                f"Successfully started moving log directory to {pending.pop(replica)} for replica "
                f"{replica.topic}-{replica.partition} with broker {replica.broker} "
            )
        if not pending:
            return
        if time.monotonic() >= deadline:
            shown = ",".join(map(replica_name, sorted(pending, key=_by_broker)))
            raise ToolError(f"Timed out before log directory move{plural(pending)} could be started for: {shown}")
        time.sleep(_PAUSE_S)


def _by_broker(replica: Replica) -> tuple[int, str, int]:
    return replica.broker, replica.topic, replica.partition


def _targets(replicas: Mapping[TopicPartition, Sequence[int]]) -> set[int]:
    return {broker for each in replicas.values() for broker in each}


TOOL = Tool(
    name="reassign-partitions",
    description="This tool helps to move topic partitions between replicas.",
    run=run,
    options=(
        Option(
            "bootstrap-server",
            SERVERS_HELP,
            "Server(s) to use for bootstrapping",
            argument_is_optional=True,
        ),
        ZOOKEEPER_AND_SERVERS,
        Option(
            "bootstrap-controller",
            "The controllers to connect to first, instead of brokers, for --cancel and --list.",
            "bootstrap controller to connect to",
            argument_is_optional=True,
        ),
        COMMAND_CONFIG,
        Option(
            "generate",
            "Print a proposal that moves topics to the given brokers. Nothing is moved.",
        ),
        Option("execute", "Begin the reassignment in the file that --reassignment-json-file names."),
        Option(
            "verify",
            "Print whether the reassignment in the file is completed. If no reassignment is in progress, remove the "
            "throttles.",
        ),
        Option("cancel", "Cancel the reassignments in the file that are in progress."),
        Option("list", "List all reassignments in progress."),
        Option(
            "reassignment-json-file",
            'The file with the new replicas, in this format:\n{"partitions":\n\t[{"topic": "foo",\n\t  "partition": '
            '1,\n\t  "replicas": [1,2,3],\n\t  "log_dirs": ["dir1","dir2","dir3"] }],\n"version":1\n}\n"log_dirs" may '
            'be left out. It names a directory for each replica: an absolute path, or "any".',
            "manual assignment json file path",
            completes="file",
        ),
        Option(
            "topics-to-move-json-file",
            'The file with the topics for --generate, in this format:\n{"topics":\n\t[{"topic": "foo"},{"topic": '
            '"foo1"}],\n"version":1\n}',
            "topics to reassign json file path",
            completes="file",
        ),
        Option("broker-list", 'The brokers for --generate, such as "0,1,2".', "brokerlist"),
        Option("disable-rack-aware", "Place replicas without regard to the racks of brokers."),
        Option(
            "throttle",
            "Limit the traffic of moves between brokers to this rate, in bytes/s, which should be at least 1 KB/s. "
            "Together with --additional it changes the rate of a reassignment in progress.",
            "throttle",
            LONG,
            default=-1,
        ),
        Option(
            "replica-alter-log-dirs-throttle",
            "Limit moves between log directories of a broker to this rate, in bytes/s, which should be at least 1 "
            "KB/s. Together with --additional it changes the rate of moves in progress.",
            "replicaAlterLogDirsThrottle",
            LONG,
            default=-1,
        ),
        Option(
            "timeout",
            "The time in ms to wait until all moves between log directories have begun.",
            "timeout",
            LONG,
            default=10000,
        ),
        Option(
            "additional",
            "Execute the reassignment although others are in progress. Also changes the throttles of a reassignment in "
            "progress.",
        ),
        Option("preserve-throttles", "Do not remove the throttles of brokers and topics."),
        Option(
            "disallow-replication-factor-change",
            "Refuse the reassignment of a partition whose number of replicas would change.",
        ),
    ),
    examples=(
        Example(
            "A proposal for two brokers",
            "--bootstrap-server localhost:9092 --generate --topics-to-move-json-file topics.json --broker-list 1,3",
        ),
        Example(
            "Move with at most 50 MB/s",
            "--bootstrap-server localhost:9092 --execute --reassignment-json-file plan.json --throttle 50000000",
        ),
        Example(
            "See if it is complete, and remove the throttle",
            "--bootstrap-server localhost:9092 --verify --reassignment-json-file plan.json",
        ),
    ),
)


def main(arguments: list[str]) -> int:
    return run_tool(TOOL, arguments)
