"""The tool `transactional-message-copier` of Kafka's system tests: copies a partition's records in transactions."""

from __future__ import annotations

import logging
import random
from typing import Any

from kafkapy.client import ApiError, Consumer, GroupMetadata, Producer, TopicPartition, WakeupError
from kafkapy.client.consumer import ConsumerRecords
from kafkapy.errors import Error, KafkapyError
from kafkapy.protocol.message_json import json_text
from kafkapy.tools.bootstrap import await_broker
from kafkapy.tools.declaration import Example, Grammar, Tool
from kafkapy.tools.java_date import JavaDateFormat
from kafkapy.tools.json_events import wall_ms
from kafkapy.tools.option import INTEGER, Arguments, Option, ToolError
from kafkapy.tools.tool import run_tool, stops_by

log = logging.getLogger("kafkapy.tools.transactional_message_copier")

_POLL_S = 0.2
_NO_LIMIT = (1 << 63) - 1
_ABORTS_ONE_OF = 3
_TIME = JavaDateFormat("yyyy/MM/dd HH:mm:ss:SSS")
_FENCED = (Error.PRODUCER_FENCED, Error.INVALID_PRODUCER_EPOCH)


class Copier:
    """Copies records in transactions, which also commit the consumer's positions.

    It copies the records before the end offset that each partition had when it was assigned to the consumer, and not
    the records that are written later. Any thread, and a signal's handler, may call `stop`.
    """

    def __init__(self, consumer: Consumer, producer: Producer, arguments: Arguments) -> None:
        self._consumer = consumer
        self._producer = producer
        self._output_topic: str = arguments["output-topic"]
        self._group_id: str = arguments["consumer-group"]
        self._transactional_id: str = arguments["transactional-id"]
        self._aborts_some: bool = arguments["enable-random-aborts"]
        self._uses_group_metadata: bool = arguments["use-group-metadata"]
        self._is_stopped = False
        self._total = 0
        self._since_rebalance = 0
        self._remaining = _NO_LIMIT if arguments["max-messages"] == -1 else arguments["max-messages"]

    def stop(self) -> None:
        """Makes `copy` return after the current records."""
        self._is_stopped = True
        self._consumer.wakeup()

    def assign(self, partition: TopicPartition) -> None:
        """Assigns one partition to copy from, without joining a group."""
        self._consumer.assign([partition])
        self._remaining = min(self._records_left(partition), self._remaining)

    def subscribe(self, topic: str) -> None:
        """Subscribes to a topic; the records of the partitions that the group assigns are copied."""
        self._consumer.subscribe([topic], self)

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        """Determines the number of remaining records again for the new partitions, and prints the status."""
        self._remaining = sum(map(self._records_left, partitions))
        self._since_rebalance = 0
        self.print_status("RebalanceComplete")

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        """Does nothing, because the positions were committed with the transactions."""

    def on_partitions_lost(self, partitions: list[TopicPartition]) -> None:
        """Does nothing, because the positions were committed with the transactions."""

    def _records_left(self, partition: TopicPartition) -> int:
        position = self._consumer.position(partition)
        return self._consumer.end_offsets([partition])[partition] - position

    def copy(self) -> None:
        """Copies until no record remains or `stop` is called.

        Raises ToolError if this producer was fenced because another copier uses the same transactional id.
        """
        try:
            while not self._is_stopped and self._remaining > 0:
                self.print_status("ProcessLoop")
                records = self._consumer.poll(_POLL_S)
                if records:
                    self._copy(records)
        except WakeupError:
            if not self._is_stopped:
                raise

    def _copy(self, records: ConsumerRecords) -> None:
        try:
            self._producer.begin_transaction()
            for record in records:
                self._producer.send(self._output_topic, record.value, record.key, partition=record.partition)
            positions = {each: self._consumer.position(each) for each in self._consumer.assignment()}
            group = self._consumer.group_metadata() if self._uses_group_metadata else GroupMetadata(self._group_id)
            self._producer.send_offsets_to_transaction(positions, group)
            if self._aborts_some and random.randrange(_ABORTS_ONE_OF) == 0:
                self._abort()
                return
            self._producer.commit_transaction()
        except WakeupError:
            raise
        except KafkapyError as error:
            if isinstance(error, ApiError) and error.error in _FENCED:
                text = f"The transactional.id {self._transactional_id} has been claimed by another process"
                raise ToolError(f"KafkaException: {text}") from error
            log.debug("Aborting transaction after catching exception: %s", error)
            self._abort()
            return
        self._remaining -= len(records)
        self._since_rebalance += len(records)
        self._total += len(records)

    def _abort(self) -> None:
        """Aborts the transaction, and moves the consumer back to the committed offset of each partition."""
        self._producer.abort_transaction()
        for partition, committed in self._consumer.committed(self._consumer.assignment()).items():
            if committed is None:
                self._consumer.seek_to_beginning([partition])
            else:
                self._consumer.seek(partition, committed)

    def print_status(self, stage: str) -> None:
        """Prints the numbers of records processed and remaining as one line of JSON.

        `stage` names what the copier is doing, such as "RebalanceComplete".
        """
        status = {
            "transactionalId": self._transactional_id,
            "stage": stage,
            "time": _TIME.format(wall_ms()),
            "totalProcessed": self._total,
            "consumed": self._since_rebalance,
            "remaining": self._remaining,
        }
        print(json_text(status), flush=True)


