"""The tool `kafka-verifiable-consumer`: prints the events of a consumer in a group as JSON, for system tests."""

from __future__ import annotations

from typing import Any

from kafkapy.client import Consumer, ConsumerRecord, TopicPartition, WakeupError
from kafkapy.client.consumer import ConsumerRecords
from kafkapy.errors import KafkapyError
from kafkapy.tools.bootstrap import await_broker
from kafkapy.tools.declaration import Example, Grammar, Tool
from kafkapy.tools.json_events import print_event
from kafkapy.tools.option import INTEGER, Arguments, Option
from kafkapy.tools.tool import run_tool
from kafkapy.tools.verifiable_parts import COMMAND_CONFIG, bootstrap_option, read_configuration, run_consumer

_POLL_S = 5.0
_PROTOCOLS = ("classic", "consumer")
_POLICIES = ("earliest", "latest", "none")
_RANGE = "org.apache.kafka.clients.consumer.RangeAssignor"


class VerifiableConsumer:
    """Reads records, commits them and prints an event for each step. Not thread-safe, but any thread may call `stop`.

    The class is the consumer's rebalance listener.
    """

    def __init__(self, consumer: Consumer, *, max_messages: int, commits: bool, is_verbose: bool) -> None:
        self._consumer = consumer
        self._max_messages = max_messages
        self._commits = commits
        self._is_verbose = is_verbose
        self._count = 0

    def stop(self) -> None:
        """Makes `read` return. Any thread, and a signal's handler, may call this."""
        print_event("shutdown_requested")
        self._consumer.wakeup()

    def read(self, topic: str) -> None:
        """Reads until as many records were read as --max-messages says; if the number is negative, until `stop` is
        called."""
        self._consumer.subscribe([topic], self)
        while not self._is_finished:
            records = self._consumer.poll(_POLL_S)
            if not records:
                continue
            offsets = self._report(records)
            if self._commits:
                self._commit(offsets)

    @property
    def _is_finished(self) -> bool:
        return 0 <= self._max_messages <= self._count

    def _report(self, records: ConsumerRecords) -> dict[TopicPartition, int]:
        """Prints the events about the records of a poll, and returns the offset to commit for each partition.

        Leaves out the records that exceed --max-messages.
        """
        offsets: dict[TopicPartition, int] = {}
        summaries = []
        for partition, of_partition in records.by_partition().items():
            if self._max_messages >= 0:
                of_partition = of_partition[: self._max_messages - self._count]
            if not of_partition:
                continue
            offsets[partition] = of_partition[-1].offset + 1
            ends = {"minOffset": of_partition[0].offset, "maxOffset": of_partition[-1].offset}
            summaries.append({**_place(partition), "count": len(of_partition), **ends})
            if self._is_verbose:
                for record in of_partition:
                    _print_record(record)
            self._count += len(of_partition)
            if self._is_finished:
                break
        print_event("records_consumed", count=len(records), partitions=summaries)
        return offsets

    def _commit(self, offsets: dict[TopicPartition, int]) -> None:
        """Commits offsets, and prints an event with the outcome.

        If a WakeupError interrupts the commit, the offsets are committed again, and then the WakeupError is raised.
        """
        try:
            self._consumer.commit(offsets)
        except WakeupError:
            self._commit(offsets)
            raise
        except KafkapyError as error:
            self._print_commit(offsets, str(error))
        else:
            self._print_commit(offsets, None)

    def _print_commit(self, offsets: dict[TopicPartition, int], error: str | None) -> None:
        committed = [{**_place(partition), "offset": offset} for partition, offset in offsets.items()]
        failure = {} if error is None else {"error": error}
        print_event("offsets_committed", offsets=committed, success=error is None, **failure)

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        """Prints an event with the partitions that the group has assigned to this consumer."""
        print_event("partitions_assigned", partitions=list(map(_place, partitions)))

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        """Prints an event with the partitions that the group takes from this consumer."""
        print_event("partitions_revoked", partitions=list(map(_place, partitions)))

    def on_partitions_lost(self, partitions: list[TopicPartition]) -> None:
        """Prints an event with the partitions that were lost, because other members may already own them."""
        self.on_partitions_revoked(partitions)


def _place(partition: TopicPartition) -> dict[str, Any]:
    return {"topic": partition.topic, "partition": partition.partition}


def _print_record(record: ConsumerRecord) -> None:
    print_event(
        "record_data",
        key=record.key,
        value=record.value,
        topic=record.topic,
        partition=record.partition,
        offset=record.offset,
    )


