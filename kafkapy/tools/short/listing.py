"""The command `kafkapy ls`: lists topics, groups or brokers."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from kafkapy.client.admin import Admin
from kafkapy.tools.declaration import Example, Tool
from kafkapy.tools.option import Arguments, Option
from kafkapy.tools.short.options import CONNECTION, connection_properties, output_of, output_option
from kafkapy.tools.short.output import Problem, Table, print_table
from kafkapy.tools.tool import run_tool


def run(arguments: Arguments) -> None:
    """Prints the list of topics, of groups with --groups, or of brokers with --brokers."""
    arguments.exclude("groups", "brokers", "all")
    arguments.exclude("brokers", "all")
    output = output_of(arguments)
    with Admin(connection_properties(arguments)) as admin:
        if arguments["groups"]:
            table = groups(admin, arguments.positionals)
        elif arguments["brokers"]:
            table = brokers(admin, arguments.positionals)
        else:
            table = topics(admin, arguments.positionals, includes_internal=arguments["all"])
    print_table(table, output)


def _is_chosen(name: str, patterns: Sequence[str]) -> bool:
    return not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)


def topics(admin: Admin, patterns: Sequence[str], *, includes_internal: bool) -> Table:
    """Returns a table of the topics that match one of the patterns (`*`, `?`); without patterns, of all topics.

    A row also has the numbers of partitions, replicas and under-replicated partitions.
    """
    names = [name for name in admin.list_topics(include_internal=includes_internal) if _is_chosen(name, patterns)]
    found = (
        admin.describe_topics(sorted(names)).values if names else {}
    )  # a topic may be deleted between the two requests
    rows = []
    for name, topic in found.items():
        replicas = max((len(each.replicas) for each in topic.partitions), default=0)
        lacking = sum(each.leader < 0 or len(each.isr) < len(each.replicas) for each in topic.partitions)
        rows.append((name, len(topic.partitions), replicas, Problem(lacking) if lacking else 0))
    return Table(("TOPIC", "PARTITIONS", "REPLICAS", "UNDER-REPLICATED"), rows)


def groups(admin: Admin, patterns: Sequence[str]) -> Table:
    """Returns a table of the groups that match one of the patterns (`*`, `?`); without patterns, of all groups."""
    found = sorted(each for each in admin.list_groups() if _is_chosen(each.group_id, patterns))
    rows = [(each.group_id, each.type or None, each.protocol_type or None, each.state or None) for each in found]
    return Table(("GROUP", "TYPE", "PROTOCOL", "STATE"), rows)


def brokers(admin: Admin, patterns: Sequence[str]) -> Table:
    """Returns a table of the brokers whose id matches one of the patterns (`*`, `?`); without patterns, of all
    brokers."""
    cluster = admin.describe_cluster()
    controller = cluster.controller.node_id if cluster.controller is not None else None
    chosen = [each for each in sorted(cluster.brokers) if _is_chosen(str(each.node_id), patterns)]
    rows = [(each.node_id, each.host, each.port, each.rack, each.node_id == controller) for each in chosen]
    return Table(("BROKER", "HOST", "PORT", "RACK", "CONTROLLER"), rows)


TOOL = Tool(
    name="ls",
    description="Lists topics, groups or brokers: kafkapy ls [PATTERN...] [flags]\n\nA pattern is a name with * and ?.",
    run=run,
    needs_arguments=False,
    options=(
        Option("groups", "List groups.", aliases=("g",)),
        Option("brokers", "List brokers.", aliases=("B",)),
        Option("all", "List internal topics as well.", aliases=("a",)),
        output_option("The format; by default a table on a terminal, and columns separated by tabs otherwise."),
        *CONNECTION,
    ),
    examples=(
        Example("All topics", ""),
        Example("Topics by their names, as JSON", "'prices-*' -o json"),
        Example("Groups with their states", "-g"),
    ),
)


def main(arguments: list[str]) -> int:
    return run_tool(TOOL, arguments)
