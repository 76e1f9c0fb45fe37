"""Topics are deleted and created again while the gate appends to them: each record must be in its own topic's files.

The files of a deleted log are closed at once here (`file.delete.delay.ms` 0), so that their descriptor numbers are soon
reused for other files.
"""

from __future__ import annotations

import socket
import threading

import pytest

from kafkapy._core.bytes.record_batch import RecordBatchBuilder, iterate_batches
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.produce import ProduceRequest
from kafkapy.types import SystemClock
from tests.api_client import request_bytes
from tests.reactor_harness import frame
from tests.twin_brokers import BrokerTwin, receive

TOPICS = ("t-first", "t-second", "t-third")
PARTITIONS = 2
ROUNDS = 12
PRODUCERS = 2
VALUE = "the value of {} "


def value_of(topic: str) -> bytes:
    return VALUE.format(topic).encode() * 20


def produce_frame(topic: str, start_ms: int) -> bytes:
    builder = RecordBatchBuilder()
    for number in range(5):
        builder.append(start_ms + number, None, value_of(topic))
    records = bytes(builder.build())
    partitions = [ProduceRequest.PartitionProduceData(index=index, records=records) for index in range(PARTITIONS)]
    data = ProduceRequest.TopicProduceData(name=topic, partition_data=partitions)
    return frame(request_bytes(ApiKey.PRODUCE, 9, ProduceRequest(acks=1, timeout_ms=10000, topic_data=[data])))


class Producer(threading.Thread):
    """Sends requests to one topic after the other until it is stopped; each must get a response, of any kind."""

    def __init__(self, address: tuple[str, int], start_ms: int) -> None:
        super().__init__(daemon=True)
        self.connection = socket.create_connection(address, timeout=20)
        self.frames = [produce_frame(topic, start_ms) for topic in TOPICS]
        self.stopping = threading.Event()
        self.answers = 0
        self.was_disconnected = False

    def run(self) -> None:
        with self.connection:
            while not self.stopping.is_set():
                for request in self.frames:
                    self.connection.sendall(request)
                for _ in self.frames:
                    if not receive(self.connection):
                        self.was_disconnected = True
                        return
                    self.answers += 1


@pytest.mark.timeout(120)
def test_no_file_holds_what_belongs_to_another(tmp_path):
    twin = BrokerTwin(tmp_path, gated=True, properties={"log.segment.delete.delay.ms": "0"})
    start_ms = SystemClock().wall_ms()
    for topic in TOPICS:
        twin.create_topic(topic, PARTITIONS, {})
    producers = [Producer(twin.address, start_ms) for _ in range(PRODUCERS)]
    for producer in producers:
        producer.start()
    for number in range(ROUNDS):
        topic = TOPICS[number % len(TOPICS)]
        twin.delete_topic(topic)
        twin.create_topic(topic, PARTITIONS, {})
    for producer in producers:
        producer.stopping.set()
        producer.join(30)
        assert not producer.is_alive()
        assert not producer.was_disconnected
        assert producer.answers
    assert twin.broker.parts.gate.counters()["batches_appended"]
    assert all(directory.is_online for directory in twin.broker.log_manager.directories)
    twin.stop()
    for path in sorted(path for path in tmp_path.rglob("*") if path.is_file()):
        check_file(path.relative_to(tmp_path).parts, path.read_bytes())


def check_file(parts: tuple[str, ...], content: bytes) -> None:
    """Asserts that a segment holds its topic's records only, and that other files hold no records."""
    topic = next((topic for topic in TOPICS if parts[0].startswith(topic)), None)
    if topic is None or not parts[-1].endswith(".log"):
        assert VALUE.format("t-").encode().rstrip() not in content, parts
        return
    batches = list(iterate_batches(content))
    assert sum(batch.size_in_bytes for batch in batches) == len(content), parts
    for batch in batches:
        assert {record.value for record in batch} == {value_of(topic)}, parts
