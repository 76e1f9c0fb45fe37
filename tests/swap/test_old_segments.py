"""A partition whose segment has batches of magic 0, 1 and 2, as brokers since 0.8 wrote them. Apache Kafka 3.9 is the
reference."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kafkapy._core.bytes.message_set import build_message_set, iterate_records
from kafkapy._core.bytes.record_batch import RecordBatchBuilder, iterate_batches
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.list_offsets import ListOffsetsRequest
from tests.broker_process import BrokerProcess
from tests.old_client import ask, create_topic, fetch, produce
from tests.peers import ApacheKafka, run_tool
from tests.server_process import ServerProcess

TOPIC = "old"
NOW_MS = 1_790_000_000_000
LZ4, GZIP = 3, 1
SEGMENT = "00000000000000000000.log"

pytestmark = [pytest.mark.peer, pytest.mark.timeout(180)]


def old_segment() -> bytes:
    def three(offset: int) -> list[tuple[int, int, bytes | None, bytes | None]]:
        return [(offset + n, NOW_MS + offset + n, b"k%d" % n if n else None, b"v%d" % (offset + n)) for n in range(3)]

    sets = [
        build_message_set(three(0), magic=0),
        build_message_set(three(3), magic=0, compression=LZ4),
        build_message_set(three(6), magic=1),
        build_message_set(three(9), magic=1, compression=GZIP),
        build_message_set(three(12), magic=1, compression=LZ4, timestamp_type=1),
    ]
    builder = RecordBatchBuilder(15)
    builder.append(NOW_MS + 15, b"k", b"v15")
    return b"".join([*sets, builder.build()])


def put_old_segment(directory: Path) -> None:
    """Replaces the broker's segment by the old one, and removes the files that would prevent a recovery."""
    partition = directory / f"{TOPIC}-0"
    for suffix in ("*.index", "*.timeindex", "*.snapshot"):
        for path in partition.glob(suffix):
            path.unlink()
    (partition / SEGMENT).write_bytes(old_segment())
    for name in (".kafka_cleanshutdown", "recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        (directory / name).unlink(missing_ok=True)


class Pair(NamedTuple):
    """kafkapy and Apache Kafka 3.9, each with the same segment in its own directory."""

    ours: BrokerProcess
    kafka: ApacheKafka

    @property
    def partitions(self) -> list[tuple[ServerProcess, Path]]:
        """The servers, each with its partition directory."""
        return [(self.ours, self.ours.data / f"{TOPIC}-0"), (self.kafka, self.kafka.log_dirs[0] / f"{TOPIC}-0")]


@pytest.fixture(scope="module")
def pair(kafka_39: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    made = Pair(
        BrokerProcess(tmp_path_factory.mktemp("kafkapy")), ApacheKafka(kafka_39, tmp_path_factory.mktemp("kafka"))
    )
    for server, partition in made.partitions:
        with server:
            create_topic(server, TOPIC, message_timestamp_after_max_ms=str(1 << 60))
        put_old_segment(partition.parent)
    with made.ours, made.kafka:
        yield made


def contents(records: bytes) -> list[Any]:
    """Returns (offset, timestamp, key, value) of records in any sequence of formats."""
    seen: list[Any] = []
    position = 0
    while position < len(records):
        size = 12 + int.from_bytes(records[position + 8 : position + 12], "big")
        if records[position : position + 8] == b"\xff" * 8:
            break  # Kafka 3.9 pads a response whose converted records are smaller than the read ones
        entry = records[position : position + size]
        found = iterate_records(entry) if entry[16] < 2 else [r for each in iterate_batches(entry) for r in each]
        seen += [(record.offset, record.timestamp, record.key, record.value) for record in found]
        position += size
    return seen


def fetch_everything(server: ServerProcess, version: int) -> dict[int, list[Any]]:
    """Returns the records of fetches from the start of each entry, and from within some entries."""
    found = {}
    for start in (0, 1, 4, 7, 10, 13, 15):
        answer = fetch(server, TOPIC, start, version)
        assert (answer.error_code, answer.high_watermark) == (0, 16)
        found[start] = contents(bytes(answer.records))
        assert {each[0] for each in found[start]} >= {start}
    records = contents(bytes(fetch(server, TOPIC, 0, version).records)) if version >= 4 else found[0]
    assert [each[0] for each in records] == list(range(len(records)))
    assert [each[3] for each in records] == [b"v%d" % offset for offset in range(len(records))]
    return found


@pytest.mark.parametrize("version", range(13))
def test_every_fetch_version_reads_every_format(pair: Pair, version: int) -> None:
    ours, kafkas = (fetch_everything(server, version) for server in (pair.ours, pair.kafka))
    if version >= 2:  # below 2, Kafka returns only a part of converted records; kafkapy returns all
        assert ours == kafkas


def offset_by_timestamp(server: ServerProcess, timestamp: int) -> tuple[int, int, int]:
    """Returns (error code, timestamp, offset) of ListOffsets."""
    partition = ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    topic = ListOffsetsRequest.ListOffsetsTopic(name=TOPIC, partitions=[partition])
    answer = ask(server, ApiKey.LIST_OFFSETS, 1, ListOffsetsRequest(replica_id=-1, topics=[topic]))
    (found,) = answer.topics[0].partitions
    return found.error_code, found.timestamp, found.offset


@pytest.mark.parametrize("timestamp", [-2, -1, 0, NOW_MS + 7, NOW_MS + 10, NOW_MS + 13, NOW_MS + 15, NOW_MS + 99])
def test_offsets_by_timestamp_are_those_of_apache_kafka(pair: Pair, timestamp: int) -> None:
    assert offset_by_timestamp(pair.ours, timestamp) == offset_by_timestamp(pair.kafka, timestamp)


def test_an_append_continues_the_old_segment(pair: Pair, kafka_39: Path) -> None:
    message_set = build_message_set([(0, NOW_MS, b"k", b"new")], magic=1)
    for server, partition in pair.partitions:
        assert produce(server, TOPIC, message_set, 2).base_offset == 16
        arguments = ("--deep-iteration", "--files", str(partition / SEGMENT))
        dump = run_tool(kafka_39, "kafka.tools.DumpLogSegments", *arguments).stdout
        lines = [line for line in dump.decode().splitlines() if "isvalid: " in line or "| offset" in line]
        assert lines
        assert not [line for line in lines if "isvalid: false" in line]
