"""The greedy neighbour: five unbounded producers next to a client that sends 1,000 requests per second with acks=all.

The client sends each request when it is due, also while it waits for the responses to earlier ones.

Each producer has a quota of 128 KiB per second (`producer_byte_rate` of its client id). What a quota allows passes in
bursts, here 7 MB each 11 seconds, which therefore take less than one hundredth of the time. The producers run at the
lowest priority, because they would otherwise take the processors from the client and the broker, which no quota
prevents; on machines of their own they could not. The latency of the client is measured alone, and next to the
producers after their first burst, on kafkapy and on Apache Kafka in the same run. Needs a quiet machine. The figures
are printed; run with -s.

KAFKAPY_NEIGHBOUR_SECONDS: the length of each measurement (30).
"""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from kafkapy._core.bytes.record_batch import RecordBatchBuilder
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.produce import ProduceRequest, ProduceResponse
from kafkapy.readable import is_readable
from tests.api_client import request_bytes
from tests.broker_process import BrokerProcess
from tests.peers import ApacheKafka
from tests.reactor_harness import frame
from tests.server_process import ServerProcess
from tests.wire.test_quota_changes import alter
from tests.wire.test_quotas import TOPIC, create, produce

SECONDS = int(os.environ.get("KAFKAPY_NEIGHBOUR_SECONDS", "30"))
PER_SECOND = 1000
PRODUCERS = 5
RATE = 128 << 10
RECORD = 1000
# The burst is what the quota allows in ten seconds; a period of the sawtooth follows it.
BURST_S, PERIOD_S = 10, 11
LARGEST_RATIO = 2.0
JAVA = ["nice", "-n", "19", "java", "-Xmx192M", "-XX:+UseSerialGC"]


def latencies(server: ServerProcess) -> list[float]:
    """Returns the milliseconds of each request from the moment at which it was due to its response, sorted.

    The requests are sent when they are due, whether the earlier ones were answered or not.
    """
    builder = RecordBatchBuilder()
    builder.append(1_700_000_000_000, None, bytes(100))
    data = ProduceRequest.PartitionProduceData(index=0, records=builder.build())
    topic = ProduceRequest.TopicProduceData(name=TOPIC, partition_data=[data])
    request = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[topic])
    encoded = frame(request_bytes(ApiKey.PRODUCE, 9, request, client_id="modest"))
    total = SECONDS * PER_SECOND
    found: list[float] = []
    received = bytearray()
    with socket.create_connection(("localhost", server.port), timeout=60) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        began_s = time.monotonic() + 0.1
        sent = 0
        while len(found) < total:
            now_s = time.monotonic()
            while sent < total and began_s + sent / PER_SECOND <= now_s:
                connection.sendall(encoded)
                sent += 1
            wait_s = 60.0 if sent == total else max(0.0, began_s + sent / PER_SECOND - time.monotonic())
            if not is_readable(connection, wait_s):
                assert sent < total, f"{total - len(found)} requests were not answered"
                continue
            part = connection.recv(1 << 16)
            assert part, "the broker has closed the connection"
            received += part
            now_s = time.monotonic()
            for response in responses_in(received):
                assert response.responses[0].partition_responses[0].error_code == 0
                assert response.throttle_time_ms == 0
                found.append((now_s - began_s - len(found) / PER_SECOND) * 1000)
    return sorted(found)


def responses_in(received: bytearray) -> Iterator[ProduceResponse]:
    """Yields the whole responses at the beginning of the bytes, and removes them."""
    while len(received) >= 4 and len(received) >= (end := 4 + int.from_bytes(received[:4], "big")):
        yield ProduceResponse.decode(bytes(received[4:end]), 9, 5)
        del received[:end]


def produce_error(server: ServerProcess) -> int:
    """Returns the error of a request; there is one until the topic has a leader."""
    try:
        produce(server, "modest", 100)
    except AssertionError:
        return 1
    return 0


def greedy(server: ServerProcess, kafka: Path, number: int) -> subprocess.Popen[bytes]:
    """Starts an unbounded producer."""
    return subprocess.Popen(
        [
            *JAVA, "-cp", f"{kafka}/libs/*", "org.apache.kafka.tools.ProducerPerformance", "--topic", "greedy",
            "--num-records", "1000000000", "--throughput", "-1", "--record-size", str(RECORD), "--command-property",
            f"bootstrap.servers={server.bootstrap}", f"client.id=greedy-{number}",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip


def appended(server: ServerProcess) -> int:
    """Returns the number of records that the neighbours have sent."""
    consumer = Consumer({"bootstrap.servers": server.bootstrap, "group.id": "watch"})
    counts = [consumer.get_watermark_offsets(TopicPartition("greedy", index), 30) for index in range(PRODUCERS)]
    consumer.close()
    return sum(high for _, high in counts)


def p99(found: list[float]) -> float:
    return found[len(found) * 99 // 100]


def measure(server: ServerProcess, kafka: Path) -> tuple[float, float]:
    """Returns the 99th percentiles of the client alone and next to its neighbours."""
    create(server, 7, {TOPIC: 1, "greedy": PRODUCERS})
    entries = [([("client-id", f"greedy-{number}")], [("producer_byte_rate", float(RATE))]) for number in range(5)]
    alter(server, 1, [*entries])
    while produce_error(server):
        time.sleep(0.1)
    latencies(server)  # warms up
    alone = latencies(server)
    producers = [greedy(server, kafka, number) for number in range(PRODUCERS)]
    try:
        while appended(server) * RECORD < PRODUCERS * RATE * BURST_S:
            time.sleep(0.5)
        time.sleep(PERIOD_S)
        crowded = latencies(server)
        assert all(each.poll() is None for each in producers)
    finally:
        for each in producers:
            each.terminate()
            each.wait(30)
    print(
        f"{type(server).__name__}: alone p50 {alone[len(alone) // 2]:.2f} p99 {p99(alone):.2f} ms, with neighbours p50 "
        f"{crowded[len(crowded) // 2]:.2f} p99 {p99(crowded):.2f} ms, ratio {p99(crowded) / p99(alone):.2f}"
    )
    return p99(alone), p99(crowded)


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_quotas_protect_a_client_from_greedy_neighbours(kafka_43: Path, tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "ours") as ours:
        alone, crowded = measure(ours, kafka_43)
    with ApacheKafka(kafka_43, tmp_path / "kafka") as kafka:
        measure(kafka, kafka_43)
    assert crowded <= LARGEST_RATIO * alone
