"""The tool `kafka-transactions`: lists and describes transactions, and finds and aborts hanging transactions, which are
open in a partition but no longer known to their coordinator."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from kafkapy.client.admin import Admin, HangingTransaction, ProducerState
from kafkapy.errors import ApiError
from kafkapy.tools.bootstrap import JSON, admin_properties
from kafkapy.tools.declaration import Command, Example, Grammar, Tool
from kafkapy.tools.hanging_transactions import find_hanging
from kafkapy.tools.json_output import print_json
from kafkapy.tools.option import INTEGER, LONG, Arguments, Option, ToolError
from kafkapy.tools.tool import run_tool
from kafkapy.types import TopicPartition


def run(arguments: Arguments) -> int:
    """Carries out the subcommand that the arguments name; returns the exit code, 0."""
    commands: dict[str, Callable[[Admin, Arguments], None]] = {
        "list": list_transactions,
        "describe": describe,
        "describe-producers": describe_producers,
        "abort": abort,
        "forceTerminateTransaction": force_terminate,
        "find-hanging": print_hanging,
    }
    with Admin(admin_properties(arguments)) as admin:
        commands[arguments.command](admin, arguments)
    return 0


def list_transactions(admin: Admin, arguments: Arguments) -> None:
    """Carries out `list`: prints the transactional ids that the flags select, with their states."""
    found = _or_fail(
        lambda: admin.list_transactions(
            longer_than_ms=arguments["duration-filter"], pattern=arguments["transactional-id-pattern"]
        ),
        "Failed to list transactions",
    )
    if arguments["json"]:
        print_json([each._asdict() for each in found])
        return
    rows = [(each.transactional_id, each.coordinator, each.producer_id, each.state) for each in found]
    print_columns(("TransactionalId", "Coordinator", "ProducerId", "TransactionState"), rows)


def describe(admin: Admin, arguments: Arguments) -> None:
    """Carries out `describe`: prints the state of a transactional id."""
    name = arguments["transactional-id"]
    found = _or_fail(
        lambda: admin.describe_transactions([name])[name],
        f"Failed to describe transaction state of transactional-id `{name}`",
    )
    if arguments["json"]:
        print_json({**found._asdict(), "transactional_id": name, "partitions": sorted(map(str, found.partitions))})
        return
    is_open = found.start_time_ms >= 0
    row = (
        found.coordinator,
        name,
        found.producer_id,
        found.producer_epoch,
        found.state,
        found.timeout_ms,
        found.start_time_ms if is_open else "None",
        int(time.time() * 1000) - found.start_time_ms if is_open else "None",
        ",".join(map(str, found.partitions)),
    )
    names = (
        "CoordinatorId",
        "TransactionalId",
        "ProducerId",
        "ProducerEpoch",
        "TransactionState",
        "TransactionTimeoutMs",
        "CurrentTransactionStartTimeMs",
        "TransactionDurationMs",
        "TopicPartitions",
    )
    print_columns(names, [row])


def describe_producers(admin: Admin, arguments: Arguments) -> None:
    """Carries out `describe-producers`: prints the producers of a partition."""
    partition = TopicPartition(arguments["topic"], arguments["partition"])
    broker = arguments["broker-id"]
    shown = "leader" if broker is None else f"broker {broker}"
    found: list[ProducerState] = _or_fail(
        lambda: admin.describe_producers([partition], broker=broker)[partition],
        f"Failed to describe producers for partition {partition} on {shown}",
    )
    if arguments["json"]:
        print_json([each._asdict() for each in found])
        return
    rows = [
        (
            each.producer_id,
            each.producer_epoch,
            each.coordinator_epoch,
            each.last_sequence,
            each.last_timestamp,
            "None" if each.transaction_start_offset is None else each.transaction_start_offset,
        )
        for each in found
    ]
    names = (
        "ProducerId",
        "ProducerEpoch",
        "LatestCoordinatorEpoch",
        "LastSequence",
        "LastTimestamp",
        "CurrentTransactionStartOffset",
    )
    print_columns(names, rows)


def abort(admin: Admin, arguments: Arguments) -> None:
    """Carries out `abort`: aborts a hanging transaction in one partition by a transaction marker."""
    partition = TopicPartition(arguments["topic"], arguments["partition"])
    if arguments.has("start-offset"):
        hanging = _transaction_at(admin, partition, arguments["start-offset"])
    else:
        if not arguments.has("producer-id"):
            raise ToolError(
                "The transaction to abort must be identified either with --start-offset (for brokers on 3.0 or above) "
                "or with --producer-id, --producer-epoch, and --coordinator-epoch (for older brokers)"
            )
        for name in ("producer-epoch", "coordinator-epoch"):
            if not arguments.has(name):
                raise ToolError(f"Missing required argument --{name}")
        # A coordinator epoch of -1 in the log belongs to a producer without any completed transaction in the partition.
        coordinator_epoch = max(arguments["coordinator-epoch"], 0)
        hanging = HangingTransaction(
            partition, arguments["producer-id"], arguments["producer-epoch"], coordinator_epoch
        )
    _or_fail(lambda: admin.abort_transaction(hanging), f"Failed to abort transaction {hanging}")


def _transaction_at(admin: Admin, partition: TopicPartition, start_offset: int) -> HangingTransaction:
    producers: list[ProducerState] = _or_fail(
        lambda: admin.describe_producers([partition])[partition],
        f"Failed to validate producer state for partition {partition}",
    )
    for each in producers:
        if each.transaction_start_offset == start_offset:
            return HangingTransaction(partition, each.producer_id, each.producer_epoch, max(each.coordinator_epoch, 0))
    raise ToolError(f"Could not find any open transactions starting at offset {start_offset} on partition {partition}")


def force_terminate(admin: Admin, arguments: Arguments) -> None:
    """Carries out `forceTerminateTransaction`: aborts the open transaction of a transactional id."""
    name = arguments["transactionalId"]
    _or_fail(lambda: admin.fence_producers([name]).check(), f"Failed to force terminate transactionalId `{name}`")


def print_hanging(admin: Admin, arguments: Arguments) -> None:
    """Carries out `find-hanging`: prints the hanging transactions."""
    if not arguments.has("broker-id") and not arguments.has("topic"):
        raise ToolError(
            "The `find-hanging` command requires either --topic or --broker-id to limit the scope of the search"
        )
    if arguments.has("partition") and not arguments.has("topic"):
        raise ToolError("The --partition argument requires --topic to be provided")
    found = find_hanging(
        admin,
        topic=arguments["topic"],
        partition=arguments["partition"],
        broker=arguments["broker-id"],
        longer_than_ms=arguments["max-transaction-timeout"] * 60_000,
    )
    wall_ms = int(time.time() * 1000)
    rows = [
        (
            each.partition.topic,
            each.partition.partition,
            each.producer.producer_id,
            each.producer.producer_epoch,
            each.producer.coordinator_epoch,
            each.producer.transaction_start_offset,
            each.producer.last_timestamp,
            (wall_ms - each.producer.last_timestamp) // 60_000,
        )
        for each in found
    ]
    names = (
        "Topic",
        "Partition",
        "ProducerId",
        "ProducerEpoch",
        "CoordinatorEpoch",
        "StartOffset",
        "LastTimestamp",
        "Duration(min)",
    )
    if arguments["json"]:
        print_json([dict(zip(names, row, strict=True)) for row in rows])
    else:
        print_columns(names, rows)


def print_columns(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Prints a table whose columns are as wide as their longest text; every cell ends with a tab."""
    lines = [tuple(names), *(tuple(map(str, row)) for row in rows)]
    widths = [max(len(line[index]) for line in lines) for index in range(len(names))]
    for line in lines:
        print("".join(f"{cell:<{width}}\t" for cell, width in zip(line, widths, strict=True)))


