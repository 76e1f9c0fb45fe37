"""The command `kafkapy describe`: prints the details of topics, groups, brokers or the cluster."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from kafkapy.client.admin import (
    EARLIEST,
    LATEST,
    Admin,
    ConfigEntry,
    ConfigResource,
    GroupDescription,
    ResourceType,
    TopicDescription,
)
from kafkapy.config.row import ConfigSource
from kafkapy.decimal_text import is_number
from kafkapy.errors import ApiError, Error
from kafkapy.named_tuple import NamedTuple
from kafkapy.tools.declaration import Example, Tool
from kafkapy.tools.group_description import GroupOffsets
from kafkapy.tools.option import Arguments, Option, ToolError, UsageError
from kafkapy.tools.short.listing import brokers
from kafkapy.tools.short.options import CONNECTION, connection_properties, output_of, output_option
from kafkapy.tools.short.output import Problem, Table, print_document, print_fields, print_table
from kafkapy.tools.tool import run_tool
from kafkapy.types import TopicPartition, uuid_to_string

KINDS = ("topic", "group", "broker")
_LAG_TIMEOUT_S = 30.0
# The sources of values that were set for one topic or broker.
_OF_TOPIC = (ConfigSource.TOPIC,)
_OF_BROKER = (ConfigSource.DYNAMIC_BROKER, ConfigSource.STATIC_BROKER)


class Described(NamedTuple):
    """The description of a topic, group, broker or the cluster: values by name, and tables by title."""

    fields: dict[str, Any]
    tables: dict[str, Table]

    def as_dict(self) -> dict[str, Any]:
        """Returns the description as one dict, for JSON and YAML."""
        return {**self.fields, **{title: table.as_dicts() for title, table in self.tables.items()}}


def run(arguments: Arguments) -> None:
    """Prints the descriptions of the things that the command line names, or of the cluster if it names nothing.

    Raises ToolError for a name that does not exist, and UsageError for an unknown kind or output format.
    """
    output = output_of(arguments)
    kind = arguments["kind"]
    if kind is not None and kind not in KINDS:
        raise UsageError(f"{kind} is not a kind: {', '.join(KINDS)}")
    with Admin(connection_properties(arguments)) as admin:
        found = [describe(admin, name, kind) for name in arguments.positionals] or [cluster(admin)]
    if output in ("json", "yaml"):
        documents = [each.as_dict() for each in found]
        print_document(documents if len(documents) > 1 else documents[0], output)
        return
    for index, each in enumerate(found):
        if index:
            print()
        print_fields(each.fields, output)
        for title, table in each.tables.items():
            if table.rows:
                print(f"\n{title}:")
                print_table(table, output)


def describe(admin: Admin, name: str, kind: str | None) -> Described:
    """Returns the description of the topic, group or broker with this name.

    `kind` is "topic", "group" or "broker". If it is None, a topic is looked for first, then a group, then a broker.
    Raises ToolError for an unknown name.
    """
    kinds: dict[str, Callable[[Admin, str], Described | None]] = {"topic": topic, "group": group, "broker": broker}
    for each in (kind,) if kind is not None else KINDS:
        found = kinds[each](admin, name)
        if found is not None:
            return found
    near = get_close_matches(name, list(_names(admin, kind)), 1)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise ToolError(f"there is no {kind or 'topic, group or broker'} {name}{hint}")


def _names(admin: Admin, kind: str | None) -> Iterator[str]:
    """Yields the names of all topics and groups; only of the topics if `kind` is "topic", only of the groups if it is
    "group".
    """
    if kind in (None, "topic"):
        yield from admin.list_topics(include_internal=True)
    if kind in (None, "group"):
        yield from (each.group_id for each in admin.list_groups())


def topic(admin: Admin, name: str) -> Described | None:
    """Returns the description of a topic; None if it does not exist."""
    found = admin.describe_topics([name])
    if name in found.errors:
        if found.errors[name].error in (Error.UNKNOWN_TOPIC_OR_PARTITION, Error.INVALID_TOPIC_EXCEPTION):
            return None
        raise found.errors[name]
    description = found[name]
    resource = ConfigResource(ResourceType.TOPIC, name)
    configs = admin.describe_configs([resource])
    changed = _set_values(configs.values.get(resource, {}), _OF_TOPIC)
    fields = {
        "topic": name,
        "topicId": uuid_to_string(description.topic_id),
        "internal": description.is_internal,
    }
    tables = {"partitions": _partitions(admin, description)}
    if changed.rows:
        tables["configs"] = changed
    return Described(fields, tables)


def _partitions(admin: Admin, description: TopicDescription) -> Table:
    """Returns a table with a row for each partition: leader, epoch, replicas, ISR, start and end offset, record count.

    The offsets of a partition without a leader are None.
    """
    with_leader = [
        TopicPartition(description.name, each.partition) for each in description.partitions if each.leader >= 0
    ]
    starts, ends = (
        {each: found.offset for each, found in admin.list_offsets(dict.fromkeys(with_leader, time)).values.items()}
        if with_leader
        else {}
        for time in (EARLIEST, LATEST)
    )
    rows = []
    for each in description.partitions:
        partition = TopicPartition(description.name, each.partition)
        start, end = starts.get(partition), ends.get(partition)
        count = end - start if start is not None and end is not None else None
        leader = each.leader if each.leader >= 0 else Problem("none")
        isr: Any = list(each.isr)
        isr = Problem(isr) if len(each.isr) < len(each.replicas) else isr
        rows.append((each.partition, leader, each.leader_epoch, list(each.replicas), isr, start, end, count))
    return Table(("PARTITION", "LEADER", "EPOCH", "REPLICAS", "ISR", "START", "END", "RECORDS"), rows)


def _set_values(entries: Mapping[str, ConfigEntry], sources: Collection[int]) -> Table:
    """Returns a table of the configuration keys whose value comes from one of `sources`, and of the values.

    `sources` has numbers of sources in Kafka's protocol. The values of sensitive keys are hidden.
    """
    rows = [
        (name, "(hidden)" if entry.is_sensitive else entry.value)
        for name, entry in sorted(entries.items())
        if entry.source in sources
    ]
    return Table(("KEY", "VALUE"), rows)


def group(admin: Admin, name: str) -> Described | None:
    """Returns the description of a group; None if it does not exist.

    A group that is not a consumer group, such as a share group, is described by its type, its protocol and its state
    only.
    """
    found = admin.describe_groups([name])
    if name in found.errors or found[name].state == "Dead":
        for listed in admin.list_groups():
            if listed.group_id == name:
                state = {"type": listed.type or None, "protocol": listed.protocol_type or None, "state": listed.state}
                return Described({"group": name, **state}, {})
        if name in found.errors and found.errors[name].error not in (Error.GROUP_ID_NOT_FOUND, Error.INVALID_GROUP_ID):
            raise found.errors[name]
        return None
    description = found[name]
    fields = {
        "group": name,
        "type": description.type or None,
        "state": description.state,
        "assignor": description.assignor or None,
        "coordinator": f"{description.coordinator.host}:{description.coordinator.port}",
    }
    return Described(fields, {"members": _members(description), "offsets": _offsets(admin, description)})


def _members(description: GroupDescription) -> Table:
    rows = [
        (each.member_id, each.client_id, each.host, [f"{t}-{number}" for t, number in each.partitions])
        for each in description.members
    ]
    return Table(("MEMBER", "CLIENT-ID", "HOST", "PARTITIONS"), rows)


def _offsets(admin: Admin, description: GroupDescription) -> Table:
    try:
        committed = admin.list_group_offsets([description.group_id])[description.group_id]
    except ApiError as error:
        raise ToolError(f"the offsets of group {description.group_id} cannot be read: {error.message}") from None
    offsets = {each: offset for each, offset in committed.items() if offset is not None}
    rows = [
        (row.topic, row.partition, row.current_offset, row.log_end_offset, Problem(row.lag) if row.lag else row.lag)
        for row in GroupOffsets(admin, read_committed=False, timeout=_LAG_TIMEOUT_S).rows(description, offsets)
    ]
    return Table(("TOPIC", "PARTITION", "COMMITTED", "END", "LAG"), rows)


def broker(admin: Admin, name: str) -> Described | None:
    """Returns the description of the broker whose id is `name`; None if there is none."""
    table = brokers(admin, [name])
    if not table.rows or not is_number(name):
        return None
    resource = ConfigResource(ResourceType.BROKER, name)
    changed = _set_values(admin.describe_configs([resource])[resource], _OF_BROKER)
    return Described(table.as_dicts()[0], {"configs": changed} if changed.rows else {})


def cluster(admin: Admin) -> Described:
    """Returns the description of the cluster."""
    found = admin.describe_cluster()
    names = sorted(admin.list_topics(include_internal=True))
    topics = admin.describe_topics(names).values if names else {}
    partitions = [each for topic in topics.values() for each in topic.partitions]
    under_replicated = sum(len(each.isr) < len(each.replicas) for each in partitions)
    fields = {
        "clusterId": found.cluster_id,
        "controller": found.controller.node_id if found.controller is not None else None,
        "topics": len(topics),
        "partitions": len(partitions),
        "underReplicated": under_replicated,
        "withoutLeader": sum(each.leader < 0 for each in partitions),
    }
    return Described(fields, {"brokers": brokers(admin, ())})


TOOL = Tool(
    name="describe",
    completes="topic",
    description="Prints the details of topics, groups or brokers: kafkapy describe [NAME...] [flags]\n\n"
    "A name is that of a topic, a group or a broker (its id). Without names, describes the cluster.",
    run=run,
    needs_arguments=False,
    options=(
        Option(
            "kind",
            "The kind of the names, for names that both a topic and a group have.",
            "topic|group|broker",
            choices=KINDS,
        ),
        output_option("The format; by default a table on a terminal, and columns separated by tabs otherwise."),
        *CONNECTION,
    ),
    examples=(
        Example("The cluster and its brokers", ""),
        Example("A topic: partitions, offsets, configuration", "prices"),
        Example("A group: members and lag, as YAML", "listeners -o yaml"),
    ),
)


def main(arguments: list[str]) -> int:
    return run_tool(TOOL, arguments)
