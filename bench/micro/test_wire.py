"""Codecs of the hot APIs: request header and body in, response out. Run: `pytest bench/micro/test_wire.py`."""

from kafkapy.protocol.api import decode_request_header
from kafkapy.protocol.messages.fetch import FetchRequest, FetchResponse
from kafkapy.protocol.messages.header import RequestHeader, ResponseHeader
from kafkapy.protocol.messages.heartbeat import HeartbeatRequest
from kafkapy.protocol.messages.metadata import MetadataResponse
from kafkapy.protocol.messages.produce import ProduceRequest, ProduceResponse

HEADER = RequestHeader(request_api_key=0, request_api_version=9, correlation_id=5, client_id="rdkafka").encode(2)
RECORDS = bytes(170)


def produce_request(partitions):
    data = [ProduceRequest.PartitionProduceData(index=index, records=RECORDS) for index in range(partitions)]
    topic = ProduceRequest.TopicProduceData(name="a-usual-topic", partition_data=data)
    return HEADER + ProduceRequest(acks=-1, timeout_ms=30000, topic_data=[topic]).encode(9)


def decode_produce(frame):
    _, pos = decode_request_header(frame)
    return ProduceRequest.decode(frame, 9, pos)


def respond_produce():
    partition = ProduceResponse.PartitionProduceResponse(index=0, base_offset=42)
    topic = ProduceResponse.TopicProduceResponse(name="a-usual-topic", partition_responses=[partition])
    return ProduceResponse(responses=[topic]).encode_chunks(9, ResponseHeader(correlation_id=5).encode(1))


def test_decode_produce_of_one_partition(benchmark):
    assert benchmark(decode_produce, produce_request(1)).acks == -1


def test_decode_produce_of_a_hundred_partitions(benchmark):
    assert len(benchmark(decode_produce, produce_request(100)).topic_data[0].partition_data) == 100


def test_build_and_encode_produce_response(benchmark):
    assert len(benchmark(respond_produce)) == 1


def test_decode_fetch_of_ten_partitions(benchmark):
    partitions = [FetchRequest.FetchPartition(partition=index) for index in range(10)]
    data = FetchRequest(topics=[FetchRequest.FetchTopic(topic="t", partitions=partitions)]).encode(12)
    assert len(benchmark(FetchRequest.decode, data, 12).topics[0].partitions) == 10


def test_encode_fetch_response_of_ten_partitions(benchmark):
    partitions = [FetchResponse.PartitionData(partition_index=index, records=bytes(5000)) for index in range(10)]
    response = FetchResponse(responses=[FetchResponse.FetchableTopicResponse(topic="t", partitions=partitions)])
    assert len(benchmark(response.encode_chunks, 12)) == 21


def test_encode_metadata_of_a_hundred_partitions(benchmark):
    partitions = [
        MetadataResponse.MetadataResponsePartition(partition_index=index, leader_id=1, replica_nodes=[1], isr_nodes=[1])
        for index in range(100)
    ]
    topic = MetadataResponse.MetadataResponseTopic(name="t", partitions=partitions)
    assert benchmark(MetadataResponse(topics=[topic]).encode, 12)


def test_plain_codec_decode_heartbeat(benchmark):
    data = HeartbeatRequest(group_id="group", member_id="member-1").encode(4)
    assert benchmark(HeartbeatRequest.decode, data, 4).group_id == "group"
