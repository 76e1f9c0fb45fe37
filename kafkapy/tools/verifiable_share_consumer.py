"""The tool `kafka-verifiable-share-consumer`: prints the events of a share consumer as JSON, for system tests."""

from __future__ import annotations

import logging
from typing import Any

from kafkapy.client import ApiError, ShareConsumer, TopicPartition
from kafkapy.client.admin import Admin, ConfigChange, ConfigResource, ResourceType
from kafkapy.client.consumer import ConsumerRecords
from kafkapy.config.properties import read_properties
from kafkapy.tools.bootstrap import await_broker
from kafkapy.tools.declaration import Example, Grammar, Tool
from kafkapy.tools.json_events import print_event
from kafkapy.tools.option import INTEGER, Arguments, Option, ToolError
from kafkapy.tools.tool import run_tool
from kafkapy.tools.verifiable_parts import COMMAND_CONFIG, bootstrap_option, run_consumer

log = logging.getLogger("kafkapy.tools.verifiable_share_consumer")

_POLL_S = 5.0
_RESET_TIMEOUT_S = 60.0
_MODES = ("auto", "async", "sync")
_STRATEGIES = ("earliest", "latest")


class VerifiableShareConsumer:
    """Reads records and prints a line of JSON for each event. Not thread-safe, but any thread may call `stop`.

    `mode` selects when acknowledgements are sent: "auto" with the next poll, "async" by `commit_async` after each poll,
    or "sync" by `commit`, which waits for the response.
    """

    def __init__(self, consumer: ShareConsumer, *, mode: str, max_messages: int, is_verbose: bool) -> None:
        self._consumer = consumer
        self._mode = mode
        self._max_messages = max_messages
        self._is_verbose = is_verbose
        self._acknowledged = 0

    def stop(self) -> None:
        """Makes `read` raise WakeupError. Any thread may call it."""
        self._consumer.wakeup()

    def read(self, topic: str) -> None:
        """Reads until `max_messages` records are acknowledged, or until `stop` if `max_messages` is negative.

        Raises WakeupError after `stop`.
        """
        self._consumer.subscribe(topic)
        self._consumer.set_acknowledgement_commit_callback(self._on_acknowledged)
        while self._max_messages < 0 or self._acknowledged < self._max_messages:
            records = self._consumer.poll(_POLL_S)
            if not records:
                continue
            self._report(records)
            if self._mode == "async":
                self._consumer.commit_async()
            elif self._mode == "sync":
                for partition, error in self._consumer.commit().items():
                    if error is not None:
                        log.error("Failed to commit offset synchronously for topic partition: %s", partition)

    def _report(self, records: ConsumerRecords) -> None:
        summaries = []
        for partition, of_partition in records.by_partition().items():
            summaries.append(_summary(partition, [record.offset for record in of_partition]))
            if self._is_verbose:
                for record in of_partition:
                    print_event(
                        "record_data",
                        key=record.key,
                        value=record.value,
                        topic=record.topic,
                        partition=record.partition,
                        offset=record.offset,
                    )
        print_event("records_consumed", count=len(records), partitions=summaries)

    def _on_acknowledged(self, offsets: dict[TopicPartition, frozenset[int]], error: ApiError | None) -> None:
        count = sum(map(len, offsets.values()))
        partitions = [_summary(partition, sorted(each)) for partition, each in offsets.items()]
        outcome: dict[str, Any] = {"success": True} if error is None else {"success": False, "error": error.message}
        print_event("offsets_acknowledged", count=count, partitions=partitions, **outcome)
        if error is None:
            self._acknowledged += count


def _summary(partition: TopicPartition, offsets: list[int]) -> dict[str, Any]:
    return {"topic": partition.topic, "partition": partition.partition, "count": len(offsets), "offsets": offsets}


def set_reset_strategy(properties: dict[str, Any], strategy: str) -> None:
    """Sets share.auto.offset.reset to `strategy` for the group in `properties`, and prints an event about it."""
    with Admin({key: each for key, each in properties.items() if key != "group.id"}) as admin:
        resource = ConfigResource(ResourceType.GROUP, properties["group.id"])
        change = ConfigChange("share.auto.offset.reset", strategy)
        admin.incremental_alter_configs({resource: [change]}, timeout=_RESET_TIMEOUT_S).check()
    print_event("offset_reset_strategy_set", offsetResetStrategy=strategy)


def run(arguments: Arguments) -> int:
    """Reads records and prints the events; returns 0, the exit code.

    Raises ToolError for an unknown acknowledgement mode or reset strategy.
    """
    mode, strategy = arguments["acknowledgement-mode"].lower(), arguments["offset-reset-strategy"].lower()
    if mode not in _MODES:
        raise ToolError(f"{arguments['acknowledgement-mode']} is not an acknowledgement mode; use {', '.join(_MODES)}")
    if strategy and strategy not in _STRATEGIES:
        raise ToolError(f"{strategy} is not an offset reset strategy; use {' or '.join(_STRATEGIES)}")
    properties: dict[str, Any] = read_properties(arguments["command-config"]) if arguments["command-config"] else {}
    properties |= {"bootstrap.servers": arguments["bootstrap-server"], "group.id": arguments["group-id"]}
    await_broker(properties)
    consumer = ShareConsumer({**properties, "key.deserializer": "text", "value.deserializer": "text"})
    test = VerifiableShareConsumer(
        consumer, mode=mode, max_messages=arguments["max-messages"], is_verbose=bool(arguments["verbose"])
    )

    def work() -> None:
        if strategy:
            set_reset_strategy(properties, strategy)
        test.read(arguments["topic"])

    run_consumer("share consumer", consumer, test.stop, work)
    return 0


OPTIONS = (
    bootstrap_option(
        "The server(s) to connect to. Comma-separated list of Kafka brokers in the form HOST1:PORT1,HOST2:PORT2,...",
        is_required=True,
    ),
    Option("topic", "Consumes messages from this topic.", "TOPIC", is_required=True),
    Option("group-id", "The group id of the share group", "GROUP-ID", is_required=True),
    Option(
        "max-messages",
        "Consume this many messages. If -1 (the default), the share consumers will consume until the process is killed "
        "externally",
        "MAX-MESSAGES",
        INTEGER,
        -1,
    ),
    Option("verbose", "Enable to log individual consumed records"),
    Option(
        "acknowledgement-mode",
        "Acknowledgement mode for the share consumers (must be either 'auto', 'sync' or 'async')",
        "ACKNOWLEDGEMENT-MODE",
        default="auto",
    ),
    Option(
        "offset-reset-strategy",
        "Share group offset reset strategy (must be either 'earliest' or 'latest')",
        "OFFSET-RESET-STRATEGY",
        default="",
    ),
    COMMAND_CONFIG,
)
TOOL = Tool(
    name="verifiable-share-consumer",
    description=(
        "This tool creates a share group and consumes messages from a specific topic and emits share consumer events "
        "(e.g. share consumer startup, received messages, and offsets acknowledged) as JSON objects to STDOUT."
    ),
    run=run,
    options=OPTIONS,
    grammar=Grammar.ARGPARSE4J,
    kafka_name="verifiable-share-consumer",
    examples=(
        Example(
            "Read and acknowledge ten records from the beginning of a topic",
            "--bootstrap-server localhost:9092 --topic tasks --group-id workers --offset-reset-strategy earliest "
            "--max-messages 10",
        ),
    ),
)


def main(arguments: list[str]) -> int:
    return run_tool(TOOL, arguments)
