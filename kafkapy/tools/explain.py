"""The tool `explain`: the history of a partition, from the metadata log of a running cluster or of a directory."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from kafkapy.client.admin import Admin
from kafkapy.metadata.cluster_image import BrokerRegistration
from kafkapy.metadata.history import MetadataHistory
from kafkapy.metadata.partition_history import PartitionEvent, describe_partition, explain_partition
from kafkapy.tools.bootstrap import (
    COMMAND_CONFIG,
    JSON,
    SERVERS_HELP,
    admin_properties,
    connection_failures,
    controller_addresses,
)
from kafkapy.tools.declaration import Example, Tool
from kafkapy.tools.json_output import print_json
from kafkapy.tools.metadata_log import fetch_history, read_directory
from kafkapy.tools.option import Arguments, Option, ToolError, UsageError
from kafkapy.tools.tool import run_tool

_PARTITION = re.compile(r"(.+)-(\d+)")
_SOURCES = ("bootstrap-server", "bootstrap-controller", "directory")


def run(arguments: Arguments) -> int:
    """Prints the history of a partition or, with --at, the state of the cluster and its partitions at a time.

    Returns 0, the exit code. Raises ToolError if the partition whose history is asked for has never existed, and
    UsageError for an invalid command line.
    """
    if sum(map(arguments.has, _SOURCES)) != 1:
        raise UsageError("Exactly one of --bootstrap-server, --bootstrap-controller and --directory is required")
    if len(arguments.positionals) > 1 or not (arguments.positionals or arguments.has("at")):
        raise UsageError("One partition is required, as TOPIC-PARTITION; it may be left out with --at")
    wanted = _topic_partition(arguments.positionals[0]) if arguments.positionals else None
    wall_ms = time_of(arguments["at"]) if arguments.has("at") else None
    history = _read(arguments)
    if wall_ms is not None:
        return _show_state(history, wall_ms, wanted, as_json=arguments["json"])
    assert wanted is not None
    return _show_history(history, *wanted, as_json=arguments["json"])


def _topic_partition(text: str) -> tuple[str, int]:
    found = _PARTITION.fullmatch(text)
    if found is None:
        raise UsageError(f"{text} is not a partition: TOPIC-PARTITION is required, such as orders-0")
    return found[1], int(found[2])


def time_of(text: str) -> int:
    """Returns a time in ms since 1970 from a text in ISO 8601 (local time, unless it names a zone) or in ms since 1970.

    If a text in ISO 8601 has no fraction of a second, the result is the last ms of the second. Raises UsageError for
    any other text.
    """
    if text.isascii() and text.isdigit():
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise UsageError(f"{text} is not a time: 2026-01-31T12:00:00, or milliseconds since 1970") from error
    # A time without a fraction means the whole second.
    return int(moment.timestamp() * 1000) + (0 if "." in text else 999)


def time_text(wall_ms: int) -> str:
    """Returns a time in ISO 8601, in the zone of this machine."""
    moment = datetime.fromtimestamp(wall_ms / 1000, UTC).astimezone()
    return moment.isoformat(" ", "milliseconds")


def _read(arguments: Arguments) -> MetadataHistory:
    if arguments.has("directory"):
        return read_directory(arguments["directory"])
    properties = admin_properties(arguments)
    with Admin(properties) as admin:
        if arguments.has("bootstrap-controller"):
            return fetch_history(admin)
        quorum = admin.describe_metadata_quorum()
        addresses = controller_addresses(quorum)
        reason = _unreachable(addresses)
        if reason:
            raise ToolError(f"{reason}; {_advice_to_read_the_log(admin, quorum.leader, arguments)}")
        del properties["bootstrap.servers"]
        properties["bootstrap.controllers"] = ",".join(addresses)
    with Admin(properties) as admin:
        return fetch_history(admin)


def _unreachable(addresses: list[str]) -> str:
    """Returns why no controller can be reached at its address; "" if one can be reached."""
    if not addresses:
        return "the brokers name no address of a controller"
    failures = connection_failures(addresses)
    noun = "controller" if len(addresses) == 1 else "controllers"
    return f"Connection to the {noun} could not be established ({'; '.join(failures)})" if failures else ""


def _advice_to_read_the_log(admin: Admin, controller: int, arguments: Arguments) -> str:
    """Returns the advice to run this command on the machine of a controller, with the controller's log directory.

    The advice names the controller's first log directory, which has the metadata log unless `metadata.log.dir` names
    another directory.
    """
    found = admin.describe_log_dirs([controller])
    directory = next(iter(found.values.get(controller, ())), "LOG_DIRECTORY")
    words = [*arguments.positionals, *(["--at", arguments["at"]] if arguments.has("at") else [])]
    command = shlex.join(["kafkapy", "explain", *words, "--directory", directory])
    return f"read the log on the machine of node {controller}: {command}"


def _show_history(history: MetadataHistory, topic: str, partition: int, *, as_json: bool) -> int:
    events = list(explain_partition(history, topic, partition))
    before = history.base.topics.partition(topic, partition)
    state = history.image_at(history.end_offset).topics.partition(topic, partition)
    if before is None and not any(each.partition for each in events):
        raise ToolError(f"The metadata log has no partition {topic}-{partition}")
    if as_json:
        print_json([_event_json(each) for each in events])
        return 0
    if before is not None:
        print(f"Before offset {history.base.offset}, where the log begins: {describe_partition(before)}")
    print("\n".join(lines_of(events)))
    print(f"Now: {describe_partition(state) if state is not None else 'the partition does not exist'}")
    return 0


def lines_of(events: Iterable[PartitionEvent]) -> list[str]:
    """Returns a line for each event: time, offset, change, reason."""
    lines = []
    for event in events:
        why = f"; reason: {event.why}" if event.why else ""
        at = f" (offset {event.because.offset})" if event.because is not None else ""
        lines.append(f"{time_text(event.record.wall_ms)}  {event.record.offset:>8}  {event.what}{why}{at}")
    return lines


def _event_json(event: PartitionEvent) -> dict[str, Any]:
    state = event.partition
    return {
        "timestamp": event.record.wall_ms,
        "offset": event.record.offset,
        "epoch": event.record.epoch,
        "record": type(event.record.message).__name__,
        "what": event.what,
        "why": event.why,
        "because_of_offset": None if event.because is None else event.because.offset,
        "leader": None if state is None else state.leader,
        "leader_epoch": None if state is None else state.leader_epoch,
        "isr": None if state is None else list(state.isr),
        "replicas": None if state is None else list(state.replicas),
    }


def _show_state(history: MetadataHistory, wall_ms: int, wanted: tuple[str, int] | None, *, as_json: bool) -> int:
    offset = history.offset_at(wall_ms)
    if history.records and wall_ms < history.records[0].wall_ms:
        raise ToolError(f"The metadata log begins later, at {time_text(history.records[0].wall_ms)}")
    image = history.image_at(offset)
    partitions = {
        (topic.name, number): describe_partition(state)
        for topic in sorted(image.topics.by_name.values())
        for number, state in sorted(topic.partitions.items())
        if wanted in (None, (topic.name, number))
    }
    brokers = {each.broker_id: _broker_state(each) for each in sorted(image.brokers.values())}
    active = _active_controller(history, offset)
    if as_json:
        shown = {f"{topic}-{number}": text for (topic, number), text in partitions.items()}
        print_json({"offset": offset, "controller": active, "brokers": brokers, "partitions": shown})
        return 0
    print(f"At {time_text(wall_ms)}, offset {offset} of the metadata log, epoch {image.epoch}")
    print(f"Active controller: {'unknown' if active is None else active}")
    for broker_id, text in brokers.items():
        print(f"Broker {broker_id}: {text}")
    for (topic, number), text in partitions.items():
        print(f"{topic}-{number}: {text}")
    if not partitions:
        print("No such partition" if wanted else "No partitions")
    return 0


def _active_controller(history: MetadataHistory, offset: int) -> int | None:
    for record in reversed(history.between(0, offset)):
        if record.is_control and record.message is not None:
            return int(record.message.leader_id)
    return None


def _broker_state(broker: BrokerRegistration) -> str:
    state = "fenced" if broker.fenced else "active"
    if broker.in_controlled_shutdown:
        state += ", in a controlled shutdown"
    addresses = ", ".join(f"{each.name}://{each.host}:{each.port}" for each in broker.endpoints.values())
    return f"{state}, epoch {broker.epoch}, {addresses}"


TOOL = Tool(
    name="explain",
    description="Prints the history of a partition: who led it when and why, with which ISR. With --at it prints the "
    "state of the cluster at a time. Both come from the metadata log.",
    run=run,
    options=(
        Option("bootstrap-server", f"{SERVERS_HELP} The brokers name the controllers.", "HOST:PORT"),
        Option("bootstrap-controller", "The controllers to connect to instead.", "HOST:PORT"),
        Option(
            "directory",
            "The log directory of a running or a stopped node, whose metadata log is read instead.",
            "DIRECTORY",
            completes="directory",
        ),
        COMMAND_CONFIG,
        Option("at", "The time whose state to print: 2026-01-31T12:00:00, or milliseconds since 1970.", "TIME"),
        JSON,
    ),
    examples=(
        Example("The history of a partition", "orders-0 --bootstrap-server localhost:9092"),
        Example("The cluster as it was", "--at 2026-01-31T12:00:00 --directory /var/lib/kafkapy"),
    ),
)


def main(arguments: list[str]) -> int:
    return run_tool(TOOL, arguments)