def consumer_properties(arguments: Arguments) -> dict[str, Any]:
    """Returns the consumer's configuration. Raises UsageError for two configuration files."""
    properties = read_configuration(arguments, "consumer.config")
    protocol = arguments["group-protocol"].lower()
    properties["group.protocol"] = protocol
    if protocol == "consumer":
        if arguments.has("group-remote-assignor"):
            properties["group.remote.assignor"] = arguments["group-remote-assignor"]
    else:
        properties["partition.assignment.strategy"] = arguments["assignment-strategy"]
        if arguments.has("session-timeout"):
            properties["session.timeout.ms"] = str(arguments["session-timeout"])
    if arguments.has("group-instance-id"):
        properties["group.instance.id"] = arguments["group-instance-id"]
    return properties | {
        "bootstrap.servers": arguments["bootstrap-server"],
        "group.id": arguments["group-id"],
        "enable.auto.commit": "true" if arguments["enable-autocommit"] else "false",
        "auto.offset.reset": arguments["reset-policy"],
        "key.deserializer": "text",
        "value.deserializer": "text",
    }


def run(arguments: Arguments) -> int:
    """Reads records and prints the events; returns 0, the exit code."""
    properties = consumer_properties(arguments)
    await_broker(properties)
    consumer = Consumer(properties)
    test = VerifiableConsumer(
        consumer,
        max_messages=arguments["max-messages"],
        commits=not arguments["enable-autocommit"],
        is_verbose=bool(arguments["verbose"]),
    )
    run_consumer("consumer", consumer, test.stop, lambda: test.read(arguments["topic"]))
    print_event("shutdown_requested")  # Apache Kafka's tool prints this when its process ends, for whatever reason
    return 0


OPTIONS = (
    bootstrap_option(
        "The server(s) to connect to. Comma-separated list of Kafka brokers in the form HOST1:PORT1,HOST2:PORT2,...",
        group="connection",
    ),
    Option("topic", "Consumes messages from this topic.", "TOPIC", is_required=True),
    Option(
        "group-protocol",
        f"Group protocol (must be one of {', '.join(_PROTOCOLS)})",
        "GROUP-PROTOCOL",
        default="classic",
        choices=_PROTOCOLS,
    ),
    Option(
        "group-remote-assignor",
        "Group remote assignor; only used if the group protocol is consumer",
        "GROUP-REMOTE-ASSIGNOR",
    ),
    Option("group-id", "The group id of the consumer group", "GROUP-ID", is_required=True),
    Option("group-instance-id", "A unique identifier of the consumer instance", "GROUP-INSTANCE-ID"),
    Option(
        "max-messages",
        "Consume this many messages. If -1 (the default), the consumer will consume until the process is killed "
        "externally",
        "MAX-MESSAGES",
        INTEGER,
        -1,
    ),
    Option(
        "session-timeout",
        "Set the consumer's session timeout, note that this configuration is not supported when group protocol is "
        "consumer",
        "TIMEOUT-MS",
        INTEGER,
    ),
    Option("verbose", "Enable to log individual consumed records"),
    Option("enable-autocommit", "Enable offset auto-commit on consumer"),
    Option(
        "reset-policy",
        "Set reset policy (must be either 'earliest', 'latest', or 'none')",
        "RESET-POLICY",
        default="earliest",
        choices=_POLICIES,
    ),
    Option(
        "assignment-strategy",
        f"Set assignment strategy (e.g. {_RANGE}); only used if the group protocol is classic",
        "ASSIGNMENT-STRATEGY",
        default=_RANGE,
    ),
    Option(
        "consumer.config",
        "(DEPRECATED) Consumer config properties file. This option will be removed in a future version. Use "
        "--command-config instead",
        "CONFIG-FILE",
        is_deprecated=True,
        completes="file",
    ),
    COMMAND_CONFIG,
)
TOOL = Tool(
    name="verifiable-consumer",
    description=(
        "This tool consumes messages from a specific topic and emits consumer events (e.g. group rebalances, received "
        "messages, and offsets committed) as JSON objects to STDOUT."
    ),
    run=run,
    options=OPTIONS,
    grammar=Grammar.ARGPARSE4J,
    kafka_name="verifiable-consumer",
    required_groups=("connection",),
    examples=(
        Example(
            "Read ten records in a group",
            "--bootstrap-server localhost:9092 --topic numbers --group-id readers --max-messages 10",
        ),
    ),
)


def main(arguments: list[str]) -> int:
    return run_tool(TOOL, arguments)
