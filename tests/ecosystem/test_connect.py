"""Kafka Connect 4.3 standalone: a published example with its checksums, two sinks, and a killed broker."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import pytest

from tests.broker_process import BrokerProcess
from tests.connect import StandaloneWorker
from tests.ecosystem.programs import TopicReader, wait_until
from tests.server_process import ServerProcess

SOURCE = {"connector.class": "FileStreamSource", "tasks.max": "1", "topic": "connect-test", "batch.size": "100000"}
SINK = {"connector.class": "FileStreamSink", "tasks.max": "1", "topics": "connect-test"}
# The times and the checksums of records of the 0.10.1 documents: messages of format 1. That release's JSON converter
# wrote JSON for the missing key; today's writes none.
DOCUMENTED_KEY = b'{"schema":null,"payload":null}'
DOCUMENTED_MS, DOCUMENTED_CRC = 1490848047199, 2697874837
DOCUMENTED_REST_MS, DOCUMENTED_REST_CRC = 1490962508781, 2046084259
DOCUMENTED_PLAIN_MS, DOCUMENTED_PLAIN_CRC = 1491039692562, 1188385350


def documented_crc(timestamp_ms: int, value: bytes, key: bytes | None = DOCUMENTED_KEY) -> int:
    """Computes the checksum of a message of magic 1, to compare it with the number that a published example prints."""
    head = struct.pack(">bbq", 1, 0, timestamp_ms)
    key_field = struct.pack(">i", -1) if key is None else struct.pack(">i", len(key)) + key
    return zlib.crc32(head + key_field + struct.pack(">i", len(value)) + value)


@pytest.mark.peer
@pytest.mark.timeout(600)
def test_standalone_files_survive_a_killed_broker(tmp_path: Path, kafka_43: Path) -> None:
    copy_files(BrokerProcess(tmp_path / "broker"), tmp_path, kafka_43)


def copy_files(server: ServerProcess, tmp_path: Path, kafka_43: Path) -> None:
    """Runs a file source and two file sinks on a server, which is killed; checks the sinks and the checksums."""
    source, sinks = tmp_path / "test.txt", [tmp_path / "sink-1.txt", tmp_path / "sink-2.txt"]
    source.write_text("kafka-connect\nrestful test\n")
    for sink in sinks:
        sink.touch()
    connectors = {"local-file-source": {**SOURCE, "file": str(source)}}
    connectors |= {f"local-file-sink-{number}": {**SINK, "file": str(sink)} for number, sink in enumerate(sinks)}
    with (
        server as broker,
        StandaloneWorker(kafka_43, tmp_path / "worker", broker.bootstrap, connectors) as worker,
    ):
        with TopicReader(broker.bootstrap, "connect-test") as topic:
            topic.wait_for(2)
            first, second = topic.records
        assert (first.key, second.key) == (None, None)
        assert documented_crc(DOCUMENTED_MS, first.value) == DOCUMENTED_CRC
        assert documented_crc(DOCUMENTED_REST_MS, second.value) == DOCUMENTED_REST_CRC

        append(source, 0, 1000)
        wait_until(lambda: all(b"line 1" in sink.read_bytes() for sink in sinks), worker.log)
        broker.kill()
        append(source, 1000, 2000)
        broker.start()
        append(source, 2000, 3000)
        written = source.read_text()
        wait_until(lambda: all(sink.read_text().endswith("line 2999\n") for sink in sinks), worker.log)
        for sink in sinks:
            assert [*dict.fromkeys(sink.read_text().splitlines())] == written.splitlines()

        # A configuration by REST replaces all of the former one; the string converter writes the plain line.
        plain = {"value.converter": "org.apache.kafka.connect.storage.StringConverter"}
        worker.request("PUT", "/connectors/local-file-source/config", {**connectors["local-file-source"], **plain})
        wait_until(lambda: worker.is_running_all("local-file-source"), worker.log)
        with TopicReader(broker.bootstrap, "connect-test") as topic:
            with source.open("a") as file:
                file.write("connect-distributed\n")
            wait_until(lambda: b"connect-distributed" in {record.value for record in topic.read()}, worker.log)
            plain_record = next(record for record in topic.records if record.value == b"connect-distributed")
        assert documented_crc(DOCUMENTED_PLAIN_MS, plain_record.value, plain_record.key) == DOCUMENTED_PLAIN_CRC


def append(path: Path, begin: int, end: int) -> None:
    with path.open("a") as file:
        file.writelines(f"line {number}\n" for number in range(begin, end))
