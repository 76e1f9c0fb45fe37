"""The tool `kafka-replica-verification`: compares the replicas of topics until it is interrupted.

Apache Kafka has deprecated its tool, which remains useful after a failure of a disk.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from kafkapy._core.bytes.record_batch import RecordBatch, iterate_batches
from kafkapy.client.admin import LATEST, Admin, TopicDescription
from kafkapy.client.admin.replicas import ReplicaBatches
from kafkapy.errors import ApiError
from kafkapy.tools.bootstrap import SERVERS_HELP, await_broker, check_servers
from kafkapy.tools.declaration import Example, Tool
from kafkapy.tools.option import INTEGER, LONG, Arguments, Option, ToolError
from kafkapy.tools.replicas import replicas_of
from kafkapy.tools.tool import run_tool
from kafkapy.tools.topic_filter import topic_filter
from kafkapy.types import TopicPartition

_PAUSE_S = 1.0


class ReplicaComparison:
    """Compares the replicas of partitions, batch by batch, from the given offsets on. Not thread-safe.

    The argument `offsets` has the offset at which the comparison of each partition begins. The attribute `offsets` has
    the offset up to which each partition has been compared, and advances with each call of `compare`. `has_diverged` is
    True once replicas had batches with different offsets, beyond which they cannot be compared.
    """

    def __init__(self, offsets: Mapping[TopicPartition, int]) -> None:
        self.offsets = dict(offsets)
        self._high_watermarks = dict(offsets)
        self.has_diverged = False

    def compare(self, partition: TopicPartition, replicas: Mapping[int, ReplicaBatches]) -> Iterator[str]:
        """Yields a line of text for each difference between the batches of the partition's replicas.

        `replicas` maps broker ids to what was fetched from the broker. Advances the partition's offset past the batches
        that were compared.
        """
        self._high_watermarks[partition] = max(each.high_watermark for each in replicas.values())
        batches = {broker: iter(_batches(each, self.offsets[partition])) for broker, each in replicas.items()}
        while True:
            current = {broker: next(each, None) for broker, each in batches.items()}
            if any(each is None for each in current.values()):
                return
            (first, one), *others = ((broker, each) for broker, each in current.items() if each is not None)
            for broker, other in others:
                if other.last_offset != one.last_offset:
                    self.has_diverged = True
                    yield (
                        f"partition {partition}: replica {first}'s offset {one.last_offset} doesn't match replica "
                        f"{broker}'s offset {other.last_offset}"
                    )
                    return
                if other.crc != one.crc:
                    yield (
                        f"partition {partition} has unmatched checksum at offset {one.last_offset}; replica {first}'s "
                        f"checksum {one.crc}; replica {broker}'s checksum {other.crc}"
                    )
            self.offsets[partition] = one.next_offset

    def report(self) -> str:
        """Returns a line about the partition whose comparison is the most records behind its high watermark."""
        lags = {partition: self._high_watermarks[partition] - offset for partition, offset in self.offsets.items()}
        slowest = max(lags, key=lambda partition: lags[partition])
        return (
            f"max lag is {max(lags[slowest], 0)} for partition {slowest} at offset {self.offsets[slowest]} among "
            f"{len(lags)} partitions"
        )


def _batches(replica: ReplicaBatches, offset: int) -> list[RecordBatch]:
    """Returns the complete batches of a replica that end at or after `offset` and below the high watermark."""
    return [
        each
        for each in iterate_batches(replica.records)
        if each.last_offset >= offset and each.next_offset <= replica.high_watermark
    ]


def _print(text: str) -> None:
    now = datetime.now()
    print(f"{now:%Y-%m-%d %H:%M:%S},{now.microsecond // 1000:03d}: {text}", flush=True)


def run(arguments: Arguments) -> int:
    """Compares until it is interrupted, or until replicas have batches with different offsets.

    Returns the exit code, which is 1 after such a difference, and if there is no topic to compare.
    """
    arguments.require("broker-list")
    check_servers(arguments["broker-list"])
    try:
        matches = topic_filter(arguments["topics-include"])
    except ValueError as error:
        raise ToolError(f"{arguments['topics-include']} is an invalid regex") from error
    properties = {"bootstrap.servers": arguments["broker-list"]}
    await_broker(properties)
    with Admin(properties) as admin:
        names = [name for name in admin.list_topics(include_internal=True) if matches(name)]
        topics = admin.describe_topics(names).check() if names else {}
        if not topics:
            print(f"No topics found. {arguments['topics-include']} if specified, is either filtering out all topics or "
                  "there is no topic.")  # fmt: skip
            return 1
        _compare(admin, topics, arguments)
    return 1


def first_offsets(admin: Admin, partitions: Iterable[TopicPartition], timestamp: int) -> dict[TopicPartition, int]:
    """Returns the offset at which the comparison of each partition begins: the first record at `timestamp` or later.

    A partition without such a record is compared from its end on. Raises ApiError if an offset cannot be looked up.
    """
    found = admin.list_offsets(dict.fromkeys(partitions, timestamp)).check()
    late = [partition for partition, each in found.items() if each.offset < 0]
    ends = admin.list_offsets(dict.fromkeys(late, LATEST)).check() if late else {}
    return {partition: each.offset for partition, each in (found | ends).items()}


def _compare(admin: Admin, topics: Mapping[str, TopicDescription], arguments: Arguments) -> None:
    """Compares the replicas of the topics until they have batches with different offsets, and prints the differences.

    As in Apache Kafka's tool, such a difference ends the comparison, because it does not go away.
    """
    replicas = replicas_of(topics.values())
    comparison = ReplicaComparison(first_offsets(admin, replicas, arguments["time"]))
    topic_ids = {name: topic.topic_id for name, topic in topics.items()}
    _print("verification process is started")
    reported_s = time.monotonic()
    while True:
        answers = _fetch(admin, replicas, comparison.offsets, topic_ids, arguments)
        for partition, by_broker in answers.items():
            if len(by_broker) == len(replicas[partition]):
                for line in comparison.compare(partition, by_broker):
                    _print(line)
                if comparison.has_diverged:
                    return
        if (time.monotonic() - reported_s) * 1000 >= arguments["report-interval-ms"]:
            _print(comparison.report())
            reported_s = time.monotonic()
        if not any(each.records for by_broker in answers.values() for each in by_broker.values()):
            time.sleep(min(_PAUSE_S, arguments["report-interval-ms"] / 1000))


def _fetch(
    admin: Admin,
    replicas: Mapping[TopicPartition, Iterable[int]],
    offsets: Mapping[TopicPartition, int],
    topic_ids: Mapping[str, bytes],
    arguments: Arguments,
) -> dict[TopicPartition, dict[int, ReplicaBatches]]:
    """Fetches batches from all replicas, and returns them by partition and then by broker id.

    `replicas` has the broker ids of each partition, and `offsets` the offset to fetch from. A replica that answers with
    an error, or not at all, is left out of the result, and a line about it is printed.
    """
    found: dict[TopicPartition, dict[int, ReplicaBatches]] = {partition: {} for partition in replicas}
    for broker in sorted({each for ids in replicas.values() for each in ids}):
        wanted = {partition: offsets[partition] for partition, ids in replicas.items() if broker in ids}
        try:
            answers = admin.fetch_replica(broker, wanted, topic_ids, max_bytes=arguments["fetch-size"])
        except ApiError as error:
            _print(f"broker {broker} does not answer: {error.message}")
            continue
        for partition, each in answers.values.items():
            found[partition][broker] = each
        for partition, refusal in answers.errors.items():
            _print(f"partition {partition}: replica {broker} does not answer: {refusal.message}")
    return found


TOOL = Tool(
    name="replica-verification",
    description="Validate that all replicas for a set of topics have the same data.",
    run=run,
    options=(
        Option(
            "broker-list",
            SERVERS_HELP,
            "hostname:port,...,hostname:port",
        ),
        Option("fetch-size", "The fetch size of each request.", "bytes", INTEGER, 1048576),
        Option(
            "max-wait-ms",
            "The max amount of time each fetch request waits; ignored, because the fetches of this tool do not wait.",
            "ms",
            INTEGER,
            1000,
        ),
        Option("report-interval-ms", "The reporting interval.", "ms", INTEGER, 30000),
        Option(
            "time",
            "Timestamp for getting the initial offsets.",
            "timestamp/-1(latest)/-2(earliest)",
            LONG,
            -1,
        ),
        Option("topics-include", "List of topics to verify replica consistency.", "Java regex (String)", default=".*"),
    ),
    examples=(Example("Compare all replicas from their beginning", "--broker-list localhost:9092 --time -2"),),
)


def main(arguments: list[str]) -> int:
    return run_tool(TOOL, arguments)