def producer_properties(arguments: Arguments) -> dict[str, Any]:
    """Returns the producer's configuration: small batches, so that a transaction has several."""
    return {
        "bootstrap.servers": arguments["broker-list"],
        "transactional.id": arguments["transactional-id"],
        "batch.size": "512",
        "max.in.flight.requests.per.connection": "5",
        "transaction.timeout.ms": str(arguments["transaction-timeout"]),
    }


def consumer_properties(arguments: Arguments) -> dict[str, Any]:
    """Returns the consumer's configuration, in which auto-commit is off because transactions commit the offsets."""
    return {
        "bootstrap.servers": arguments["broker-list"],
        "group.id": arguments["consumer-group"],
        "isolation.level": "read_committed",
        "max.poll.records": str(arguments["transaction-size"]),
        "enable.auto.commit": "false",
        "session.timeout.ms": "10000",
        "max.poll.interval.ms": "180000",
        "heartbeat.interval.ms": "3000",
        "auto.offset.reset": "earliest",
    }


def run(arguments: Arguments) -> int:
    """Copies the records and prints the status before each poll; returns 0, the exit code."""
    properties = producer_properties(arguments)
    await_broker(properties)
    with Producer(properties) as producer, Consumer(consumer_properties(arguments)) as consumer:
        copier = Copier(consumer, producer, arguments)
        if arguments["group-mode"]:
            copier.subscribe(arguments["input-topic"])
        else:
            copier.assign(TopicPartition(arguments["input-topic"], arguments["input-partition"]))
        producer.init_transactions()
        with stops_by(copier.stop):
            copier.copy()
            copier.print_status("ShutdownComplete")
    return 0


OPTIONS = (
    Option("input-topic", "Consume messages from this topic", "INPUT-TOPIC", is_required=True),
    Option(
        "input-partition",
        "Consume messages from this partition of the input topic.",
        "INPUT-PARTITION",
        INTEGER,
        is_required=True,
    ),
    Option("output-topic", "Produce messages to this topic", "OUTPUT-TOPIC", is_required=True),
    Option(
        "broker-list",
        "Comma-separated list of Kafka brokers in the form HOST1:PORT1,HOST2:PORT2,...",
        "HOST1:PORT1[,HOST2:PORT2[...]]",
        is_required=True,
    ),
    Option(
        "max-messages",
        "Process these many messages upto the end offset at the time this program was launched. If set to -1 we will "
        "just read to the end offset of the input partition (as of the time the program was launched).",
        "MAX-MESSAGES",
        INTEGER,
        -1,
    ),
    Option(
        "consumer-group",
        "The consumer group id to use for storing the consumer offsets.",
        "CONSUMER-GROUP",
        default="-1",
    ),
    Option(
        "transaction-size",
        "The number of messages to put in each transaction. Default is 200.",
        "TRANSACTION-SIZE",
        INTEGER,
        200,
    ),
    Option(
        "transaction-timeout",
        "The transaction timeout in milliseconds. Default is 60000(1 minute).",
        "TRANSACTION-TIMEOUT",
        INTEGER,
        60000,
    ),
    Option(
        "transactional-id",
        "The transactionalId to assign to the producer",
        "TRANSACTIONAL-ID",
        is_required=True,
    ),
    Option(
        "enable-random-aborts",
        "Whether or not to enable random transaction aborts (for system testing)",
    ),
    Option(
        "group-mode",
        "Whether to let consumer subscribe to the input topic or do manual assign. If we do subscription based "
        "consumption, the input partition shall be ignored",
    ),
    Option("use-group-metadata", "Whether to use the new transactional commit API with group metadata"),
)
TOOL = Tool(
    name="transactional-message-copier",
    description=(
        "This tool copies messages transactionally from an input partition to an output topic, committing the consumed "
        "offsets along with the output messages"
    ),
    run=run,
    options=OPTIONS,
    grammar=Grammar.ARGPARSE4J,
    kafka_name="transactional-message-copier",
    needs_arguments=False,
    examples=(
        Example(
            "Copy a partition exactly once",
            "--broker-list localhost:9092 --input-topic orders --input-partition 0 --output-topic copies "
            "--consumer-group copier --transactional-id copier-0",
        ),
    ),
)


def main(arguments: list[str]) -> int:
    return run_tool(TOOL, arguments)
