"""The tool `rebalance`: proposes and executes moves that even out the disks, the traffic and the leaders of brokers."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import inf

from kafkapy.client.admin import Admin, LogDirDescription
from kafkapy.tools.balance_execution import Execution
from kafkapy.tools.balance_plan import BalancePlan, BrokerState, PartitionLoad, Rules, broker_loads, plan_balance
from kafkapy.tools.bootstrap import COMMAND_CONFIG, SERVERS_HELP, admin_properties
from kafkapy.tools.controller_move import move_controller
from kafkapy.tools.declaration import Example, Tool
from kafkapy.tools.option import DOUBLE, INTEGER, LONG, Arguments, Option, ToolError, UsageError
from kafkapy.tools.reassignment_file import plan_text
from kafkapy.tools.replicas import id_list
from kafkapy.tools.tool import run_tool
from kafkapy.types import TopicPartition

_GOALS = ("disk", "traffic", "leaders")
_REPLICAS = "replicas"
_RULES = ("goals", "topics", "keep", "empty", "tolerance", "max-moves-per-broker", "max-moves-per-topic")
_UNITS = ("B", "KB", "MB", "GB", "TB")
_UNIT = 1024
Directories = Mapping[int, Mapping[str, LogDirDescription]]


def run(arguments: Arguments) -> int:
    """Prints or executes a plan, or moves the active controller; returns the exit code.

    It is 1 if a move failed, or if a replica has to leave its broker and no other broker may have it; otherwise 0.
    """
    if arguments.has("move-controller"):
        _check_controller_flags(arguments)
        properties = admin_properties(arguments)
        with Admin(properties) as admin:
            print(move_controller(admin, arguments["move-controller"], properties))
        return 0
    if not arguments.has("bootstrap-server"):
        raise UsageError("--bootstrap-server is required")
    rules = rules_of(arguments)
    if arguments["concurrent-moves"] < 1:
        raise UsageError("--concurrent-moves must be at least 1")
    with Admin(admin_properties(arguments)) as admin:
        brokers, partitions = read_cluster(admin, arguments["sample-seconds"] if "traffic" in rules.resources else 0)
        rules = check_rules(rules, brokers, partitions)
        plan = plan_balance(brokers, partitions, rules)
        if arguments["json"]:
            print(plan_text(plan.replicas, {}))
        else:
            print("\n".join(plan_lines(brokers, partitions, rules, plan)))
        if arguments["execute"] and plan.replicas:
            return _execute(admin, arguments, partitions, plan)
    if plan.replicas and not arguments["json"]:
        print("Nothing was moved. To carry out the plan, add --execute")
    return 1 if plan.unmoved else 0


def _check_controller_flags(arguments: Arguments) -> None:
    if arguments.has("bootstrap-server") == arguments.has("bootstrap-controller"):
        raise UsageError("Exactly one of --bootstrap-server and --bootstrap-controller is required")
    for name in (*_RULES, "execute", "json"):
        if arguments.has(name):
            raise UsageError(f"--{name} has no meaning together with --move-controller")


def rules_of(arguments: Arguments) -> Rules:
    """Returns the rules that the flags name: goals, limits, and topics and brokers that are treated differently.

    Raises UsageError for invalid values.
    """
    goals = arguments["goals"].split(",")
    unknown = sorted(set(goals) - set(_GOALS))
    if unknown:
        raise UsageError(f"Unknown goal {unknown[0]}: the goals are {', '.join(_GOALS)}")
    if not 0 <= arguments["tolerance"] < 100:
        raise UsageError("--tolerance is a percentage below 100")
    return Rules(
        resources=tuple(each for each in goals if each != "leaders"),
        leaders="leaders" in goals,
        tolerance=arguments["tolerance"] / 100,
        topics=frozenset(arguments["topics"].split(",")) if arguments.has("topics") else None,
        kept=_kept(arguments.values("keep")),
        emptied=frozenset(_broker_ids(arguments["empty"])) if arguments.has("empty") else (),
        most_per_broker=arguments["max-moves-per-broker"] if arguments.has("max-moves-per-broker") else inf,
        most_per_topic=arguments["max-moves-per-topic"] if arguments.has("max-moves-per-topic") else inf,
        rack_aware=not arguments["disable-rack-aware"],
    )


def _kept(values: Iterable[str]) -> dict[str, frozenset[int]]:
    kept = {}
    for value in values:
        topic, equals, brokers = value.partition("=")
        if not topic or not equals:
            raise UsageError(f"{value} does not name brokers of a topic: TOPIC=BROKER,BROKER is required")
        kept[topic] = frozenset(_broker_ids(brokers))
    return kept


def _broker_ids(text: str) -> list[int]:
    words = text.split(",")
    if not all(each.isascii() and each.isdigit() for each in words):
        raise UsageError(f"{text} is not a list of broker ids, such as 1,2,3")
    return list(map(int, words))


def check_rules(rules: Rules, brokers: Sequence[BrokerState], partitions: Sequence[PartitionLoad]) -> Rules:
    """Returns `rules`, in which the number of replicas replaces the resource "disk" if all partitions are empty.

    Raises ToolError for topics and brokers in the rules that the cluster does not have.
    """
    known = {each.partition.topic for each in partitions}
    named = {*(rules.topics or ()), *rules.kept}
    if unknown := sorted(named - known):
        raise ToolError(f"The cluster has no topic {unknown[0]}")
    live = {each.broker_id for each in brokers}
    with_replicas = {broker for each in partitions for broker in each.replicas}
    targets = {broker for kept in rules.kept.values() for broker in kept}
    if absent := sorted((set(rules.emptied) - live - with_replicas) | (targets - live)):
        raise ToolError(f"The cluster has no live broker {absent[0]}")
    if "disk" in rules.resources and not any(each.loads["disk"] for each in partitions):
        return rules._replace(resources=tuple(_REPLICAS if each == "disk" else each for each in rules.resources))
    return rules


def read_cluster(admin: Admin, sample_s: float) -> tuple[list[BrokerState], list[PartitionLoad]]:
    """Returns the live brokers, and all partitions with their sizes and their traffic.

    The traffic is the number of bytes per second by which a log grows. To measure it, the call blocks for `sample_s`
    seconds; if `sample_s` is 0, the traffic is 0.
    """
    nodes = admin.describe_cluster().brokers
    live = [each.node_id for each in nodes]
    before = admin.describe_log_dirs(live).check()
    growth: Mapping[TopicPartition, float] = {}
    if sample_s > 0:
        began_s = time.monotonic()
        time.sleep(sample_s)
        after = admin.describe_log_dirs(live).check()
        growth = traffic(_sizes(before), _sizes(after), time.monotonic() - began_s)
        before = after
    brokers = [
        BrokerState(each.node_id, each.rack, not all(found.is_cordoned for found in before[each.node_id].values()))
        for each in nodes
    ]
    sizes = _sizes(before)
    described = admin.describe_topics(list(admin.list_topics(include_internal=True))).check()
    partitions = [
        PartitionLoad(key, each.replicas, {"disk": sizes[key], "traffic": growth.get(key, 0.0), _REPLICAS: 1.0})
        for topic in described.values()
        for each in topic.partitions
        for key in [TopicPartition(topic.name, each.partition)]
    ]
    return brokers, sorted(partitions)


def _sizes(directories: Directories) -> Counter[TopicPartition]:
    """Returns the size of each partition in bytes: the size of its largest replica. Future replicas are ignored.

    `directories` maps each broker id to a dictionary, which maps the path of each log directory to its description.
    """
    sizes: Counter[TopicPartition] = Counter()
    for found in directories.values():
        for directory in found.values():
            for partition, info in directory.replicas.items():
                if not info.is_future:
                    sizes[partition] = max(sizes[partition], info.size)
    return sizes


def traffic(
    before: Mapping[TopicPartition, int], after: Mapping[TopicPartition, int], seconds: float
) -> dict[TopicPartition, float]:
    """Returns the bytes per second by which the log of each partition has grown.

    `before` and `after` have the sizes of the logs in bytes; `seconds` is the time between the two measurements. The
    rate is 0 for a log that has shrunk because segments were deleted.
    """
    return {key: max(size - before.get(key, size), 0) / seconds for key, size in after.items()}


def plan_lines(
    brokers: Sequence[BrokerState], partitions: Sequence[PartitionLoad], rules: Rules, plan: BalancePlan
) -> list[str]:
    """Returns the lines to print for a plan.

    They are a table of the loads of the brokers before and after the plan, a line for each partition that changes or
    that cannot be moved, and a summary.
    """
    after = [each._replace(replicas=plan.replicas.get(each.partition, each.replicas)) for each in partitions]
    names = [name for name in ("disk", "traffic") if name in rules.resources]
    columns = [_REPLICAS, *names, "leaders"]
    rows = [["broker", *(f"{name}{suffix}" for name in columns for suffix in ("", " after"))]]
    ids = sorted({*(each.broker_id for each in brokers), *(broker for each in partitions for broker in each.replicas)})
    loads = {name: (broker_loads(partitions, name), broker_loads(after, name)) for name in (_REPLICAS, *names)}
    loads["leaders"] = (_leaders(partitions), _leaders(after))
    for broker in ids:
        rows.append([str(broker), *(_shown(name, load[broker]) for name in columns for load in loads[name])])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True)) for row in rows]
    changed = {each.partition: each for each in partitions if each.partition in plan.replicas}
    moved = 0.0
    for partition, replicas in sorted(plan.replicas.items()):
        former = changed[partition]
        size = former.loads.get("disk", 0) * len(set(replicas) - set(former.replicas))
        moved += size
        what = f"copies {_shown('disk', size)}" if set(replicas) != set(former.replicas) else "changes the leader only"
        lines.append(f"{partition}: {id_list(former.replicas)} -> {id_list(replicas)}, {what}")
    lines += [f"{partition}: cannot be moved: {reason}" for partition, reason in sorted(plan.unmoved.items())]
    if not plan.replicas:
        lines.append("The cluster is balanced" if not plan.unmoved else "Nothing can be moved")
    else:
        lines.append(f"{len(plan.replicas)} partitions change, {_shown('disk', moved)} to copy")
    return lines


def _leaders(partitions: Iterable[PartitionLoad]) -> Counter[int]:
    return Counter(each.replicas[0] for each in partitions)


def _shown(name: str, value: float) -> str:
    """Returns the text of `value`, which is a load of the resource `name` in the table.

    It is a number of replicas or leaders, or bytes with a unit ("disk"), or bytes per second ("traffic").
    """
    if name in (_REPLICAS, "leaders"):
        return str(int(value))
    unit = 0
    while value >= _UNIT and unit < len(_UNITS) - 1:
        value, unit = value / _UNIT, unit + 1
    return f"{value:.0f} {_UNITS[unit]}{'/s' if name == 'traffic' else ''}"


def _execute(admin: Admin, arguments: Arguments, partitions: Iterable[PartitionLoad], plan: BalancePlan) -> int:
    current = {each.partition: each.replicas for each in partitions if each.partition in plan.replicas}
    rate = arguments["throttle"] if arguments.has("throttle") else None
    execution = Execution(
        admin, plan.replicas, current, arguments["concurrent-moves"], lambda line: print(line, flush=True)
    )
    try:
        execution.run(rate)
    except KeyboardInterrupt:
        print("Interrupted: the moves in progress are cancelled", flush=True)
        execution.cancel()
        raise
    finally:
        print("\n".join(execution.outcome.lines()), flush=True)
    return 1 if execution.outcome.failed or plan.unmoved else 0


TOOL = Tool(
    name="rebalance",
    description="Proposes moves of replicas that even out disks, traffic and leaders, and executes them. Nothing is "
    "moved without --execute. Ctrl-C cancels the moves in progress and prints what was done.",
    run=run,
    options=(
        Option("bootstrap-server", SERVERS_HELP, "HOST:PORT"),
        Option("bootstrap-controller", "The controllers to connect to first, for --move-controller.", "HOST:PORT"),
        COMMAND_CONFIG,
        Option("execute", "Carry out the plan."),
        Option(
            "goals",
            "What to even out: disk, traffic (the growth of the logs) and leaders. While all disks are empty, the "
            "number of replicas counts instead.",
            "GOAL,GOAL",
            default="disk,leaders",
            choices=_GOALS,
        ),
        Option("topics", "Change these topics only.", "TOPIC,TOPIC"),
        Option("keep", "Keep a topic on these brokers; may be repeated.", "TOPIC=BROKER,BROKER"),
        Option("empty", "Move all replicas away from these brokers.", "BROKER,BROKER"),
        Option("tolerance", "The percentage by which a broker may differ from the mean.", "PERCENT", DOUBLE, 10.0),
        Option("max-moves-per-broker", "Move at most this many replicas from and to a broker.", "NUMBER", INTEGER),
        Option("max-moves-per-topic", "Move at most this many replicas of a topic.", "NUMBER", INTEGER),
        Option("disable-rack-aware", "Allow plans by which a partition's replicas are in fewer racks."),
        Option("sample-seconds", "The time for which traffic is measured.", "SECONDS", DOUBLE, 10.0),
        Option("throttle", "Limit the moves of each broker to this rate, in bytes/s.", "RATE", LONG),
        Option(
            "concurrent-moves",
            "The largest number of partitions that are moved from or to a broker at a time.",
            "NUMBER",
            INTEGER,
            5,
        ),
        Option("move-controller", "Make this voter the active controller instead.", "NODE", INTEGER),
        Option("json", "Print the plan as a file for kafkapy reassign-partitions."),
    ),
    examples=(
        Example("See what would be moved", "--bootstrap-server localhost:9092"),
        Example(
            "Empty broker 4 with at most 50 MB/s",
            "--bootstrap-server localhost:9092 --empty 4 --execute --throttle 50000000",
        ),
        Example("Make node 2 the active controller", "--bootstrap-server localhost:9092 --move-controller 2"),
    ),
)


def main(arguments: list[str]) -> int:
    return run_tool(TOOL, arguments)
