"""Produce and fetch from request bytes to answer bytes, without a socket: the Python path, over a real log."""

import pytest

from kafkapy._core.bytes.record_batch import RecordBatchBuilder
from kafkapy.protocol.messages.fetch import FetchRequest
from kafkapy.protocol.messages.produce import ProduceRequest
from kafkapy.server.handlers.fetch import handle_fetch
from kafkapy.server.handlers.produce import handle_produce
from tests.harness.handler import HandlerHarness
from tests.harness.replica import NOW_MS, partition_image


@pytest.fixture
def harness(tmp_path):
    harness = HandlerHarness(tmp_path)
    harness.put_topic("t", [partition_image()])
    return harness


def records(count: int, size: int) -> bytes:
    builder = RecordBatchBuilder()
    for _ in range(count):
        builder.append(NOW_MS, None, bytes(size))
    return builder.build()


def produce_request(count: int, size: int) -> ProduceRequest:
    data = ProduceRequest.PartitionProduceData(index=0, records=records(count, size))
    topic = ProduceRequest.TopicProduceData(name="t", partition_data=[data])
    return ProduceRequest(acks=1, timeout_ms=1000, topic_data=[topic])


@pytest.mark.parametrize("count", [1, 1_000])
def test_produce(benchmark, harness, count):
    request = produce_request(count, 100)
    answer = benchmark(harness.send, handle_produce, request, 7)
    assert answer.response.responses[0].partition_responses[0].error_code == 0


def test_fetch(benchmark, harness):
    for _ in range(100):
        harness.send(handle_produce, produce_request(10, 100), 7)
    partition = FetchRequest.FetchPartition(partition=0, fetch_offset=500, partition_max_bytes=10_000)
    topic = FetchRequest.FetchTopic(topic="t", partitions=[partition])
    request = FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=10_000, topics=[topic])
    answer = benchmark(harness.send, handle_fetch, request, 4)
    assert len(answer.response.responses[0].partitions[0].records) > 1_000
