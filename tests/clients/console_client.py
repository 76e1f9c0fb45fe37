"""Apache Kafka's console producer and consumer. They choose the partitions and set the timestamps themselves."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.clients.client import GroupClient
from tests.clients.records import SentRecord
from tests.peers import run_tool

PRODUCER = "org.apache.kafka.tools.ConsoleProducer"
CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
SHOWN = ("partition", "offset", "timestamp", "key", "headers")


class ConsoleClient(GroupClient):
    name = "console tools"

    def __init__(self, kafka: Path) -> None:
        self._kafka = kafka

    def produce(self, bootstrap: str, topic: str, codec: str, records: Sequence[SentRecord]) -> None:
        lines = []
        for record in records:
            headers = ",".join(f"{name}:{_text(value)}" for name, value in record.headers)
            lines.append(f"{headers}\t{_text(record.key)}\t{_text(record.value)}\n")
        run_tool(
            self._kafka,
            PRODUCER,
            *("--bootstrap-server", bootstrap, "--topic", topic, "--compression-codec", codec),
            *("--reader-property", "parse.key=true", "--reader-property", "parse.headers=true"),
            input="".join(lines),
        )

    def consume(self, bootstrap: str, topic: str, partitions: int, count: int) -> list[SentRecord]:
        return self._consume(bootstrap, topic, count)

    def consume_in_group(self, bootstrap: str, topic: str, group: str, count: int) -> list[SentRecord]:
        return self._consume(bootstrap, topic, count, "--group", group)

    def _consume(self, bootstrap: str, topic: str, count: int, *more: str) -> list[SentRecord]:
        shown = [word for name in SHOWN for word in ("--formatter-property", f"print.{name}=true")]
        done = run_tool(
            self._kafka,
            CONSUMER,
            *("--bootstrap-server", bootstrap, "--topic", topic, "--from-beginning", "--max-messages", str(count)),
            *("--timeout-ms", "30000", *shown, *more),
        )
        return [_received(line) for line in done.stdout.decode().splitlines()]


def _text(value: bytes | None) -> str:
    assert value is not None
    return value.decode()


def _received(line: str) -> SentRecord:
    """Parses `CreateTime:T<tab>Partition:P<tab>Offset:O<tab>name:value,...<tab>key<tab>value`."""
    timestamp, partition, offset, headers, key, value = line.split("\t", 5)
    pairs = [] if headers == "NO_HEADERS" else [pair.partition(":")[::2] for pair in headers.split(",")]
    return SentRecord(
        int(partition.removeprefix("Partition:")),
        int(timestamp.removeprefix("CreateTime:")),
        key.encode(),
        value.encode(),
        tuple((name, text.encode()) for name, text in pairs),
        int(offset.removeprefix("Offset:")),
    )
