"""The tool `kafka-replay-log-producer` of Apache Kafka 0.8 to 1.1: copies the records of a topic to another one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kafkapy.client import Consumer, ConsumerRecord, Producer
from kafkapy.tools.bootstrap import COMMAND_CONFIG, SERVERS_HELP, ZOOKEEPER_AND_SERVERS, await_broker
from kafkapy.tools.declaration import Example, Tool
from kafkapy.tools.option import INTEGER, LONG, Arguments, Option, ToolError, parse_key_values
from kafkapy.tools.progress import Progress
from kafkapy.tools.short.consume import POLL_S, Ranges, partitions_of
from kafkapy.tools.tool import run_tool, sentence


def records_of(consumer: Consumer, topic: str, limit: int) -> Iterator[list[ConsumerRecord]]:
    """Yields the records that a topic contains when reading begins, as one list for each poll; a list may be empty.

    Stops after `limit` records; -1 means all.
    """
    partitions = partitions_of(consumer, [topic], [])
    consumer.assign(partitions)
    ends = consumer.end_offsets(partitions)
    consumer.seek_to_beginning(partitions)
    ranges = Ranges(consumer, ends)
    count = 0
    while not ranges.is_done() and count != limit:
        records = [record for record in consumer.poll(POLL_S) if ranges.includes(record)]
        wanted = records if limit < 0 else records[: limit - count]
        count += len(wanted)
        yield wanted


class Replay:
    """Copies records to the topic `topic`, and counts those that could not be written. Not thread-safe.

    If `is_synchronous` is set, each record must be delivered before the next one is sent.
    """

    def __init__(self, producer: Producer, topic: str, *, is_synchronous: bool) -> None:
        self._producer = producer
        self._topic = topic
        self._is_synchronous = is_synchronous
        self.count = 0
        self.failures: list[str] = []

    def copy(self, record: ConsumerRecord) -> None:
        """Sends a record with the same key, value, headers and timestamp; the key, not the old partition, decides the
        partition."""
        future = self._producer.send(
            self._topic,
            record.value,
            record.key,
            headers=record.headers or None,
            timestamp=record.timestamp if record.timestamp >= 0 else None,
            on_delivery=self._on_delivery,
        )
        self.count += 1
        if self._is_synchronous:
            future.result()

    def _on_delivery(self, metadata: Any, error: BaseException | None) -> None:
        if error is not None:
            self.failures.append(sentence(error))


def run(arguments: Arguments) -> int:
    """Copies the records and returns 0, the exit code. Raises ToolError if a record was not written."""
    from kafkapy.config.properties import read_properties

    arguments.require("bootstrap-server", "inputtopic", "outputtopic")
    shared: dict[str, Any] = {}
    if arguments.has("command-config"):
        shared.update(read_properties(arguments["command-config"]))
    shared["bootstrap.servers"] = arguments["bootstrap-server"]
    await_broker(shared)
    limit = arguments["messages"]
    properties = {
        **shared,
        **parse_key_values(arguments.values("property")),
        "key.serializer": "bytes",
        "value.serializer": "bytes",
    }
    reading = {**shared, "key.deserializer": "bytes", "value.deserializer": "bytes", "auto.offset.reset": "earliest"}
    with Consumer(reading) as consumer, Producer(properties) as producer, Progress(max(limit, 0), "records") as bar:
        replay = Replay(producer, arguments["outputtopic"], is_synchronous=arguments.has("sync"))
        for records in records_of(consumer, arguments["inputtopic"], limit):
            for record in records:
                replay.copy(record)
            bar.advance(len(records))
        producer.flush()
    if replay.failures:
        shown = "; ".join(dict.fromkeys(replay.failures[:5]))
        raise ToolError(f"{len(replay.failures)} of {replay.count} records were not written: {shown}")
    print(f"{replay.count} records were copied from {arguments['inputtopic']} to {arguments['outputtopic']}")
    return 0


TOOL = Tool(
    name="replay-log-producer",
    description="Copies the records of a topic to another topic. It is a tool of Apache Kafka 0.8 to 1.1; `kafkapy "
    "consume` and `kafkapy produce` with a format string do the same.",
    run=run,
    options=(
        Option(
            "bootstrap-server",
            f"{SERVERS_HELP} Both topics are in this cluster.",
            "hostname:port",
            aliases=("broker-list",),
        ),
        ZOOKEEPER_AND_SERVERS,
        COMMAND_CONFIG,
        Option("inputtopic", "REQUIRED: The topic to consume from.", "input-topic"),
        Option("outputtopic", "REQUIRED: The topic to produce to.", "output-topic"),
        Option("messages", "The number of messages to send; -1 for all.", "count", LONG, default=-1),
        Option("reporting-interval", "Ignored; a terminal shows a progress bar.", "size", INTEGER, default=5000),
        Option("property", "A property of the producer, as key=value; may be repeated.", "producer properties"),
        Option("sync", "Wait for each message before the next one is sent."),
        Option(
            "threads", "Ignored: one thread copies all partitions.", "threads", INTEGER, default=1, is_deprecated=True
        ),
    ),
    examples=(
        Example("A copy of a topic", "--broker-list localhost:9092 --inputtopic prices --outputtopic prices-copy"),
    ),
)


def main(arguments: list[str]) -> int:
    return run_tool(TOOL, arguments)