def _or_fail(action: Callable[[], Any], what: str) -> Any:
    try:
        return action()
    except ApiError as error:
        raise ToolError(f"{what}: {error.message}") from error


_CONNECTIONS = (
    Option(
        "bootstrap-server",
        "hostname and port for the broker to connect to, in the form `host:port`  (multiple comma-separated entries "
        "can be given)",
        "host:port",
        is_required=True,
    ),
    Option("command-config", "property file containing configs to be passed to admin client", "FILE", completes="file"),
)
_TOPIC = Option("topic", "topic name", "TOPIC", is_required=True)
_PARTITION = Option("partition", "partition number", "PARTITION", INTEGER, is_required=True)
COMMANDS = (
    Command(
        "list",
        "list transactions",
        (
            Option(
                "duration-filter",
                "Duration (in millis) to filter by: if < 0, all transactions will be returned; otherwise, only "
                "transactions running longer than this duration will be returned",
                "DURATION-FILTER",
                LONG,
                default=-1,
            ),
            Option(
                "transactional-id-pattern",
                "Transactional id regular expression pattern to filter by",
                "TRANSACTIONAL-ID-PATTERN",
            ),
            JSON,
        ),
    ),
    Command(
        "describe",
        "Describe the state of an active transactional-id.",
        (Option("transactional-id", "transactional id", "TRANSACTIONAL-ID", is_required=True), JSON),
    ),
    Command(
        "describe-producers",
        "describe the states of active producers for a topic partition",
        (
            Option(
                "broker-id",
                "optional broker id to describe the producer state on a specific replica",
                "BROKER-ID",
                INTEGER,
            ),
            _TOPIC,
            _PARTITION,
            JSON,
        ),
    ),
    Command(
        "abort",
        "abort a hanging transaction (requires administrative privileges)",
        (
            _TOPIC,
            _PARTITION,
            Option("start-offset", "start offset of the transaction to abort", "START-OFFSET", LONG),
            Option("producer-id", "producer id", "PRODUCER-ID", LONG),
            Option("producer-epoch", "producer epoch", "PRODUCER-EPOCH", INTEGER),
            Option("coordinator-epoch", "coordinator epoch", "COORDINATOR-EPOCH", INTEGER),
        ),
    ),
    Command(
        "forceTerminateTransaction",
        "Force abort an ongoing transaction on transactionalId (requires administrative privileges)",
        (Option("transactionalId", "transactional id", "TRANSACTIONALID", is_required=True),),
    ),
    Command(
        "find-hanging",
        "find hanging transactions",
        (
            Option("broker-id", "broker id to search for hanging transactions", "BROKER-ID", INTEGER),
            Option(
                "max-transaction-timeout",
                "maximum transaction timeout in minutes to limit the scope of the search (15 minutes by default)",
                "MAX-TRANSACTION-TIMEOUT",
                INTEGER,
                default=15,
            ),
            Option("topic", "topic name to limit search to (required if --partition is specified)", "TOPIC"),
            Option("partition", "partition number", "PARTITION", INTEGER),
            JSON,
        ),
    ),
)
TOOL = Tool(
    name="transactions",
    description=(
        "This tool is used to analyze the transactional state of producers in the cluster. It can be used to detect "
        "and recover from hanging transactions."
    ),
    run=run,
    grammar=Grammar.ARGPARSE4J,
    kafka_name="kafka-transactions.sh",
    options=_CONNECTIONS,
    commands=COMMANDS,
    examples=(
        Example("All transactional ids", "--bootstrap-server localhost:9092 list"),
        Example(
            "Transactions that no coordinator will end", "--bootstrap-server localhost:9092 find-hanging --topic prices"
        ),
    ),
)


def main(arguments: list[str]) -> int:
    return run_tool(TOOL, arguments)
